// What `tritax model` writes: tables for people, JSON, sentences.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/table.hpp"
#include "sim/study/model_time.hpp"

namespace tritax::cli {

std::string model_heading(const ModelQuestion& question);

// "batch 8, context 1024, TP 8"; with EP where experts are shared.
std::string point_text(const ModelPoint& point);

// One row a point; of what was refused why.
Table model_table(const ModelAnswers& answers);

// Of all passes of the phase, GPUs and gaps.
double share_of_block(const PhaseAnswer& phase, std::size_t index);

// One row a block: its share of the phase, and what fusing changes.
Table model_block_table(const PhaseAnswer& phase);

// What pays over all rows, what was taken for what, and what is not modelled.
std::vector<std::string> model_sentences(const ModelQuestion& question, const ModelAnswers& answers);

// "tritax.model/1".
nlohmann::ordered_json model_json(const ModelQuestion& question, const ModelAnswers& answers);

}  // namespace tritax::cli

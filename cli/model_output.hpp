// Output of `tritax model`: tables for people, JSON, sentences.
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

// One row per point; refused points have their reason.
Table model_table(const ModelAnswers& answers);

// Share of a block in the time of all passes of the phase: GPU time and gaps.
double share_of_block(const PhaseAnswer& phase, std::size_t index);

// One row per block: its share of the phase, and the change by fusing.
Table model_block_table(const PhaseAnswer& phase);

// Sentences: blocks where fusing pays over all rows, substitutions, and parts that are not modelled.
std::vector<std::string> model_sentences(const ModelQuestion& question, const ModelAnswers& answers);

// "tritax.model/1".
nlohmann::ordered_json model_json(const ModelQuestion& question, const ModelAnswers& answers);

}  // namespace tritax::cli

// Scores of verdicts in `reproduce`: tables for people, CSV and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/output.hpp"
#include "sim/study/verdicts.hpp"

namespace tritax::cli {

// Every verdict, family by family, then the score; nothing without verdicts.
void print_verdicts(const std::vector<JudgedQuestion>& verdicts, const Outputs& outputs);

Table verdict_table(const std::vector<JudgedQuestion>& verdicts);
nlohmann::ordered_json verdicts_json(const std::vector<JudgedQuestion>& verdicts);
nlohmann::ordered_json score_json(const std::vector<JudgedQuestion>& verdicts);

}  // namespace tritax::cli

// Tables of how good picks are, of `tritax tune`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/report.hpp"
#include "sim/study/choices.hpp"

namespace tritax::cli {

Table pick_table();

// `choice_ns`: of one choice, not a number where nobody chooses; `left`: options that it simulates or times.
void add_pick(Table& table, const std::string& name, double choice_ns, double left, const PickScore& score);

nlohmann::ordered_json json_of_table(const Table& table);

}  // namespace tritax::cli

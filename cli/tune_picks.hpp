// Tables of scores of picks, for `tritax tune`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/report.hpp"
#include "sim/study/choices.hpp"

namespace tritax::cli {

Table pick_table();

// `choice_ns`: time of one choice, NaN without a chooser; `left`: number of options that it simulates or
// times.
void add_pick(Table& table, const std::string& name, double choice_ns, double left, const PickScore& score);

nlohmann::ordered_json json_of_table(const Table& table);

}  // namespace tritax::cli

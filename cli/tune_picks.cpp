#include "cli/tune_picks.hpp"

#include <cmath>
#include <variant>
#include <vector>

#include "cli/output.hpp"

namespace tritax::cli {

Table pick_table() {
  return Table{{{"selector", "selector"},
                {"choice_us", "one choice", "us", 3},
                {"left", "options tried", "", 2},
                {"within_5_pct", "within 5 %", "%"},
                {"within_10_pct", "within 10 %", "%"},
                {"within_20_pct", "within 20 %", "%"},
                {"mean_ratio", "mean ratio", "", 4},
                {"worst_ratio", "worst ratio", "", 2},
                {"best_gain_pct", "best gain", "%"}},
               {}};
}

void add_pick(Table& table, const std::string& name, double choice_ns, double left, const PickScore& score) {
  table.add({name, std::isnan(choice_ns) ? Cell() : Cell(us(choice_ns)), left, 100 * score.within_5,
             100 * score.within_10, 100 * score.within_20, score.mean_ratio, score.worst_ratio,
             100 * score.best_gain});
}

nlohmann::ordered_json json_of_table(const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<Cell>& cells : table.rows) {
    nlohmann::ordered_json& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      nlohmann::ordered_json& value = row[table.columns[i].key];
      if (const auto* text = std::get_if<std::string>(&cells[i])) value = *text;
      if (const auto* number = std::get_if<double>(&cells[i])) value = *number;
      if (const auto* whole = std::get_if<std::int64_t>(&cells[i])) value = *whole;
    }
  }
  return rows;
}

}  // namespace tritax::cli

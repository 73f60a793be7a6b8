// tritax compare: two results side by side: the rows that got slower, and the responsible part of the
// critical path.
#include "sim/study/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct CompareArguments {
  OutputOptions output;
  std::string before;
  std::string after;
};

// One line per row: both times, and the parts with most of the change.
Table comparison_table(const ResultComparison& comparison) {
  Table table{{{"id", "run"},
               {"before_us", "before", "us"},
               {"after_us", "after", "us"},
               {"change_us", "change", "us"},
               {"change_percent", "change", "%"},
               {"why", "why"}},
              {}};
  for (const RowComparison& row : comparison.rows) {
    table.add({row.id, row.before_us, row.after_us, row.after_us - row.before_us, 100 * row.change(),
               row.is_equal() ? std::string("unchanged") : describe_parts(row)});
  }
  return table;
}

// Every part of a single row.
Table part_change_table(const RowComparison& row) {
  Table table{{{"part", "critical path"},
               {"before_us", "before", "us"},
               {"after_us", "after", "us"},
               {"change_us", "change", "us"}},
              {}};
  for (const PartChange& part : row.parts) {
    if (part.before_us == 0 && part.after_us == 0) continue;
    table.add({part.part, part.before_us, part.after_us, part.change_us()});
  }
  return table;
}

// Differences common to all rows are printed once: "machine mi300x-8 -> h200-8".
std::vector<std::string> common_differences(const ResultComparison& comparison) {
  std::vector<std::string> texts;
  for (const Difference& one : comparison.rows.front().differences) {
    const bool of_all =
        std::all_of(comparison.rows.begin(), comparison.rows.end(), [&](const RowComparison& row) {
          return std::any_of(row.differences.begin(), row.differences.end(), [&](const Difference& other) {
            return other.name == one.name && other.before == one.before && other.after == one.after;
          });
        });
    if (of_all) texts.push_back(fmt::format("{} {} -> {}", one.name, one.before, one.after));
  }
  return texts;
}

// Number of slower rows, and the row with the largest slowdown.
std::string describe_all(const ResultComparison& comparison) {
  std::size_t slower = 0;
  std::size_t equal = 0;
  const RowComparison* most = &comparison.rows.front();
  for (const RowComparison& row : comparison.rows) {
    if (row.is_equal()) {
      ++equal;
    } else if (row.after_us > row.before_us) {
      ++slower;
    }
    if (row.change() > most->change()) most = &row;
  }
  std::string text =
      fmt::format("Of {} runs, {} got slower, {} got faster and {} did not change.", comparison.rows.size(),
                  slower, comparison.rows.size() - slower - equal, equal);
  if (slower > 0) text += fmt::format(" Largest change: {}, {}.", most->id, describe_change(*most));
  return text;
}

void print_comparison(const ResultComparison& comparison, const Outputs& outputs) {
  const std::vector<std::string> common = common_differences(comparison);
  outputs.print(wrapped(
      common.empty() ? std::string("Both results have the same inputs, or inputs that differ from row to "
                                   "row.")
                     : fmt::format("Differs: {}.", fmt::join(common, "; "))));
  outputs.print("\n");
  outputs.print(comparison_table(comparison));
  outputs.print("\n");
  if (comparison.rows.size() == 1) {
    outputs.print(part_change_table(comparison.rows.front()));
    outputs.print("\n");
  }
  if (comparison.rows.size() == 1) {
    outputs.print(wrapped(fmt::format("The run is {}.", describe_change(comparison.rows.front()))));
  } else {
    outputs.print(wrapped(describe_all(comparison)));
  }
  for (const auto& [ids, which] :
       {std::pair{&comparison.only_before, "first"}, std::pair{&comparison.only_after, "second"}}) {
    if (!ids->empty())
      outputs.print(wrapped(fmt::format("Only the {} has {}.", which, fmt::join(*ids, ", "))));
  }
}

ordered_json row_json(const RowComparison& row) {
  ordered_json parts = ordered_json::array();
  for (const PartChange& part : row.parts) {
    parts.push_back({{"part", part.part},
                     {"before_us", part.before_us},
                     {"after_us", part.after_us},
                     {"change_us", part.change_us()}});
  }
  ordered_json differences = ordered_json::array();
  for (const Difference& one : row.differences) {
    differences.push_back({{"name", one.name}, {"before", one.before}, {"after", one.after}});
  }
  return {{"id", row.id},
          {"before_us", row.before_us},
          {"after_us", row.after_us},
          {"change", row.change()},
          {"equal", row.is_equal()},
          {"parts", std::move(parts)},
          {"differences", std::move(differences)}};
}

int run(const CompareArguments& options) {
  Outputs outputs(options.output);
  const ResultFile before = read_result(options.before);
  const ResultFile after = read_result(options.after);
  const ResultComparison comparison = compare_results(before, after);
  print_comparison(comparison, outputs);
  outputs.csv(comparison_table(comparison));
  ordered_json rows = ordered_json::array();
  for (const RowComparison& row : comparison.rows) rows.push_back(row_json(row));
  outputs.json({{"schema", "tritax.compare/1"},
                {"version", version()},
                {"before", {{"file", before.origin}, {"schema", before.schema}}},
                {"after", {{"file", after.origin}, {"schema", after.schema}}},
                {"rows", std::move(rows)},
                {"only_before", comparison.only_before},
                {"only_after", comparison.only_after}});
  return 0;
}

}  // namespace

Run add_compare(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<CompareArguments>();
  CLI::App& command = *program.add_subcommand(
      "compare", "Compare two results: what got slower, and in which part of the critical path");
  command.add_option("BEFORE", options->before, "JSON result of simulate, explain, advise or layer")
      ->type_name("FILE.json")
      ->required();
  command.add_option("AFTER", options->after, "Second result, to compare with the first")
      ->type_name("FILE.json")
      ->required();
  add_output_options(command, options->output);
  command.footer(
      "The results may differ in machine, version or knobs. Rows with the same id, pattern or step are\n"
      "compared. Two files with one run each are always compared. Times are predictions: a change within\n"
      "the band may not show on GPUs.\n\n"
      "Examples:\n"
      "  tritax compare before.json after.json\n"
      "  tritax compare on-mi300x.json on-h200.json --json changes.json\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli

// tritax export and tritax merge: stored answers of sweeps as a table, and several databases as one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "sim/study/sweep/sweep_store.hpp"

namespace tritax::cli {

namespace {

struct ExportArguments {
  std::string database;
  std::string sweep;
  std::string output = "-";
  bool csv = false;
  bool jsonl = false;
};

struct MergeArguments {
  std::string target;
  std::vector<std::string> sources;
};

// Calls `give` with the dotted name and the value of every leaf of `tree`.
template <typename Give>
void flatten(const nlohmann::ordered_json& tree, const std::string& prefix, const Give& give) {
  for (const auto& [key, value] : tree.items()) {
    const std::string name = prefix.empty() ? key : prefix + '.' + key;
    if (value.is_object()) {
      flatten(value, name, give);
    } else {
      give(name, value);
    }
  }
}

Cell cell_of_json(const nlohmann::ordered_json& value) {
  if (value.is_null()) return std::monostate{};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.dump();
}

// Columns in the order of their first appearance.
class NamedColumns {
 public:
  void add(const std::string& name) {
    if (places_.try_emplace(name, names_.size()).second) names_.push_back(name);
  }
  bool has(const std::string& name) const { return places_.contains(name); }
  std::size_t operator[](const std::string& name) const { return places_.at(name); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> places_;
};

constexpr std::size_t kOwnColumns = 3;  // sweep, number, version

// Column name for a part of the answer; differs from a part of the point with the same name.
std::string answer_column(const NamedColumns& points, const std::string& name) {
  return points.has(name) || name == "sweep" || name == "number" || name == "version" || name == "error"
             ? "answer." + name
             : name;
}

std::string sweep_csv(const SweepStore& store, const std::string& sweep) {
  NamedColumns points;
  NamedColumns answers;
  const auto parsed = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json::object() : nlohmann::ordered_json::parse(text);
  };
  store.visit(sweep, [&](const std::string&, std::size_t, const SweepRow& row) {
    flatten(parsed(row.point), "", [&](const std::string& name, const auto&) { points.add(name); });
    flatten(parsed(row.answer), "", [&](const std::string& name, const auto&) { answers.add(name); });
  });
  Table table{{{"sweep", "sweep"}, {"number", "number"}, {"version", "version"}}, {}};
  for (const std::string& name : points.names()) table.columns.push_back({name, name});
  for (const std::string& name : answers.names()) {
    const std::string column = answer_column(points, name);
    table.columns.push_back({column, column});
  }
  table.columns.push_back({"error", "error"});
  store.visit(sweep, [&](const std::string& name, std::size_t number, const SweepRow& row) {
    std::vector<Cell> cells(table.columns.size());
    cells[0] = name;
    cells[1] = static_cast<std::int64_t>(number);
    cells[2] = row.version;
    flatten(parsed(row.point), "", [&](const std::string& key, const auto& value) {
      cells[kOwnColumns + points[key]] = cell_of_json(value);
    });
    flatten(parsed(row.answer), "", [&](const std::string& key, const auto& value) {
      cells[kOwnColumns + points.names().size() + answers[key]] = cell_of_json(value);
    });
    if (!row.error.empty()) cells.back() = row.error;
    table.add(std::move(cells));
  });
  return to_csv(table);
}

std::string sweep_lines(const SweepStore& store, const std::string& sweep) {
  std::string text;
  store.visit(sweep, [&](const std::string& name, std::size_t number, const SweepRow& row) {
    nlohmann::ordered_json line{{"sweep", name},
                                {"number", number},
                                {"version", row.version},
                                {"point", nlohmann::ordered_json::parse(row.point)}};
    if (row.answer.empty()) {
      line["error"] = row.error;
    } else {
      line["answer"] = nlohmann::ordered_json::parse(row.answer);
    }
    text += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  });
  return text;
}

int run_export(const ExportArguments& arguments) {
  if (arguments.database.empty())
    throw UserError("FILE.db: missing; give a database that 'tritax sweep' writes");
  if (arguments.csv && arguments.jsonl) throw UserError("--csv --jsonl: give one of them");
  if (arguments.output.ends_with(".parquet")) {
    throw UserError(
        "--output: Parquet is written by the Python module: tritax.read_sweep(DB).to_parquet(FILE)");
  }
  std::optional<OutputFile> file;
  if (!is_standard_output(arguments.output)) file.emplace(arguments.output, "--output");
  const SweepStore store(arguments.database, SweepAccess::read);
  const std::vector<std::string> sweeps = store.sweeps();
  if (!arguments.sweep.empty() && std::find(sweeps.begin(), sweeps.end(), arguments.sweep) == sweeps.end()) {
    const std::string nearest = nearest_name(arguments.sweep, sweeps);
    throw UserError(fmt::format(
        "--sweep: '{}' has no sweep '{}'{}; it has {}", arguments.database, arguments.sweep,
        nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest), fmt::join(sweeps, ", ")));
  }
  const bool lines = arguments.jsonl || (!arguments.csv && arguments.output.ends_with(".jsonl"));
  const std::string text = lines ? sweep_lines(store, arguments.sweep) : sweep_csv(store, arguments.sweep);
  if (file) {
    file->commit(text);
  } else {
    write_standard_output(text);
  }
  return 0;
}

int run_merge(const MergeArguments& arguments) {
  if (arguments.target.empty() || arguments.sources.empty())
    throw UserError("OUT.db IN.db…: missing; give the database to make and those to merge into it");
  for (const std::string& source : arguments.sources)
    SweepStore(source, SweepAccess::read);  // before points are added
  SweepStore store(arguments.target, SweepAccess::write);
  for (const std::string& source : arguments.sources) {
    const SweepMerge merged = store.merge(source);
    write_standard_output(fmt::format("{}: {} of {} points added\n", source, merged.added, merged.rows));
    if (merged.differ > 0) {
      tell(
          fmt::format("tritax: {}: {} points have another answer in {}, which is kept; did two versions of "
                      "Tritax write them?\n",
                      source, merged.differ, arguments.target));
    }
  }
  store.close();
  return 0;
}

}  // namespace

Run add_export(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<ExportArguments>();
  CLI::App& command = *program.add_subcommand("export", "Write stored sweeps as CSV or JSON lines");
  command.add_option("database", options->database, "Database of 'tritax sweep'")->type_name("FILE.db");
  command.add_flag("--csv", options->csv, "One row per point (default)");
  command.add_flag("--jsonl", options->jsonl, "One JSON object per line, with whole answers");
  command.add_option("--sweep", options->sweep, "Only the points of this sweep (default: all)")
      ->type_name("NAME");
  command.add_option("-o,--output", options->output, "File to write (default: -, standard output)")
      ->type_name("FILE")
      ->group(kOutputGroup);
  command.footer(
      "Points are sorted by number. Columns are the keys of points, the fields of answers, and \"error\".\n"
      "In Python, tritax.read_sweep(FILE.db) gives the same as a pandas frame.\n\n"
      "Example:\n"
      "  tritax export links.db -o links.csv\n");
  return [options] { return run_export(*options); };
}

Run add_merge(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<MergeArguments>();
  CLI::App& command = *program.add_subcommand("merge", "Merge the databases of a sweep's shards into one");
  command.add_option("target", options->target, "Database to make or add to")
      ->type_name("OUT.db")
      ->group(kOutputGroup);
  command.add_option("sources", options->sources, "Databases of 'tritax sweep --shard'")->type_name("IN.db");
  command.footer(
      "Answers replace errors; nothing replaces an answer. Input databases do not change.\n\n"
      "Example:\n"
      "  tritax merge links.db links-1.db links-2.db\n");
  return [options] { return run_merge(*options); };
}

}  // namespace tritax::cli

// tritax roofline: for a network, the sparsity of weights that is worth its accuracy on a machine, before a
// kernel for it exists; for a workload, the ceilings above its operations (run_roofline.cpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/accuracy_plot.hpp"
#include "cli/axes.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/run_input.hpp"
#include "cli/run_roofline.hpp"
#include "cli/svg.hpp"
#include "cli/sweep_plot.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "sim/study/language_model.hpp"
#include "sim/study/sparsity_roofline.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostSamples = 1 << 20;
constexpr double kUsuallyLeft[] = {1, 0.5, 0.25, 0.1, 0.05};
constexpr std::string_view kUsualPatterns = "unstructured,2:4,block16x16,outputs";

struct RooflineArguments {
  OutputOptions output;
  RunRooflineOptions run;  // machines and their changes; the workload, without a network
  std::vector<std::pair<const char*, std::string*>> shared;  // options of networks that are fields too
  std::string network;
  std::string patterns{kUsualPatterns};
  std::string sparsities;
  std::string format;  // "": each pattern's usual format
  std::string dtype = "fp16";
  std::string batch = "1";
  std::string index_bits = "32";
  bool layers = false;
  std::string accuracy;  // a CSV
};

// A pattern at a density on a machine.
struct RooflineRow {
  const Machine* machine = nullptr;
  std::string at;  // place on the axes of the command line
  SparsityPattern pattern;
  SparseFormat format = SparseFormat::csr;
  double density = 1;
  NetworkRoofline result;
  std::optional<double> accuracy;

  double sparsity_percent() const { return 100 * (1 - density); }
};

struct RooflineStudy {
  Network network;
  SparsityOptions options;
  std::vector<Machine> machines;
  std::vector<std::string> at;  // by machine
  std::vector<RooflineRow> rows;
  std::vector<std::string> not_drawn;  // accuracies without a requested point: "2:4 at 0.5"
};

double number_asked(const std::string& text, std::string_view flag, double low, double high,
                    std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) return value;
  throw UserError(fmt::format("{}: '{}' is not a {}; give {:g} to {:g}", flag, text, what, low, high));
}

std::vector<double> densities_asked(const RooflineArguments& asked) {
  if (asked.sparsities.empty()) return {std::begin(kUsuallyLeft), std::end(kUsuallyLeft)};
  std::vector<double> densities;
  for (const std::string& part : parts_of(asked.sparsities, "--sparsity")) {
    densities.push_back(1 - number_asked(part, "--sparsity", 0, 1, "share of pruned weights"));
  }
  return densities;
}

// Key: pattern, and sparsity in ten-thousandths, which is finer than any given value.
struct Accuracy {
  double percent = 0;
  bool drawn = false;  // whether its pattern and sparsity are requested
};
using Accuracies = std::map<std::pair<std::string, std::int64_t>, Accuracy>;

std::int64_t sparsity_key(double density) { return std::llround((1 - density) * 1e4); }

Accuracies read_accuracies(const std::string& path) {
  constexpr std::string_view kWriter = "a table of accuracies";
  Accuracies accuracies;
  if (path.empty()) return accuracies;
  read_csv(read_csv_file(path, kWriter), path, "pattern,sparsity,accuracy", kWriter, [&](const CsvRow& row) {
    const SparsityPattern pattern = parse_sparsity_pattern(row.text("pattern"), row.where() + ": pattern: ");
    const double density = 1 - row.number("sparsity", 0, 1);
    const double accuracy = row.number("accuracy", 0, 100);
    if (!accuracies.emplace(std::pair{pattern.name, sparsity_key(density)}, Accuracy{accuracy}).second) {
      throw UserError(fmt::format("{}: {} at sparsity {} appears twice", row.where(), pattern.name,
                                  row.text("sparsity")));
    }
  });
  return accuracies;
}

// Densities of one pattern: n of m has a fixed density, dense is 1.
std::vector<double> densities_with(const SparsityPattern& pattern, const std::vector<double>& asked) {
  if (pattern.kind == SparsityKind::dense) return {1};
  if (pattern.kind == SparsityKind::n_of_m)
    return {static_cast<double>(pattern.n) / static_cast<double>(pattern.m)};
  return asked;
}

SparseFormat format_of(const RooflineArguments& asked, const SparsityPattern& pattern) {
  if (asked.format.empty()) return pattern.usual_format();
  const auto format = static_cast<SparseFormat>(parse_name(asked.format, "--format", kSparseFormatNames));
  const bool by_row = pattern.usual_format() == SparseFormat::csr;
  if (by_row && format == SparseFormat::bits) {
    throw UserError(
        fmt::format("--format: bits is for N:M; pattern '{}' takes csr, coo or ell", pattern.name));
  }
  return by_row || pattern.kind == SparsityKind::n_of_m ? format : SparseFormat::bits;
}

RooflineStudy roofline_study(const RooflineArguments& asked) {
  RooflineStudy study;
  if (asked.network.empty()) {
    throw UserError(
        fmt::format("--network: missing; give one of {}, {}, or a TOML file; or sizes of a workload",
                    fmt::join(shipped_networks(), ", "), fmt::join(shipped_models(), ", ")));
  }
  study.network = with_place("--network: ", [&] { return find_network(asked.network); });
  study.options.dtype = static_cast<DType>(parse_name(asked.dtype, "--dtype", kCommonDTypeNames));
  study.options.batch = parse_integer(asked.batch, "--batch", 1, kMostSamples);
  study.options.index_bytes =
      number_asked(asked.index_bits, "--index-bits", 1, 64, "number of index bits") / 8;
  const RunInputOptions& run_input = asked.run.run_input;
  if (run_input.machine.empty() && run_input.axes.empty())
    throw UserError("--machine: missing; give --network and --machine");
  for (const Asked& point : points_of(static_cast<const Asked&>(run_input))) {
    Source source;
    source.machine = point.machine;
    source.changes = point.changes;
    source.sustained = run_input.sustained;
    study.machines.push_back(machine_of(source));
    study.at.push_back(describe_point(point));
  }
  const std::vector<double> densities = densities_asked(asked);
  Accuracies accuracies = read_accuracies(asked.accuracy);
  for (std::size_t i = 0; i < study.machines.size(); ++i) {
    const RooflinePeaks peaks = peaks_of(study.machines[i], study.options.dtype);
    for (const std::string& name : parts_of(asked.patterns, "--patterns")) {
      const SparsityPattern pattern = parse_sparsity_pattern(name, "--patterns: ");
      const SparseFormat format = format_of(asked, pattern);
      for (const double density : densities_with(pattern, densities)) {
        RooflineRow row{&study.machines[i], study.at[i], pattern, format, density, {}, {}};
        row.result = roofline_of(study.network, pattern, format, density, study.options, peaks);
        const auto known = accuracies.find({pattern.name, sparsity_key(density)});
        if (known != accuracies.end()) {
          row.accuracy = known->second.percent;
          known->second.drawn = true;
        }
        study.rows.push_back(std::move(row));
      }
    }
  }
  for (const auto& [key, accuracy] : accuracies) {
    if (accuracy.drawn) continue;
    study.not_drawn.push_back(fmt::format("{} at {}", key.first, static_cast<double>(key.second) / 1e4));
  }
  return study;
}

Cell accuracy_cell(const RooflineRow& row) {
  if (row.accuracy) return *row.accuracy;
  return std::monostate{};
}

std::string format_name(const RooflineRow& row) {
  if (row.pattern.kind == SparsityKind::dense || row.pattern.kind == SparsityKind::outputs) return "-";
  return std::string(kSparseFormatNames[static_cast<std::size_t>(row.format)]);
}

Table network_table(const RooflineStudy& study, bool with_accuracy) {
  Table table{{{"machine", "machine"},
               {"pattern", "pattern"},
               {"format", "format"},
               {"sparsity_percent", "sparsity", "%"},
               {"time_us", "time", "us"},
               {"speedup", "speedup", "", 2}},
              {}};
  if (with_accuracy) table.columns.push_back({"accuracy_percent", "accuracy", "%", 2});
  for (const RooflineRow& row : study.rows) {
    std::vector<Cell> cells{row.machine->title(),   row.pattern.name,         format_name(row),
                            row.sparsity_percent(), row.result.time_ns / 1e3, row.result.speedup};
    if (with_accuracy) cells.push_back(accuracy_cell(row));
    table.add(std::move(cells));
  }
  return table;
}

Table layer_table(const RooflineStudy& study) {
  Table table{{{"machine", "machine"},
               {"pattern", "pattern"},
               {"sparsity_percent", "sparsity", "%"},
               {"layer", "layer"},
               {"count", "count"},
               {"gflop", "flops", "GFLOP", 3},
               {"value_bytes", "values", "B", 0},
               {"index_bytes", "indices", "B", 0},
               {"activation_bytes", "activations", "B", 0},
               {"time_us", "time", "us", 2},
               {"bound", "bound by"}},
              {}};
  for (const RooflineRow& row : study.rows) {
    for (std::size_t i = 0; i < study.network.layers.size(); ++i) {
      const LayerRoofline& layer = row.result.layers[i];
      table.add({row.machine->title(), row.pattern.name, row.sparsity_percent(), study.network.layers[i].name,
                 study.network.layers[i].count, layer.flops / 1e9, layer.value_bytes, layer.index_bytes,
                 layer.activation_bytes, layer.time_ns() / 1e3,
                 std::string(layer.compute_ns > layer.memory_ns ? "matrix cores" : "memory")});
    }
  }
  return table;
}

ordered_json roofline_json(const RooflineStudy& study) {
  ordered_json rows = ordered_json::array();
  for (const RooflineRow& row : study.rows) {
    ordered_json json{{"machine", row.machine->title()},     {"pattern", row.pattern.name},
                      {"format", format_name(row)},          {"sparsity", 1 - row.density},
                      {"time_us", row.result.time_ns / 1e3}, {"speedup", row.result.speedup}};
    if (row.accuracy) json["accuracy_percent"] = *row.accuracy;
    ordered_json layers = ordered_json::array();
    for (std::size_t i = 0; i < study.network.layers.size(); ++i) {
      const LayerRoofline& layer = row.result.layers[i];
      layers.push_back({{"layer", study.network.layers[i].name},
                        {"count", study.network.layers[i].count},
                        {"flops", layer.flops},
                        {"value_bytes", layer.value_bytes},
                        {"index_bytes", layer.index_bytes},
                        {"activation_bytes", layer.activation_bytes},
                        {"compute_us", layer.compute_ns / 1e3},
                        {"memory_us", layer.memory_ns / 1e3}});
    }
    json["layers"] = std::move(layers);
    rows.push_back(std::move(json));
  }
  return {{"schema", "tritax.roofline/1"},
          {"version", version()},
          {"network", study.network.name},
          {"source", study.network.source},
          {"dtype", name_of(study.options.dtype)},
          {"batch", study.options.batch},
          {"index_bytes", study.options.index_bytes},
          {"rows", std::move(rows)}};
}

std::string line_name(const RooflineStudy& study, const RooflineRow& row) {
  if (study.machines.size() == 1) return row.pattern.name;
  return fmt::format("{}, {}", row.pattern.name, row.machine->title());
}

// Speedup over the compression factor of the weights; a density of 0 has no place on the axis.
SweepPlot compression_plot(const RooflineStudy& study, const std::string& subtitle) {
  SweepPlot plot;
  plot.title = fmt::format("Sparsity roofline of {}", study.network.name);
  plot.subtitle = subtitle;
  plot.x_label = "weights: dense over kept";
  plot.y_label = "theoretical speedup";
  plot.decimals = 2;
  for (const RooflineRow& row : study.rows) {
    if (row.density <= 0) continue;
    const std::string name = line_name(study, row);
    if (plot.lines.empty() || plot.lines.back().name != name) plot.lines.push_back({name, {}});
    plot.lines.back().points.emplace_back(1 / row.density, row.result.speedup);
  }
  for (SweepLine& line : plot.lines) std::sort(line.points.begin(), line.points.end());
  return plot;
}

AccuracyPlot accuracy_plot(const RooflineStudy& study, const std::string& subtitle) {
  AccuracyPlot plot;
  plot.title = fmt::format("Sparsity roofline of {}", study.network.name);
  plot.subtitle = subtitle;
  for (const RooflineRow& row : study.rows) {
    if (!row.accuracy) continue;
    const std::string name = line_name(study, row);
    if (plot.lines.empty() || plot.lines.back().name != name) plot.lines.push_back({name, {}});
    plot.lines.back().points.push_back(
        {row.result.speedup, *row.accuracy, fmt::format("{:.4g} %", row.sparsity_percent())});
  }
  if (plot.lines.empty()) {
    throw UserError(
        "--accuracy: no row has a requested pattern and sparsity; name them with --patterns and --sparsity");
  }
  return plot;
}

// Whether a scenario, a schedule, or any option of a workload was given.
bool is_of_a_workload(const RooflineArguments& asked) {
  const RunInputOptions& run_input = asked.run.run_input;
  const auto options = run_input.command->get_options();
  return !run_input.file.empty() || !run_input.pattern.empty() ||
         std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
           return option->get_group() == kWorkloadGroup && option->count() > 0;
         });
}

int run_sparsity_roofline(const RooflineArguments& asked) {
  Outputs outputs(asked.output);
  std::optional<OutputFile> plot;
  if (!asked.run.plot.empty()) {
    require_svg(asked.run.plot);
    plot.emplace(asked.run.plot, "--plot");
  }
  const RooflineStudy study = roofline_study(asked);
  if (!study.not_drawn.empty()) {
    tell(fmt::format(
        "tritax: --accuracy: not requested, so skipped: {}; name them with --patterns and --sparsity\n",
        fmt::join(study.not_drawn, ", ")));
  }
  const std::string heading = fmt::format("{} {}, batch of {}", name_of(study.options.dtype),
                                          study.network.name, study.options.batch);
  const bool with_accuracy = !asked.accuracy.empty();
  std::string picture;
  if (with_accuracy) {
    picture = to_svg(accuracy_plot(study, heading));
  } else if (plot) {
    picture = to_svg(compression_plot(study, heading));
  }
  const Table table = asked.layers ? layer_table(study) : network_table(study, with_accuracy);
  outputs.print(styled(heading, Style::bold) + "\n\n");
  outputs.print(table);
  outputs.print(
      "\nSpeedups are bounds, dense time over sparse time: every byte moves once, and the matrix cores run "
      "at their full rate.\n");
  outputs.csv(with_record(table, {}));
  outputs.json(roofline_json(study));
  if (plot) plot->commit(picture);
  return 0;
}

int run_roofline_command(RooflineArguments& asked) {
  if (asked.network.empty() && is_of_a_workload(asked)) return show_run_roofline(asked.run, asked.output);
  if (!asked.run.run_input.file.empty()) {
    throw UserError(
        fmt::format("--network: '{}' is a run; give either a network or a run", asked.run.run_input.file));
  }
  for (const auto& [flag, target] : asked.shared) {
    const CLI::Option* option = asked.run.run_input.command->get_option(flag);
    if (option->count() > 0) *target = fmt::format("{}", fmt::join(option->results(), ","));
  }
  return run_sparsity_roofline(asked);
}

// An option of networks. A field of the workload with the same name shares the given value.
void add_network_option(CLI::App& command, RooflineArguments& asked, const char* flag, std::string& target,
                        const char* form, const std::string& help) {
  if (command.get_option_no_throw(flag) != nullptr) {
    asked.shared.emplace_back(flag, &target);
  } else {
    command.add_option(flag, target, help)->type_name(form)->group("Networks");
  }
}

}  // namespace

Run add_roofline(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<RooflineArguments>();
  CLI::App& command = *program.add_subcommand(
      "roofline", "Show which sparsity can pay in a network, or the ceilings of a run");
  add_run_input_options(command, workload, options->run.run_input);
  const auto add = [&](const char* flag, std::string& target, const char* form, const std::string& help) {
    add_network_option(command, *options, flag, target, form, help);
  };
  add("--network", options->network, "NAME|FILE",
      fmt::format("Shipped network ({}), language model of 'tritax layer' (a sample is a token), or TOML "
                  "file of layers",
                  fmt::join(shipped_networks(), ", ")));
  add("--patterns", options->patterns, "A,B,C",
      "Pruning patterns: dense, unstructured, outputs, N:M, blockRxC (default: " +
          std::string(kUsualPatterns) + ")");
  add("--sparsity", options->sparsities, "A,B,C",
      "Shares of pruned weights (default: 0,0.5,0.75,0.9,0.95); N:M has its own");
  add("--format", options->format, "NAME",
      "Storage of weights: csr, coo, ell; bits for N:M (default: csr, N:M bits)");
  add("--index-bits", options->index_bits, "N", "Bits of a column, row or offset (default: 32)");
  add("--dtype", options->dtype, "NAME",
      fmt::format("Element type of weights and activations: {} (default: fp16)",
                  fmt::join(kCommonDTypeNames, ", ")));
  add("--batch", options->batch, "N", "Samples (default: 1)");
  add("--accuracy", options->accuracy, "FILE.csv",
      "CSV of accuracies (pattern,sparsity,accuracy in percent) to draw over the speedup");
  if (command.get_option_no_throw("--layers") == nullptr) {
    command.add_flag("--layers", options->layers, "Show every layer instead of the whole network")
        ->group("Networks");
  }
  add_sustained_option(command, options->run.run_input.sustained);
  add_seed_option(command, options->run.seed);
  add_output_options(command, options->output);
  command
      .add_option(
          "--plot", options->run.plot,
          "Draw the run under its ceilings; for a network, draw speedup over compression, or accuracy over "
          "speedup with --accuracy")
      ->type_name("FILE.svg")
      ->group(kOutputGroup);
  command.footer(
      "For a run: compute, L2, last-level cache, HBM and link ceilings of one GPU, and the rate of every\n"
      "kind of operation.\n"
      "For a network: a layer takes the longer of its flops at the rate of the matrix cores and its bytes\n"
      "(values, indices, activations) at the rate of memory. Formulas: docs/roofline.md.\n\n"
      "Examples:\n"
      "  tritax roofline -M 8192 -N 4608 -K 36864 --pattern producer-consumer --machine mi300x-8 --plot "
      "roof.svg\n"
      "  tritax roofline --network resnet-50 --batch 64 --machine h100-4\n"
      "  tritax roofline --network vit-b --machine h100-4,mi300x-8 --patterns 2:4,block32x32 --layers\n"
      "  tritax roofline --network llama-3-8b --machine mi300x-8 --set gpu.hbm_bandwidth=8TB/s --plot "
      "sparsity.svg\n");
  return [options] { return run_roofline_command(*options); };
}

}  // namespace tritax::cli

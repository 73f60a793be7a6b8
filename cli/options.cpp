#include "cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"

namespace tritax::cli {

namespace {

constexpr std::int64_t kAnyInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kLargestKnob = 1 << 20;

template <typename Integer>
void add_any_integer(CLI::App& app, const std::string& flag, std::optional<Integer>& target,
                     const std::string& help, Integer lowest, Integer highest, const std::string& allowed) {
  app.add_option_function<std::string>(
         flag,
         [&target, flag, lowest, highest, allowed](const std::string& text) {
           target = static_cast<Integer>(parse_integer(text, flag, lowest, highest, allowed));
         },
         help)
      ->type_name("NUMBER");
}

// An option that takes one of the names of an enumeration.
template <typename Value>
void add_name(CLI::App& app, const std::string& flag, std::optional<Value>& target,
              std::span<const std::string_view> names, const std::string& help) {
  app.add_option_function<std::string>(
         flag,
         [&target, flag, names](const std::string& word) {
           target = static_cast<Value>(parse_name(word, flag, names));
         },
         fmt::format("{}: {}", help, fmt::join(names, ", ")))
      ->type_name("NAME");
}

}  // namespace

std::int64_t parse_integer(const std::string& text, const std::string& flag, std::int64_t lowest,
                           std::int64_t highest, const std::string& allowed) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end) {
    throw UserError(fmt::format("{}: '{}' is not a whole number", flag, text));
  }
  if (error == std::errc::result_out_of_range || value < lowest || value > highest) {
    throw UserError(fmt::format("{}: {} is out of range; give {}", flag, text,
                                allowed.empty() ? fmt::format("{} to {}", lowest, highest) : allowed));
  }
  return value;
}

std::vector<std::int32_t> parse_shape(const std::string& text, const std::string& flag,
                                      std::size_t dimensions, std::int32_t largest) {
  const std::string allowed = fmt::format("multiples of {} up to {}", kTileStep, largest);
  std::vector<std::int32_t> shape;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    shape.push_back(static_cast<std::int32_t>(parse_integer(
        text.substr(begin, end - begin), fmt::format("{} {}", flag, text), 1, largest, allowed)));
    begin = end + 1;
  }
  if (shape.size() != dimensions) {
    throw UserError(fmt::format("{}: '{}' has {} number{}; give {}, for example {}", flag, text, shape.size(),
                                shape.size() == 1 ? "" : "s", dimensions,
                                dimensions == 3 ? "256x256x64" : "256x256"));
  }
  return shape;
}

std::size_t parse_name(const std::string& word, const std::string& flag,
                       std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) {
      return i;
    }
  }
  const std::string nearest = nearest_name(word, names);
  throw UserError(fmt::format("{}: unknown name '{}'{}; known are {}", flag, word,
                              nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                              fmt::join(names, ", ")));
}

Machine find_machine_option(const std::string& name) {
  return with_place("--machine: ", [&] { return find_machine(name); });
}

void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int32_t>& target,
                 const std::string& help, std::int32_t lowest, std::int32_t highest,
                 const std::string& allowed) {
  add_any_integer(app, flag, target, help, lowest, highest, allowed);
}

void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& target,
                 const std::string& help, std::int64_t lowest, std::int64_t highest) {
  add_any_integer(app, flag, target, help, lowest, highest, "");
}

void add_workload_options(CLI::App& app, WorkloadOptions& options) {
  static constexpr std::array<std::string_view, 1> kWorkloads{"gemm-all-scatter"};
  constexpr std::int64_t kLargestSize = 1 << 20;
  app.add_option_function<std::string>(
         "--workload", [](const std::string& word) { parse_name(word, "--workload", kWorkloads); },
         "What is computed: gemm-all-scatter (C = A·B, B split by columns, all of C on every GPU)")
      ->type_name("NAME")
      ->group("Workload");
  const auto add_size = [&](const std::string& flag, std::optional<std::int64_t>& target,
                            const std::string& help) {
    add_integer(app, flag, target, help, 1, kLargestSize);
    app.get_option(flag)->group("Workload");
  };
  add_size("-M", options.m, "Rows of A and C");
  add_size("-N", options.n, "Columns of B and C, of the whole problem");
  add_size("-K", options.k, "Columns of A, rows of B");
  app.add_option_function<std::string>(
         "--dtype",
         [&options](const std::string& word) { options.dtype = name_of(parse_dtype(word, "--dtype")); },
         fmt::format("Element type of A, B and C: {} (default {})", fmt::join(kDTypeNames, ", "),
                     options.dtype))
      ->type_name("NAME")
      ->group("Workload");
  add_integer(app, "--gpus", options.gpus, "How many GPUs share the work (default: all of the machine)", 1,
              1 << 15, "1 to the number of GPUs of the machine");
  app.get_option("--gpus")->group("Workload");
}

void require_sizes(const WorkloadOptions& options, const std::string& machine) {
  for (const auto& [flag, present] :
       {std::pair{"-M", options.m.has_value()}, std::pair{"-N", options.n.has_value()},
        std::pair{"-K", options.k.has_value()}, std::pair{"--machine", !machine.empty()}}) {
    if (!present) {
      throw UserError(fmt::format("{}: missing; give the sizes -M, -N, -K and --machine", flag));
    }
  }
}

GemmAllScatter workload_of(const WorkloadOptions& options, const Machine& machine) {
  GemmAllScatter workload;
  workload.m = options.m.value();
  workload.n = options.n.value();
  workload.k = options.k.value();
  workload.dtype = parse_dtype(options.dtype, "--dtype");
  workload.gpus = options.gpus.value_or(machine.gpu_count());
  if (workload.gpus > machine.gpu_count()) {
    throw UserError(fmt::format("--gpus: {} is more than the machine '{}' has; give 1 to {}", workload.gpus,
                                machine.name, machine.gpu_count()));
  }
  check(workload, "-M -N -K --gpus");
  return workload;
}

void add_machine_option(CLI::App& app, std::string& name) {
  app.add_option("--machine", name, "A shipped machine (tritax machines lists them) or a machine file (TOML)")
      ->type_name("NAME|FILE");
}

void add_knob_options(CLI::App& app, KnobPins& pins) {
  app.add_option_function<std::string>(
         "--tile",
         [&pins](const std::string& text) {
           const std::vector<std::int32_t> shape = parse_shape(text, "--tile", 3, kMaxGemmTile);
           pins.tile_m = shape[0];
           pins.tile_n = shape[1];
           pins.tile_k = shape[2];
         },
         "GEMM tile of a workgroup, for example 256x256x64")
      ->type_name("MxNxK");
  app.add_option_function<std::string>(
         "--comm-tile",
         [&pins](const std::string& text) {
           const std::vector<std::int32_t> shape = parse_shape(text, "--comm-tile", 2, kMaxCommTile);
           pins.comm_tile_m = shape[0];
           pins.comm_tile_n = shape[1];
         },
         "Communication tile, for example 64x256")
      ->type_name("MxN");
  const std::string cus(kAllowedCus);
  add_integer(app, "--waves", pins.waves, "Waves of a GEMM workgroup", 1, kMaxWaves,
              std::string(kAllowedWaves));
  add_name(
      app, "--pipeline", pins.pipeline, kPipelineNames,
      "How a workgroup feeds its matrix cores (a search assumes overlapped, as the vendor; Triton: serial)");
  add_integer(app, "--gemm-cus", pins.gemm_cus, "Workgroups of the compute role", 1, kLargestKnob, cus);
  add_integer(app, "--comm-cus", pins.comm_cus, "Workgroups of the communication role", 1, kLargestKnob, cus);
  add_integer(app, "--group-m", pins.group_m, "Row tiles of a group in the grid order", 1, kLargestKnob);
  static constexpr std::array<std::string_view, 2> kSwitch{"off", "on"};
  add_name(app, "--xcd-remap", pins.xcd_remap, kSwitch, "Give every die a contiguous range of tiles");
  add_name(app, "--peer-order", pins.peer_order, kPeerOrderNames, "Order in which peers are served");
  add_name(app, "--lock", pins.lock, kLockProtocolNames, "How flags are set and polled");
  add_name(app, "--launch", pins.launch, kLaunchModeNames, "How kernels are launched");
  for (const KnobName& knob : kKnobNames) app.get_option(knob_option(knob.name))->group("Knobs");
}

std::array<bool, kKnobNames.size()> given_knobs(const KnobPins& pins) {
  return {pins.tile_m.has_value(),      pins.waves.has_value(),     pins.pipeline.has_value(),
          pins.comm_tile_m.has_value(), pins.gemm_cus.has_value(),  pins.comm_cus.has_value(),
          pins.group_m.has_value(),     pins.xcd_remap.has_value(), pins.peer_order.has_value(),
          pins.lock.has_value(),        pins.launch.has_value()};
}

std::string knob_option(std::string_view knob) {
  std::string option = fmt::format("--{}", knob);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

Knobs with_pins(Knobs knobs, const KnobPins& pins) {
  const auto apply = [](auto& knob, const auto& pin) { knob = pin.value_or(knob); };
  apply(knobs.tile_m, pins.tile_m);
  apply(knobs.tile_n, pins.tile_n);
  apply(knobs.tile_k, pins.tile_k);
  apply(knobs.waves, pins.waves);
  apply(knobs.pipeline, pins.pipeline);
  apply(knobs.comm_tile_m, pins.comm_tile_m);
  apply(knobs.comm_tile_n, pins.comm_tile_n);
  apply(knobs.gemm_cus, pins.gemm_cus);
  apply(knobs.comm_cus, pins.comm_cus);
  apply(knobs.group_m, pins.group_m);
  apply(knobs.xcd_remap, pins.xcd_remap);
  apply(knobs.peer_order, pins.peer_order);
  apply(knobs.lock, pins.lock);
  apply(knobs.launch, pins.launch);
  return knobs;
}

void add_threads_option(CLI::App& app, std::optional<int>& threads) {
  add_integer(app, "--threads", threads, "Cores to use (default: all)", 1, 4096);
}

std::unique_ptr<tbb::global_control> limit_threads(const std::optional<int>& threads) {
  return threads ? std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                         static_cast<std::size_t>(*threads))
                 : nullptr;
}

void add_seed_option(CLI::App& app, std::optional<std::int64_t>& seed) {
  add_integer(app, "--seed", seed,
              "Of the arbitration between equal requesters (default: 1); equal seeds, equal bits", 0,
              kAnyInteger);
}

}  // namespace tritax::cli

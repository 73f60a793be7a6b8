// tritax-gpu: runs tile schedules on the GPUs of this machine.
//
//   tritax-gpu devices
//   tritax-gpu run SCHEDULE.json --repeat 30 --check
//   tritax-gpu gemm --m 8192 --n 8192 --k 8192 --tile 128x256 --check --against-blas
//   tritax-gpu measure scenarios/measured/h200-4.toml --gpus 2,4 --output measured.csv --ops ops.csv
//   tritax-gpu sparse-library scenarios/measured/spmv.toml --output library.csv
//   tritax-gpu microbench --output microbench.csv
//
// Exit code 0: done and correct; 1: a wrong result; 2: a user error, explained in one line; 3: a defect of
// Tritax.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "backend_hip/blas.hpp"
#include "backend_hip/executor.hpp"
#include "backend_hip/measure.hpp"
#include "backend_hip/microbench.hpp"
#include "backend_hip/options.hpp"
#include "backend_hip/report.hpp"
#include "backend_hip/sparse_library.hpp"
#include "backend_hip/tile_size.hpp"
#include "model/core/command_line/parse_error.hpp"
#include "model/core/error.hpp"
#include "model/microbench/schedules.hpp"
#include "model/schedule/json.hpp"

namespace {

using namespace tritax;
using namespace tritax::gpu;

int show_devices() {
  const std::vector<GpuInfo> gpus = list_gpus();
  if (gpus.empty()) throw UserError("no GPU: the runtime finds no device on this machine");
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    fmt::print("{}: {}, {} compute units, {:.1f} GB\n", i, gpus[i].name, gpus[i].compute_units,
               gpus[i].memory_bytes * 1e-9);
  }
  fmt::print("{}\n", runtime_versions());
  return 0;
}

struct GemmOptions {
  GemmShape shape{8192, 8192, 8192, DType::bf16};
  std::string dtype = "bf16";
  std::string tile = "128x256";
  int group_m = 8;
  bool against_blas = false;
};

int run_gemm(GemmOptions options, const RunOptions& run, const std::string& timeline) {
  options.shape.dtype = parse_dtype(options.dtype, "--dtype");
  const TileSize tile = parse_tile(options.tile, "--tile");
  const std::vector<GpuInfo> gpus = list_gpus();
  if (gpus.empty()) throw UserError("no GPU: the runtime finds no device on this machine");
  const Schedule schedule = plain_gemm({options.shape.dtype, options.shape.m, options.shape.n,
                                        options.shape.k, tile.m, tile.n, options.group_m},
                                       gpus[0].compute_units);
  const Measurement measured = measure(schedule, run);
  if (measured.stamped) write_timeline(schedule, *measured.stamped, timeline);
  const double flop = 2.0 * options.shape.m * options.shape.n * options.shape.k;
  fmt::print("{}x{}x{} {} tile {}: {:.1f} TFLOP/s\n", options.shape.m, options.shape.n, options.shape.k,
             options.dtype, options.tile, flop / measured.device_us.median * 1e-6);
  if (options.against_blas) {
    const Spread vendor =
        spread_of(time_vendor_gemm(options.shape, run.warmup, run.repeats, run.executor.flush_bytes));
    fmt::print(
        "vendor library: median {:.2f} us (p10 {:.2f}, p90 {:.2f}), {:.1f} TFLOP/s; the schedule reaches "
        "{:.1f} %\n",
        vendor.median, vendor.p10, vendor.p90, flop / vendor.median * 1e-6,
        100 * vendor.median / measured.device_us.median);
  }
  return measured.right ? 0 : 1;
}

// Values of the command line.
struct CommandLine {
  RunOptions run;
  GemmOptions gemm;
  MeasureOptions measure;
  MicrobenchOptions micro;
  std::string file;
  std::string timeline;
  CLI::App* devices = nullptr;
  CLI::App* schedule = nullptr;
  CLI::App* plain = nullptr;
  CLI::App* scenarios = nullptr;
  CLI::App* small = nullptr;
  CLI::App* sparse = nullptr;
};

void add_gemm_options(CLI::App& command, GemmOptions& gemm) {
  constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();
  command.add_option("--m", gemm.shape.m, "rows of A and C")->check(CLI::Range(std::int64_t{1}, kMostRows));
  command.add_option("--n", gemm.shape.n, "columns of B and C")
      ->check(CLI::Range(std::int64_t{1}, kMostRows));
  command.add_option("--k", gemm.shape.k, "columns of A, rows of B")
      ->check(CLI::Range(std::int64_t{1}, kMostRows));
  command.add_option("--dtype", gemm.dtype, "bf16, fp16, fp8 or fp64");
  command.add_option("--tile", gemm.tile, "rows x columns of a tile, as 128x256");
  command.add_option("--group-m", gemm.group_m, "row tiles of a group in the grid order")
      ->check(CLI::Range(1, 1 << 20));
  command.add_flag("--against-blas", gemm.against_blas, "time the vendor's library in the same run");
}

void add_commands(CLI::App& app, CommandLine& line) {
  const auto add_check_and_timeline = [&](CLI::App* command) {
    add_check_options(*command, line.run);
    command->add_option("--timeline", line.timeline, "Write a timeline of one more run, for Perfetto")
        ->type_name("FILE.json");
  };
  line.devices = app.add_subcommand("devices", "list the GPUs");
  line.schedule = app.add_subcommand("run", "run a schedule from a file");
  line.schedule->add_option("SCHEDULE", line.file, "JSON file (docs/schedule-format.md)")->required();
  add_run_options(*line.schedule, line.run);
  add_check_and_timeline(line.schedule);
  line.plain = app.add_subcommand("gemm", "run a plain GEMM schedule on one GPU");
  add_gemm_options(*line.plain, line.gemm);
  add_run_options(*line.plain, line.run);
  add_check_and_timeline(line.plain);
  line.scenarios = app.add_subcommand("measure", "measure the schedules of scenario files");
  add_measure_options(*line.scenarios, line.measure, line.run);
  line.sparse = app.add_subcommand("sparse-library",
                                   "measure the vendor's sparse product on the matrices of scenario files");
  add_library_options(*line.sparse, line.measure, line.run);
  line.small = app.add_subcommand("microbench", "measure launches, flags and bandwidths");
  line.small->add_option("--output,-o", line.micro.output, "CSV file to write")->required();
  line.small->add_option("--only", line.micro.only, "groups to run; all when left out")->delimiter(',');
  line.small->add_option("--commit", line.micro.commit, "source revision, for the file's head");
  add_run_options(*line.small, line.run);
}

int run_command(const CommandLine& line) {
  if (line.devices->parsed()) return show_devices();
  if (line.plain->parsed()) return run_gemm(line.gemm, line.run, line.timeline);
  if (line.scenarios->parsed()) return measure_scenarios(line.measure, line.run) ? 0 : 1;
  if (line.sparse->parsed()) {
    measure_vendor_sparse(line.measure, line.run);
    return 0;
  }
  if (line.small->parsed()) {
    run_microbenchmarks(line.micro, line.run);
    return 0;
  }
  const Schedule loaded = read_schedule(line.file);
  const Measurement measured = measure(loaded, line.run);
  if (measured.stamped) write_timeline(loaded, *measured.stamped, line.timeline);
  return measured.right ? 0 : 1;
}

constexpr int kUserErrorExitCode = 2;
constexpr int kDefectExitCode = 3;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs tile schedules on the GPUs of this machine.", "tritax-gpu");
  app.require_subcommand(1);
  CommandLine line;
  add_commands(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}\n", parsing::describe_parse_error(app, error));
    return kUserErrorExitCode;
  }
  if (const std::string missing = parsing::describe_missing_value(app); !missing.empty()) {
    fmt::print(stderr, "{}\n", missing);
    return kUserErrorExitCode;
  }
  line.measure.command = line.micro.command = command_line();
  line.run.stamps = !line.timeline.empty();
  if (line.run.executor.share_gpus) {
    // Ranks that share a GPU wait for each other's kernels: each stream needs a queue of its own, of which
    // the runtimes have 8 and 4 unless they are told before they start.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("GPU_MAX_HW_QUEUES", "32", 0);
  }
  try {
    return run_command(line);
  } catch (const UserError& error) {
    fmt::print(stderr, "tritax-gpu: {}\n", error.what());
    return kUserErrorExitCode;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tritax-gpu: internal error: {}. Please report this.\n", error.what());
    return kDefectExitCode;
  }
}

// tritax-gpu: runs tile schedules on the GPUs of this machine.
//
//   tritax-gpu devices
//   tritax-gpu run SCHEDULE.json --repeat 30 --check
//   tritax-gpu gemm --m 8192 --n 8192 --k 8192 --tile 128x256 --check --against-blas
//   tritax-gpu measure scenarios/measured/h200-4.toml --gpus 2,4 --output measured.csv --ops ops.csv
//   tritax-gpu microbench --output microbench.csv
//
// Exit code 0: done and right; 1: a result is wrong; 2: an error, said in one line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "backend_hip/blas.hpp"
#include "backend_hip/executor.hpp"
#include "backend_hip/measure.hpp"
#include "backend_hip/microbench.hpp"
#include "backend_hip/options.hpp"
#include "backend_hip/report.hpp"
#include "backend_hip/tile_size.hpp"
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

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs tile schedules on the GPUs of this machine.");
  app.require_subcommand(1);
  RunOptions run;
  GemmOptions gemm;
  std::string file;
  std::string timeline;

  const auto add_check_and_timeline = [&](CLI::App* command) {
    command->add_flag("--check", run.check, "Compare with an fp64 reference on fresh random data");
    command->add_option("--timeline", timeline, "Write a timeline of one more run, for Perfetto")
        ->type_name("FILE.json");
  };
  CLI::App* devices = app.add_subcommand("devices", "list the GPUs");
  CLI::App* schedule = app.add_subcommand("run", "run a schedule from a file");
  schedule->add_option("SCHEDULE", file, "JSON file (docs/schedule-format.md)")->required();
  add_run_options(*schedule, run);
  add_check_and_timeline(schedule);
  CLI::App* plain = app.add_subcommand("gemm", "run a plain GEMM schedule on one GPU");
  plain->add_option("--m", gemm.shape.m)->check(CLI::PositiveNumber);
  plain->add_option("--n", gemm.shape.n)->check(CLI::PositiveNumber);
  plain->add_option("--k", gemm.shape.k)->check(CLI::PositiveNumber);
  plain->add_option("--dtype", gemm.dtype, "bf16, fp16 or fp8");
  plain->add_option("--tile", gemm.tile, "rows x columns of a tile, as 128x256");
  plain->add_option("--group-m", gemm.group_m, "row tiles of a group in the grid order")
      ->check(CLI::PositiveNumber);
  plain->add_flag("--against-blas", gemm.against_blas, "time the vendor's library in the same run");
  add_run_options(*plain, run);
  add_check_and_timeline(plain);
  MeasureOptions measuring;
  CLI::App* scenarios = app.add_subcommand("measure", "measure the schedules of scenario files");
  add_measure_options(*scenarios, measuring, run);
  MicrobenchOptions micro;
  CLI::App* small = app.add_subcommand("microbench", "measure launches, flags and bandwidths");
  small->add_option("--output,-o", micro.output, "CSV file to write")->required();
  small->add_option("--only", micro.only, "groups to run; all when left out")->delimiter(',');
  small->add_option("--commit", micro.commit, "source revision, for the file's head");
  add_run_options(*small, run);
  CLI11_PARSE(app, argc, argv);
  measuring.command = micro.command = command_line();
  run.stamps = !timeline.empty();

  try {
    if (devices->parsed()) return show_devices();
    if (plain->parsed()) return run_gemm(gemm, run, timeline);
    if (scenarios->parsed()) return measure_scenarios(measuring, run) ? 0 : 1;
    if (small->parsed()) {
      run_microbenchmarks(micro, run);
      return 0;
    }
    const Schedule loaded = read_schedule(file);
    const Measurement measured = measure(loaded, run);
    if (measured.stamped) write_timeline(loaded, *measured.stamped, timeline);
    return measured.right ? 0 : 1;
  } catch (const UserError& error) {
    fmt::print(stderr, "tritax-gpu: {}\n", error.what());
    return 2;
  }
}

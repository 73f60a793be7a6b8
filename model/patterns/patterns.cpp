#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "model/core/error.hpp"
#include "model/patterns/builders.hpp"
#include "model/patterns/common.hpp"

namespace tritax {

namespace {

// Operations of all ranks together; 16384³ with 128×128 tiles on 8 GPUs has 0.2 million.
constexpr double kMaxOperations = 8.0 * 1024 * 1024;

const std::array<Pattern, 5> kPatterns{{
    {"library",
     "vendor GEMM, host synchronisation, all-gather of the collective library, copies into place",
     {.tile = false, .grid_order = false, .launch = false},
     build_library,
     tile_of_library},
    {"bulk-synchronous",
     "GEMM kernel, then scatter kernel in the same stream",
     {.comm_tile = true, .gemm_cus = true, .comm_cus = true, .peer_order = true},
     build_bulk_synchronous},
    {"producer-consumer",
     "GEMM and scatter kernels side by side on two streams, one lock a tile",
     {.comm_tile = true,
      .gemm_cus = true,
      .comm_cus = true,
      .splits_cus = true,
      .in_two_kernels = true,
      .peer_order = true,
      .lock = true},
     build_producer_consumer},
    {"fused-sequential",
     "one kernel; every workgroup stores its tile to all ranks out of registers",
     {.gemm_cus = true, .peer_order = true},
     build_fused_sequential},
    {"workgroup-specialised",
     "one kernel; some workgroups compute, the others send, one lock a tile",
     {.comm_tile = true,
      .gemm_cus = true,
      .comm_cus = true,
      .splits_cus = true,
      .peer_order = true,
      .lock = true},
     build_workgroup_specialised},
}};

void require_tile(std::int32_t value, const char* knob, std::int32_t largest) {
  if (value < kTileStep || value > largest || value % kTileStep != 0) {
    throw UserError(fmt::format("{}: {} is not allowed; it must be a multiple of {} up to {}", knob, value,
                                kTileStep, largest));
  }
}

void require_cus(std::int32_t value, const char* knob, const Gpu& gpu) {
  if (value < 0 || value > gpu.cu_count()) {
    throw UserError(
        fmt::format("{}: {} is not allowed; give 1 to {}, the compute units of {}, or leave it out", knob,
                    value, gpu.cu_count(), gpu.name));
  }
}

void check_knobs(const Knobs& knobs, const Gpu& gpu) {
  require_tile(knobs.tile_m, "tile_m", kMaxGemmTile);
  require_tile(knobs.tile_n, "tile_n", kMaxGemmTile);
  require_tile(knobs.tile_k, "tile_k", kMaxGemmTile);
  if (knobs.comm_tile_m != 0) require_tile(knobs.comm_tile_m, "comm_tile_m", kMaxCommTile);
  if (knobs.comm_tile_n != 0) require_tile(knobs.comm_tile_n, "comm_tile_n", kMaxCommTile);
  require_cus(knobs.gemm_cus, "gemm_cus", gpu);
  require_cus(knobs.comm_cus, "comm_cus", gpu);
  if (knobs.waves < 1 || knobs.waves > kMaxWaves || (knobs.waves & (knobs.waves - 1)) != 0) {
    throw UserError(fmt::format("waves: {} is not allowed; it must be {}", knobs.waves, kAllowedWaves));
  }
  if (knobs.group_m < 1) {
    throw UserError(fmt::format("group_m: {} is not allowed; it must be at least 1", knobs.group_m));
  }
}

void check_machine(const GemmAllScatter& workload, const Machine& machine) {
  if (workload.gpus > machine.gpu_count()) {
    throw UserError(fmt::format("gpus: the workload asks for {} GPUs; machine {} has {}", workload.gpus,
                                machine.name, machine.gpu_count()));
  }
  if (machine.gpu.rate(workload.dtype).flop_per_clk_per_cu <= 0) {
    throw UserError(
        fmt::format("dtype: {} has no matrix instruction for {}", machine.gpu.name, name_of(workload.dtype)));
  }
}

// An upper bound on the operations, before anyone allocates them.
void check_size(const GemmAllScatter& workload, const Knobs& knobs) {
  const auto pieces = [&](std::int32_t height, std::int32_t width) {
    const double rows = static_cast<double>((workload.m + height - 1) / height);
    const double cols = static_cast<double>((widest_block(workload) + width - 1) / width);
    return rows * cols * workload.gpus;
  };
  const double tiles = pieces(knobs.tile_m, knobs.tile_n);
  const double items = pieces(knobs.comm_tile_m > 0 ? knobs.comm_tile_m : knobs.tile_m,
                              knobs.comm_tile_n > 0 ? knobs.comm_tile_n : knobs.tile_n);
  const double operations = 3 * tiles + (items + tiles) * workload.gpus;
  if (operations > kMaxOperations) {
    throw UserError(fmt::format(
        "tile_m, tile_n, comm_tile_m, comm_tile_n: {}x{} tiles cut this problem into {:.0f} tiles "
        "a GPU, too many to schedule (over {:.0f} tile operations); use larger tiles",
        knobs.tile_m, knobs.tile_n, tiles / workload.gpus, kMaxOperations));
  }
}

void check_memory(std::string_view pattern, double bytes, const Gpu& gpu) {
  if (bytes > gpu.hbm_bytes) {
    throw UserError(fmt::format("workload: pattern {} needs {:.1f} GB on every GPU; {} has {:.1f} GB",
                                pattern, bytes / 1e9, gpu.name, gpu.hbm_bytes / 1e9));
  }
}

// A, B and C.
double matrix_bytes(const GemmAllScatter& workload) {
  const std::int64_t elements =
      workload.m * workload.k + workload.k * widest_block(workload) + workload.m * workload.n;
  return static_cast<double>(elements) * bytes_of(workload.dtype);
}

double buffer_bytes(const Schedule& schedule) {
  double bytes = 0;
  for (const Buffer& buffer : schedule.buffers) bytes += bytes_of(buffer, {0, 0, buffer.rows, buffer.cols});
  return bytes;
}

}  // namespace

Knobs default_knobs(const Machine& machine, DType dtype) {
  Knobs knobs;
  knobs.tile_k = 128 / bytes_of(dtype);
  if (machine.gpu.async_tile_copy) {
    knobs.tile_m = 128;
    knobs.pipeline = Pipeline::overlapped;
  }
  return knobs;
}

std::span<const Pattern> patterns() { return kPatterns; }

const Pattern& find_pattern(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Pattern& pattern : kPatterns) {
    if (pattern.name == name) return pattern;
    names.push_back(pattern.name);
  }
  const std::string nearest = nearest_name(std::string(name), names);
  throw UserError(fmt::format("{}: there is no pattern '{}'{}; the patterns are {}", where, name,
                              nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                              fmt::join(names, ", ")));
}

Schedule build_schedule(const Pattern& pattern, const GemmAllScatter& workload, const Machine& machine,
                        const Knobs& knobs) {
  check(workload, "workload");
  check_machine(workload, machine);
  check_knobs(knobs, machine.gpu);
  check_memory(pattern.name, matrix_bytes(workload), machine.gpu);
  check_size(workload, knobs);
  Schedule schedule = pattern.build(workload, machine, knobs);
  check_memory(pattern.name, buffer_bytes(schedule), machine.gpu);  // with what the pattern adds
  return schedule;
}

}  // namespace tritax

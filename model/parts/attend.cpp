#include "model/parts/attend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/wave_schedule.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxDepth = 512;    // columns of a head
constexpr double kOverheadRegisters = 32;  // per thread: addresses, maxima and sums

}  // namespace

Spec q_heads_field(std::int64_t usual) {
  return {.name = "q_heads", .help = "query heads", .high = kMaxHeads, .usual = {usual}};
}

Spec kv_heads_field() {
  return {
      .name = "kv_heads",
      .help = "heads of keys and values, shared evenly by the query heads (default: as many as query heads)",
      .high = kMaxHeads};
}

Spec head_dim_field() {
  return {
      .name = "head_dim", .help = "columns per head", .low = kTileStep, .high = kMaxDepth, .usual = {128}};
}

Spec causal_field() {
  return {.name = "causal",
          .help = "causal mask: a query sees the keys up to its own place",
          .kind = ValueKind::boolean};
}

double attention_flops(std::int64_t heads, std::int64_t depth, std::int64_t context, bool causal) {
  const auto rows = static_cast<double>(context);
  const double pairs = causal ? rows * (rows + 1) / 2 : rows * rows;
  return 4.0 * static_cast<double>(heads * depth) * pairs;
}

void complete_kv_heads(Problem& problem, const FieldPlace& place) {
  const std::int64_t heads = problem["q_heads"];
  if (problem["kv_heads"] == 0) problem.values.assume("kv_heads", heads);
  const std::int64_t kv_heads = problem["kv_heads"];
  if (kv_heads <= heads && heads % kv_heads == 0) return;
  throw UserError(
      fmt::format("{}: q_heads = {} is not a multiple of kv_heads = {}; each head of keys serves as many "
                  "query heads",
                  place("kv_heads"), heads, kv_heads));
}

Resources attend_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile, bool queries_in_lds,
                           std::string_view knob) {
  check_waves(tile.waves, gpu);
  if (const std::string fault = fault_of_waves(gpu, tile); !fault.empty()) throw UserError(fault);
  const double e = bytes_of(dtype);
  const double computing = tile.waves * gpu.lanes_per_wave;
  const std::int32_t producers = producers_of(gpu, tile);
  const std::int32_t threads = (tile.waves + producers) * gpu.lanes_per_wave;
  const double query_bytes = static_cast<double>(tile.m) * tile.k * e;
  const double words = static_cast<double>(tile.m) * (tile.k + tile.n + tile.n * e / 4) +
                       (queries_in_lds ? 0 : query_bytes / 4);
  const int stages = tile.pipeline != Pipeline::serial ? 2 : 1;
  const double lds = 2.0 * stages * tile.n * tile.k * e + (queries_in_lds ? query_bytes : 0);
  const Resources resources{threads,
                            static_cast<std::int32_t>(std::ceil(words / computing) + kOverheadRegisters),
                            static_cast<std::int32_t>(lds)};
  const double registers = registers_of_thread(gpu, tile.pipeline, threads);
  if (resources.registers_per_thread <= registers && lds <= gpu.lds_bytes_per_workgroup_max) return resources;
  throw UserError(fmt::format(
      "{}: {} queries by {} keys of {} columns in {} with {} waves{} need {} registers per thread "
      "and {} bytes of "
      "LDS; {} has {:.0f} and {:.0f}: use a smaller {}, more waves or the serial pipeline",
      knob, tile.m, tile.n, tile.k, name_of(dtype), tile.waves,
      producers > 0 ? fmt::format(" and {} producers", producers) : "", resources.registers_per_thread,
      resources.lds_bytes, gpu.name, registers, gpu.lds_bytes_per_workgroup_max, knob));
}

}  // namespace tritax

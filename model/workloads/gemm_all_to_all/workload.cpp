// GEMM + all-to-all as a workload: fields, knobs and patterns.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_space.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/gemm_all_to_all/patterns.hpp"
#include "model/workloads/gemm_all_to_all/workload.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxChunks = 1024;

const std::array<Spec, 5> kFields{{
    size_field("m", "-M", "rows of A and C, over all GPUs"),
    size_field("n", "-N", "columns of B and C, over all GPUs"),
    size_field("k", "-K", "columns of A and rows of B"),
    dtype_field(DType::fp16, "element type of A, B and C"),
    gpus_field(),
}};

const std::array<Spec, 20> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("comm_tile"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    {.name = "chunks",
     .help = "pieces of a GPU's rows; a GEMM kernel computes one piece while the previous one is sent",
     .high = kMaxChunks,
     .usual = {2},
     .varies_by_doubling = true,
     .shown = "{} chunks"},
    sum_knob("posts"),
    sum_knob("result_dtype"),
    gemm_knob("group_m"),
    gemm_knob("xcd_remap"),
    gemm_knob("xcd_chunk"),
    gemm_knob("peer_order"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

GemmAllToAll product_of(const Problem& problem) {
  return {problem["m"], problem["n"], problem["k"], static_cast<DType>(problem["dtype"]), problem.gpus()};
}

GemmShape widest(const Problem& problem) {
  const GemmAllToAll product = product_of(problem);
  return {own_rows(product, 0).size(), product.n, product.k, product.dtype};
}

ExchangeKnobs exchange_knobs_of(const Values& values) {
  ExchangeKnobs knobs;
  static_cast<GemmKnobs&>(knobs) = gemm_knobs_of(values);
  knobs.chunks = static_cast<std::int32_t>(values["chunks"]);
  const SumKnobs sums = sum_knobs_of(values);
  knobs.posts = sums.posts;
  knobs.result = sums.result;
  return knobs;
}

// An upper bound on the number of operations, before they are allocated: a tile is multiplied and stored, and
// a piece of a tile is copied.
void check_size(const GemmAllToAll& product, const ExchangeKnobs& knobs) {
  const auto pieces = [&](double height, double width) {
    const auto rows = static_cast<double>(own_rows(product, 0).size());
    return (std::ceil(rows / height) + knobs.chunks) *
           (std::ceil(static_cast<double>(product.n) / width) + product.gpus);
  };
  const double tiles = pieces(knobs.tile_m, knobs.tile_n);
  const double items = pieces(knobs.comm_tile_m > 0 ? knobs.comm_tile_m : knobs.tile_m,
                              knobs.comm_tile_n > 0 ? knobs.comm_tile_n : knobs.tile_n);
  if (product.gpus * (2 * tiles + items) <= kMaxOperations) return;
  throw UserError(
      fmt::format("tile, comm_tile, chunks: {:.0f} tiles per GPU in {:.0f} pieces are too many to schedule "
                  "(over {:.0f} tile "
                  "operations); use larger tiles or fewer chunks",
                  tiles, items, kMaxOperations));
}

using Builder = Schedule (*)(const GemmAllToAll&, const Machine&, const ExchangeKnobs&);

template <Builder build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const GemmAllToAll product = product_of(problem);
  const ExchangeKnobs knobs = exchange_knobs_of(values);
  check_dtype(product.dtype, machine);
  check(knobs, machine.gpu);
  if (knobs.chunks < 1)
    throw UserError(fmt::format("chunks: {} is not allowed; it must be at least 1", knobs.chunks));
  const auto rows = static_cast<double>(own_rows(product, 0).size());
  const auto columns = static_cast<double>(own_columns(product, 0).size());
  const auto n = static_cast<double>(product.n);
  // A, B, C, and the own product, of which a library has two copies.
  const double elements = (rows + n) * static_cast<double>(product.k) +
                          static_cast<double>(product.m) * columns + (product.gpus > 1 ? 2 * rows * n : 0);
  check_memory("this problem", elements * bytes_of(product.dtype), machine.gpu);
  check_size(product, knobs);
  return build(product, machine, knobs);
}

Values library_choice(const Problem& problem, const Machine& machine) {
  return with_tile(resolved_knobs(problem, machine, {}),
                   exchange_library_tile(product_of(problem), machine).tile);
}

using Names = std::string_view;
constexpr std::array<Names, 11> kFusedKnobs{"tile",    "waves",     "pipeline",    "gemm_cus",
                                            "group_m", "xcd_remap", "xcd_chunk",   "peer_order",
                                            "lock",    "launch",    "result_dtype"};
constexpr std::array<Names, 13> kChunkedKnobs{"tile",       "waves",  "pipeline",    "comm_tile", "gemm_cus",
                                              "comm_cus",   "chunks", "group_m",     "xcd_remap", "xcd_chunk",
                                              "peer_order", "lock",   "result_dtype"};
constexpr std::array<Names, 12> kCopyEngineKnobs{"tile",       "waves",   "pipeline",  "gemm_cus",
                                                 "chunks",     "group_m", "xcd_remap", "xcd_chunk",
                                                 "peer_order", "lock",    "posts",     "result_dtype"};

const std::array<Pattern, 4> kPatterns{{
    {.name = "library",
     .summary = "the vendor's GEMM, a copy into blocks, then the all-to-all of the collective library",
     .build = build_checked<build_exchange_library>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "fused-stores",
     .summary = "one kernel; every workgroup stores its tile from registers directly to the owner",
     .knobs = kFusedKnobs,
     .build = build_checked<build_exchange_fused>},
    {.name = "chunked",
     .summary = "one GEMM kernel per piece of the rows, beside a kernel that sends the previous piece",
     .knobs = kChunkedKnobs,
     .build = build_checked<build_exchange_chunked>,
     .roles = Roles::in_two_kernels},
    {.name = "copy-engine",
     .summary = "one GEMM kernel per piece of the rows; copy engines send the finished pieces",
     .knobs = kCopyEngineKnobs,
     .build = build_checked<build_exchange_copy_engine>},
}};

void complete(Problem& problem, const FieldPlace& place) {
  for (const std::string_view side : {std::string_view("m"), std::string_view("n")}) {
    if (problem[side] >= problem.gpus()) continue;
    throw UserError(fmt::format("{}: {} = {} is less than there are GPUs ({}); every GPU must have a part",
                                place(side), side, problem[side], problem.gpus()));
  }
}

Work work(const Problem& problem) {
  const GemmAllToAll product = product_of(problem);
  return {.flops = 2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) *
                   static_cast<double>(product.k),
          .peers = product.gpus - 1};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs(kKnobs);
  assume(knobs, default_gemm_knobs(machine, static_cast<DType>(problem["dtype"])));
  return knobs;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space = gemm_space(pattern, widest(problem), problem.gpus(), machine, Values(kKnobs), pins);
  space.base = space.base.with(pins);
  if (problem.gpus() == 1) return space;
  if (pattern.uses("posts") && !pins.given("posts"))
    space.axes.push_back(column_axis(
        "posts", {static_cast<std::int64_t>(Posts::host), static_cast<std::int64_t>(Posts::kernel)}));
  if (!pattern.uses("chunks") || pins.given("chunks")) return space;
  Axis chunks = column_axis("chunks", {1, 2, 4, 8, 16});
  chunks.near = Axis::Near::next;
  chunks.start = 1;
  space.axes.push_back(std::move(chunks));
  return space;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& knobs) {
  return gemm_bound_ns(pattern, widest(problem), machine, gemm_knobs_of(knobs));
}

// Reads a row of gemm_all_to_all.py: the whole program on the host's clock.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  return library_program(line, gemm_all_to_all());
}

}  // namespace

const Workload& gemm_all_to_all() {
  static const Workload workload{
      .name = "gemm-all-to-all",
      .title = "GEMM + all-to-all",
      .summary = "C = A·B, A sharded by rows over the GPUs; every GPU gets all rows of its columns of C",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = product_text,
      .default_knobs = default_knobs,
      .left_out = left_out_cus,
      .space = space,
      .bound_ns = bound_ns,
      .call_ns = gemm_call_ns,
      .library_call = library_call,
      .step_rows = "m",
      .timed_by_host = true,
      .computes_and_sends = true,
      .traced = TracedForm{.collective = TracedCollective::all_to_all,
                           .beside = BesideProduct::behind,
                           .rows_of_all = true},
  };
  return workload;
}

}  // namespace tritax

// GEMM + all-scatter and GEMM + all-gather as workloads: fields, knobs and patterns.

#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_space.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/gemm_all_scatter/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxChunks = 1024;

using Builder = Schedule (*)(const GemmAllScatter&, const Machine&, const SumKnobs&);

// An upper bound on the number of operations, before they are allocated.
void check_size(const GemmAllScatter& gemm, const GemmKnobs& knobs) {
  const auto pieces = [&](std::int32_t height, std::int32_t width) {
    const Rect block = owned_block(gemm, 0);
    const double rows = ceil_div(block.rows, height);
    const double cols = ceil_div(block.cols, width);
    return rows * cols * gemm.gpus;
  };
  const double tiles = pieces(knobs.tile_m, knobs.tile_n);
  const double items = pieces(knobs.comm_tile_m > 0 ? knobs.comm_tile_m : knobs.tile_m,
                              knobs.comm_tile_n > 0 ? knobs.comm_tile_n : knobs.tile_n);
  const double operations = 3 * tiles + (items + tiles) * gemm.gpus;
  if (operations > kMaxOperations) {
    throw UserError(fmt::format(
        "tile_m, tile_n, comm_tile_m, comm_tile_n: {}x{} tiles cut this problem into {:.0f} tiles per GPU, "
        "too many to schedule (over {:.0f} tile operations); use larger tiles",
        knobs.tile_m, knobs.tile_n, tiles / gemm.gpus, kMaxOperations));
  }
}

// Bytes of A, B and C.
double matrix_bytes(const GemmAllScatter& gemm, DType result) {
  const Rect block = owned_block(gemm, 0);
  return static_cast<double>((block.rows + block.cols) * gemm.k) * bytes_of(gemm.dtype) +
         static_cast<double>(gemm.m * gemm.n) * bytes_of(result);
}

template <Builder build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const GemmAllScatter gemm = gemm_all_scatter_of(problem);
  const SumKnobs knobs = sum_knobs_of(values);
  check_dtype(gemm.dtype, machine);
  check(knobs, machine.gpu);
  check_sum_knobs(knobs);
  check_memory("this problem", matrix_bytes(gemm, knobs.result.value_or(gemm.dtype)), machine.gpu);
  check_size(gemm, knobs);
  return build(gemm, machine, knobs);
}

Values library_choice(const Problem& problem, const Machine& machine) {
  Values knobs = resolved_knobs(problem, machine, {});
  const MatmulTile tile = tile_of_library(gemm_all_scatter_of(problem), machine);
  knobs.give("tile_m", tile.m);
  knobs.give("tile_n", tile.n);
  knobs.give("tile_k", tile.k);
  knobs.give("waves", tile.waves);
  knobs.give("pipeline", static_cast<std::int64_t>(tile.pipeline));
  return knobs;
}

constexpr std::array<std::string_view, 13> kBulkSynchronous{
    "tile",      "waves",     "pipeline",   "comm_tile", "gemm_cus", "comm_cus", "group_m",
    "xcd_remap", "xcd_chunk", "peer_order", "launch",    "sharing",  "k_split"};
constexpr std::array<std::string_view, 14> kSplit{
    "tile",      "waves",     "pipeline",   "comm_tile", "gemm_cus", "comm_cus", "group_m",
    "xcd_remap", "xcd_chunk", "peer_order", "lock",      "launch",   "sharing",  "k_split"};
constexpr std::array<std::string_view, 11> kFused{"tile",    "waves",     "pipeline",  "gemm_cus",
                                                  "group_m", "xcd_remap", "xcd_chunk", "peer_order",
                                                  "launch",  "sharing",   "k_split"};

using Names = std::string_view;

// The names and further ones.
template <std::size_t count, typename... More>
constexpr std::array<Names, count + sizeof...(More)> with(const std::array<Names, count>& names,
                                                          More... more) {
  std::array<Names, count + sizeof...(More)> all{};
  std::size_t i = 0;
  for (const Names name : names) all[i++] = name;
  ((all[i++] = more), ...);
  return all;
}

constexpr auto kGatherBulk = with(kBulkSynchronous, "lock", "peers", "transport", "result_dtype");
constexpr auto kGatherSplit = with(kSplit, "peers", "result_dtype");
constexpr auto kGatherFused = with(kFused, "lock", "peers", "result_dtype");
constexpr std::array<Names, 1> kGatherLibrary{"result_dtype"};
constexpr std::array<Names, 12> kCopyEngine{"tile",       "waves",   "pipeline",  "gemm_cus",
                                            "chunks",     "group_m", "xcd_remap", "xcd_chunk",
                                            "peer_order", "lock",    "posts",     "result_dtype"};

const std::array<Pattern, 5> kPatterns{{
    {.name = "library",
     .summary = "vendor GEMM, all-gather of the collective library, copies into place",
     .build = build_checked<build_library>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "bulk-synchronous",
     .summary = "GEMM kernel, then scatter kernel in the same stream",
     .knobs = kBulkSynchronous,
     .build = build_checked<build_bulk_synchronous>},
    {.name = "producer-consumer",
     .summary = "GEMM and scatter kernels side by side on two streams, one lock per tile",
     .knobs = kSplit,
     .build = build_checked<build_producer_consumer>,
     .roles = Roles::in_two_kernels},
    {.name = "fused-sequential",
     .summary = "one kernel; every workgroup stores its tile from registers to all ranks",
     .knobs = kFused,
     .build = build_checked<build_fused_sequential>},
    {.name = "workgroup-specialised",
     .summary = "one kernel; some workgroups compute, the others send, one lock per tile",
     .knobs = kSplit,
     .build = build_checked<build_workgroup_specialised>,
     .roles = Roles::in_one_kernel},
}};

const std::array<Pattern, 6> kGatherPatterns{{
    {.name = "library",
     .summary = "vendor GEMM, then the all-gather of the collective library into C",
     .knobs = kGatherLibrary,
     .build = build_checked<build_library>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "bulk-synchronous",
     .summary =
         "GEMM kernel, then a kernel in the same stream that sends the rows, or fetches those of others",
     .knobs = kGatherBulk,
     .build = build_checked<build_bulk_synchronous>},
    {.name = "producer-consumer",
     .summary = "GEMM and sending kernels side by side on two streams, one lock per tile",
     .knobs = kGatherSplit,
     .build = build_checked<build_producer_consumer>,
     .roles = Roles::in_two_kernels},
    {.name = "fused-sequential",
     .summary = "one kernel; every workgroup stores its tile from registers to all ranks",
     .knobs = kGatherFused,
     .build = build_checked<build_fused_sequential>},
    {.name = "workgroup-specialised",
     .summary = "one kernel; some workgroups compute, the others send, one lock per tile",
     .knobs = kGatherSplit,
     .build = build_checked<build_workgroup_specialised>,
     .roles = Roles::in_one_kernel},
    {.name = "copy-engine",
     .summary = "the own rows in chunks; copy engines send the finished chunks to all ranks",
     .knobs = kCopyEngine,
     .build = build_checked<build_copy_engine>},
}};

const std::array<Spec, 5> kGatherFields{{
    size_field("m", "-M", "rows of A and C, over all GPUs"),
    size_field("n", "-N", "columns of B and C"),
    size_field("k", "-K", "columns of A, rows of B"),
    dtype_field(DType::fp16, "element type of A, B and C"),
    gpus_field(),
}};

const std::array<Spec, 5> kFields{{
    size_field("m", "-M", "rows of A and C"),
    size_field("n", "-N", "columns of B and C, of the whole problem"),
    size_field("k", "-K", "columns of A, rows of B"),
    dtype_field(DType::fp16, "element type of A, B and C"),
    gpus_field(),
}};

const std::array<Spec, 19> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("comm_tile"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    sharing_knob("sharing"),
    sharing_knob("k_split"),
    gemm_knob("group_m"),
    gemm_knob("xcd_remap"),
    gemm_knob("xcd_chunk"),
    gemm_knob("peer_order"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(CallForm::eager_slices),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

const std::array<Spec, 24> kGatherKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("comm_tile"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    sharing_knob("sharing"),
    sharing_knob("k_split"),
    {.name = "transport",
     .help = "who moves rows of C: the GPU that has them stores them (push), or all others load them (pull)",
     .kind = ValueKind::name,
     .names = kTransportNames,
     .shown = "{}",
     .not_shown = static_cast<std::int64_t>(Transport::push)},
    {.name = "chunks",
     .help = "pieces of a GPU's rows for copy engines, which send a piece while the next one is computed",
     .high = kMaxChunks,
     .usual = {2},
     .varies_by_doubling = true,
     .shown = "{} chunks"},
    sum_knob("posts"),
    sum_knob("peers"),
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

void complete(Problem& problem, const FieldPlace& place) {
  if (problem["n"] >= problem.gpus()) return;
  throw UserError(
      fmt::format("{}: N = {} has fewer columns than there are GPUs ({}); every GPU must own at least one",
                  place("n"), problem["n"], problem.gpus()));
}

void complete_gather(Problem& problem, const FieldPlace& place) {
  if (problem["m"] >= problem.gpus()) return;
  throw UserError(
      fmt::format("{}: M = {} has fewer rows than there are GPUs ({}); every GPU must own at least one",
                  place("m"), problem["m"], problem.gpus()));
}

Work work(const Problem& problem) {
  return {.flops = flops(gemm_all_scatter_of(problem)), .peers = problem.gpus() - 1};
}

GemmShape widest(const Problem& problem) {
  const GemmAllScatter gemm = gemm_all_scatter_of(problem);
  const Rect block = owned_block(gemm, 0);
  return {block.rows, block.cols, gemm.k, gemm.dtype};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs(problem.workload->knobs);
  assume(knobs, default_gemm_knobs(machine, static_cast<DType>(problem["dtype"])));
  return knobs;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space = gemm_space(pattern, widest(problem), problem.gpus(), machine, Values(kKnobs), pins);
  for (const char* knob : {"sharing", "k_split"}) {
    if (const auto pin = pins.if_given(knob)) space.base.give(knob, *pin);
  }
  return space;
}

KnobSpace space_of_gather(const Pattern& pattern, const Problem& problem, const Machine& machine,
                          const Values& pins) {
  KnobSpace space = gemm_space(pattern, widest(problem), problem.gpus(), machine, Values(kGatherKnobs), pins);
  space.base = space.base.with(pins);
  if (problem.gpus() == 1) return space;
  for (const char* knob : {"transport", "posts"}) {  // push and pull, host and kernel
    if (pattern.uses(knob) && !pins.given(knob)) space.axes.push_back(column_axis(knob, {0, 1}));
  }
  if (!pattern.uses("chunks") || pins.given("chunks")) return space;
  Axis chunks = column_axis("chunks", {1, 2, 4, 8});
  chunks.near = Axis::Near::next;
  chunks.start = 1;
  space.axes.push_back(std::move(chunks));
  return space;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& knobs) {
  return gemm_bound_ns(pattern, widest(problem), machine, gemm_knobs_of(knobs), work_sharing_of(knobs));
}

// Reads a row of gemm_all_scatter.py: a host synchronisation behind the product, on the host's clock.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  if (!is_of_program(line, gemm_all_scatter(), false)) return std::nullopt;
  if (kProgramForms[line.choice("form", kProgramForms)] != "stepwise") return std::nullopt;
  LibraryCall call;
  call.form = LibraryForm::stepwise;
  call.problem = problem_of(gemm_all_scatter());
  give_product(line, call.problem.values);
  call.problem.values.give("gpus", line.integer("gpus", 1, kMaxGpus));
  call.pattern = "library";
  call.knobs = Values(kKnobs);
  call.knobs.give("host_barriers", 0);
  call.knobs.give("form", static_cast<std::int64_t>(CallForm::eager_slices));
  call.time_column = "wall_us";
  return call;
}

}  // namespace

const Workload& gemm_all_scatter() {
  static const Workload workload{
      .name = "gemm-all-scatter",
      .title = "GEMM + all-scatter",
      .summary = "C = A·B, B split by columns, all of C on every GPU",
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
      .traced = TracedForm{.collective = TracedCollective::all_gather,
                           .beside = BesideProduct::behind,
                           .columns_of_all = true},
  };
  return workload;
}

const Workload& gemm_all_gather() {
  static const Workload workload{
      .name = "gemm-all-gather",
      .title = "GEMM + all-gather",
      .summary = "C = A·B, A split by rows, all of C on every GPU",
      .fields = kGatherFields,
      .knobs = kGatherKnobs,
      .patterns = kGatherPatterns,
      .baseline = "library",
      .complete = complete_gather,
      .work = work,
      .size_text = product_text,
      .default_knobs = default_knobs,
      .left_out = left_out_cus,
      .space = space_of_gather,
      .bound_ns = bound_ns,
      .call_ns = gemm_call_ns,
      .step_rows = "m",
      .timed_by_host = true,
      .computes_and_sends = true,
  };
  return workload;
}

}  // namespace tritax

// GEMM + all-reduce with the following steps of a transformer's layer: model/parts/norm_rows.hpp.
//
//   library   the vendor's GEMM and all-reduce, then a kernel that adds the residual and normalises
//   one-shot  a GEMM kernel, then a kernel that sums up rows in one shot and normalises them
//   fused     product, sum and norm in one kernel: fused.hpp
#include "model/workloads/gemm_all_reduce_norm/workload.hpp"

#include <array>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/norm_rows.hpp"
#include "model/parts/sum_workload.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workloads/gemm_all_reduce_norm/fused.hpp"

namespace tritax {

namespace {

const std::array<Spec, 5> kFields{{
    size_field("m", "-M", "rows of A and C: tokens"),
    size_field("n", "-N", "columns of B and C: the hidden size"),
    size_field("k", "-K", "columns of A and rows of B, over all GPUs"),
    dtype_field(DType::bf16,
                "element type of A, B, C, residual and weights; with fp8, C, residual and weights are bf16"),
    gpus_field(),
}};

const std::array<Spec, 21> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    sharing_knob("sharing"),
    sharing_knob("k_split"),
    sum_knob("transport"),
    sum_knob("wire_dtype"),
    gemm_knob("group_m"),
    gemm_knob("xcd_remap"),
    gemm_knob("xcd_chunk"),
    gemm_knob("peer_order"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(CallForm::custom_graph),
    engine_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

PartialSums sums_of(const Problem& problem) {
  const bool rows = problem["m"] >= problem["n"];
  return partial_sums_of(problem, rows ? Blocks::rows : Blocks::columns);
}

// `sums_bytes`: bytes per rank for sums, beside C.
void check_all_of_norm(const Problem& problem, const Machine& machine, const Values& values,
                       double sums_bytes) {
  const PartialSums sums = sums_of(problem);
  check_sums_in_memory(sums, machine, sum_knobs_of(values),
                       norm_bytes(sums.m, sums.n, sums.dtype) + sums_bytes);
  check_norm_rows(problem["m"], problem.gpus(), "m");
}

// Slots for the peers' sums, and the parts where the library splits K.
double sums_bytes_of_library(const PartialSums& sums, const Machine& machine) {
  const LibraryTile library = library_sum_tile(sums, machine);
  const Rect widest = block_of(sums, 0);
  const double slots = sums.gpus > 1 ? static_cast<double>(sums.gpus) * widest.rows * widest.cols : 0;
  const double parts =
      library.parts > 1 ? static_cast<double>(library.parts * sums.m) * static_cast<double>(sums.n) : 0;
  return slots * bytes_of(product_dtype(sums.dtype)) + parts * bytes_of(library.part_dtype);
}

// The own partial sums, which hold the rows on one GPU too, and slots of all GPUs with push.
double sums_bytes_of_shots(const PartialSums& sums, const Values& values) {
  const bool slots = sums.gpus > 1 && static_cast<Transport>(values["transport"]) == Transport::push;
  const double matrices = 1.0 + (slots ? sums.gpus : 0);
  return matrices * static_cast<double>(sums.m) * static_cast<double>(sums.n) *
         bytes_of(wire_dtype(sums, sum_knobs_of(values)));
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  check_all_of_norm(problem, machine, values, sums_bytes_of_library(sums_of(problem), machine));
  SumDraft draft = library_sum_draft("library", sums_of(problem), machine, sum_knobs_of(values));
  const NormRows norm = add_norm(draft);
  add_library_sum(draft,
                  [&](int rank) { draft.builder.launch(rank, add_norm_kernel(draft, norm, rank), 0); });
  return draft.builder.finish();
}

SumDraft draft_of_norm_gemm(std::string_view pattern, const Problem& problem, const Machine& machine,
                            const Values& values) {
  check_all_of_norm(problem, machine, values, sums_bytes_of_shots(sums_of(problem), values));
  return {pattern, sums_of(problem),
          machine, sum_knobs_of(values),
          true,    product_dtype(static_cast<DType>(problem["dtype"]))};
}

Schedule build_one_shot(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of_norm_gemm("one-shot", problem, machine, values);
  const NormRows norm = add_norm(draft);
  draft.partial =
      draft.builder.buffer({"partial", draft.wire_dtype(), static_cast<std::int32_t>(problem["m"]),
                            static_cast<std::int32_t>(problem["n"]), draft.tile.m, draft.tile.n});
  const OneShotRows shot = add_one_shot_rows(draft, all_cus(machine.gpu, draft.knobs.comm_cus));
  const std::vector<SumTile> tiles = tiles_to_walk(draft);
  const ProductShares shares = shares_of(draft, all_cus(machine.gpu, draft.knobs.gemm_cus), tiles.size());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t gemm = partial_gemm_kernel(draft, shares, rank, tiles, {});
    const std::int32_t sum = add_one_shot_kernel(draft, norm, shot, rank);
    host_program(draft.builder, rank, draft.knobs, {{gemm, 0}, {sum, 0}});
  }
  return draft.builder.finish();
}

Schedule build_fused(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of_norm_gemm("fused", problem, machine, values);
  add_fused_norm(draft);
  return draft.builder.finish();
}

Values library_choice(const Problem& problem, const Machine& machine) {
  return with_tile(resolved_knobs(problem, machine, {}), library_sum_tile(sums_of(problem), machine).tile);
}

using Names = std::string_view;
constexpr std::array<Names, 15> kOneShotKnobs{"tile",    "waves",     "pipeline",   "gemm_cus",   "comm_cus",
                                              "sharing", "k_split",   "group_m",    "xcd_remap",  "xcd_chunk",
                                              "launch",  "transport", "wire_dtype", "peer_order", "lock"};
constexpr std::array<Names, 12> kFusedKnobs{"tile",      "waves",      "pipeline",   "gemm_cus",
                                            "group_m",   "xcd_remap",  "xcd_chunk",  "launch",
                                            "transport", "wire_dtype", "peer_order", "lock"};

const std::array<Pattern, 3> kPatterns{{
    {.name = "library",
     .summary =
         "the vendor's GEMM and all-reduce, then a kernel that adds the residual and normalises the rows",
     .build = build_library,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "one-shot",
     .summary = "a GEMM kernel, then a kernel that adds up all rows on every GPU and normalises them",
     .knobs = kOneShotKnobs,
     .build = build_one_shot},
    {.name = "fused",
     .summary = "one kernel multiplies, adds up all rows on every GPU and normalises them",
     .knobs = kFusedKnobs,
     .build = build_fused},
}};

void complete(Problem& problem, const FieldPlace& place) {
  require_parts(problem, place, problem["m"] >= problem["n"] ? "m" : "n");
  check_norm_columns(problem["n"], place("n") + ": n");
}

Work work(const Problem& problem) { return product_work(sums_of(problem)); }

std::string size_text(const Problem& problem) { return product_text(problem); }

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs(kKnobs);
  assume(knobs, default_gemm_knobs(machine, static_cast<DType>(problem["dtype"])));
  return knobs;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return sum_space(pattern, sums_of(problem), machine, Values(kKnobs), pins);
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& knobs) {
  return sum_bound_ns(pattern, sums_of(problem), machine, knobs);
}

}  // namespace

const Workload& gemm_all_reduce_norm() {
  static const Workload workload{
      .name = "gemm-all-reduce-norm",
      .title = "GEMM + all-reduce + RMSNorm",
      .summary =
          "A and B split along K over the GPUs; every GPU gets the summed product plus a residual, and the "
          "normalised rows",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .call_ns = gemm_call_ns,
      .step_rows = "m",
      .timed_by_host = true,
      .computes_and_sends = true,
  };
  return workload;
}

}  // namespace tritax

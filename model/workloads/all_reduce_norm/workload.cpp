// All-reduce with the following steps of a transformer's layer: model/parts/norm_rows.hpp.
//
//   library   the vendor's all-reduce, then a kernel that adds the residual and normalises
//   one-shot  one kernel: every GPU adds up its rows from slots or from its peers, and normalises them
//   two-shot  the two-shot all-reduce, where owners add up and store to all, then a kernel that adds the
//             residual and normalises (ROCm/aiter custom_all_reduce.cuh: reduce_scatter_cross_device_store,
//             local_device_load_rmsnorm)
#include "model/workloads/all_reduce_norm/workload.hpp"

#include <array>

#include "model/parts/collectives.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/norm_rows.hpp"
#include "model/parts/sum_patterns.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"

namespace tritax {

namespace {

const std::array<Spec, 4> kFields =
    collective_fields("rows of the matrix: tokens", "columns: the hidden size", 1);

Spec launch_knob() {
  Spec spec = gemm_knob("launch");
  spec.value_if_column_missing = static_cast<std::int64_t>(LaunchMode::stream);
  return spec;
}

const std::array<Spec, 13> kKnobs{{
    collective_knob("comm_tile"),
    collective_knob("comm_cus"),
    sum_knob("transport"),
    collective_knob("peer_order"),
    collective_knob("peers"),
    collective_knob("lock"),
    launch_knob(),
    form_knob(CallForm::custom_graph),
    engine_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

// `slots`: elements per GPU of the slots for the peers' summands.
SumDraft draft_of_norm(std::string_view pattern, const Problem& problem, const Machine& machine,
                       const Values& values, double slots) {
  const Collective collective = collective_of(problem);
  SumKnobs knobs = collective_knobs_of(values);
  const double slots_bytes = collective.gpus > 1 ? slots * bytes_of(collective.dtype) : 0;
  check_collective(
      collective, machine, knobs,
      collective.bytes() + norm_bytes(collective.rows, collective.cols, collective.dtype) + slots_bytes);
  check_norm_rows(collective.rows, collective.gpus, "rows");
  if (pattern != "two-shot") {
    knobs.comm_tile_m = 1;
    knobs.comm_tile_n = static_cast<std::int32_t>(collective.cols);
  }
  return {pattern, array_of(collective), machine, knobs, true, product_dtype(collective.dtype)};
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  const Rect widest = block_of(array_of(collective_of(problem)), 0);
  const double slots = static_cast<double>(problem.gpus()) * widest.rows * widest.cols;
  SumDraft draft = draft_of_norm("library", problem, machine, values, slots);
  const NormRows norm = add_norm(draft);
  add_library_sum(draft,
                  [&](int rank) { draft.builder.launch(rank, add_norm_kernel(draft, norm, rank), 0); });
  return draft.builder.finish();
}

Schedule build_one_shot(const Problem& problem, const Machine& machine, const Values& values) {
  const bool pushes = static_cast<Transport>(values["transport"]) == Transport::push;
  const double of_each = static_cast<double>(problem["rows"] * problem["cols"]);
  SumDraft draft = draft_of_norm("one-shot", problem, machine, values, pushes ? problem.gpus() * of_each : 0);
  const NormRows norm = add_norm(draft);
  const OneShotRows shot = add_one_shot_rows(draft, all_cus(machine.gpu, draft.knobs.comm_cus));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t kernel = add_one_shot_kernel(draft, norm, shot, rank);
    host_program(draft.builder, rank, draft.knobs, {{kernel, 0}});
  }
  return draft.builder.finish();
}

// The slots of a GPU are those of its block, one per rank, with push.
Schedule build_two_shot(const Problem& problem, const Machine& machine, const Values& values) {
  const Rect widest = block_of(array_of(collective_of(problem)), 0);
  const bool pushes = static_cast<Transport>(values["transport"]) == Transport::push;
  const double slots = pushes ? static_cast<double>(problem.gpus()) * widest.rows * widest.cols : 0;
  SumDraft draft = draft_of_norm("two-shot", problem, machine, values, slots);
  const NormRows norm = add_norm(draft);
  add_direct(draft, [&](int rank) { return add_norm_kernel(draft, norm, rank, KernelProfile::interpreter); });
  return draft.builder.finish();
}

constexpr std::array<std::string_view, 6> kOneShotKnobs{"comm_cus", "transport", "peer_order",
                                                        "peers",    "lock",      "launch"};
constexpr std::array<std::string_view, 7> kTwoShotKnobs{"comm_tile", "comm_cus", "transport", "peer_order",
                                                        "peers",     "lock",     "launch"};

const std::array<Pattern, 3> kPatterns{{
    {.name = "library",
     .summary = "the vendor's all-reduce, then a kernel that adds the residual and normalises the rows",
     .build = build_library,
     .vendor = true},
    {.name = "one-shot",
     .summary =
         "one kernel; every GPU adds up all rows itself, from slots or from its peers, and normalises them",
     .knobs = kOneShotKnobs,
     .build = build_one_shot},
    {.name = "two-shot",
     .summary =
         "owners of blocks add them up and store the sums to all GPUs; a second kernel adds the residual and "
         "normalises the rows",
     .knobs = kTwoShotKnobs,
     .build = build_two_shot},
}};

void complete(Problem& problem, const FieldPlace& place) {
  check_norm_columns(problem["cols"], place("cols") + ": cols");
  require_rows_or_columns(problem, place);
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(kKnobs), pins);
}

}  // namespace

const Workload& all_reduce_norm() {
  static const Workload workload{
      .name = "all-reduce-norm",
      .title = "All-reduce + RMSNorm",
      .summary =
          "every GPU has a matrix and gets the sum of all matrices plus a residual, and the normalised rows",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = all_reduce_work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .step_rows = "rows",
  };
  return workload;
}

}  // namespace tritax

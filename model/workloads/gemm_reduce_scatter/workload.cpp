// GEMM + reduce-scatter as a workload: fields, knobs and patterns.

#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/sum_patterns.hpp"
#include "model/parts/sum_workload.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/gemm_reduce_scatter/patterns.hpp"
#include "model/workloads/gemm_reduce_scatter/workload.hpp"

namespace tritax {

namespace {

const std::array<Spec, 6> kFields{{
    size_field("m", "-M", "rows of A and C"),
    size_field("n", "-N", "columns of B and C"),
    size_field("k", "-K", "columns of A and rows of B, over all GPUs"),
    dtype_field(DType::fp16, "element type of A, B and C"),
    {.name = "scatter",
     .help = "part of the sum that each GPU gets: some rows, or some columns",
     .kind = ValueKind::name,
     .names = kBlocksNames},
    gpus_field(),
}};

const std::array<Spec, 25> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("comm_tile"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    sharing_knob("sharing"),
    sharing_knob("k_split"),
    sum_knob("transport"),
    sum_knob("chunks"),
    sum_knob("posts"),
    sum_knob("rings"),
    sum_knob("wire_dtype"),
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

PartialSums sums_of(const Problem& problem) {
  return partial_sums_of(problem, static_cast<Blocks>(problem["scatter"]));
}

using Builder = Schedule (*)(const PartialSums&, const Machine&, const SumKnobs&);

// Partial sums of all of C, and slots of the same size.
constexpr double kCopiesOfC = 2;

template <Builder build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const SumKnobs knobs = sum_knobs_of(values);
  check_partial_sums(sums_of(problem), machine, knobs, kCopiesOfC);
  return build(sums_of(problem), machine, knobs);
}

using Body = void (*)(SumDraft&);

template <Body add>
Schedule build_shared(std::string_view pattern, const Problem& problem, const Machine& machine,
                      const Values& values) {
  const SumKnobs knobs = sum_knobs_of(values);
  check_partial_sums(sums_of(problem), machine, knobs, kCopiesOfC);
  SumDraft draft(pattern, sums_of(problem), machine, knobs, false);
  add(draft);
  return draft.builder.finish();
}

Schedule build_bulk_synchronous(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_bulk_synchronous>("bulk-synchronous", problem, machine, knobs);
}
Schedule build_fused_slots(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_fused_slots>("fused-slots", problem, machine, knobs);
}
Schedule build_producer_consumer(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_producer_consumer>("producer-consumer", problem, machine, knobs);
}
Schedule build_workgroup_specialised(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_workgroup_specialised>("workgroup-specialised", problem, machine, knobs);
}
Schedule build_ring(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_ring>("ring", problem, machine, knobs);
}
Schedule build_copy_engine(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_copy_engine>("copy-engine", problem, machine, knobs);
}

Values library_choice(const Problem& problem, const Machine& machine) {
  return with_tile(resolved_knobs(problem, machine, {}), library_sum_tile(sums_of(problem), machine).tile);
}

using Names = std::string_view;
constexpr std::array<Names, 17> kOverlappedKnobs{
    "tile",    "waves",      "pipeline",     "comm_tile", "gemm_cus",  "comm_cus",
    "group_m", "xcd_remap",  "xcd_chunk",    "launch",    "transport", "peer_order",
    "lock",    "wire_dtype", "result_dtype", "sharing",   "k_split"};
constexpr std::array<Names, 10> kAtomicsKnobs{"tile",      "waves",     "pipeline", "gemm_cus",   "group_m",
                                              "xcd_remap", "xcd_chunk", "launch",   "peer_order", "lock"};
constexpr std::array<Names, 14> kSlotsKnobs{"tile",       "waves",        "pipeline", "gemm_cus",   "group_m",
                                            "xcd_remap",  "xcd_chunk",    "launch",   "peer_order", "lock",
                                            "wire_dtype", "result_dtype", "sharing",  "k_split"};
constexpr std::array<Names, 14> kRingKnobs{"tile",       "waves",        "pipeline", "gemm_cus", "group_m",
                                           "xcd_remap",  "xcd_chunk",    "launch",   "lock",     "rings",
                                           "wire_dtype", "result_dtype", "sharing",  "k_split"};
constexpr std::array<Names, 15> kCopyEngineKnobs{
    "tile",      "waves",  "pipeline",   "comm_tile", "gemm_cus",   "comm_cus",     "group_m", "xcd_remap",
    "xcd_chunk", "chunks", "peer_order", "lock",      "wire_dtype", "result_dtype", "posts"};

const std::array<Pattern, 8> kPatterns{{
    {.name = "library",
     .summary = "the vendor's GEMM, then the reduce-scatter of the collective library",
     .build = build_checked<build_reduce_scatter_library>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "bulk-synchronous",
     .summary = "a GEMM kernel, then a kernel that sends partial sums and adds them up, in the same stream",
     .knobs = kOverlappedKnobs,
     .build = build_bulk_synchronous},
    {.name = "fused-atomics",
     .summary = "one kernel; every workgroup adds its tiles atomically onto the sum at their owner",
     .knobs = kAtomicsKnobs,
     .build = build_checked<build_reduce_scatter_atomics>},
    {.name = "fused-slots",
     .summary = "one kernel; tiles of peers go into slots of their owner, which adds them to its own tiles",
     .knobs = kSlotsKnobs,
     .build = build_fused_slots},
    {.name = "producer-consumer",
     .summary = "a GEMM kernel beside a kernel that sends partial sums tile by tile and adds them up",
     .knobs = kOverlappedKnobs,
     .build = build_producer_consumer,
     .roles = Roles::in_two_kernels},
    {.name = "workgroup-specialised",
     .summary = "one kernel; some workgroups multiply, others send partial sums and add them up",
     .knobs = kOverlappedKnobs,
     .build = build_workgroup_specialised,
     .roles = Roles::in_one_kernel},
    {.name = "ring",
     .summary = "one kernel; every tile goes around all GPUs, and each GPU adds its product",
     .knobs = kRingKnobs,
     .build = build_ring},
    {.name = "copy-engine",
     .summary = "copy engines send partial sums in pieces behind the GEMM kernels that compute them",
     .knobs = kCopyEngineKnobs,
     .build = build_copy_engine},
}};

void complete(Problem& problem, const FieldPlace& place) {
  require_parts(problem, place, static_cast<Blocks>(problem["scatter"]) == Blocks::rows ? "m" : "n");
}

Work work(const Problem& problem) { return product_work(sums_of(problem)); }

std::string size_text(const Problem& problem) {
  return fmt::format("{}, {} scattered", product_text(problem),
                     kBlocksNames[static_cast<std::size_t>(problem["scatter"])]);
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_sum_knobs(Values(kKnobs), sums_of(problem), machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return sum_space(pattern, sums_of(problem), machine, Values(kKnobs), pins);
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& knobs) {
  return sum_bound_ns(pattern, sums_of(problem), machine, knobs);
}

// Reads a row of gemm_reduce_scatter.py: the whole program on the host's clock.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  return library_program(line, gemm_reduce_scatter());
}

}  // namespace

const Workload& gemm_reduce_scatter() {
  static const Workload workload{
      .name = "gemm-reduce-scatter",
      .title = "GEMM + reduce-scatter",
      .summary = "A and B split along K over the GPUs; every GPU gets a part of the summed product",
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
      .library_call = library_call,
      .step_rows = "m",
      .timed_by_host = true,
      .computes_and_sends = true,
      .projection = {.projection = Projection::rows_scattered, .depth_of_all = true},
      .traced = TracedForm{.collective = TracedCollective::reduce_scatter,
                           .beside = BesideProduct::behind,
                           .depth_of_all = true},
  };
  return workload;
}

}  // namespace tritax

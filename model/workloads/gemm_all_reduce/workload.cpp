// GEMM + all-reduce as a workload: fields, knobs and patterns.

#include <fmt/format.h>

#include <array>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/sum_patterns.hpp"
#include "model/parts/sum_workload.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/gemm_all_reduce/patterns.hpp"
#include "model/workloads/gemm_all_reduce/workload.hpp"

namespace tritax {

namespace {

const std::array<Spec, 5> kFields{{
    size_field("m", "-M", "rows of A and C"),
    size_field("n", "-N", "columns of B and C"),
    size_field("k", "-K", "columns of A and rows of B, over all GPUs"),
    dtype_field(DType::fp16, "element type of A, B and C"),
    gpus_field(),
}};

const std::array<Spec, 27> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("comm_tile"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    sharing_knob("sharing"),
    sharing_knob("k_split"),
    sum_knob("transport"),
    {.name = "owners",
     .help = "part of C that each GPU adds up and stores to all: some rows, or some columns",
     .kind = ValueKind::name,
     .names = kBlocksNames,
     .shown = "owners of {}",
     .not_shown = static_cast<std::int64_t>(Blocks::rows)},
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
    form_knob(CallForm::custom_graph),
    engine_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

PartialSums sums_of(const Problem& problem, const Values& knobs) {
  return partial_sums_of(problem, static_cast<Blocks>(knobs["owners"]));
}

// The product alone, which does not depend on owners.
PartialSums product_of(const Problem& problem) { return partial_sums_of(problem, Blocks::rows); }

constexpr std::int64_t kFewRowsOfOwner = 64;  // the smallest side of usual tiles

bool allows(const Problem& problem, Blocks owners) {
  return problem[owners == Blocks::rows ? "m" : "n"] >= problem.gpus();
}

using Builder = Schedule (*)(const PartialSums&, const Machine&, const SumKnobs&);

// Memory for partial sums of all of C, and slots of the same size; `everything`: slots of all GPUs.
void check_all(const Problem& problem, const Machine& machine, const Values& values, bool everything) {
  const double copies = everything && problem.gpus() > 2 ? problem.gpus() : 2;
  check_partial_sums(sums_of(problem, values), machine, sum_knobs_of(values), copies);
}

template <Builder build, bool everything>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  check_all(problem, machine, values, everything);
  return build(sums_of(problem, values), machine, sum_knobs_of(values));
}

using Body = void (*)(SumDraft&);

template <Body add>
Schedule build_shared(std::string_view pattern, const Problem& problem, const Machine& machine,
                      const Values& values) {
  check_all(problem, machine, values, false);
  const auto owners = static_cast<Blocks>(values["owners"]);
  if (!allows(problem, owners)) {
    throw UserError(fmt::format("owners: {} of C are fewer than GPUs ({}); let them own {}",
                                kBlocksNames[static_cast<std::size_t>(owners)], problem.gpus(),
                                kBlocksNames[owners == Blocks::rows ? 1 : 0]));
  }
  SumDraft draft(pattern, sums_of(problem, values), machine, sum_knobs_of(values), true);
  add(draft);
  return draft.builder.finish();
}

Schedule build_bulk_synchronous(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_bulk_synchronous>("bulk-synchronous", problem, machine, knobs);
}
Schedule build_two_shot(const Problem& problem, const Machine& machine, const Values& knobs) {
  return build_shared<add_fused_slots>("two-shot", problem, machine, knobs);
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
  return with_tile(resolved_knobs(problem, machine, {}), library_sum_tile(product_of(problem), machine).tile);
}

using Names = std::string_view;
constexpr std::array<Names, 18> kOverlappedKnobs{
    "tile",       "waves",     "pipeline",   "comm_tile",    "gemm_cus",  "comm_cus",
    "group_m",    "xcd_remap", "xcd_chunk",  "launch",       "transport", "owners",
    "peer_order", "lock",      "wire_dtype", "result_dtype", "sharing",   "k_split"};
constexpr std::array<Names, 10> kAtomicsKnobs{"tile",      "waves",     "pipeline", "gemm_cus",   "group_m",
                                              "xcd_remap", "xcd_chunk", "launch",   "peer_order", "lock"};
constexpr std::array<Names, 13> kOneShotKnobs{
    "tile",   "waves",      "pipeline", "gemm_cus",  "group_m",    "xcd_remap",   "xcd_chunk",
    "launch", "peer_order", "lock",     "transport", "wire_dtype", "result_dtype"};
constexpr std::array<Names, 15> kTwoShotKnobs{
    "tile",       "waves", "pipeline", "gemm_cus",   "group_m",      "xcd_remap", "xcd_chunk", "launch",
    "peer_order", "lock",  "owners",   "wire_dtype", "result_dtype", "sharing",   "k_split"};
constexpr std::array<Names, 16> kRingKnobs{
    "tile",       "waves", "pipeline", "gemm_cus", "group_m",    "xcd_remap",    "xcd_chunk", "launch",
    "peer_order", "lock",  "rings",    "owners",   "wire_dtype", "result_dtype", "sharing",   "k_split"};
constexpr std::array<Names, 16> kCopyEngineKnobs{
    "tile",      "waves",  "pipeline", "comm_tile",  "gemm_cus", "comm_cus",   "group_m",      "xcd_remap",
    "xcd_chunk", "chunks", "owners",   "peer_order", "lock",     "wire_dtype", "result_dtype", "posts"};

const std::array<Pattern, 9> kPatterns{{
    {.name = "library",
     .summary = "the vendor's GEMM, then the all-reduce of the collective library",
     .build = build_checked<build_all_reduce_library, false>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "bulk-synchronous",
     .summary =
         "a GEMM kernel, then a kernel that sends partial sums, adds them up and stores the sum to all",
     .knobs = kOverlappedKnobs,
     .build = build_bulk_synchronous},
    {.name = "fused-atomics",
     .summary = "one kernel; every workgroup adds its tiles atomically onto the sum on every GPU",
     .knobs = kAtomicsKnobs,
     .build = build_checked<build_all_reduce_atomics, false>},
    {.name = "one-shot",
     .summary = "one kernel; every GPU adds up every tile itself, from slots or from its peers",
     .knobs = kOneShotKnobs,
     .build = build_checked<build_all_reduce_one_shot, true>},
    {.name = "two-shot",
     .summary = "one kernel; tiles go into slots of their owner, which adds them up and stores the sum to "
                "all",
     .knobs = kTwoShotKnobs,
     .build = build_two_shot},
    {.name = "producer-consumer",
     .summary =
         "a GEMM kernel beside a kernel that sends partial sums, adds them up and stores the sum to all",
     .knobs = kOverlappedKnobs,
     .build = build_producer_consumer,
     .roles = Roles::in_two_kernels},
    {.name = "workgroup-specialised",
     .summary = "one kernel; some workgroups multiply, others send, add up and store the sum to all",
     .knobs = kOverlappedKnobs,
     .build = build_workgroup_specialised,
     .roles = Roles::in_one_kernel},
    {.name = "ring",
     .summary = "one kernel; every tile goes around all GPUs, and the last one stores the sum to all",
     .knobs = kRingKnobs,
     .build = build_ring},
    {.name = "copy-engine",
     .summary = "copy engines send partial sums in pieces; a kernel adds them up and stores the sum to all",
     .knobs = kCopyEngineKnobs,
     .build = build_copy_engine},
}};

void complete(Problem& problem, const FieldPlace& place) {
  // At least one cut of C must give every GPU a part.
  require_parts(problem, place, problem["m"] >= problem["n"] ? "m" : "n");
}

Work work(const Problem& problem) { return product_work(product_of(problem)); }

std::string size_text(const Problem& problem) { return product_text(problem); }

// Owners have columns where there are fewer rows than GPUs.
Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs = default_sum_knobs(Values(kKnobs), product_of(problem), machine);
  if (!allows(problem, Blocks::rows)) knobs.assume("owners", static_cast<std::int64_t>(Blocks::columns));
  return knobs;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space = sum_space(pattern, product_of(problem), machine, Values(kKnobs), pins);
  if (problem.gpus() == 1 || !pattern.uses("owners") || pins.given("owners")) return space;
  std::vector<std::int64_t> owners;
  for (const Blocks blocks : {Blocks::rows, Blocks::columns}) {
    if (allows(problem, blocks)) owners.push_back(static_cast<std::int64_t>(blocks));
  }
  Axis axis = column_axis("owners", owners);
  // Owners with a few rows each cut C into slivers, whatever the tile: both cuts are tried with every tile.
  if (owners.size() > 1 && problem["m"] < kFewRowsOfOwner * problem.gpus()) {
    axis.start = 1;
    axis.coarse = {0, 1};
  }
  space.axes.push_back(std::move(axis));
  return space;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& knobs) {
  return sum_bound_ns(pattern, product_of(problem), machine, knobs);
}

// Reads a row of gemm_all_reduce.py: the whole program on the host's clock.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  return library_program(line, gemm_all_reduce());
}

}  // namespace

const Workload& gemm_all_reduce() {
  static const Workload workload{
      .name = "gemm-all-reduce",
      .title = "GEMM + all-reduce",
      .summary = "A and B split along K over the GPUs; every GPU gets the whole summed product",
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
      .projection = {.projection = Projection::rows_reduced, .depth_of_all = true},
      .traced = TracedForm{.collective = TracedCollective::all_reduce,
                           .beside = BesideProduct::behind,
                           .depth_of_all = true},
  };
  return workload;
}

}  // namespace tritax

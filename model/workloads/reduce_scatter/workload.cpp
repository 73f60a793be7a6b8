// Reduce-scatter alone.
//
//   library  the vendor's kernel: model/parts/library_collectives.hpp
//   direct   model/parts/sum_patterns.hpp: one workgroup sends and adds, or fetches and adds
//   ring     model/parts/sum_patterns.hpp: every piece visits all GPUs, and each adds its own summand
#include "model/workloads/reduce_scatter/workload.hpp"

#include <array>

#include "model/parts/collectives.hpp"
#include "model/parts/library_collectives.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/sum_patterns.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"

namespace tritax {

namespace {

const std::array<Spec, 4> kFields = collective_fields(
    "rows of every GPU's matrix; each GPU gets its part of the sum", "columns of the matrix", 1);

const std::array<Spec, 13> kKnobs{{
    collective_knob("comm_tile"),
    collective_knob("comm_cus"),
    sum_knob("transport"),
    collective_knob("rings"),
    collective_knob("peer_order"),
    collective_knob("peers"),
    collective_knob("lock"),
    lists_knob(),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

SumDraft draft_of(std::string_view pattern, const Problem& problem, const Machine& machine,
                  const Values& values) {
  const Collective collective = collective_of(problem);
  const SumKnobs knobs = collective_knobs_of(values);
  // Summands, slots (or arriving pieces), and the sum.
  check_collective(collective, machine, knobs, 3 * collective.bytes());
  return {pattern,
          {collective.rows, collective.cols, 0, collective.dtype, Blocks::rows, collective.gpus},
          machine,
          knobs,
          false};
}

Schedule build_direct(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of("direct", problem, machine, values);
  add_direct(draft);
  return draft.builder.finish();
}

Schedule build_ring(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of("ring", problem, machine, values);
  add_ring(draft);
  return draft.builder.finish();
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of("library", problem, machine, values);
  ScheduleBuilder& builder = draft.builder;
  const std::vector<Rect> blocks = blocks_of(draft.problem);
  std::int16_t summands = draft.partial;
  std::vector<std::int32_t> before;  // by rank: the copy of the list's tensors to one tensor
  if (values[kListsKnob] != 0) {
    const auto rows = static_cast<std::int32_t>(draft.problem.m),
               cols = static_cast<std::int32_t>(draft.problem.n);
    summands = builder.buffer({"flat", draft.problem.dtype, rows, cols, rows, cols});
    for (int rank = 0; rank < draft.ranks(); ++rank)
      before.push_back(add_block_copy(builder, machine, {rank, draft.partial, summands, blocks, blocks}));
  }
  LibraryReduce reduce = library_reduce_of(draft, "reduce_scatter", summands, draft.problem.dtype, blocks);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const Rect& block = reduce.blocks[static_cast<std::size_t>(rank)];
    reduce.rank = rank;
    reduce.place = {0, 0, block.rows, block.cols};
    std::vector<std::int32_t> kernels;
    if (!before.empty()) kernels.push_back(before[static_cast<std::size_t>(rank)]);
    kernels.push_back(add_library_reduce(builder, machine, reduce));
    library_program(builder, rank, kernels, draft.knobs.host_barriers);
  }
  return builder.finish();
}

constexpr std::array<std::string_view, 1> kLibraryKnobs{kListsKnob};
constexpr std::array<std::string_view, 6> kDirectKnobs{"comm_tile",  "comm_cus", "transport",
                                                       "peer_order", "peers",    "lock"};
constexpr std::array<std::string_view, 5> kRingKnobs{"comm_tile", "comm_cus", "rings", "peers", "lock"};

const std::array<Pattern, 3> kPatterns{{
    {.name = "library",
     .summary = "the reduce-scatter of the vendor's collective library",
     .knobs = kLibraryKnobs,
     .build = build_library,
     .vendor = true},
    {.name = "direct",
     .summary = "every GPU sends pieces into slots of their owner, or the owner loads them; the owner adds "
                "them up",
     .knobs = kDirectKnobs,
     .build = build_direct},
    {.name = "ring",
     .summary = "every piece goes around all GPUs, and each GPU adds its own",
     .knobs = kRingKnobs,
     .build = build_ring},
}};

Work work(const Problem& problem) {
  const Collective collective = collective_of(problem);
  return {.bytes_per_gpu = collective.bytes() * (collective.gpus - 1) / collective.gpus,
          .peers = collective.gpus - 1};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(kKnobs), pins);
}

std::optional<LibraryCall> library_call(const CsvRow& line) {
  return library_program(line, reduce_scatter());
}

}  // namespace

const Workload& reduce_scatter() {
  static const Workload workload{
      .name = "reduce-scatter",
      .title = "Reduce-scatter",
      .summary = "every GPU has a matrix and gets its rows of the sum of all matrices",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = require_rows,
      .work = work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .library_call = library_call,
      .step_rows = "rows",
      .message = Message::matrix,
      .traced = TracedForm{.collective = TracedCollective::reduce_scatter},
  };
  return workload;
}

}  // namespace tritax

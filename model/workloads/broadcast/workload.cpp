// Broadcast as a workload: fields, knobs and patterns.
#include "model/workloads/broadcast/workload.hpp"

#include <array>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/broadcast/patterns.hpp"

namespace tritax {

namespace {

const std::array<Spec, 4> kFields =
    collective_fields("rows of the matrix of GPU 0", "columns of the matrix", 2);

const std::array<Spec, 10> kKnobs = moving_knobs();

Schedule build_direct(const Problem& problem, const Machine& machine, const Values& values) {
  BroadcastDraft draft("direct", problem, machine, values);
  if (draft.knobs.transport == Transport::push) {
    add_direct_push(draft);
  } else {
    add_direct_pull(draft);
  }
  return draft.builder.finish();
}

Schedule build_scatter_gather(const Problem& problem, const Machine& machine, const Values& values) {
  BroadcastDraft draft("scatter-gather", problem, machine, values);
  add_scatter_gather(draft);
  return draft.builder.finish();
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  BroadcastDraft draft("library", problem, machine, values);
  ScheduleBuilder& builder = draft.builder;
  LibraryBroadcast plan;
  plan.kernel = "broadcast";
  plan.ranks = draft.ranks();
  plan.root = kRoot;
  plan.data = draft.data;
  plan.whole = builder.whole(draft.data).rect;
  plan.bytes = draft.collective.bytes();
  plan.arrived = builder.flags("arrived", broadcast_flags(machine, plan.bytes));
  plan.done = builder.flags("done", library_channels(machine) * draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    plan.rank = rank;
    library_program(builder, rank, {add_library_broadcast(builder, machine, plan)},
                    draft.knobs.host_barriers);
  }
  return builder.finish();
}

constexpr std::array<std::string_view, 5> kDirectKnobs{"comm_tile", "comm_cus", "transport", "peer_order",
                                                       "lock"};
constexpr std::array<std::string_view, 4> kScatterKnobs{"comm_tile", "comm_cus", "peer_order", "lock"};

const std::array<Pattern, 3> kPatterns{{
    {.name = "library",
     .summary = "the broadcast of the vendor's collective library",
     .build = build_library,
     .vendor = true},
    {.name = "direct",
     .summary = "GPU 0 stores every piece to all others, or each of them loads it from GPU 0",
     .knobs = kDirectKnobs,
     .build = build_direct},
    {.name = "scatter-gather",
     .summary = "GPU 0 sends every piece to one other GPU, which stores it to the rest",
     .knobs = kScatterKnobs,
     .build = build_scatter_gather},
}};

// Bytes that every rank receives, as bus bandwidths count them.
Work work(const Problem& problem) {
  const Collective collective = collective_of(problem);
  return {.bytes_per_gpu = collective.bytes(), .peers = collective.gpus - 1};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(kKnobs), pins);
}

std::optional<LibraryCall> library_call(const CsvRow& line) { return library_program(line, broadcast()); }

}  // namespace

const Workload& broadcast() {
  static const Workload workload{
      .name = "broadcast",
      .title = "Broadcast",
      .summary = "every GPU gets the matrix of GPU 0",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .work = work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .library_call = library_call,
      .step_rows = "rows",
      .message = Message::matrix,
      .traced = TracedForm{.collective = TracedCollective::broadcast},
  };
  return workload;
}

}  // namespace tritax

// Copy engine: copy engines move blocks while the kernels of attention run.
//
//   stream 0:  ATTEND 0 (library.cpp), which opens; for i = 1 … W-1: wait for event i-1; ATTEND i
//   stream 1:  one workgroup waits until the receivers of the rank are open; for i = 0 … W-2:
//                copy keys and values of a block -> a peer; one workgroup signals the peer, and waits for the
//                arriving block; record event i
//
// Ring: block r-i to rank r+1. In turn: the own block to rank r+1+i. At once: as in turn, with one stream for
// each i.
#include <string_view>

#include "model/machine/check_machine.hpp"
#include "model/workloads/ring_attention/patterns.hpp"

namespace tritax {

namespace {

std::int32_t one_workgroup(RingDraft& draft, int rank, std::string_view name) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  draft.builder.workgroup(id);
  return id;
}

int receiver(const RingDraft& draft, int rank, int step) {
  return draft.knobs.route == Route::ring ? draft.next(rank) : (rank + 1 + step) % draft.ranks();
}

void await_receivers(RingDraft& draft, int rank) {
  if (draft.knobs.host_barriers) return;
  const std::int32_t id = one_workgroup(draft, rank, "await");
  const int receivers = draft.knobs.route == Route::ring ? 1 : draft.ranks() - 1;
  for (int step = 0; step < receivers; ++step) draft.await_opened(receiver(draft, rank, step));
  draft.builder.launch(rank, id, 1);
}

void post_step(RingDraft& draft, int rank, int step, std::int16_t arrived) {
  ScheduleBuilder& builder = draft.builder;
  const bool at_once = draft.knobs.route == Route::at_once;
  const std::int32_t stream = at_once ? 1 + step : 1;
  const std::int32_t opened = draft.ranks();  // event
  if (at_once && step > 0 && !draft.knobs.host_barriers) builder.wait_event(rank, opened, stream);
  const int to = receiver(draft, rank, step);
  const int from = draft.knobs.route == Route::ring ? draft.source(rank, step) : rank;
  for (const Rect& rect : draft.block(from)) {
    for (const std::int16_t buffer : {draft.k, draft.v}) {
      builder.host_copy(rank, stream, buffer, rect, to, buffer, rect.row, rect.col, rank);
    }
  }
  const std::int32_t tell = one_workgroup(draft, rank, "tell");
  builder.signal(arrived, step, 1, to, Scope::system, draft.knobs.lock);
  builder.wait(arrived, step, 1, Scope::system, draft.knobs.lock);
  builder.launch(rank, tell, stream);
  builder.record_event(rank, step, stream);
}

}  // namespace

Schedule build_ring_copy_engine(const SequenceAttention& problem, const Machine& machine,
                                const RingKnobs& knobs) {
  if (problem.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  RingDraft draft("copy-engine", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  draft.add_partials();
  draft.add_opened();
  const std::int16_t arrived = draft.sends() ? builder.flags("arrived", draft.ranks()) : std::int16_t{-1};
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    draft.begin(rank);
    builder.launch(rank, draft.add_step(rank, 0));
    if (draft.sends()) {
      await_receivers(draft, rank);
      builder.record_event(rank, draft.ranks(), 1);
    }
    for (int step = 0; step + 1 < draft.ranks(); ++step) post_step(draft, rank, step, arrived);
    for (int step = 1; step < draft.ranks(); ++step) {
      builder.wait_event(rank, step - 1);
      if (const std::int32_t attend = draft.add_step(rank, step); attend >= 0) builder.launch(rank, attend);
    }
    draft.end(rank);
  }
  return builder.finish();
}

}  // namespace tritax

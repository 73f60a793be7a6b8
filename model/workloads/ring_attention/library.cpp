// Library: one launch of attention per block, and sends and receives of the vendor's collective library that
// pass blocks on (zhuzilin/ring-flash-attention). r own rank, W ranks.
//
//   ATTEND i     a workgroup per tile of queries: merge its partial; attend to block r-i; store the partial,
//                or, behind the last block that it sees, the result
//   SEND i       the vendor's kernel, a workgroup a channel: copy its part of block r-i -> rank r+1;
//                tell it; wait for rank r-1
//
//   library:          stream 0: ATTEND 0, SEND 0, ATTEND 1, SEND 1, …, ATTEND W-1
//   library-streams:  stream 0: ATTEND 0; wait for event 0; ATTEND 1; …
//                     stream 1: SEND 0; record event 0; SEND 1; …
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/cost/collective_cost.hpp"
#include "model/parts/library_gather.hpp"
#include "model/workloads/ring_attention/patterns.hpp"

namespace tritax {

namespace {

// The library's route is always a ring of neighbours, independent of the knobs.
RingKnobs of_library(RingKnobs knobs) {
  knobs.route = Route::ring;
  knobs.lock = LockProtocol::load_store;
  return knobs;
}

void copy_channel(RingDraft& draft, int rank, const Rect& rect, std::int32_t channel, std::int32_t channels) {
  const Rect share = piece_of(rect, channel, channels);
  const double bytes = static_cast<double>(rect.rows) * rect.cols * bytes_of(draft.problem.dtype) / channels;
  const std::int32_t chunks = std::min(chunks_of_channel(bytes), share.rows);
  for (std::int32_t i = 0; i < chunks; ++i) {
    const Rect chunk = piece_of(share, i, chunks);
    for (const std::int16_t buffer : {draft.k, draft.v}) {
      draft.builder.copy(buffer, chunk, draft.next(rank), buffer, chunk.row, chunk.col, rank);
    }
  }
}

std::int32_t add_send(RingDraft& draft, int rank, int step, std::int16_t arrived) {
  constexpr double kSends = 2;  // keys and values, in separate sends
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t channels = library_channels(draft.machine);
  const std::int32_t id = builder.kernel(collective_kernel(fmt::format("send-{}", step), rank,
                                                           {.routine = LibraryRoutine::all_to_all,
                                                            .ranks = draft.ranks(),
                                                            .bytes = draft.widest_bytes() / kSends,
                                                            .channels = channels,
                                                            .flags = 1}));
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    builder.workgroup(id);
    if (step == 0) draft.await_opened(draft.next(rank));
    for (const Rect& rect : draft.block(draft.source(rank, step))) {
      copy_channel(draft, rank, rect, channel, channels);
    }
    builder.barrier();
    builder.signal(arrived, channel, 1, draft.next(rank), Scope::system, draft.knobs.lock);
    builder.wait(arrived, channel, 1, Scope::system, draft.knobs.lock);
  }
  return id;
}

Schedule build_with_library(std::string_view name, const SequenceAttention& problem, const Machine& machine,
                            const RingKnobs& asked, std::int32_t stream) {
  RingDraft draft(name, problem, machine, of_library(asked));
  ScheduleBuilder& builder = draft.builder;
  draft.add_partials();
  draft.add_opened();
  std::vector<std::int16_t> arrived;
  for (int step = 0; step + 1 < draft.ranks(); ++step) {
    arrived.push_back(builder.flags(fmt::format("arrived-{}", step), library_channels(machine)));
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    draft.begin(rank);
    for (int step = 0; step < draft.ranks(); ++step) {
      if (stream > 0 && step > 0) builder.wait_event(rank, step - 1);
      const std::int32_t attend = draft.add_step(rank, step);
      const bool last = step + 1 == draft.ranks();
      // On two streams the send is posted first: it needs few compute units for a short time.
      if (stream == 0 && attend >= 0) builder.launch(rank, attend);
      if (!last) {
        builder.host_work(rank, kCollectiveCall);
        builder.launch(rank, add_send(draft, rank, step, arrived[static_cast<std::size_t>(step)]), stream);
        if (stream > 0) builder.record_event(rank, step, stream);
      }
      if (stream > 0 && attend >= 0) builder.launch(rank, attend);
    }
    draft.end(rank);
  }
  return builder.finish();
}

}  // namespace

Schedule build_ring_library(const SequenceAttention& problem, const Machine& machine,
                            const RingKnobs& knobs) {
  return build_with_library("library", problem, machine, knobs, 0);
}

Schedule build_ring_library_streams(const SequenceAttention& problem, const Machine& machine,
                                    const RingKnobs& knobs) {
  return build_with_library("library-streams", problem, machine, knobs, 1);
}

}  // namespace tritax

#include "model/workloads/all_reduce/one_shot.hpp"

#include <vector>

#include "model/parts/collectives.hpp"
#include "model/parts/staged_sums.hpp"

namespace tritax {

namespace {

struct Shot {
  std::vector<Rect> pieces;
  std::int32_t workgroups = 1;
  std::int16_t slots = -1;    // push: the whole matrix per source
  std::int16_t arrived = -1;  // push: one per piece
  std::int16_t ready = -1;    // pull: (workgroup, rank)
};

Rect slot_of(const SumDraft& draft, int source, Rect rect) {
  rect.row += source * static_cast<std::int32_t>(draft.problem.m);
  return rect;
}

void send_pieces(SumDraft& draft, int rank, const Shot& shot, std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = draft.peers_of(rank, p);
  const auto count = static_cast<std::int32_t>(shot.pieces.size());
  for (std::int32_t i = p; i < count; i += shot.workgroups) {
    const Rect& piece = shot.pieces[static_cast<std::size_t>(i)];
    builder.load(draft.partial, piece, rank);
    if (draft.coded()) builder.store(shot.slots, slot_of(draft, rank, piece), rank);
    send_to_slots(draft, {shot.slots, slot_of(draft, rank, piece), shot.arrived, i}, peers, i == p);
  }
}

void add_pieces(SumDraft& draft, int rank, const Shot& shot, std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = draft.peers_of(rank, p);
  const auto count = static_cast<std::int32_t>(shot.pieces.size());
  for (std::int32_t i = p; i < count; i += shot.workgroups) {
    const Rect& piece = shot.pieces[static_cast<std::size_t>(i)];
    if (shot.arrived >= 0) builder.wait(shot.arrived, i, draft.ranks() - 1, Scope::system, draft.knobs.lock);
    add_of_all(draft, [&] {
      if (draft.coded()) {
        builder.load(shot.slots, slot_of(draft, rank, piece), rank);
      } else {
        builder.load(draft.partial, piece, rank);
      }
      for (const int peer : peers) {
        if (shot.slots >= 0) {
          builder.reduce(shot.slots, slot_of(draft, peer, piece), rank);
        } else {
          builder.reduce(draft.partial, piece, peer);
        }
      }
    });
    builder.store(draft.c, piece, rank);
  }
}

}  // namespace

void add_one_shot(SumDraft& draft) {
  const PartialSums& sums = draft.problem;
  ScheduleBuilder& builder = draft.builder;
  const auto m = static_cast<std::int32_t>(sums.m);
  const auto n = static_cast<std::int32_t>(sums.n);
  const bool pushed = draft.knobs.transport == Transport::push;
  Shot shot;
  shot.pieces = cut({0, 0, m, n}, draft.tile.m, draft.tile.n);
  shot.workgroups = all_cus(draft.machine.gpu, draft.knobs.comm_cus);
  if (draft.sends() && pushed) {
    shot.slots = builder.buffer(
        {"slots", sums.dtype, m * draft.ranks(), n, draft.tile.m, draft.tile.n, draft.knobs.codec});
    shot.arrived = builder.flags("arrived", static_cast<std::int32_t>(shot.pieces.size()));
    add_opened(draft);
  } else if (draft.opens()) {
    shot.ready = builder.flags("ready", shot.workgroups * draft.ranks());
    add_done(draft, shot.workgroups);
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t id = moving_kernel(builder, draft.machine, rank, "one_shot", draft.knobs);
    for (std::int32_t p = 0; p < shot.workgroups; ++p) {
      builder.workgroup(id);
      tell_opened(draft, rank, p == 0);
      if (shot.ready >= 0) {
        exchange_arrivals(builder, draft.peers_of(rank, p), draft.ranks(), rank, p, shot.ready,
                          draft.knobs.lock, draft.knobs.serves);
      }
      if (shot.slots >= 0) send_pieces(draft, rank, shot, p);
      add_pieces(draft, rank, shot, p);
      exchange_done(draft, rank, p);
    }
    host_program(builder, rank, draft.knobs, staged_launches(draft, rank, id));
  }
}

}  // namespace tritax

#include <algorithm>
#include <string>
#include <vector>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/workloads/rooted/draft.hpp"

namespace tritax {

namespace {

int mover_of(const RootedDraft& draft, const RootedMove& move) {
  return draft.knobs.transport == Transport::push ? move.from : move.to;
}

int other_of(const RootedDraft& draft, const RootedMove& move) {
  return draft.knobs.transport == Transport::push ? move.to : move.from;
}

// A piece of the block of a move.
struct Piece {
  const RootedMove* move = nullptr;
  Rect rect;  // in `source`
};

std::vector<Piece> cut_move(const RootedDraft& draft, const RootedMove& move) {
  const TileIndex size = piece_size(draft.knobs);
  std::vector<Piece> pieces;
  for (const Rect& rect : cut(move.block, size.row, size.col)) pieces.push_back({&move, rect});
  return pieces;
}

Rect place_of(const Piece& piece) {
  Rect place = piece.rect;
  place.row += piece.move->place.row - piece.move->block.row;
  return place;
}

// Pieces that a rank moves; pieces that cross no link come last.
std::vector<Piece> pieces_of(const RootedDraft& draft, const Moves& moves, int rank) {
  const std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, 0);
  std::vector<std::vector<Piece>> by_peer;
  std::vector<Piece> own;
  for (const int peer : peers) {
    for (const RootedMove& move : moves.list) {
      if (mover_of(draft, move) == rank && other_of(draft, move) == peer)
        by_peer.push_back(cut_move(draft, move));
    }
  }
  for (const RootedMove& move : moves.list) {
    if (move.from == rank && move.to == rank) own = cut_move(draft, move);
  }
  std::vector<Piece> all = merged(by_peer, draft.knobs.peer_order == PeerOrder::staggered);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

void add_direct_moves(RootedDraft& draft, const Moves& moves) {
  ScheduleBuilder& builder = draft.builder;
  add_sides(draft);
  const Uses uses = [&](int mover, int other) {
    return std::any_of(moves.list.begin(), moves.list.end(), [&](const RootedMove& move) {
      return mover_of(draft, move) == mover && other_of(draft, move) == other && mover != other;
    });
  };
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<Piece> pieces = pieces_of(draft, moves, rank);
    const std::int32_t workgroups = workgroups_of(draft, uses, rank, !pieces.empty());
    Graph kernels;
    if (workgroups > 0) kernels = {{moving_kernel(builder, draft.machine, rank, "move", draft.knobs), 0}};
    for (std::int32_t p = 0; p < workgroups; ++p) {
      builder.workgroup(kernels.front().kernel);
      tell_movers(draft, uses, rank, p);
      std::vector<bool> open(static_cast<std::size_t>(draft.ranks()), false);
      open[static_cast<std::size_t>(rank)] = true;
      for (auto i = static_cast<std::size_t>(p); i < pieces.size();
           i += static_cast<std::size_t>(workgroups)) {
        const RootedMove& move = *pieces[i].move;
        const int other = other_of(draft, move);
        if (!open[static_cast<std::size_t>(other)]) await_other(draft, other);
        open[static_cast<std::size_t>(other)] = true;
        builder.copy(moves.target, place_of(pieces[i]), move.to, moves.source, pieces[i].rect.row,
                     pieces[i].rect.col, move.from);
      }
      tell_others(draft, uses, rank, p);
    }
    host_program(builder, rank, draft.knobs, kernels);
  }
}

void add_library_moves(RootedDraft& draft, const Moves& moves) {
  ScheduleBuilder& builder = draft.builder;
  const auto move_of = [&](int from, int to) {
    const auto found = std::find_if(moves.list.begin(), moves.list.end(), [&](const RootedMove& move) {
      return move.from == from && move.to == to;
    });
    return found == moves.list.end() ? BlockMove{} : BlockMove{found->block, found->place};
  };
  LibraryAllToAll plan;
  plan.kernel = "sends_and_receives";
  plan.ranks = draft.ranks();
  plan.own = moves.source;
  plan.received = moves.target;
  plan.widest_bytes = draft.collective.bytes();
  plan.arrived = builder.flags("arrived", library_channels(draft.machine) * draft.ranks());
  plan.nodes =
      exchange_nodes(builder, draft.machine, draft.ranks(), draft.collective.dtype, draft.block(), move_of);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    plan.rank = rank;
    plan.blocks.clear();
    plan.places.clear();
    for (int to = 0; to < draft.ranks(); ++to) {
      plan.blocks.push_back(move_of(rank, to).block);
      plan.places.push_back(move_of(rank, to).place);
    }
    library_program(builder, rank, {add_library_all_to_all(builder, draft.machine, plan)},
                    draft.knobs.host_barriers);
  }
}

namespace {

// The slots of a receiver, and what tells it that a piece is there; a rank receives one block.
struct Messages {
  std::int16_t slots = -1;
  std::int16_t sent = -1;  // one per piece
};

std::int32_t add_sends(RootedDraft& draft, const Moves& moves, const Messages& messages,
                       const RootedMove& move) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<Piece> pieces = cut_move(draft, move);
  const std::int32_t id = moving_kernel(builder, draft.machine, move.from, "produce", draft.knobs);
  for (std::int32_t p = 0; p < draft.workgroups; ++p) {
    builder.workgroup(id);
    for (const RootedMove& other : moves.list) {
      if (other.to == move.from)
        tell_movers(
            draft, [&](int mover, int) { return mover == other.from; }, move.from, p);
    }
    for (auto i = static_cast<std::size_t>(p); i < pieces.size();
         i += static_cast<std::size_t>(draft.workgroups)) {
      if (i == static_cast<std::size_t>(p)) await_other(draft, move.to);
      builder.copy(messages.slots, place_of(pieces[i]), move.to, moves.source, pieces[i].rect.row,
                   pieces[i].rect.col, move.from);
      builder.signal(messages.sent, static_cast<std::int32_t>(i), 1, move.to, Scope::system,
                     draft.knobs.lock);
    }
  }
  return id;
}

// `opens`: no kernel of the rank has told the sender that its slots are open.
std::int32_t add_receives(RootedDraft& draft, const Moves& moves, const Messages& messages,
                          const RootedMove& move, bool opens) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<Piece> pieces = cut_move(draft, move);
  const std::int32_t id = moving_kernel(builder, draft.machine, move.to, "consume", draft.knobs);
  for (std::int32_t p = 0; p < draft.workgroups; ++p) {
    builder.workgroup(id);
    if (opens)
      tell_movers(
          draft, [&](int mover, int) { return mover == move.from; }, move.to, p);
    for (auto i = static_cast<std::size_t>(p); i < pieces.size();
         i += static_cast<std::size_t>(draft.workgroups)) {
      const Rect place = place_of(pieces[i]);
      builder.wait(messages.sent, static_cast<std::int32_t>(i), 1, Scope::system, draft.knobs.lock);
      builder.copy(moves.target, place, move.to, messages.slots, place.row, place.col, move.to);
    }
  }
  return id;
}

}  // namespace

void add_message_passing(RootedDraft& draft, const Moves& moves) {
  Messages messages;
  messages.slots = draft.add_blocks("slots");
  messages.sent =
      draft.builder.flags("sent", static_cast<std::int32_t>(cut_move(draft, moves.list.front()).size()));
  if (draft.opens()) draft.opened = draft.builder.flags("opened", draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    for (const RootedMove& move : moves.list) {
      if (move.from == rank) kernels.push_back({add_sends(draft, moves, messages, move), 0});
    }
    for (const RootedMove& move : moves.list) {
      if (move.to == rank)
        kernels.push_back({add_receives(draft, moves, messages, move, kernels.empty()), 0});
    }
    host_program(draft.builder, rank, draft.knobs, kernels);
  }
}

}  // namespace tritax

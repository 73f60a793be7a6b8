#include "model/workloads/rooted/reduce.hpp"

#include <algorithm>

namespace tritax {

namespace {

std::vector<int> children_of(int ranks, ParentOf parent, int rank) {
  std::vector<int> children;
  for (int child = 0; child < ranks; ++child) {
    if (child != kRootRank && parent(child) == rank) children.push_back(child);
  }
  return children;
}

}  // namespace

int most_children(int ranks, ParentOf parent) {
  std::size_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, children_of(ranks, parent, rank).size());
  return static_cast<int>(most);
}

ReduceDraft::ReduceDraft(std::string_view pattern, const Problem& problem, const Machine& machine_,
                         const Values& values, int slots_of_gpu)
    : RootedDraft(pattern, problem, machine_, values, 2 + slots_of_gpu) {
  own = add_blocks("own");
  sum = add_blocks("sum");
  builder.result(sum);
  builder.input(builder.whole(own));
  builder.expect_sum(builder.whole(sum, kRootRank), builder.whole(own));
  const TileIndex size = piece_size(knobs);
  pieces = cut(block(), size.row, size.col);
}

void add_reduce_up(ReduceDraft& draft, ParentOf parent) {
  ScheduleBuilder& builder = draft.builder;
  const LockProtocol lock = draft.knobs.lock;
  const std::int16_t slots = draft.add_blocks("slots", most_children(draft.ranks(), parent));
  const std::int16_t arrived = builder.flags("arrived", static_cast<std::int32_t>(draft.pieces.size()));
  const std::int16_t opened = draft.opens() ? builder.flags("opened", 1) : std::int16_t{-1};
  const auto slot = [&](int child, Rect piece) {
    const std::vector<int> siblings = children_of(draft.ranks(), parent, parent(child));
    const auto index = std::find(siblings.begin(), siblings.end(), child) - siblings.begin();
    piece.row += draft.block(static_cast<int>(index)).row;
    return piece;
  };
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<int> children = children_of(draft.ranks(), parent, rank);
    const std::int32_t id = moving_kernel(builder, draft.machine, rank, "reduce", draft.knobs);
    for (std::int32_t p = 0; p < draft.workgroups; ++p) {
      builder.workgroup(id);
      for (const int child : children) {
        if (opened >= 0 && p == 0) builder.signal(opened, 0, 1, child, Scope::system, lock);
      }
      for (auto i = static_cast<std::size_t>(p); i < draft.pieces.size();
           i += static_cast<std::size_t>(draft.workgroups)) {
        const Rect& piece = draft.pieces[i];
        const auto flag = static_cast<std::int32_t>(i);
        const auto senders = static_cast<std::int32_t>(children.size());
        if (senders > 0) builder.wait(arrived, flag, senders, Scope::system, lock);
        builder.load(draft.own, piece, rank);
        for (const int child : children) builder.reduce(slots, slot(child, piece), rank);
        if (rank == kRootRank) {
          builder.store(draft.sum, piece, rank);
          continue;
        }
        if (opened >= 0 && flag == p) builder.wait(opened, 0, 1, Scope::system, lock);
        builder.store(slots, slot(rank, piece), parent(rank));
        builder.signal(arrived, flag, 1, parent(rank), Scope::system, lock);
      }
    }
    host_program(builder, rank, draft.knobs, {{id, 0}});
  }
}

void add_reduce_pulled(ReduceDraft& draft, bool two_phase) {
  ScheduleBuilder& builder = draft.builder;
  add_sides(draft);
  const Uses uses = [&](int mover, int) { return two_phase || mover == kRootRank; };
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    std::vector<Rect> own;
    for (std::size_t i = 0; i < draft.pieces.size(); ++i) {
      const int adder = two_phase ? static_cast<int>(i) % draft.ranks() : kRootRank;
      if (adder == rank) own.push_back(draft.pieces[i]);
    }
    const bool moves = two_phase || rank == kRootRank;
    const std::int32_t workgroups = workgroups_of(draft, uses, rank, moves);
    Graph kernels;
    if (workgroups > 0) kernels = {{moving_kernel(builder, draft.machine, rank, "reduce", draft.knobs), 0}};
    for (std::int32_t p = 0; p < workgroups; ++p) {
      const std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, p);
      builder.workgroup(kernels.front().kernel);
      tell_movers(draft, uses, rank, p);
      for (auto i = static_cast<std::size_t>(p); i < own.size(); i += static_cast<std::size_t>(workgroups)) {
        for (const int peer : peers) {
          if (i == static_cast<std::size_t>(p)) await_other(draft, peer);
        }
        add_by_peer(builder, draft.knobs.serves, [&] {
          builder.load(draft.own, own[i], rank);
          for (const int peer : peers) builder.reduce(draft.own, own[i], peer);
        });
        builder.store(draft.sum, own[i], kRootRank);
      }
      tell_others(draft, uses, rank, p);
    }
    host_program(builder, rank, draft.knobs, kernels);
  }
}

}  // namespace tritax

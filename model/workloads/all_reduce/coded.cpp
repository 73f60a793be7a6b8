#include "model/workloads/all_reduce/coded.hpp"

#include <algorithm>
#include <vector>

#include "model/parts/collectives.hpp"
#include "model/parts/staged_sums.hpp"

namespace tritax {

namespace {

struct Coded {
  std::vector<SumTile> pieces;
  std::int32_t workgroups = 1;
  // A row of a buffer ends with its block, as groups do: blocks of one column less have buffers of their own.
  struct Held {
    std::int16_t slots = -1;  // of the own block, by source
    std::int16_t sums = -1;   // by owner
  };
  std::vector<Held> of_owner;
  std::int16_t arrived = -1;  // one per piece
  std::int16_t summed = -1;   // one per piece
};

// Adds the loops of a workgroup of `rank`.
class CodedWorkgroup {
 public:
  CodedWorkgroup(SumDraft& draft, const Coded& coded, int rank, std::int32_t number)
      : draft_(draft),
        coded_(coded),
        rank_(rank),
        peers_(draft.peers_of(rank, number)),
        opened_(static_cast<std::size_t>(draft.ranks()), false) {}

  void send(const SumTile& piece) {
    draft_.builder.load(draft_.partial, piece.rect, rank_);
    await_opened_once(draft_, opened_, piece.owner);
    draft_.builder.store(held(piece).slots, draft_.place_in_slot(piece.owner, rank_, piece.rect),
                         piece.owner);
    signal(coded_.arrived, piece, piece.owner);
  }

  void add(const SumTile& piece) {
    wait(coded_.arrived, piece, draft_.ranks() - 1);
    add_by_peer(draft_.builder, draft_.knobs.serves, [&] {
      draft_.builder.load(draft_.partial, piece.rect, rank_);
      for (const int peer : peers_)
        draft_.builder.reduce(held(piece).slots, draft_.place_in_slot(rank_, peer, piece.rect), rank_);
    });
    for (const int peer : peers_) await_opened_once(draft_, opened_, peer);
    add_by_peer(draft_.builder, draft_.knobs.serves, [&] {
      draft_.builder.store(held(piece).sums, place_in_sums(piece), rank_);
      for (const int peer : peers_) draft_.builder.store(held(piece).sums, place_in_sums(piece), peer);
    });
    add_by_peer(draft_.builder, draft_.knobs.serves, [&] {
      signal(coded_.summed, piece, rank_);
      for (const int peer : peers_) signal(coded_.summed, piece, peer);
    });
  }

  void take(const SumTile& piece) {
    wait(coded_.summed, piece, 1);
    draft_.builder.load(held(piece).sums, place_in_sums(piece), rank_);
    draft_.builder.store(draft_.c, piece.rect, rank_);
  }

 private:
  const Coded::Held& held(const SumTile& piece) const {
    return coded_.of_owner[static_cast<std::size_t>(piece.owner)];
  }
  Rect place_in_sums(const SumTile& piece) const {
    return draft_.place_in_slot(piece.owner, piece.owner, piece.rect);
  }
  void signal(std::int16_t flags, const SumTile& piece, int rank) {
    draft_.builder.signal(flags, piece.number, 1, rank, Scope::system, draft_.knobs.lock);
  }
  void wait(std::int16_t flags, const SumTile& piece, std::int32_t value) {
    draft_.builder.wait(flags, piece.number, value, Scope::system, draft_.knobs.lock);
  }

  SumDraft& draft_;
  const Coded& coded_;
  int rank_ = 0;
  std::vector<int> peers_;
  std::vector<bool> opened_;
};

std::int32_t coded_kernel(SumDraft& draft, const Coded& coded, int rank) {
  const std::int32_t id = moving_kernel(draft.builder, draft.machine, rank, "coded_two_shot", draft.knobs);
  const std::vector<const SumTile*> walk = walk_of(draft, rank, coded.pieces);
  const auto own =
      std::find_if(walk.begin(), walk.end(), [&](const SumTile* piece) { return piece->owner == rank; });
  const auto step = static_cast<std::size_t>(coded.workgroups);
  for (std::int32_t p = 0; p < coded.workgroups; ++p) {
    draft.builder.workgroup(id);
    tell_opened(draft, rank, p == 0);
    CodedWorkgroup workgroup(draft, coded, rank, p);
    const auto others = static_cast<std::size_t>(own - walk.begin());
    const auto first = static_cast<std::size_t>(p);
    for (std::size_t i = first; i < others; i += step) workgroup.send(*walk[i]);
    for (std::size_t i = others + first; i < walk.size(); i += step) workgroup.add(*walk[i]);
    for (std::size_t i = first; i < coded.pieces.size(); i += step) workgroup.take(coded.pieces[i]);
  }
  return id;
}

}  // namespace

void add_coded_two_shot(SumDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const Rect widest = block_of(draft.problem, 0);
  Coded coded;
  coded.pieces = cut_tiles(draft);
  coded.workgroups = all_cus(draft.machine.gpu, draft.knobs.comm_cus);
  const auto held = [&](const char* name, std::int32_t cols) {
    return builder.buffer({name, draft.problem.dtype, widest.rows * draft.ranks(), cols, draft.tile.m,
                           draft.tile.n, draft.knobs.codec});
  };
  std::int32_t cols = 0;  // of the block before
  for (const Rect& block : blocks_of(draft.problem)) {
    const bool as_before = block.cols == cols;
    cols = block.cols;
    coded.of_owner.push_back(as_before ? coded.of_owner.back()
                                       : Coded::Held{held("slots", cols), held("sums", cols)});
  }
  coded.arrived = builder.flags("arrived", static_cast<std::int32_t>(coded.pieces.size()));
  coded.summed = builder.flags("summed", static_cast<std::int32_t>(coded.pieces.size()));
  add_opened(draft);
  for (int rank = 0; rank < draft.ranks(); ++rank)
    host_program(builder, rank, draft.knobs, staged_launches(draft, rank, coded_kernel(draft, coded, rank)));
}

}  // namespace tritax

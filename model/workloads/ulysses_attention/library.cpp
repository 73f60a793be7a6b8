// Library: all-to-alls of the vendor's collective library around a launch of attention (DeepSpeed-Ulysses).
//
//   stream 0, for Q, K, V:  COPY: columns of every rank's heads -> blocks; ALL-TO-ALL of the blocks: rows of
//                           the tensor by heads
//             ATTENTION:    a workgroup per tile of queries: attend to all its keys; store into oh
//             ALL-TO-ALL of the rows of oh; COPY: received blocks -> columns of o
//
// The copies are needed because a collective sends and receives contiguous blocks.
#include <fmt/format.h>

#include <utility>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/workloads/ulysses_attention/patterns.hpp"

namespace tritax {

namespace {

// The blocks of the rank's part of a tensor in an all-to-all.
struct HeadBlocks {
  std::int16_t buffer = -1;   // contiguous blocks, one per rank, one below the other
  std::int16_t arrived = -1;  // flags of the all-to-all
};

HeadBlocks add_blocks(HeadsDraft& draft, const HeadTensor& tensor, std::string_view name) {
  const auto columns = static_cast<std::int32_t>(draft.columns(tensor, 0).size());
  const auto depth = static_cast<std::int32_t>(draft.problem.depth);
  return {
      draft.builder.buffer({fmt::format("blocks of {}", name), draft.problem.dtype,
                            draft.own_rows() * draft.ranks(), columns, draft.knobs.tile.m, depth}),
      draft.builder.flags(fmt::format("arrived {}", name), library_channels(draft.machine) * draft.ranks())};
}

// The block of one rank's tokens and another rank's heads, at the rank of the tokens or at the rank of the
// heads.
Rect block_at(const HeadsDraft& draft, const HeadTensor& tensor, int tokens_of, int heads_of) {
  Rect rect = draft.by_tokens(tensor, tokens_of, heads_of);
  rect.row = heads_of * draft.own_rows();
  rect.col = 0;
  return rect;
}

LibraryAllToAll exchange_of(const HeadsDraft& draft, const HeadTensor& tensor, const HeadBlocks& blocks,
                            int rank, std::string_view name) {
  LibraryAllToAll all;
  all.kernel = fmt::format("all_to_all {}", name);
  all.rank = rank;
  all.ranks = draft.ranks();
  all.arrived = blocks.arrived;
  const int last = draft.ranks() - 1;  // its share is the smallest
  all.equal_blocks = draft.problem.tokens(0).size() == draft.problem.tokens(last).size() &&
                     draft.columns(tensor, 0).size() == draft.columns(tensor, last).size();
  all.widest_bytes = static_cast<double>(draft.own_rows()) *
                     static_cast<double>(draft.columns(tensor, 0).size()) * bytes_of(draft.problem.dtype);
  return all;
}

void launch_collective(HeadsDraft& draft, int rank, const LibraryAllToAll& all) {
  draft.builder.host_work(rank, kCollectiveCall);
  draft.builder.launch(rank, add_library_all_to_all(draft.builder, draft.machine, all));
}

void to_heads(HeadsDraft& draft, const HeadTensor& tensor, const HeadBlocks& blocks, int rank,
              std::string_view name) {
  BlockCopy copy{rank, tensor.own, blocks.buffer, {}, {}};
  LibraryAllToAll all = exchange_of(draft, tensor, blocks, rank, name);
  all.own = blocks.buffer;
  all.received = tensor.by_heads;
  for (int to = 0; to < draft.ranks(); ++to) {
    copy.blocks.push_back(draft.by_tokens(tensor, rank, to));
    copy.places.push_back(block_at(draft, tensor, rank, to));
    all.blocks.push_back(copy.places.back());
    all.places.push_back(draft.by_heads(tensor, rank, to));
  }
  draft.builder.launch(rank, add_block_copy(draft.builder, draft.machine, copy));
  launch_collective(draft, rank, all);
}

void to_tokens(HeadsDraft& draft, const HeadBlocks& blocks, int rank) {
  const HeadTensor& tensor = draft.results;
  LibraryAllToAll all = exchange_of(draft, tensor, blocks, rank, "O");
  all.own = tensor.by_heads;
  all.received = blocks.buffer;
  SliceCopy copy{rank, blocks.buffer, tensor.own, {}, {}};
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    all.blocks.push_back(draft.by_heads(tensor, peer, rank));
    all.places.push_back(block_at(draft, tensor, peer, rank));
    copy.slots.push_back(block_at(draft, tensor, rank, peer));
    copy.columns.push_back(static_cast<std::int32_t>(draft.columns(tensor, peer).begin));
  }
  launch_collective(draft, rank, all);
  draft.builder.launch(rank, add_slice_copy(draft.builder, draft.machine, copy));
}

}  // namespace

Schedule build_heads_library(const SequenceAttention& problem, const Machine& machine,
                             const UlyssesKnobs& knobs) {
  HeadsDraft draft("library", problem, machine, knobs, true);
  ScheduleBuilder& builder = draft.builder;
  constexpr std::array<std::string_view, 3> kNames{"Q", "K", "V"};
  std::array<HeadBlocks, 3> blocks;
  HeadBlocks results;
  if (draft.sends()) {
    for (std::size_t i = 0; i < 3; ++i) blocks[i] = add_blocks(draft, draft.inputs[i], kNames[i]);
    results = add_blocks(draft, draft.results, "O");
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (std::size_t i = 0; draft.sends() && i < 3; ++i) {
      to_heads(draft, draft.inputs[i], blocks[i], rank, kNames[i]);
    }
    const std::int32_t attention = builder.kernel(draft.attend_kernel(rank, "attention"));
    for (const HeadTile& tile : draft.tiles(rank)) {
      builder.workgroup(attention);
      draft.attend(tile);
      draft.store(tile, rank, false);
    }
    builder.launch(rank, attention);
    if (draft.sends()) to_tokens(draft, results, rank);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax

// Dispatch and combine over nodes, as in DeepEP's kernels between nodes (deepseek-ai/DeepEP
// csrc/kernels/internode.cu). r own rank, C workgroups, p one of them; sources of the own rail are the GPUs
// with the place of r in other nodes.
//
//   dispatch:  for own blocks p, p+C, …:  for other nodes: copy -> the rail there; sent[own node, block] += 1
//                                         for GPUs of the own node: copy -> there
//              for blocks p, p+C, … of sources of the own rail:  wait sent[their node, block]
//                                         for GPUs of the own node: copy -> there
//   combine:   for blocks p, p+C, … of sources of the own rail:  add up the rows at GPUs of the own node
//                                         store -> the source; sent[own node, block] += 1 there
//              for own blocks p, p+C, …:  for other nodes: wait sent[node, block]
//                                         add up these sums and the rows at GPUs of the own node; store
//
// Workgroup p sends what workgroup p of another rank waits for, after it has sent all of its own.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/parts/collectives.hpp"
#include "model/workloads/expert_exchange/draft.hpp"

namespace tritax {

namespace {

// Blocks that one flag announces: tokens of a chunk that DeepEP sends between nodes of 16 GPUs in all
// (deep_ep/buffer.py, get_dispatch_config).
constexpr std::size_t kChunk = 20;

}  // namespace

NodeRoutes::NodeRoutes(ExpertDraft& draft, std::int32_t workgroups)
    : draft_(draft),
      per_node_(std::min(draft.machine.gpus_per_node, draft.ranks())),
      workgroups_(workgroups) {
  const Routes& routes = draft.routes;
  if (draft.ranks() % per_node_ != 0) {
    throw UserError(fmt::format("route: by-node needs whole nodes; {} GPUs are no multiple of {}",
                                draft.ranks(), per_node_));
  }
  // In transit, by the GPU that receives them.
  std::vector<std::int32_t> rows(static_cast<std::size_t>(draft.ranks()), 0);
  for (int source = 0; source < draft.ranks(); ++source) {
    const std::vector<Routed>& all = routes.of(source);
    std::vector<Block>& blocks = blocks_.emplace_back();
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && all[end].token == all[begin].token) ++end;
      blocks.push_back({begin, end});
    }
    const auto of_workgroup = ceil_div(static_cast<std::int32_t>(blocks.size()), workgroups);
    chunks_of_workgroup_ =
        std::max(chunks_of_workgroup_, ceil_div(of_workgroup, static_cast<std::int32_t>(kChunk)));
    std::vector<std::int32_t>& slots = slot_rows_.emplace_back();
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      for (int node = 0; node < nodes(); ++node) {
        const bool crosses = node != node_of(source) && !targets(source, block, node).empty();
        std::int32_t& next = rows[static_cast<std::size_t>(draft.dispatches() ? rail(node, source) : source)];
        slots.push_back(crosses ? next : -1);
        if (crosses) next += all[blocks[block].begin].rows;
      }
    }
  }
  const std::int32_t most = *std::max_element(rows.begin(), rows.end());
  if (most == 0) return;
  rows_ = draft.add("in transit", most);
  chunks_ = chunks_of_workgroup_ * workgroups;
  sent_ = draft.builder.flags("sent", chunks_ * nodes());
}

std::vector<const Routed*> NodeRoutes::targets(int source, std::size_t block, int node) const {
  std::vector<const Routed*> found;
  const Block& range = blocks_[static_cast<std::size_t>(source)][block];
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Routed& routed = draft_.routes.of(source)[i];
    if (node_of(draft_.routes.owner(routed.target)) == node) found.push_back(&routed);
  }
  return found;
}

Rect NodeRoutes::slot(int source, std::size_t block, int node) const {
  const auto from = static_cast<std::size_t>(source);
  const std::size_t at = block * static_cast<std::size_t>(nodes()) + static_cast<std::size_t>(node);
  const std::int32_t rows = draft_.routes.of(source)[blocks_[from][block].begin].rows;
  return {slot_rows_[from][at], 0, rows, draft_.buffers.cols};
}

std::vector<int> NodeRoutes::partners(int rank) const {
  std::vector<int> found;
  for (int step = 1; step < per_node_; ++step)
    found.push_back(node_of(rank) * per_node_ + (rank + step) % per_node_);
  for (int step = 1; step < nodes(); ++step) found.push_back(rail((node_of(rank) + step) % nodes(), rank));
  return found;
}

template <typename Visit>
void NodeRoutes::for_chunks(int source, std::int32_t p, const Visit& visit) const {
  const std::size_t all = blocks_[static_cast<std::size_t>(source)].size();
  std::vector<std::size_t> blocks;
  std::int32_t chunk = p * chunks_of_workgroup_;
  for (auto block = static_cast<std::size_t>(p); block < all;
       block += static_cast<std::size_t>(workgroups_)) {
    blocks.push_back(block);
    if (blocks.size() < kChunk && block + static_cast<std::size_t>(workgroups_) < all) continue;
    visit(blocks, chunk++);
    blocks.clear();
  }
}

std::vector<Rect> NodeRoutes::pieces(std::int32_t rows) const {
  const auto holds = static_cast<std::int32_t>(std::max<std::int64_t>(1, kMostOfReducer / rows));
  return cut({0, 0, rows, draft_.buffers.cols}, rows, holds);
}

void NodeRoutes::dispatch(int rank, std::int32_t p) {
  ScheduleBuilder& builder = draft_.builder;
  const ExpertBuffers& buffers = draft_.buffers;
  const int own = node_of(rank);
  const auto token_of = [&](std::size_t block) {
    return draft_.routes.of(rank)[blocks_[static_cast<std::size_t>(rank)][block].begin].token;
  };
  const auto pass_on = [&](int source, std::size_t block, std::int16_t from, std::int32_t row) {
    for (const Routed* routed : targets(source, block, own)) {
      builder.copy(buffers.at_owner, {routed->at_owner, 0, routed->rows, buffers.cols},
                   draft_.routes.owner(routed->target), from, row, 0, rank);
    }
  };
  for_chunks(rank, p, [&](const std::vector<std::size_t>& blocks, std::int32_t chunk) {
    for (int step = 1; step < nodes(); ++step) {
      const int node = (own + step) % nodes();
      bool any = false;
      for (const std::size_t block : blocks) {
        const Rect to = slot(rank, block, node);
        if (to.row < 0) continue;
        builder.copy(rows_, to, rail(node, rank), buffers.tokens, token_of(block), 0, rank);
        any = true;
      }
      if (any) builder.signal(sent_, flag(own, chunk), 1, rail(node, rank), Scope::system, draft_.knobs.lock);
    }
    for (const std::size_t block : blocks) pass_on(rank, block, buffers.tokens, token_of(block));
  });
  for (int step = 1; step < nodes(); ++step) {
    const int node = (own + nodes() - step) % nodes();
    const int source = rail(node, rank);
    for_chunks(source, p, [&](const std::vector<std::size_t>& blocks, std::int32_t chunk) {
      bool any = false;
      for (const std::size_t block : blocks) {
        const Rect from = slot(source, block, own);
        if (from.row < 0) continue;
        if (!any) builder.wait(sent_, flag(node, chunk), 1, Scope::system, draft_.knobs.lock);
        any = true;
        pass_on(source, block, rows_, from.row);
      }
    });
  }
}

namespace {

// A row that is added up.
struct Summand {
  std::int16_t buffer = -1;
  std::int32_t row = 0;
  int rank = 0;
};

// Leaves the sum of a piece of rows in the accumulator.
void add_up(ExpertDraft& draft, const std::vector<Summand>& summands, const Rect& piece) {
  add_by_peer(draft.builder, draft.knobs.serves, [&] {
    for (std::size_t i = 0; i < summands.size(); ++i) {
      const Rect rect{summands[i].row + piece.row, piece.col, piece.rows, piece.cols};
      if (i == 0) {
        draft.builder.load(summands[i].buffer, rect, summands[i].rank);
      } else {
        draft.builder.reduce(summands[i].buffer, rect, summands[i].rank);
      }
    }
  });
}

}  // namespace

void NodeRoutes::combine(int rank, std::int32_t p) {
  ScheduleBuilder& builder = draft_.builder;
  const int own = node_of(rank);
  const auto summands_of = [&](int source, std::size_t block) {
    std::vector<Summand> summands;
    for (const Routed* routed : targets(source, block, own))
      summands.push_back({draft_.buffers.results, routed->at_owner, draft_.routes.owner(routed->target)});
    return summands;
  };
  for (int step = 1; step < nodes(); ++step) {
    const int source = rail((own + step) % nodes(), rank);
    for_chunks(source, p, [&](const std::vector<std::size_t>& blocks, std::int32_t chunk) {
      bool any = false;
      for (const std::size_t block : blocks) {
        const Rect to = slot(source, block, own);
        if (to.row < 0) continue;
        any = true;
        for (const Rect& piece : pieces(to.rows)) {
          add_up(draft_, summands_of(source, block), piece);
          builder.store(rows_, {to.row + piece.row, piece.col, piece.rows, piece.cols}, source);
        }
      }
      if (any) builder.signal(sent_, flag(own, chunk), 1, source, Scope::system, draft_.knobs.lock);
    });
  }
  for_chunks(rank, p, [&](const std::vector<std::size_t>& blocks, std::int32_t chunk) {
    for (int step = 1; step < nodes(); ++step) {
      const int node = (own + nodes() - step) % nodes();
      const bool any = std::any_of(blocks.begin(), blocks.end(),
                                   [&](std::size_t block) { return slot(rank, block, node).row >= 0; });
      if (any) builder.wait(sent_, flag(node, chunk), 1, Scope::system, draft_.knobs.lock);
    }
    for (const std::size_t block : blocks) {
      const Routed& first = draft_.routes.of(rank)[blocks_[static_cast<std::size_t>(rank)][block].begin];
      std::vector<Summand> summands = summands_of(rank, block);
      for (int node = 0; node < nodes(); ++node) {
        const Rect from = slot(rank, block, node);
        if (from.row >= 0) summands.push_back({rows_, from.row, rank});
      }
      for (const Rect& piece : pieces(first.rows)) {
        add_up(draft_, summands, piece);
        builder.store(draft_.buffers.sums, {first.token + piece.row, piece.col, piece.rows, piece.cols},
                      rank);
      }
    }
  });
}

}  // namespace tritax

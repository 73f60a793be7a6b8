// Push: a kernel that sends the own slice to all peers, and a GEMM beside it that waits for what it
// multiplies (arXiv:2511.02168; ROCm/iris examples/14_all_gather_gemm/all_gather_gemm_push.py, where both are
// in one stream).
//
//   stream 1, PUSH, Gc workgroups:  for own blocks q, q+Gc, …: for peers: copy the block -> peer;
//                                                              ready[block] += 1 there (system scope)
//   stream 0, GEMM, Gg workgroups:  for t in p', p'+Gg, …: for blocks, own first: wait ready[block]; matmul
//                                                          store C(t)
//
// Blocks arrive in their place in A, so that nothing is copied twice.
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// What a rank sends: the pieces of the blocks that it owns.
struct Sent {
  Piece piece;
  std::int32_t flag = 0;
};

// In the order in which the tiles of a rank with the next rows or columns want them.
std::vector<Sent> own_pieces(const GatherDraft& draft, int rank) {
  std::vector<Sent> sent;
  const std::int32_t height = std::max(1, draft.knobs.group_m);
  for (std::int32_t group = 0; group < draft.grid().rows; group += height) {
    for (std::size_t place = 0; place < draft.blocks_of(0).size(); ++place) {
      for (std::int32_t row = group; row < std::min(draft.grid().rows, group + height); ++row) {
        const Block& block = draft.blocks_of(row)[place];
        for (const Piece& piece : block.pieces) {
          if (piece.owner == rank) sent.push_back({piece, block.flag});
        }
      }
    }
  }
  return sent;
}

std::int32_t push_kernel(GatherDraft& draft, int rank, std::int32_t workgroups, std::int16_t ready) {
  Kernel kernel;
  kernel.name = "push";
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(draft.machine.gpu, copy_resources().threads, elements_of_block(draft));
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<Sent> pieces = own_pieces(draft, rank);
  for (std::int32_t q = 0; q < workgroups; ++q) {
    draft.builder.workgroup(id);
    const std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, q);
    for (auto i = static_cast<std::size_t>(q); i < pieces.size(); i += static_cast<std::size_t>(workgroups)) {
      const Rect& rect = pieces[i].piece.rect;
      for (const int peer : peers) {
        draft.builder.copy(draft.a, rect, peer, draft.a, rect.row, rect.col, rank);
        draft.builder.signal(ready, pieces[i].flag, 1, peer, Scope::system, draft.knobs.lock);
      }
    }
  }
  return id;
}

}  // namespace

Schedule build_push(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  GatherDraft draft("push", problem, machine, knobs);
  expect_product(draft, draft.a, true);
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_two_kernels);
  const bool sends = draft.ranks() > 1;
  const std::int16_t ready = sends ? draft.builder.flags("ready", draft.flags) : std::int16_t{-1};
  const ProductShares shares = shares_of(draft, split.gemm);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    kernels.push_back({waiting_gemm_kernel(draft, shares, rank, ready, Scope::system), 0});
    if (sends) kernels.push_back({push_kernel(draft, rank, split.comm, ready), 1});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax

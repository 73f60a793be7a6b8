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
#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/schedule/shader_engines.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// What a rank sends: the pieces of the blocks that it owns.
struct Sent {
  Piece piece;
  std::int32_t flag = 0;
};

// In the order in which the tiles of the rank that comes to these rows or columns first, the one before, want
// them: so every rank does the same.
std::vector<Sent> own_pieces(const GatherDraft& draft, int rank) {
  std::vector<Sent> sent;
  const int reader = (rank + draft.ranks() - 1) % draft.ranks();
  const std::int32_t height = std::max(1, draft.knobs.group_m);
  for (std::int32_t group = 0; group < draft.grid().rows; group += height) {
    const std::int32_t end = std::min(draft.grid().rows, group + height);
    for (std::size_t place = 0; place < draft.blocks_of(0).size(); ++place) {
      for (std::int32_t w = group; w < end; ++w) {
        const Block& block = draft.blocks_of(tile_row(draft, reader, w))[place];
        for (const Piece& piece : block.pieces) {
          if (piece.owner == rank) sent.push_back({piece, block.flag});
        }
      }
    }
  }
  return sent;
}

Resources push_resources(const GatherDraft& draft) {
  return tile_copy_resources(draft.machine.gpu, copy_resources().threads, elements_of_block(draft.knobs));
}

// Who sends and waits for a compute unit of those who wait for what it sends waits for ever.
void refuse_what_would_stall(const GatherDraft& draft, std::int32_t multiply, std::int32_t send) {
  const Gpu& gpu = draft.machine.gpu;
  if (fit_beside(gpu, multiply, send) || share_a_unit(gpu, draft.gemm_resources, push_resources(draft)))
    return;
  throw UserError(
      fmt::format("gemm_cus, comm_cus: of {} workgroups that send beside {} that multiply some would find no "
                  "compute unit "
                  "of {} free, for ever; beside so many there is room for {}",
                  send, multiply, gpu.name, workgroups_beside(gpu, multiply)));
}

std::int32_t push_kernel(GatherDraft& draft, int rank, std::int32_t workgroups, std::int16_t ready) {
  Kernel kernel;
  kernel.name = "push";
  kernel.rank = rank;
  kernel.resources = push_resources(draft);
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
  const auto multiply = static_cast<std::int32_t>(shares.workgroups);
  if (sends) refuse_what_would_stall(draft, multiply, split.comm);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    kernels.push_back({waiting_gemm_kernel(draft, shares, rank, ready, Scope::system), 0});
    if (sends) kernels.push_back({push_kernel(draft, rank, split.comm, ready), 1});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax

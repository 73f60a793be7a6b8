// Push: a kernel sends the own slice to all peers, and a GEMM waits for the blocks that it multiplies.
//
//   streams = two: side by side
//
//   stream 1, PUSH, Gc workgroups:  for own blocks q, q+Gc, …: for peers: copy the block -> peer;
//                                                              ready[block] += 1 there (system scope)
//   stream 0, GEMM, Gg workgroups:  for t in p', p'+Gg, …: for blocks, own first: wait ready[block]; matmul
//                                                          store C(t)
//
//   streams = one: the form of arXiv:2511.02168 (ROCm/iris
//   examples/14_all_gather_gemm/all_gather_gemm_push.py and
//   benchmark/examples/benchmark_all_gather_gemm_push.py)
//
//   stream 0, PUSH, as above, with a workgroup per own block, or with Gc if comm_cus is given
//             GEMM, as above, with G workgroups
//
// In one stream the GEMM begins when all of the own slice is sent, and waits for what peers still send. The
// kernel of Iris sends to itself too, and has a flag for every K step (k_steps = 1).
//
// Blocks arrive at their place in A, so that no block is copied twice. A split is refused if some sending
// workgroups certainly find no compute unit before the workgroups that wait for them end (push_stalls()).
// In one stream all of them end before the GEMM begins.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/residency.hpp"
#include "model/schedule/shader_engines.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// A piece that a rank sends, of a block.
struct Sent {
  Piece piece;
  std::int32_t flag = 0;
};

// Pieces in the order in which the tiles of the previous rank need them, which is the first rank to reach
// these rows or columns. Every rank uses the same order.
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

Resources push_resources(const Gpu& gpu, const GatherKnobs& knobs) {
  return tile_copy_resources(gpu, copy_resources().threads, elements_of_block(knobs));
}

std::int64_t count_of(std::int64_t parts_of, std::int64_t size) { return (parts_of + size - 1) / size; }

// Whether every multiplying workgroup has tiles that wait for peers.
bool all_wait(const AllGatherGemm& problem, const GatherKnobs& knobs, std::int64_t workgroups) {
  if (knobs.sharing != ProductSharing::tiles) return false;  // not examined
  const std::int64_t columns = count_of(problem.n, knobs.tile_n);
  const std::int64_t tiles = count_of(problem.m, knobs.tile_m) * columns;
  if (problem.sharding == Sharding::k) return tiles >= workgroups;
  // The own rows are a range of the walk; groups at its ends contain other rows too. The tiles of a workgroup
  // begin within the first `workgroups` tiles and end within the last `workgroups` tiles of the walk.
  const std::int64_t own = count_of(tiles, problem.gpus) + 2 * std::max(1, knobs.group_m) * columns;
  return tiles - 2 * workgroups >= own;
}

// Whether every sending workgroup has pieces to send, on the rank with the fewest pieces.
bool all_send(const AllGatherGemm& problem, const GatherKnobs& knobs, std::int64_t workgroups) {
  const Rect slice = slice_of(problem, problem.gpus - 1);
  const std::int64_t depth = std::int64_t{knobs.k_steps} * knobs.tile_k;
  return slice.rows / knobs.tile_m * count_of(slice.cols, depth) >= workgroups;
}

// `workgroups` 0: one for each piece.
std::int32_t push_kernel(GatherDraft& draft, int rank, std::int32_t workgroups, std::int16_t ready) {
  Kernel kernel;
  kernel.name = "push";
  kernel.rank = rank;
  kernel.resources = push_resources(draft.machine.gpu, draft.knobs);
  kernel.placement = workgroups > 0 ? Placement::persistent : Placement::dispatch;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<Sent> pieces = own_pieces(draft, rank);
  if (workgroups == 0) workgroups = static_cast<std::int32_t>(pieces.size());
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

bool push_stalls(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  if (problem.gpus == 1 || knobs.one_stream) return false;
  const Gpu& gpu = machine.gpu;
  const Split split = split_cus(knobs, gpu, problem.gpus, Roles::in_two_kernels);
  if (fit_beside(gpu, split.gemm, split.comm)) return false;
  if (!all_wait(problem, knobs, split.gemm) || !all_send(problem, knobs, split.comm)) return false;
  const Resources gemm = matmul_resources(gpu, machine.interpreter, problem.dtype, matmul_tile(knobs));
  return !share_a_unit(gpu, gemm, push_resources(gpu, knobs));
}

Schedule build_push(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  GatherDraft draft("push", problem, machine, knobs);
  expect_product(draft, draft.a, true);
  const Split split = knobs.one_stream ? Split{all_cus(machine.gpu, knobs.gemm_cus), knobs.comm_cus}
                                       : split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_two_kernels);
  const bool sends = draft.ranks() > 1;
  if (push_stalls(problem, machine, knobs)) {
    throw UserError(fmt::format(
        "gemm_cus, comm_cus: some of {} workgroups that send would wait for a compute unit of {} until some "
        "of {} that multiply end, and these wait for the data; beside {} there is room for {}: give fewer of "
        "either",
        split.comm, machine.gpu.name, split.gemm, split.gemm, workgroups_beside(machine.gpu, split.gemm)));
  }
  const std::int16_t ready = sends ? draft.builder.flags("ready", draft.flags) : std::int16_t{-1};
  const ProductShares shares = shares_of(draft, split.gemm);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    kernels.push_back({waiting_gemm_kernel(draft, shares, rank, ready, Scope::system), 0});
    if (sends) kernels.push_back({push_kernel(draft, rank, split.comm, ready), knobs.one_stream ? 0 : 1});
    if (sends && knobs.one_stream) std::swap(kernels.front(), kernels.back());
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax

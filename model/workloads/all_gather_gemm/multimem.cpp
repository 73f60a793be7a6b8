// Bulk-synchronous through the switch: a kernel that sends the own slice to all ranks at once, then a GEMM in
// the same stream (pytorch/pytorch PR 143160: multimem_all_gather_out, then a matrix product).
//
//   SEND, Gc workgroups:  exchange arrivals with the peers: nobody multiplies the A of the run before
//                         for pieces q, q+Gc, … of the own slice: load the piece; store it once, the switch
//                         copies it to all ranks
//                         exchange arrivals: all slices are here
//   GEMM, G workgroups:   for t in p', p'+G, …: matmul (all of K); store C(t)
//
// The slice lies beside A, where no peer writes.
#include "model/machine/check_machine.hpp"
#include "model/parts/collectives.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

std::int32_t sending_kernel(GatherDraft& draft, int rank, std::int32_t workgroups, std::int16_t shard,
                            std::int16_t opened, std::int16_t arrived) {
  ScheduleBuilder& builder = draft.builder;
  Kernel kernel;
  kernel.name = "multimem_all_gather";
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads,
                                         std::int64_t{kPieceAlone} * kPieceAlone);
  kernel.placement = Placement::persistent;
  const std::int32_t id = builder.kernel(std::move(kernel));
  const Rect slice = slice_of(draft.problem, rank);
  const std::vector<Rect> pieces = cut({0, 0, slice.rows, slice.cols}, kPieceAlone, kPieceAlone);
  for (std::int32_t q = 0; q < workgroups; ++q) {
    builder.workgroup(id);
    const std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, q);
    exchange_arrivals(builder, peers, draft.ranks(), rank, q, opened, draft.knobs.lock,
                      ServesPeers::together);
    for (auto i = static_cast<std::size_t>(q); i < pieces.size(); i += static_cast<std::size_t>(workgroups)) {
      Rect place = pieces[i];
      place.row += slice.row;
      place.col += slice.col;
      builder.load(shard, pieces[i], rank);
      builder.multimem([&] {
        builder.store(draft.a, place, rank);
        for (const int peer : peers) builder.store(draft.a, place, peer);
      });
    }
    exchange_arrivals(builder, peers, draft.ranks(), rank, q, arrived, draft.knobs.lock,
                      ServesPeers::together);
  }
  return id;
}

}  // namespace

Schedule build_multimem(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  require_multicast(machine, problem.gpus, "through: multimem", "use peer-by-peer");
  GatherDraft draft("bulk-synchronous", problem, machine, knobs);
  const bool sends = draft.ranks() > 1;
  const Rect widest = slice_of(problem, 0);
  std::int16_t shard = draft.a;
  if (sends) {
    shard =
        draft.builder.buffer({"shard", problem.dtype, widest.rows, widest.cols, kPieceAlone, kPieceAlone});
  }
  expect_product(draft, shard, !sends);
  const std::int32_t senders = all_cus(machine.gpu, knobs.comm_cus);
  const std::int16_t opened =
      sends ? draft.builder.flags("opened", senders * draft.ranks()) : std::int16_t{-1};
  const std::int16_t arrived =
      sends ? draft.builder.flags("arrived", senders * draft.ranks()) : std::int16_t{-1};
  const ProductShares shares = shares_of(draft, all_cus(machine.gpu, knobs.gemm_cus));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    if (sends) kernels.push_back({sending_kernel(draft, rank, senders, shard, opened, arrived), 0});
    kernels.push_back({waiting_gemm_kernel(draft, shares, rank, -1, Scope::gpu), 0});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax

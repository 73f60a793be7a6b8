// A GEMM kernel beside a sending kernel on a second stream, or beside copy engines.
//
//   stream 1, SEND, Gc workgroups:  for pieces of the own block, for peers: copy -> X of the peer
//                                   exchange arrivals
//     or, per peer, a copy engine:  the own block -> X of the peer; then one workgroup exchanges arrivals
//   stream 0, GEMM, Gg workgroups:  for tiles of C: matmul; store
//
// Sends are posted first, so that the sending kernel finds compute units before the GEMM takes them.
#include "model/machine/check_machine.hpp"
#include "model/workloads/gemm_beside_collective/draft.hpp"

namespace tritax {

namespace {

std::int32_t sending_kernel(BesideDraft& draft, int rank, std::int32_t workgroups, std::int16_t arrived) {
  const GemmKnobs& knobs = draft.knobs;
  Kernel kernel;
  kernel.name = "send";
  kernel.rank = rank;
  const std::int64_t height = knobs.comm_tile_m > 0 ? knobs.comm_tile_m : draft.tile.m;
  const std::int64_t width = knobs.comm_tile_n > 0 ? knobs.comm_tile_n : draft.tile.n;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, height * width);
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<Rect> pieces = pieces_of_block(draft, rank);
  for (std::int32_t q = 0; q < workgroups; ++q) {
    draft.builder.workgroup(id);
    for (auto i = q; i < static_cast<std::int32_t>(pieces.size()); i += workgroups) {
      send(draft, pieces[static_cast<std::size_t>(i)], i, rank);
    }
    if (arrived < 0) continue;
    exchange_arrivals(draft.builder, peers_of(knobs.peer_order, draft.ranks(), rank, q), draft.ranks(), rank,
                      q, arrived, knobs.lock);
  }
  return id;
}

// Runs behind the copies of all streams.
void tell_of_copies(BesideDraft& draft, int rank, std::int16_t arrived) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, 0);
  for (const int peer : peers) {
    builder.record_event(rank, peer, 1 + peer);
    builder.wait_event(rank, peer, 1 + peers.front());
  }
  builder.launch(rank, telling_kernel(builder, "tell", peers, draft.ranks(), rank, arrived, draft.knobs.lock),
                 1 + peers.front());
}

}  // namespace

Schedule build_beside_streams(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs) {
  BesideDraft draft("streams", problem, machine, knobs);
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_two_kernels);
  const std::int16_t arrived =
      knobs.host_barriers ? std::int16_t{-1} : draft.builder.flags("arrived", split.comm * draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t sending = sending_kernel(draft, rank, split.comm, arrived);
    host_program(draft.builder, rank, knobs, {{sending, 1}, {gemm_kernel(draft, rank, split.gemm), 0}});
  }
  return draft.builder.finish();
}

Schedule build_beside_copy_engine(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs) {
  require_copy_engines(machine, "pattern 'copy-engine'");
  BesideDraft draft("copy-engine", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const std::int16_t arrived =
      knobs.host_barriers ? std::int16_t{-1} : builder.flags("arrived", draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    const Rect block = draft.block_of(rank);
    const auto copy_to = [&](int peer) {
      builder.host_copy(rank, 1 + peer, draft.x, block, peer, draft.x, block.row, block.col, rank);
    };
    for (const int peer : peers_of(knobs.peer_order, draft.ranks(), rank, 0)) copy_to(peer);
    builder.launch(rank, gemm_kernel(draft, rank, all_cus(machine.gpu, knobs.gemm_cus)));
    if (arrived >= 0) tell_of_copies(draft, rank, arrived);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax

// A GEMM kernel beside a moving kernel on a second stream, or beside copy engines.
//
//   stream 1, MOVE, Gc workgroups:  exchange arrivals, except in an all-gather
//                                   for pieces: their operations (draft.hpp)
//                                   exchange arrivals
//     or, per rank, a copy engine:  the block for the rank -> its X, between two kernels of one workgroup
//                                   that exchange arrivals; the first is not needed in an all-gather
//   stream 0, GEMM, Gg workgroups:  for tiles of C: matmul; store
//
// The collective is posted first, so that its kernel finds compute units before the GEMM takes them.
#include <algorithm>

#include "model/machine/check_machine.hpp"
#include "model/workloads/gemm_beside_collective/draft.hpp"

namespace tritax {

namespace {

// Flags (workgroup, rank) of the beginning and of the end; -1: nothing is told.
struct Exchanges {
  std::int16_t opened = -1;
  std::int16_t arrived = -1;
};

Exchanges add_exchanges(BesideDraft& draft, std::int32_t workgroups) {
  Exchanges flags;
  if (draft.opens()) flags.opened = draft.builder.flags("opened", workgroups * draft.ranks());
  if (draft.tells()) flags.arrived = draft.builder.flags("arrived", workgroups * draft.ranks());
  return flags;
}

std::int32_t moving_kernel(BesideDraft& draft, int rank, std::int32_t workgroups, const Exchanges& flags) {
  const GemmKnobs& knobs = draft.knobs;
  const TileIndex size = piece_of(draft);
  Kernel kernel;
  kernel.name = "move";
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(draft.machine.gpu, copy_resources().threads, std::int64_t{size.row} * size.col);
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<BesidePiece> pieces = pieces_of(draft, rank);
  for (std::int32_t q = 0; q < workgroups; ++q) {
    draft.builder.workgroup(id);
    const auto exchange = [&](std::int16_t flag) {
      if (flag < 0) return;
      exchange_arrivals(draft.builder, draft.peers_of(rank, q), draft.ranks(), rank, q, flag, knobs.lock);
    };
    exchange(flags.opened);
    for (auto i = q; i < static_cast<std::int32_t>(pieces.size()); i += workgroups)
      move(draft, pieces[static_cast<std::size_t>(i)], i, rank);
    exchange(flags.arrived);
  }
  return id;
}

// Posts a kernel of one workgroup that exchanges arrivals.
void tell(BesideDraft& draft, int rank, std::string_view name, std::int16_t flag, std::int32_t stream) {
  draft.builder.launch(rank,
                       telling_kernel(draft.builder, name, draft.peers_of(rank, 0), draft.ranks(), rank, flag,
                                      draft.knobs.lock),
                       stream);
}

// Posts the copies of a rank, a stream for each rank that they go to. Events have the numbers of these ranks,
// and the next one is that of the opening.
void post_copies(BesideDraft& draft, int rank, const Exchanges& flags) {
  ScheduleBuilder& builder = draft.builder;
  std::vector<int> targets = draft.peers_of(rank, 0);
  if (!draft.problem.gathers()) targets.push_back(rank);
  if (targets.empty()) return;
  const std::int32_t first = 1 + targets.front();
  if (flags.opened >= 0) {
    tell(draft, rank, "open", flags.opened, first);
    builder.record_event(rank, draft.ranks(), first);
  }
  for (const int to : targets) {
    const Rect block = draft.block_of(draft.problem.gathers() ? rank : to);
    if (flags.opened >= 0 && 1 + to != first) builder.wait_event(rank, draft.ranks(), 1 + to);
    builder.host_copy(rank, 1 + to, draft.x, draft.place_of(rank, to, block), to, draft.own, block.row,
                      block.col, rank);
  }
}

// Behind the copies of all streams.
void tell_of_copies(BesideDraft& draft, int rank, std::int16_t arrived) {
  const std::vector<int> peers = draft.peers_of(rank, 0);
  const std::int32_t first = 1 + peers.front();
  for (const int peer : peers) {
    draft.builder.record_event(rank, peer, 1 + peer);
    draft.builder.wait_event(rank, peer, first);
  }
  tell(draft, rank, "tell", arrived, first);
}

}  // namespace

Schedule build_beside_streams(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs) {
  BesideDraft draft("streams", problem, machine, knobs);
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_two_kernels);
  // One rank has nothing to send, but all but an all-gather fill X.
  const std::int32_t movers = std::max(split.comm, 1);
  const Exchanges flags = add_exchanges(draft, movers);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t moving = moving_kernel(draft, rank, movers, flags);
    host_program(draft.builder, rank, knobs, {{moving, 1}, {gemm_kernel(draft, rank, split.gemm), 0}});
  }
  return draft.builder.finish();
}

Schedule build_beside_copy_engine(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs) {
  require_copy_engines(machine, "pattern 'copy-engine'");
  BesideDraft draft("copy-engine", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const Exchanges flags = add_exchanges(draft, 1);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    post_copies(draft, rank, flags);
    builder.launch(rank, gemm_kernel(draft, rank, all_cus(machine.gpu, knobs.gemm_cus)));
    if (flags.arrived >= 0) tell_of_copies(draft, rank, flags.arrived);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax

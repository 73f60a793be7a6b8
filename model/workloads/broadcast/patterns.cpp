#include "model/workloads/broadcast/patterns.hpp"

#include <string>

namespace tritax {

BroadcastDraft::BroadcastDraft(std::string_view pattern, const Problem& problem, const Machine& machine_,
                               const Values& values)
    : collective(collective_of(problem)),
      machine(machine_),
      knobs(collective_knobs_of(values)),
      builder(std::string(pattern), collective.gpus),
      workgroups(all_cus(machine_.gpu, knobs.comm_cus)) {
  check_collective(collective, machine, knobs, collective.bytes());
  const TileIndex piece = piece_size(knobs);
  const Rect whole{0, 0, static_cast<std::int32_t>(collective.rows),
                   static_cast<std::int32_t>(collective.cols)};
  data = builder.buffer({"data", collective.dtype, whole.rows, whole.cols, piece.row, piece.col});
  builder.result(data);
  builder.input(builder.whole(data, kRoot));
  for (int rank = kRoot + 1; rank < ranks(); ++rank)
    builder.expect_copy(builder.whole(data, rank), builder.whole(data, kRoot));
  pieces = cut(whole, piece.row, piece.col);
}

namespace {

std::vector<int> receivers(const BroadcastDraft& draft, std::int32_t workgroup) {
  return peers_of(draft.knobs.peer_order, draft.ranks(), kRoot, workgroup);
}

void signal_all(BroadcastDraft& draft, const std::vector<int>& peers, std::int16_t flags) {
  for (const int peer : peers) draft.builder.signal(flags, 0, 1, peer, Scope::system, draft.knobs.lock);
}

std::int32_t kernel_of(BroadcastDraft& draft, int rank, const char* name) {
  return moving_kernel(draft.builder, draft.machine, rank, name, draft.knobs);
}

void run(BroadcastDraft& draft, int rank, const Graph& kernels) {
  host_program(draft.builder, rank, draft.knobs, kernels);
}

// The receiving side of a direct broadcast, or the root of a pull: one workgroup that signals and waits.
void add_other_side(BroadcastDraft& draft, int rank, const std::vector<int>& told, std::int16_t tells,
                    std::int16_t waits, std::int32_t count) {
  if (!draft.opens()) return run(draft, rank, {});
  const std::int32_t id = kernel_of(draft, rank, "wait");
  draft.builder.workgroup(id);
  signal_all(draft, told, tells);
  draft.builder.wait(waits, 0, count, Scope::system, draft.knobs.lock);
  run(draft, rank, {{id, 0}});
}

}  // namespace

void add_direct_push(BroadcastDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const std::int16_t opened = draft.opens() ? builder.flags("opened", 1) : std::int16_t{-1};
  const std::int16_t arrived = draft.opens() ? builder.flags("arrived", 1) : std::int16_t{-1};
  const std::int32_t id = kernel_of(draft, kRoot, "broadcast");
  for (std::int32_t p = 0; p < draft.workgroups; ++p) {
    const std::vector<int> peers = receivers(draft, p);
    builder.workgroup(id);
    if (draft.opens()) builder.wait(opened, 0, draft.ranks() - 1, Scope::system, draft.knobs.lock);
    for (auto i = static_cast<std::size_t>(p); i < draft.pieces.size();
         i += static_cast<std::size_t>(draft.workgroups)) {
      builder.load(draft.data, draft.pieces[i], kRoot);
      for (const int peer : peers) builder.store(draft.data, draft.pieces[i], peer);
    }
    if (draft.opens()) signal_all(draft, peers, arrived);
  }
  run(draft, kRoot, {{id, 0}});
  for (int rank = kRoot + 1; rank < draft.ranks(); ++rank)
    add_other_side(draft, rank, {kRoot}, opened, arrived, draft.workgroups);
}

void add_direct_pull(BroadcastDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const std::int16_t ready = draft.opens() ? builder.flags("ready", 1) : std::int16_t{-1};
  const std::int16_t done = draft.opens() ? builder.flags("done", 1) : std::int16_t{-1};
  add_other_side(draft, kRoot, receivers(draft, 0), ready, done, (draft.ranks() - 1) * draft.workgroups);
  for (int rank = kRoot + 1; rank < draft.ranks(); ++rank) {
    const std::int32_t id = kernel_of(draft, rank, "fetch");
    for (std::int32_t p = 0; p < draft.workgroups; ++p) {
      builder.workgroup(id);
      if (draft.opens()) builder.wait(ready, 0, 1, Scope::system, draft.knobs.lock);
      for (auto i = static_cast<std::size_t>(p); i < draft.pieces.size();
           i += static_cast<std::size_t>(draft.workgroups)) {
        const Rect& piece = draft.pieces[i];
        builder.copy(draft.data, piece, rank, draft.data, piece.row, piece.col, kRoot);
      }
      if (draft.opens()) signal_all(draft, {kRoot}, done);
    }
    run(draft, rank, {{id, 0}});
  }
}

namespace {

struct Scattered {
  std::int16_t opened = -1;   // one, at the root
  std::int16_t arrived = -1;  // one per piece
  std::int16_t done = -1;     // (workgroup, rank), among all ranks but the root
};

// Pieces go to the peers in turn.
int forwarder_of(const BroadcastDraft& draft, std::size_t piece) {
  return kRoot + 1 + static_cast<int>(piece % static_cast<std::size_t>(draft.ranks() - 1));
}

void scatter(BroadcastDraft& draft, const Scattered& flags) {
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = kernel_of(draft, kRoot, "scatter");
  for (std::int32_t p = 0; p < draft.workgroups; ++p) {
    builder.workgroup(id);
    if (draft.opens()) builder.wait(flags.opened, 0, draft.ranks() - 1, Scope::system, draft.knobs.lock);
    for (auto i = static_cast<std::size_t>(p); i < draft.pieces.size();
         i += static_cast<std::size_t>(draft.workgroups)) {
      const Rect& piece = draft.pieces[i];
      const int peer = forwarder_of(draft, i);
      builder.copy(draft.data, piece, peer, draft.data, piece.row, piece.col, kRoot);
      builder.signal(flags.arrived, static_cast<std::int32_t>(i), 1, peer, Scope::system, draft.knobs.lock);
    }
  }
  run(draft, kRoot, {{id, 0}});
}

void forward(BroadcastDraft& draft, int rank, const Scattered& flags) {
  ScheduleBuilder& builder = draft.builder;
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < draft.pieces.size(); ++i) {
    if (forwarder_of(draft, i) == rank) own.push_back(i);
  }
  const std::int32_t id = kernel_of(draft, rank, "forward");
  for (std::int32_t p = 0; p < draft.workgroups; ++p) {
    std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, p);
    std::erase(peers, kRoot);
    builder.workgroup(id);
    if (draft.opens() && p == 0) signal_all(draft, {kRoot}, flags.opened);
    for (auto i = static_cast<std::size_t>(p); i < own.size();
         i += static_cast<std::size_t>(draft.workgroups)) {
      const Rect& piece = draft.pieces[own[i]];
      builder.wait(flags.arrived, static_cast<std::int32_t>(own[i]), 1, Scope::system, draft.knobs.lock);
      if (peers.empty()) continue;
      builder.load(draft.data, piece, rank);
      for (const int peer : peers) builder.store(draft.data, piece, peer);
    }
    if (draft.opens())
      exchange_arrivals(builder, peers, draft.ranks(), rank, p, flags.done, draft.knobs.lock);
  }
  run(draft, rank, {{id, 0}});
}

}  // namespace

void add_scatter_gather(BroadcastDraft& draft) {
  Scattered flags;
  flags.arrived = draft.builder.flags("arrived", static_cast<std::int32_t>(draft.pieces.size()));
  if (draft.opens()) {
    flags.opened = draft.builder.flags("opened", 1);
    flags.done = draft.builder.flags("done", draft.workgroups * draft.ranks());
  }
  scatter(draft, flags);
  for (int rank = kRoot + 1; rank < draft.ranks(); ++rank) forward(draft, rank, flags);
}

}  // namespace tritax

// All-to-all alone. B(s, r): the block of rank s for rank r.
//
//   library, a channel:    model/parts/library_gather.hpp
//   direct, G workgroups:  exchange arrivals: memory of all may be written, or read
//                          pushed: for pieces of B(own, peer), then of B(own, own):  copy -> there
//                          pulled: for pieces of B(peer, own), then of B(own, own):  copy from there
//                          exchange arrivals: all has been written, or read
//   copy-engine, streams:  a stream a peer copies B(own, peer) there; one workgroup before and one behind
//                          them exchanges arrivals
#include "model/workloads/all_to_all/workload.hpp"

#include <array>
#include <utility>
#include <vector>

#include "model/machine/check_machine.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"

namespace tritax {

namespace {

const std::array<Spec, 4> kFields =
    collective_fields("rows of every GPU's matrix; each GPU gets its part", "columns of the matrix", 1);

const std::array<Spec, 10> kKnobs = moving_knobs();

struct Draft {
  Collective collective;
  const Machine& machine;
  SumKnobs knobs;
  ScheduleBuilder builder;
  std::int16_t own = -1;
  std::int16_t received = -1;  // by source: the block for the rank, one below the other
  std::int16_t opened = -1;    // (workgroup, rank), where no host separates runs
  std::int16_t arrived = -1;   // (workgroup, rank), for the end

  int ranks() const { return collective.gpus; }
  std::vector<int> peers_of(int rank, std::int32_t workgroup) const {
    return tritax::peers_of(knobs.peer_order, ranks(), rank, workgroup);
  }
  Rect block_for(int rank) const {
    const Share rows = share_of(collective.rows, rank, ranks());
    return {static_cast<std::int32_t>(rows.begin), 0, static_cast<std::int32_t>(rows.size()),
            static_cast<std::int32_t>(collective.cols)};
  }
  Rect slot_of(int source, int rank) const {
    Rect slot = block_for(rank);
    slot.row = source * slot.rows;
    return slot;
  }
};

Draft draft_of(std::string name, const Problem& problem, const Machine& machine, const Values& values) {
  const Collective collective = collective_of(problem);
  Draft draft{collective, machine, collective_knobs_of(values),
              ScheduleBuilder(std::move(name), collective.gpus)};
  check_collective(collective, machine, draft.knobs, 2 * collective.bytes());
  ScheduleBuilder& builder = draft.builder;
  const TileIndex piece = piece_size(draft.knobs);
  const Rect widest = draft.block_for(0);
  draft.own = builder.buffer({"own", collective.dtype, static_cast<std::int32_t>(collective.rows),
                              widest.cols, piece.row, piece.col});
  draft.received = builder.buffer(
      {"received", collective.dtype, widest.rows * draft.ranks(), widest.cols, piece.row, piece.col});
  builder.result(draft.received);
  builder.input(builder.whole(draft.own));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    for (int source = 0; source < draft.ranks(); ++source) {
      builder.expect_copy({draft.received, rank, draft.slot_of(source, rank)},
                          {draft.own, source, draft.block_for(rank)});
    }
  }
  return draft;
}

void add_flags(Draft& draft, std::int32_t workgroups) {
  if (draft.ranks() == 1 || draft.knobs.host_barriers) return;
  draft.opened = draft.builder.flags("opened", workgroups * draft.ranks());
  draft.arrived = draft.builder.flags("arrived", workgroups * draft.ranks());
}

void exchange(Draft& draft, int rank, std::int32_t workgroup, std::int16_t flags) {
  if (flags < 0) return;
  exchange_arrivals(draft.builder, draft.peers_of(rank, workgroup), draft.ranks(), rank, workgroup, flags,
                    draft.knobs.lock);
}

// A piece of the block of rank `from` for rank `to`.
struct Piece {
  Rect rect;  // of `own` at `from`
  int from = 0;
  int to = 0;
};

// Pieces that a rank moves; pieces that cross no link come last.
std::vector<Piece> pieces_of(const Draft& draft, int rank) {
  const bool pushed = draft.knobs.transport == Transport::push;
  const TileIndex size = piece_size(draft.knobs);
  const auto with = [&](int peer) {
    std::vector<Piece> list;
    const int from = pushed ? rank : peer;
    const int to = pushed ? peer : rank;
    for (const Rect& rect : cut(draft.block_for(to), size.row, size.col)) list.push_back({rect, from, to});
    return list;
  };
  std::vector<std::vector<Piece>> by_peer;
  for (const int peer : draft.peers_of(rank, 0)) by_peer.push_back(with(peer));
  std::vector<Piece> all = merged(by_peer, draft.knobs.peer_order == PeerOrder::staggered);
  const std::vector<Piece> own = with(rank);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

Schedule build_direct(const Problem& problem, const Machine& machine, const Values& values) {
  Draft draft = draft_of("direct", problem, machine, values);
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t workgroups = all_cus(machine.gpu, draft.knobs.comm_cus);
  add_flags(draft, workgroups);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<Piece> pieces = pieces_of(draft, rank);
    const std::int32_t id = moving_kernel(builder, machine, rank, "all_to_all", draft.knobs);
    for (std::int32_t p = 0; p < workgroups; ++p) {
      builder.workgroup(id);
      exchange(draft, rank, p, draft.opened);
      for (auto i = static_cast<std::size_t>(p); i < pieces.size();
           i += static_cast<std::size_t>(workgroups)) {
        const Piece& piece = pieces[i];
        Rect place = piece.rect;
        place.row += draft.slot_of(piece.from, piece.to).row - draft.block_for(piece.to).row;
        builder.copy(draft.received, place, piece.to, draft.own, piece.rect.row, piece.rect.col, piece.from);
      }
      exchange(draft, rank, p, draft.arrived);
    }
    host_program(builder, rank, draft.knobs, {{id, 0}});
  }
  return builder.finish();
}

Schedule build_copy_engine(const Problem& problem, const Machine& machine, const Values& values) {
  require_copy_engines(machine, "pattern 'copy-engine'");
  Draft draft = draft_of("copy-engine", problem, machine, values);
  ScheduleBuilder& builder = draft.builder;
  add_flags(draft, 1);
  const std::int32_t opened = draft.ranks();  // events: of the copies to every rank, and of the opening
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const auto tell = [&](std::string_view name, std::int16_t flags) {
      builder.launch(rank, telling_kernel(builder, name, draft.peers_of(rank, 0), draft.ranks(), rank, flags,
                                          draft.knobs.lock));
    };
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    if (draft.opened >= 0) {
      tell("open", draft.opened);
      builder.record_event(rank, opened);
    }
    std::vector<int> targets = draft.peers_of(rank, 0);
    targets.push_back(rank);
    for (const int to : targets) {
      const Rect block = draft.block_for(to);
      if (draft.opened >= 0) builder.wait_event(rank, opened, 1 + to);
      builder.host_copy(rank, 1 + to, draft.received, draft.slot_of(rank, to), to, draft.own, block.row,
                        block.col, rank);
      if (draft.arrived < 0) continue;
      builder.record_event(rank, to, 1 + to);
      builder.wait_event(rank, to);
    }
    if (draft.arrived >= 0) tell("tell", draft.arrived);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  Draft draft = draft_of("library", problem, machine, values);
  ScheduleBuilder& builder = draft.builder;
  LibraryAllToAll all;
  all.kernel = "all_to_all";
  all.ranks = draft.ranks();
  all.own = draft.own;
  all.received = draft.received;
  const Rect widest = draft.block_for(0);
  all.widest_bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(draft.collective.dtype);
  all.equal_blocks = draft.collective.rows % draft.ranks() == 0;
  all.arrived = builder.flags("arrived", library_channels(machine) * draft.ranks());
  all.nodes =
      exchange_nodes(builder, machine, draft.ranks(), draft.collective.dtype, widest, [&](int from, int to) {
        return BlockMove{draft.block_for(to), draft.slot_of(from, to)};
      });
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    all.rank = rank;
    all.blocks.clear();
    all.places.clear();
    for (int to = 0; to < draft.ranks(); ++to) {
      all.blocks.push_back(draft.block_for(to));
      all.places.push_back(draft.slot_of(rank, to));
    }
    library_program(builder, rank, {add_library_all_to_all(builder, machine, all)},
                    draft.knobs.host_barriers);
  }
  return builder.finish();
}

constexpr std::array<std::string_view, 5> kDirectKnobs{"comm_tile", "comm_cus", "transport", "peer_order",
                                                       "lock"};
constexpr std::array<std::string_view, 2> kCopyEngineKnobs{"peer_order", "lock"};

const std::array<Pattern, 3> kPatterns{{
    {.name = "library",
     .summary = "the all-to-all of the vendor's collective library",
     .build = build_library,
     .vendor = true},
    {.name = "direct",
     .summary = "workgroups copy pieces of the blocks directly to their place, or fetch them",
     .knobs = kDirectKnobs,
     .build = build_direct},
    {.name = "copy-engine",
     .summary = "copy engines copy a block to every peer at once",
     .knobs = kCopyEngineKnobs,
     .build = build_copy_engine},
}};

Work work(const Problem& problem) {
  const Collective collective = collective_of(problem);
  return {.bytes_per_gpu = collective.bytes() * (collective.gpus - 1) / collective.gpus,
          .peers = collective.gpus - 1};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(kKnobs), pins);
}

std::optional<LibraryCall> library_call(const CsvRow& line) { return library_program(line, all_to_all()); }

}  // namespace

const Workload& all_to_all() {
  static const Workload workload{
      .name = "all-to-all",
      .title = "All-to-all",
      .summary = "every GPU sends a block of its matrix to each GPU",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = require_rows,
      .work = work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .library_call = library_call,
      .step_rows = "rows",
      .message = Message::matrix,
      .traced = TracedForm{.collective = TracedCollective::all_to_all},
  };
  return workload;
}

}  // namespace tritax

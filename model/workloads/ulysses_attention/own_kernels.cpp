// Patterns with all-to-all kernels of their own. C workgroups move, p one of them; r own rank.
//
//   HEADS, pushed:   for ranks d, r first: copy part p of what d attends to -> qh, kh, vh there;
//                    exchange arrivals
//          pulled:   exchange arrivals: all have begun; for ranks s, r first: copy part p of what r attends
//                    to from there
//   ATTENTION:       a workgroup per tile: attend to all its keys; store into oh
//   TOKENS, pushed:  for ranks: copy part p of its tokens' results -> o there; exchange arrivals
//           pulled:  exchange arrivals: all have attended; for ranks: copy part p of the results of the own
//                    tokens from there; exchange arrivals
//
//   direct:          stream 0: HEADS, ATTENTION, TOKENS
//   fused-results:   stream 0: HEADS, and instead of the others one kernel of A workgroups:
//                              for tiles: attend; store -> o of the owner; tell all peers; the first one
//                              waits for all of theirs
#include <utility>

#include "model/workloads/ulysses_attention/movers.hpp"

namespace tritax {

namespace {

struct ExchangeFlags {
  std::int16_t begin = -1, end = -1;  // (workgroup, rank)
};

void exchange(HeadsDraft& draft, int rank, std::int32_t p, std::int16_t flags) {
  if (flags < 0) return;
  exchange_arrivals(draft.builder, peers_of(PeerOrder::rotated, draft.ranks(), rank, 0), draft.ranks(), rank,
                    p, flags, draft.knobs.lock);
}

ExchangeFlags add_flags(HeadsDraft& draft, const HeadMovers& movers, std::string_view name, bool begin,
                        bool end) {
  const std::int32_t count = movers.count * draft.ranks();
  ExchangeFlags flags;
  if (begin) flags.begin = draft.builder.flags(std::string(name) + " begin", count);
  if (end) flags.end = draft.builder.flags(std::string(name) + " end", count);
  return flags;
}

void launch_heads(HeadsDraft& draft, const HeadMovers& movers, int rank, const ExchangeFlags& flags) {
  const std::int32_t id = moving_kernel(draft, movers, rank, "heads");
  for (std::int32_t p = 0; p < movers.count; ++p) {
    draft.builder.workgroup(id);
    exchange(draft, rank, p, flags.begin);
    for (const int other : own_first(draft, rank, p)) {
      move_to_heads(draft, movers, p, draft.knobs.pull ? other : rank, draft.knobs.pull ? rank : other);
    }
    exchange(draft, rank, p, flags.end);
  }
  draft.builder.launch(rank, id);
}

void launch_tokens(HeadsDraft& draft, const HeadMovers& movers, int rank, const ExchangeFlags& flags) {
  const std::int32_t id = moving_kernel(draft, movers, rank, "tokens");
  for (std::int32_t p = 0; p < movers.count; ++p) {
    draft.builder.workgroup(id);
    exchange(draft, rank, p, flags.begin);
    for (const int other : own_first(draft, rank, p)) {
      move_to_tokens(draft, movers, p, draft.knobs.pull ? rank : other, draft.knobs.pull ? other : rank);
    }
    exchange(draft, rank, p, flags.end);
  }
  draft.builder.launch(rank, id);
}

// Where hosts separate runs, no rank asks whether others have begun.
ExchangeFlags flags_of_heads(HeadsDraft& draft, const HeadMovers& movers) {
  if (!draft.sends()) return {};
  const bool pull = draft.knobs.pull;
  return add_flags(draft, movers, "heads", pull && !draft.knobs.host_barriers, !pull);
}

void begin(HeadsDraft& draft, int rank) {
  if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
}

void end(HeadsDraft& draft, int rank) {
  draft.builder.host(rank, HostOpKind::device_synchronize);
  begin(draft, rank);
}

}  // namespace

Schedule build_heads_direct(const SequenceAttention& problem, const Machine& machine,
                            const UlyssesKnobs& knobs) {
  HeadsDraft draft("direct", problem, machine, knobs, true);
  const HeadMovers movers = head_movers_of(draft);
  const ExchangeFlags heads = flags_of_heads(draft, movers);
  ExchangeFlags tokens;
  if (draft.sends()) tokens = add_flags(draft, movers, "tokens", knobs.pull, !knobs.host_barriers);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin(draft, rank);
    if (draft.sends()) launch_heads(draft, movers, rank, heads);
    const std::int32_t attention = draft.builder.kernel(draft.attend_kernel(rank, "attention"));
    for (const HeadTile& tile : draft.tiles(rank)) {
      draft.builder.workgroup(attention);
      draft.attend(tile);
      draft.store(tile, rank, false);
    }
    draft.builder.launch(rank, attention);
    if (draft.sends()) launch_tokens(draft, movers, rank, tokens);
    end(draft, rank);
  }
  return draft.builder.finish();
}

Schedule build_heads_fused_results(const SequenceAttention& problem, const Machine& machine,
                                   const UlyssesKnobs& knobs) {
  HeadsDraft draft("fused-results", problem, machine, knobs, false);
  const HeadMovers movers = head_movers_of(draft);
  const ExchangeFlags heads = flags_of_heads(draft, movers);
  const bool tells = draft.sends() && !knobs.host_barriers;
  const std::int16_t finished = tells ? draft.builder.flags("finished", draft.ranks()) : std::int16_t{-1};
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    counts.push_back(attending(draft, draft.attend_kernel(rank, ""), rank, 0));
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin(draft, rank);
    if (draft.sends()) launch_heads(draft, movers, rank, heads);
    Kernel kernel = draft.attend_kernel(rank, "attention");
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    const std::vector<HeadTile> tiles = draft.tiles(rank);
    const std::size_t count = counts[static_cast<std::size_t>(rank)];
    for (std::size_t p = 0; p < count; ++p) {
      draft.builder.workgroup(id);
      for (std::size_t i = p; i < tiles.size(); i += count) {
        draft.attend(tiles[i]);
        draft.store(tiles[i], rank, true);
      }
      finish_attending(draft, rank, p == 0, finished, counts);
    }
    draft.builder.launch(rank, id);
    end(draft, rank);
  }
  return draft.builder.finish();
}

}  // namespace tritax

// The patterns of flash decode: the exchange of every GPU's partials (ROCm/iris examples/13_flash_decode and
// ryanswann-amd/iris @7fea2005 examples/10_flash_decode before it). r own rank, W ranks, b sequence, h head.
#include "model/workloads/flash_decode/patterns.hpp"

#include <utility>

#include "model/parts/kernels.hpp"
#include "model/parts/library_gather.hpp"

namespace tritax {

namespace {

// COMBINE into `local`; its first workgroup waits for the openings that later kernels of the stream rely on.
std::int32_t add_local_combine(DecodeDraft& draft, int rank) {
  return draft.add_combine(rank, "combine", [&draft, rank](std::int32_t of) {
    draft.builder.store(draft.local, draft.partial(0, of), rank);
    if (of == 0) draft.await_opened();
  });
}

std::int32_t add_plain_merge(DecodeDraft& draft, int rank) {
  return draft.add_merge(rank, "merge", [](int, std::int32_t) {});
}

void begin_run(DecodeDraft& draft) {
  if (!draft.knobs.host_barriers) return;
  for (int rank = 0; rank < draft.ranks(); ++rank) draft.builder.host(rank, HostOpKind::barrier);
}

Schedule end_run(DecodeDraft& draft) {
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    draft.builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
  }
  return draft.builder.finish();
}

}  // namespace

//   stream 0: SPLIT, COMBINE, the library's all-gather of the partials, MERGE
Schedule build_decode_library(const FlashDecode& problem, const Machine& machine, const DecodeKnobs& knobs) {
  DecodeDraft draft("library", problem, machine, knobs);
  const double bytes = 4.0 * draft.shard(0).rows * draft.shard(0).cols;
  begin_run(draft);
  for (std::int32_t step = 0; step < knobs.steps; ++step) {
    draft.begin_step(true);
    const std::int16_t arrived =
        draft.sends() ? draft.builder.flags("arrived", library_channels(machine) * draft.ranks())
                      : std::int16_t{-1};
    const GatherNodes nodes =
        gather_nodes(draft.builder, machine, draft.ranks(), [&](int rank) { return draft.shard(rank); });
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      draft.launch(rank, draft.add_split(rank));
      draft.launch(rank, add_local_combine(draft, rank));
      if (draft.sends()) {
        const PeerOrder order =
            nodes.passed >= 0 ? PeerOrder::rotated : PeerOrder::fixed;  // then all nodes have the same order
        const std::vector<int> peers = peers_of(order, draft.ranks(), rank, 0);
        const std::int32_t gather = add_library_gather(
            draft.builder, machine,
            {"all_gather", rank, draft.ranks(), draft.local, draft.gathered, draft.shard(rank), bytes, nodes},
            [&](std::int32_t channel) {
              exchange_arrivals(draft.builder, peers, draft.ranks(), rank, channel, arrived,
                                LockProtocol::load_store);
            });
        draft.launch(rank, gather, true);
      }
      draft.launch(rank, add_plain_merge(draft, rank));
    }
  }
  return end_run(draft);
}

//   stream 0: SPLIT, COMBINE, PUSH, MERGE
//   PUSH, W workgroups: d copies the shard to rank d; arrived += 1 there; wait arrived = W
// With sync = hosts, barriers of the hosts surround PUSH. Staged: a framework's copies surround it.
Schedule build_decode_unfused(const FlashDecode& problem, const Machine& machine, const DecodeKnobs& knobs) {
  DecodeDraft draft("unfused", problem, machine, knobs);
  const bool meets = knobs.sync == GatherSync::hosts;
  if (knobs.staged) draft.stage();
  begin_run(draft);
  for (std::int32_t step = 0; step < knobs.steps; ++step) {
    draft.begin_step(!meets);
    const std::int16_t arrived = draft.sends() ? draft.builder.flags("arrived", 1) : std::int16_t{-1};
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      std::vector<std::int32_t> kernels{draft.add_split(rank), add_local_combine(draft, rank)};
      if (draft.sends()) {
        if (knobs.staged) kernels.push_back(draft.add_copy_in(rank));
        if (meets) {
          draft.finish_step(rank, std::exchange(kernels, {}));
          draft.synchronize_all(rank);
        }
        kernels.push_back(draft.add_push(rank, [&](int to) {
          draft.builder.signal(arrived, 0, 1, to, Scope::system, knobs.lock);
          draft.builder.wait(arrived, 0, draft.ranks(), Scope::system, knobs.lock);
        }));
        if (meets) {
          draft.finish_step(rank, std::exchange(kernels, {}));
          draft.synchronize_all(rank);
        }
        if (knobs.staged) kernels.push_back(draft.add_copy_out(rank));
      }
      kernels.push_back(add_plain_merge(draft, rank));
      draft.finish_step(rank, kernels);
    }
  }
  return end_run(draft);
}

//   stream 0: SPLIT, COMBINE, PUSH as above without its wait,
//             MERGE (b, h): for s = 0 … W-1: wait arrived[s]; combine the partial of s; store
Schedule build_decode_fused_wait(const FlashDecode& problem, const Machine& machine,
                                 const DecodeKnobs& knobs) {
  DecodeDraft draft("fused-wait", problem, machine, knobs);
  begin_run(draft);
  for (std::int32_t step = 0; step < knobs.steps; ++step) {
    draft.begin_step(true);
    const std::int16_t arrived =
        draft.sends() ? draft.builder.flags("arrived", draft.ranks()) : std::int16_t{-1};
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      std::vector<std::int32_t> kernels{draft.add_split(rank), add_local_combine(draft, rank)};
      if (draft.sends()) {
        kernels.push_back(draft.add_push(
            rank, [&](int to) { draft.builder.signal(arrived, rank, 1, to, Scope::system, knobs.lock); }));
      }
      kernels.push_back(draft.add_merge(rank, "wait_and_merge", [&](int source, std::int32_t) {
        if (draft.sends()) draft.builder.wait(arrived, source, 1, Scope::system, knobs.lock);
      }));
      draft.finish_step(rank, kernels);
    }
  }
  return end_run(draft);
}

//   stream 0: SPLIT,
//             COMBINE AND PUSH (b, h): combine; for d = 0 … W-1: store -> rank d; arrived[r, b, h] = 1 there
//             WAIT AND MERGE (b, h):   for s = 0 … W-1: wait arrived[s, b, h]; combine partial of s; store
// With one counter per source, a workgroup adds 1 to arrived[r], and waits for as many as there are heads.
Schedule build_decode_fully_fused(const FlashDecode& problem, const Machine& machine,
                                  const DecodeKnobs& knobs) {
  DecodeDraft draft("fully-fused", problem, machine, knobs);
  const bool counts = knobs.flags == DecodeFlags::per_source;
  const std::int32_t of_source = counts ? 1 : draft.tokens();
  const auto flag = [&](int source, std::int32_t of) { return source * of_source + (counts ? 0 : of); };
  begin_run(draft);
  for (std::int32_t step = 0; step < knobs.steps; ++step) {
    draft.begin_step(true);
    const std::int16_t arrived =
        draft.sends() ? draft.builder.flags("arrived", draft.ranks() * of_source) : std::int16_t{-1};
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      const std::int32_t split = draft.add_split(rank);
      const std::int32_t push = draft.add_combine(rank, "combine_and_push", [&](std::int32_t of) {
        draft.await_opened();
        for (int to = 0; to < draft.ranks(); ++to) {
          draft.builder.store(draft.gathered, draft.partial(rank, of), to);
          if (!draft.sends()) continue;
          draft.builder.signal(arrived, flag(rank, of), 1, to, Scope::system, knobs.lock);
        }
      });
      const std::int32_t merge = draft.add_merge(rank, "wait_and_merge", [&](int source, std::int32_t of) {
        if (!draft.sends()) return;
        draft.builder.wait(arrived, flag(source, of), counts ? draft.tokens() : 1, Scope::system, knobs.lock);
      });
      draft.finish_step(rank, {split, push, merge});
    }
  }
  return end_run(draft);
}

}  // namespace tritax

// The patterns of flash decode: the exchange of every GPU's partials (ROCm/iris examples/13_flash_decode and
// the branches before it). r own rank, W ranks, b sequence, h head.
#include "model/workloads/flash_decode/patterns.hpp"

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

//   stream 0: SPLIT, COMBINE; host barrier;
//             PUSH, W workgroups: d copies the shard to rank d; arrived += 1 there; wait arrived = W
//             host barrier; MERGE
Schedule build_decode_unfused(const FlashDecode& problem, const Machine& machine, const DecodeKnobs& knobs) {
  DecodeDraft draft("unfused", problem, machine, knobs);
  begin_run(draft);
  for (std::int32_t step = 0; step < knobs.steps; ++step) {
    draft.begin_step(false);  // host barriers separate steps
    const std::int16_t arrived = draft.sends() ? draft.builder.flags("arrived", 1) : std::int16_t{-1};
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      draft.launch(rank, draft.add_split(rank));
      draft.launch(rank, add_local_combine(draft, rank));
      if (draft.sends()) {
        draft.synchronize_all(rank);
        draft.launch(rank, draft.add_push(rank, [&](int to) {
          draft.builder.signal(arrived, 0, 1, to, Scope::system, knobs.lock);
          draft.builder.wait(arrived, 0, draft.ranks(), Scope::system, knobs.lock);
        }));
        draft.synchronize_all(rank);
      }
      draft.launch(rank, add_plain_merge(draft, rank));
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
Schedule build_decode_fully_fused(const FlashDecode& problem, const Machine& machine,
                                  const DecodeKnobs& knobs) {
  DecodeDraft draft("fully-fused", problem, machine, knobs);
  begin_run(draft);
  for (std::int32_t step = 0; step < knobs.steps; ++step) {
    draft.begin_step(true);
    const std::int16_t arrived =
        draft.sends() ? draft.builder.flags("arrived", draft.ranks() * draft.tokens()) : std::int16_t{-1};
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      const std::int32_t split = draft.add_split(rank);
      const std::int32_t push = draft.add_combine(rank, "combine_and_push", [&](std::int32_t of) {
        draft.await_opened();
        for (int to = 0; to < draft.ranks(); ++to) {
          draft.builder.store(draft.gathered, draft.partial(rank, of), to);
          if (!draft.sends()) continue;
          draft.builder.signal(arrived, rank * draft.tokens() + of, 1, to, Scope::system, knobs.lock);
        }
      });
      const std::int32_t merge = draft.add_merge(rank, "wait_and_merge", [&](int source, std::int32_t of) {
        if (!draft.sends()) return;
        draft.builder.wait(arrived, source * draft.tokens() + of, 1, Scope::system, knobs.lock);
      });
      draft.finish_step(rank, {split, push, merge});
    }
  }
  return end_run(draft);
}

}  // namespace tritax

// What ranks tell each other around sums of peers: slots are open, slots are filled, all is stored.
#include <algorithm>

#include "model/parts/partial_sums.hpp"

namespace tritax {

void add_opened(SumDraft& draft) {
  if (draft.opens()) draft.opened = draft.builder.flags("opened", draft.ranks());
}

void tell_opened(SumDraft& draft, int rank, bool first_workgroup) {
  if (draft.opened < 0 || !first_workgroup) return;
  add_by_peer(draft.builder, draft.knobs.serves, [&] {
    for (const int peer : peers_of(PeerOrder::rotated, draft.ranks(), rank, 0))
      draft.builder.signal(draft.opened, rank, 1, peer, Scope::system, draft.knobs.lock);
  });
}

void await_opened(SumDraft& draft, int peer) {
  if (draft.opened >= 0) draft.builder.wait(draft.opened, peer, 1, Scope::system, draft.knobs.lock);
}

void await_opened_once(SumDraft& draft, std::vector<bool>& opened, int peer) {
  if (opened[static_cast<std::size_t>(peer)]) return;
  await_opened(draft, peer);
  opened[static_cast<std::size_t>(peer)] = true;
}

void send_to_slots(SumDraft& draft, const SlotOfAll& slot, const std::vector<int>& peers, bool awaits) {
  const ServesPeers serves = draft.knobs.serves;
  const auto store = [&](int peer) { draft.builder.store(slot.slots, slot.rect, peer); };
  if (serves == ServesPeers::in_turn) {
    for (const int peer : peers) {
      if (awaits) await_opened(draft, peer);
      store(peer);
    }
  } else {
    const auto await_all = [&] {
      for (const int peer : peers) await_opened(draft, peer);
    };
    if (awaits) draft.builder.together(await_all);
    draft.builder.together([&] { std::for_each(peers.begin(), peers.end(), store); });
  }
  add_by_peer(draft.builder, serves, [&] {
    for (const int peer : peers)
      draft.builder.signal(slot.arrived, slot.index, 1, peer, Scope::system, draft.knobs.lock);
  });
}

void add_done(SumDraft& draft, std::int32_t workgroups) {
  if (draft.sends()) draft.done = draft.builder.flags("done", workgroups * draft.ranks());
}

void exchange_done(SumDraft& draft, int rank, std::int32_t index) {
  if (draft.done < 0) return;
  exchange_arrivals(draft.builder, draft.peers_of(rank, index), draft.ranks(), rank, index, draft.done,
                    draft.knobs.lock, draft.knobs.serves);
}

}  // namespace tritax

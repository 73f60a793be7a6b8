// What an operation takes of the links: its place among those that copy, and its share of a full link.
#include "sim/engine.hpp"

namespace tritax::engine {

// Whether an operation stores over links that carry less the fewer do so. What the copy engine stores is left
// out: it fills a link with fewer workgroups (tiles stored by 32 come to 350 GB/s on 2 H200, copies to 318),
// though by 16 it comes to no more than 300 either (scenarios/measured/h200-2-filling.csv). Another node lies
// behind a network, whose links are no GPU's. Nor do kernels count that fill a link however few they are.
bool Engine::crowds(const WorkgroupState& wg, const DataPath& path) const {
  if (!crowding_.any() || run_.costs_of(wg).tuned) return false;
  const std::int32_t per_node = run_.machine.gpus_per_node;
  return path.peer / per_node == path.rank / per_node &&
         (path.kind == MoveKind::remote_copy || (path.kind == MoveKind::remote_store && !wg.has_sender));
}

// One more on the links of the sender and the receiver.
void Engine::join_crowd(DataPath& path) {
  const auto& edges =
      run_.topology.routes[static_cast<std::size_t>(path.rank)][static_cast<std::size_t>(path.peer)];
  const auto step = [&](int edge) -> std::uint8_t {
    const std::int32_t copies = ++copies_on_link_[static_cast<std::size_t>(edge)];
    // A link that is not full has time for all lanes.
    const bool full = run_.fluid.saturated(link_resource_[static_cast<std::size_t>(edge)]);
    return full ? Crowding::step_of(copies) : 0;
  };
  path.crowd_out = step(edges.front());
  if (edges.size() > 1) path.crowd_in = step(edges.back());
}

void Engine::leave_crowd(const WorkgroupState& wg) {
  const auto& edges =
      run_.topology.routes[static_cast<std::size_t>(wg.rank)][static_cast<std::size_t>(wg.store_rank)];
  --copies_on_link_[static_cast<std::size_t>(edges.front())];
  if (edges.size() > 1) --copies_on_link_[static_cast<std::size_t>(edges.back())];
}

}  // namespace tritax::engine

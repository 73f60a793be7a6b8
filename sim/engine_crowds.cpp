// Links that an operation uses: its place among the copies on them, and its share of a full link.
#include "sim/engine_crowds.hpp"

namespace tritax::engine {

// Whether an operation stores over links that carry less with fewer stores. Stores by a sender
// (engine_sender.cpp) are left out: they fill a link with fewer workgroups (tiles stored by 32 workgroups
// reach 350 GB/s on 2 H200, copies 318), although 16 workgroups reach no more than 300 either
// (scenarios/measured/h200-2-filling.csv). Another node lies behind a network, whose links are not those of a
// GPU. Kernels that fill a link with any number of workgroups do not count either.
bool Crowds::counts(const WorkgroupState& wg, const DataPath& path) const {
  if (!crowding_.any() || run_.costs_of(wg).tuned || path.fan > 1) return false;
  const std::int32_t per_node = run_.machine.gpus_per_node;
  return path.peer / per_node == path.rank / per_node &&
         (path.kind == DataMoveKind::remote_copy ||
          (path.kind == DataMoveKind::remote_store && !wg.has_sender));
}

// Adds a transfer to the links of the sender and the receiver.
void Crowds::join(DataPath& path) {
  const auto& edges =
      run_.topology.routes[static_cast<std::size_t>(path.rank)][static_cast<std::size_t>(path.peer)];
  const auto step = [&](int edge) -> std::uint8_t {
    const std::int32_t copies = ++copies_on_link_[static_cast<std::size_t>(edge)];
    // A link that is not full has time for all lanes.
    const bool full = run_.fluid.saturated(resources_.link(edge));
    return full ? Crowding::step_of(copies) : 0;
  };
  path.crowd_out = step(edges.front());
  if (edges.size() > 1) path.crowd_in = step(edges.back());
}

void Crowds::leave(const WorkgroupState& wg) {
  const auto& edges =
      run_.topology.routes[static_cast<std::size_t>(wg.rank)][static_cast<std::size_t>(wg.store_rank)];
  --copies_on_link_[static_cast<std::size_t>(edges.front())];
  if (edges.size() > 1) --copies_on_link_[static_cast<std::size_t>(edges.back())];
}

}  // namespace tritax::engine

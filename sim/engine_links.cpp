// What an operation takes of the links: packets of the rows that it stores, its place among those that copy,
// and its share of a full link.
#include <algorithm>

#include "model/cost/link_packets.hpp"
#include "sim/engine.hpp"

namespace tritax {

// Of a copy besides its latency and bytes.
double Engine::ragged_ns(const KernelCosts& costs, const Op& op) const {
  if (op.kind != OpKind::copy || costs.ragged_copy_ns == 0 || op.rect.cols == 0) return 0;
  const std::int64_t element = bytes_of(schedule_.buffers[static_cast<std::size_t>(op.buffer)].dtype);
  const RowPackets row = packets_of_row(op.rect.col * element, op.rect.cols * element, false);
  return row.ragged_ends > 0 ? costs.ragged_copy_ns : 0;
}

// Bytes on a link by byte stored.
double Engine::link_cost_of(const WorkgroupState& wg, const Op& op) const {
  const KernelCosts& costs = costs_of(wg);
  const bool none = costs.split_line_bytes == 0 && costs.sector_end_bytes == 0 && costs.ragged_end_bytes == 0;
  if (none || op.rect.cols == 0) return 1;
  const std::int64_t element = bytes_of(schedule_.buffers[static_cast<std::size_t>(op.buffer)].dtype);
  const bool in_boxes = wg.has_sender && op.kind == OpKind::store;
  return stored_row_cost(costs, op.rect.col * element, op.rect.cols * element, in_boxes);
}

// Whether an operation stores over links that carry less the fewer do so. What the copy engine stores is left
// out: it fills a link with fewer workgroups (tiles stored by 32 come to 350 GB/s on 2 H200, copies to 318),
// though by 16 it comes to no more than 300 either (scenarios/measured/h200-2-filling.csv). Another node lies
// behind a network, whose links are no GPU's. Nor do kernels count that fill a link however few they are.
bool Engine::crowds(const WorkgroupState& wg, const Op& op) const {
  if (!crowding_.any() || !costs_of(wg).leaves_lanes_idle) return false;
  const std::int32_t rank = wg.rank;
  const std::int32_t per_node = machine_.gpus_per_node;
  return op.rank != rank && op.rank / per_node == rank / per_node &&
         ((op.kind == OpKind::store && !wg.has_sender) || (op.kind == OpKind::copy && op.src_rank == rank));
}

// One more on the links of the sender and the receiver.
void Engine::join_crowd(DataPath& path) {
  const auto& edges =
      topology_.routes[static_cast<std::size_t>(path.rank)][static_cast<std::size_t>(path.peer)];
  const auto step = [&](int edge) -> std::uint8_t {
    const std::int32_t copies = ++copies_on_link_[static_cast<std::size_t>(edge)];
    // A link that is not full has time for all lanes.
    const bool full = fluid_.saturated(link_resource_[static_cast<std::size_t>(edge)]);
    return full ? Crowding::step_of(copies) : 0;
  };
  path.crowd_out = step(edges.front());
  if (edges.size() > 1) path.crowd_in = step(edges.back());
}

void Engine::leave_crowd(const WorkgroupState& wg) {
  const auto& edges =
      topology_.routes[static_cast<std::size_t>(wg.rank)][static_cast<std::size_t>(wg.store_rank)];
  --copies_on_link_[static_cast<std::size_t>(edges.front())];
  if (edges.size() > 1) --copies_on_link_[static_cast<std::size_t>(edges.back())];
}

// What the fabric gives a remote load that has it for itself.
double Engine::load_rate_alone(const DataPath& path) const {
  double rate = std::min(machine_.fabric.load_ingress_gb_per_s, machine_.fabric.load_egress_gb_per_s);
  const auto& route =
      topology_.routes[static_cast<std::size_t>(path.peer)][static_cast<std::size_t>(path.rank)];
  for (const int edge : route) {
    rate = std::min(
        rate, topology_.edges[static_cast<std::size_t>(edge)].raw_gb_per_s * machine_.fabric.load_efficiency);
  }
  return rate;
}

// Equal requesters do not get equal service on a full link; every transfer has its own weight, drawn from the
// seed and the operation. Where what a workgroup copies to one peer is one transfer, it has one weight.
double Engine::service_weight(const WorkgroupState& wg, std::uint32_t op) const {
  if (machine_.fabric.arbitration_spread == 0) return 1;
  const bool channel = costs_of(wg).one_transfer_a_peer && schedule_.ops[op].kind == OpKind::copy;
  const std::uint64_t draw =
      channel ? static_cast<std::uint64_t>(wg.id) << 32 ^ ~static_cast<std::uint32_t>(schedule_.ops[op].rank)
              : draw_of(wg.id, op);
  return service_weights_.at(unit_random(draw));
}

}  // namespace tritax

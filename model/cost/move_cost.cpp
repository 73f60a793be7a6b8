#include "model/cost/move_cost.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/link_packets.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

LinkRates link_rates(const Machine& machine, const KernelCosts& costs, int gpus, Traffic traffic) {
  if (traffic == Traffic::none) return {};
  const Fabric& fabric = machine.fabric;
  const StorePorts ports = store_ports(machine, costs, gpus);
  const bool loads = traffic == Traffic::loads || traffic == Traffic::engine_loads;
  LinkRates rates{store_efficiency(fabric, costs), Ports::store, ports.egress_gb_per_s,
                  ports.ingress_gb_per_s};
  if (loads) {
    rates = {fabric.load_efficiency, Ports::load, fabric.load_egress_gb_per_s, fabric.load_ingress_gb_per_s};
  }
  if (traffic == Traffic::atomics) rates.efficiency = fabric.atomic_efficiency;
  const NodeNetwork& network = machine.network;
  rates.network_efficiency = traffic == Traffic::atomics ? network.atomic_efficiency : network.efficiency;
  const bool by_engine = traffic == Traffic::engine_stores || traffic == Traffic::engine_loads;
  if (!by_engine || fabric.kind == LinkKind::node_switch) return rates;
  // On a mesh the port rates are limits of bytes in flight of compute units, which engines do not have; on a
  // switch they are limits of the hardware. A measured faster rate of an engine raises the payload share.
  const double reached = machine.copy_engine.gb_per_s / fabric.link_raw_gb_per_s;
  LinkRates past_ports{std::max(rates.efficiency, std::min(1.0, reached))};
  past_ports.network_efficiency = rates.network_efficiency;
  return past_ports;
}

}  // namespace

DataMove move_of(const Op& op, std::int32_t rank) {
  const auto to_or_from = [&](DataMoveKind local, DataMoveKind remote) {
    const bool passes_no_link = op.rank == rank && !op.multimem;
    return DataMove{passes_no_link ? local : remote, rank, op.rank};
  };
  switch (op.kind) {
    case OpKind::load:
    case OpKind::reduce:
    case OpKind::combine:
    case OpKind::rms_norm:
    case OpKind::row_dot:
      return to_or_from(DataMoveKind::local_load, DataMoveKind::remote_load);
    case OpKind::store:
      return to_or_from(DataMoveKind::local_store, DataMoveKind::remote_store);
    case OpKind::copy:
      if (op.by_engine) return move_by_engine(op, rank);
      if (op.src_rank != rank) return {DataMoveKind::remote_get, rank, op.src_rank};
      return to_or_from(DataMoveKind::local_copy, DataMoveKind::remote_copy);
    case OpKind::atomic_add:
      return to_or_from(DataMoveKind::local_atomic, DataMoveKind::remote_atomic);
    default:
      break;
  }
  TRITAX_ASSERT(false, "not a data operation");
}

DataMove move_by_engine(const Op& transfer, std::int32_t rank) {
  if (transfer.rank == transfer.src_rank) return {DataMoveKind::engine_copy, transfer.rank, transfer.rank};
  if (transfer.src_rank == rank) return {DataMoveKind::engine_put, rank, transfer.rank};
  return {DataMoveKind::engine_get, transfer.rank, transfer.src_rank};
}

double unit_gb_per_s(const Gpu& gpu, const KernelCosts& costs, DataMoveKind kind) {
  TRITAX_ASSERT(kind < DataMoveKind::engine_copy, "a copy engine is no compute unit");
  const Traffic traffic = traffic_of(kind);
  if (traffic == Traffic::loads) return gpu.cu_remote_load_gb_per_s;
  if (traffic == Traffic::atomics) return gpu.cu_remote_atomic_gb_per_s;
  if (kind == DataMoveKind::local_load) return gpu.cu_load_gb_per_s;
  const double stores = traffic == Traffic::stores ? gpu.cu_remote_store_gb_per_s : gpu.cu_store_gb_per_s;
  const bool loads_first = DataMove{kind}.copies_own() && costs.guarded_copy_gb_per_s <= 0;
  return loads_first ? std::min(gpu.cu_load_gb_per_s, stores) : stores;
}

MoveCosts::MoveCosts(const Schedule& schedule, const Machine& machine, const CostTable& costs,
                     const Topology& topology)
    : schedule_(schedule),
      machine_(machine),
      costs_(costs),
      topology_(topology),
      rates_(kernel_rates(machine, schedule)) {
  for (std::size_t p = 0; p < links_.size(); ++p) {
    for (std::size_t t = 0; t < kTrafficCount; ++t) {
      links_[p][t] =
          link_rates(machine, costs[static_cast<KernelProfile>(p)], schedule.ranks, static_cast<Traffic>(t));
    }
  }
}

double MoveCosts::workgroup_gb_per_s(std::size_t kernel, DataMoveKind kind, std::int32_t sharers) const {
  const KernelRates& limits = rates_[kernel];
  double rate = unit_gb_per_s(machine_.gpu, costs_.of(schedule_.kernels[kernel]), kind) /
                (sharers * limits.time_factor);
  const double vector_clk = schedule_.kernels[kernel].clk_per_stored_byte;
  if (kind == DataMoveKind::local_store && vector_clk > 0) {
    rate = std::min(rate, machine_.gpu.boost_clock_ghz / vector_clk);
  }
  if (limits.workgroup_gb_per_s > 0) rate = std::min(rate, limits.workgroup_gb_per_s);
  const bool limited = limits.remote_store_gb_per_s > 0 && traffic_of(kind) == Traffic::stores;
  return limited ? std::min(rate, limits.remote_store_gb_per_s) : rate;
}

double MoveCosts::gb_per_s_alone(const Kernel& kernel, const Op& op, const DataMove& move,
                                 const MoveConditions& met) const {
  const KernelCosts& costs = costs_.of(kernel);
  const double bytes = tile_bytes(schedule_, op);
  const bool stores = writes_out(op.kind);
  const bool multiplies = kernel.tile.m > 0;
  // A kernel with matmuls has enough registers for a copy to overlap other copies.
  const bool guarded = met.lone && !multiplies && costs.knows_guarded_copies();
  const bool asked_before = costs.tuned && op.kind == OpKind::reduce;
  const double op_ns = stores       ? costs.store_op_ns
                       : guarded    ? costs.guarded_op_ns()
                       : met.probes ? 0
                                    : costs.copy_op_ns;
  double latency = (move.reads_own() && !asked_before ? met.read_ns : 0) + op_ns;
  if (op.kind == OpKind::copy && costs.ragged_copy_ns > 0 && is_ragged(op)) latency += costs.ragged_copy_ns;
  if (met.lone) latency += costs.busy_copy_ns * met.busy_share;
  latency *= rates_[static_cast<std::size_t>(&kernel - schedule_.kernels.data())].time_factor;
  if (loads_tile(op.kind) && costs.accumulate_gb_per_s > 0)
    latency += met.together * bytes / costs.accumulate_gb_per_s;
  double rate = met.gb_per_s;
  if (move.pulls()) {
    latency += machine_.fabric.load_round_trip_ns + 2 * between_nodes_ns(machine_, move.rank, move.peer);
    rate = std::min(rate, way_gb_per_s(move, links(kernel.profile, move.traffic())));
  }
  if (guarded && costs.guarded_copy_gb_per_s > 0) rate = std::min(rate, costs.guarded_copy_gb_per_s);
  double moving_ns = bytes / rate;
  if (guarded) moving_ns = std::max(moving_ns, costs.guarded_copy_least_ns - op_ns);
  const double alone = bytes > 0 ? met.clock_share * bytes / (latency + moving_ns) : met.gb_per_s;
  const bool beside_matmuls = multiplies && !stores && costs.specialised_copy_efficiency > 0;
  return beside_matmuls ? alone * costs.specialised_copy_efficiency : alone;
}

// Rate of the fabric for a move without other traffic.
double MoveCosts::way_gb_per_s(const DataMove& move, const LinkRates& links) const {
  double rate = std::min(links.ingress_gb_per_s, links.egress_gb_per_s);
  const auto from = static_cast<std::size_t>(move.from());
  for (const int edge : topology_.routes[from][static_cast<std::size_t>(move.to())]) {
    const TopologyEdge& on = topology_.edges[static_cast<std::size_t>(edge)];
    rate = std::min(rate, on.raw_gb_per_s * links.efficiency_on(on));
  }
  return rate;
}

namespace {

std::int64_t bytes_in_row(const Buffer& buffer, std::int32_t cols) {
  return static_cast<std::int64_t>(std::ceil(row_bytes(buffer, cols)));
}

}  // namespace

bool MoveCosts::is_ragged(const Op& op) const {
  if (op.rect.cols == 0) return false;
  const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(op.buffer)];
  return packets_of_row(bytes_in_row(buffer, op.rect.col), bytes_in_row(buffer, op.rect.cols), false)
             .ragged_ends > 0;
}

double MoveCosts::message_cost(const Op& op, const DataMove& move, KernelProfile profile,
                               double payload_share) const {
  const double bytes = tile_bytes(schedule_, op);
  const bool from_peer = op.kind == OpKind::copy && op.rank == move.rank;
  const Buffer& remote = schedule_.buffers[static_cast<std::size_t>(from_peer ? op.src_buffer : op.buffer)];
  const double messages = op.rect.cols == remote.cols ? 1 : op.rect.rows;
  if (bytes == 0) return 1 / payload_share;
  const LinkRates& rates = links(profile, move.traffic());
  const double efficiency = rates.network_efficiency > 0 ? rates.network_efficiency : rates.efficiency;
  const double of_message = machine_.network.message_ns * machine_.fabric.network_gb_per_s * efficiency;
  return 1 / payload_share + messages * of_message / bytes;
}

double MoveCosts::link_cost(const Kernel& kernel, const Op& op, bool in_boxes) const {
  const KernelCosts& costs = costs_.of(kernel);
  const bool none = costs.split_line_bytes == 0 && costs.sector_end_bytes == 0 && costs.ragged_end_bytes == 0;
  if (none || op.rect.cols == 0) return 1;
  const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(op.buffer)];
  return stored_row_cost(costs, bytes_in_row(buffer, op.rect.col), bytes_in_row(buffer, op.rect.cols),
                         in_boxes);
}

}  // namespace tritax

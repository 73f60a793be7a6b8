// Resources that an operation uses, the rate at which one workgroup can drive it, and the place of its data.
#include "sim/engine_traffic.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "model/schedule/op_traits.hpp"
#include "sim/mix.hpp"

namespace tritax::engine {

DataPath DataTraffic::path_of(WorkgroupState& wg, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  const std::int32_t die = wg.die;
  const Kernel& kernel = run_.schedule.kernels[wg.kernel];
  DataPath path{move_of(op, rank), wg.profile};
  path.bytes = tile_bytes(run_.schedule, op);
  path.fan = op.multimem ? wg.together : 1;
  const auto read_locally = [&](std::int32_t buffer, std::int32_t row, std::int32_t col) {
    tiles_.read(wg, buffer, {row, col, op.rect.rows, op.rect.cols}, path, now);
  };
  if (path.kind == DataMoveKind::local_load) read_locally(op.buffer, op.rect.row, op.rect.col);
  if (path.copies_own()) read_locally(op.src_buffer, op.src_row, op.src_col);
  const std::int32_t residents = run_.gpus[rank].cus[static_cast<std::size_t>(wg.cu)].residents(kernel.tile);
  const std::int32_t moves = op.multimem ? 1 : wg.together;
  path.cap_gb_per_s = run_.moves.workgroup_gb_per_s(wg.kernel, path.kind, std::max(1, residents) * moves);
  if (path.kind == DataMoveKind::local_store) path.vector_clk = kernel.clk_per_stored_byte;
  const double payload_share =
      path.traffic() == Traffic::stores ? run_.moves.rates(wg.kernel).payload_share : 1;
  path.with_flags = 1 / payload_share;
  if (run_.moves.is_message(path)) {
    path.link_cost = run_.moves.message_cost(op, path, path.profile, payload_share);
  } else if (path.traffic() == Traffic::stores) {
    path.link_cost =
        run_.moves.link_cost(kernel, op, wg.has_sender && op.kind == OpKind::store) / payload_share;
    path.link_cost *= run_.moves.rates(wg.kernel).time_factor;
  }
  if (op.kind == OpKind::store || op.kind == OpKind::copy)
    path.written_back = write_back_.is_written_back(op, run_.costs_of(wg));
  count_sent(path);
  count(path, op, die);
  return path;
}

void DataTraffic::count_sent(const DataPath& path) {
  if (path.fan > 1) {
    const double once = path.bytes / path.fan;
    resources_.add_switch_bytes(path.from(), path.pulls() ? path.bytes : once, path.to(),
                                path.pulls() ? once : path.bytes);
  } else if (path.peer != path.rank) {
    resources_.sent_bytes(path.from(), path.to()) += path.bytes;
  }
}

DataPath DataTraffic::path_of_copy(const Op& op, std::int32_t rank) {
  DataPath path{move_by_engine(op, rank)};
  path.source = Level::hbm;
  path.bytes = tile_bytes(run_.schedule, op);
  path.cap_gb_per_s = run_.machine.copy_engine.gb_per_s;
  path.written_back = write_back_.is_written_back(op, run_.costs[path.profile]);
  if (run_.moves.is_message(path)) path.link_cost = run_.moves.message_cost(op, path, path.profile);
  count_sent(path);
  count(path, op, -1);
  return path;
}

// Source of the data that a transfer reads; by a workgroup on `die`, or by a copy engine (-1).
Served DataTraffic::served_by(const DataPath& path, const Op& op, std::int32_t die) const {
  if (op.kind == OpKind::store) return {};
  const std::int32_t from = op.kind == OpKind::copy ? op.src_rank : op.rank;
  const bool own_l2 = die >= 0 && from == path.rank && op.kind != OpKind::atomic_add;
  return {run_.home(from), own_l2 ? die : -1, own_l2 ? path.source : Level::hbm};
}

void DataTraffic::count_cells(CacheTraffic& read) const {
  read.asked_bytes +=
      tiles_.bytes_read(Level::l2) + tiles_.bytes_read(Level::llc) + tiles_.bytes_read(Level::hbm);
  read.l2_hit_bytes += tiles_.bytes_read(Level::l2);
  read.llc_hit_bytes += tiles_.bytes_read(Level::llc);
  read.hbm_read_bytes += tiles_.bytes_read(Level::hbm);
}

// Bytes that a transfer reads, by their source.
ReadBytes DataTraffic::read_bytes(const DataPath& path, const Served& served) const {
  if (path.mixed)
    return {tiles_.bytes_read(Level::l2), tiles_.bytes_read(Level::llc), tiles_.bytes_read(Level::hbm)};
  const auto from = [&](Level level) { return served.level == level ? path.bytes : 0; };
  return {from(Level::l2), from(Level::llc), from(Level::hbm)};
}

// Counts the bytes of a transfer in caches and memories; by a workgroup on `die`, or by a copy engine (-1).
void DataTraffic::count(const DataPath& path, const Op& op, std::int32_t die) {
  const bool adds = op.kind == OpKind::atomic_add;
  const Served served = served_by(path, op, die);
  if (served.level != Level::chip) {
    const std::int32_t buffer = op.kind == OpKind::copy ? op.src_buffer : op.buffer;
    CacheTraffic& read = run_.traffic.at(served.rank, served.die, buffer, op.kind);
    if (path.mixed) {
      count_cells(read);
    } else {
      read.asked_bytes += path.bytes;
      (served.level == Level::l2    ? read.l2_hit_bytes
       : served.level == Level::llc ? read.llc_hit_bytes
                                    : read.hbm_read_bytes) += path.bytes;
    }
  }
  if (!adds && !path.written_back) return;
  const bool own_die = op.rank == path.rank && !adds;
  run_.traffic.at(run_.home(op.rank), own_die ? die : -1, op.buffer, op.kind).hbm_written_bytes += path.bytes;
}

// Loads of one byte of the operation: ports, links and memories on both sides.
std::vector<FluidNetwork::Use> DataTraffic::uses_of(const DataPath& path) const {
  const GpuState& from = run_.gpu_of(path.from());
  const GpuState& to = run_.gpu_of(path.to());
  const LinkRates& links = run_.moves.links(path.profile, path.traffic());
  const Shares& shares = resources_.shares_of(path.profile);
  std::vector<FluidNetwork::Use> uses;
  if (path.vector_clk > 0) uses.push_back({from.vector_units, path.vector_clk});
  const auto memory = [&](const GpuState& gpu, double llc, double hbm) {
    if (gpu.llc_port != FluidNetwork::kNone) uses.push_back({gpu.llc_port, llc});
    uses.push_back({gpu.hbm, hbm});
  };
  // The bytes that the switch carries for a group cross the own link once, and so count for one of its ranks.
  const double out_share = path.pulls() ? 1 : 1.0 / path.fan;
  const double in_share = path.pulls() ? 1.0 / path.fan : 1;
  const auto through = [&](const auto& ports, const auto& share, double group_share) {
    const auto port = static_cast<std::size_t>(links.ports);
    // The cost of messages to a NIC does not load the GPU's ports; flags in the words of the data do.
    const double cost = run_.moves.is_message(path) ? path.with_flags : path.link_cost;
    if (ports[port] != FluidNetwork::kNone) uses.push_back({ports[port], cost * share[port] * group_share});
  };
  const auto over = [&](int edge, double cost) {
    uses.push_back(
        {resources_.link(edge),
         cost * path.link_cost / links.efficiency_on(run_.topology.edges[static_cast<std::size_t>(edge)])});
  };
  // Re-reads of loaded or written data: from the last-level cache or from HBM.
  double from_hbm = path.pulls() || path.source == Level::hbm ? 1 : 0;
  double from_llc = from_hbm > 0 || path.source == Level::llc ? 1 : 0;
  if (path.mixed) {
    from_hbm = tiles_.bytes_read(Level::hbm) / path.bytes;
    from_llc = from_hbm + tiles_.bytes_read(Level::llc) / path.bytes;
  }
  const bool loads = path.kind == DataMoveKind::local_load || path.kind == DataMoveKind::remote_load;
  const double to_llc = loads ? 0 : 1;
  const double to_hbm = path.written_back ? write_back_.write_cost() : 0;
  const bool local = path.peer == path.rank && path.fan == 1;
  if (!local) {
    if (!path.adds()) memory(from, from_llc, from_hbm);
    through(from.egress, shares.egress, out_share);
    const auto& edges =
        run_.topology.routes[static_cast<std::size_t>(path.from())][static_cast<std::size_t>(path.to())];
    if (path.fan > 1) {
      over(edge_to_switch(run_.topology, path.from()), out_share);
      over(edge_from_switch(run_.topology, path.to()), in_share);
    } else {
      for (const int edge : edges) {
        over(edge, crowds_.cost(edge == edges.front()  ? path.crowd_out
                                : edge == edges.back() ? path.crowd_in
                                                       : std::uint8_t{0}));
      }
    }
    through(to.ingress, shares.ingress, in_share);
  }
  if (path.adds()) {
    memory(to, 2, 1 + write_back_.write_cost());
    if (to.atomic_units != FluidNetwork::kNone) uses.push_back({to.atomic_units, 1});
  } else if (local) {
    memory(to, from_llc + to_llc, from_hbm + to_hbm);
  } else if (!loads) {
    memory(to, to_llc, to_hbm);
  }
  return uses;
}

std::vector<FluidNetwork::Use> DataTraffic::uses_of_operand(std::int32_t rank, std::int32_t peer,
                                                            KernelProfile profile, double link_cost) const {
  DataPath path{{DataMoveKind::remote_load, rank, peer}, profile};
  path.link_cost = link_cost;
  return uses_of(path);
}

std::int32_t DataTraffic::class_of(const DataPath& path) {
  ClassKey key{
      static_cast<std::uint64_t>(path.crowd_in) << 56 | static_cast<std::uint64_t>(path.crowd_out) << 48 |
          static_cast<std::uint64_t>(path.profile) << 44 | static_cast<std::uint64_t>(path.kind) << 40 |
          static_cast<std::uint64_t>(path.rank) << 24 | static_cast<std::uint64_t>(path.peer) << 8 |
          static_cast<std::uint64_t>(path.written_back) << 2 | static_cast<std::uint64_t>(path.source),
      std::bit_cast<std::uint64_t>(path.cap_gb_per_s), std::bit_cast<std::uint64_t>(path.link_cost)};
  if (path.mixed) {
    const auto with = [](std::uint64_t hash, double bytes) {
      return mix(hash ^ std::bit_cast<std::uint64_t>(bytes));
    };
    key.what |= 1ULL << 62;
    key.cap_bits = with(with(mix(key.cap_bits), tiles_.bytes_read(Level::hbm) / path.bytes),
                        tiles_.bytes_read(Level::llc) / path.bytes);
  }
  if (path.fan > 1) key.cost_bits = mix(key.cost_bits ^ mix(static_cast<std::uint64_t>(path.fan)));
  if (path.with_flags != 1 && run_.moves.is_message(path))
    key.cost_bits = mix(key.cost_bits ^ mix(std::bit_cast<std::uint64_t>(path.with_flags)));
  if (path.vector_clk > 0) key.cost_bits = mix(std::bit_cast<std::uint64_t>(path.vector_clk));
  if (const std::int32_t known = classes_.known(key); known != FluidNetwork::kNone) return known;
  const double cap = path.cap_gb_per_s > 0 ? path.cap_gb_per_s : std::numeric_limits<double>::infinity();
  return classes_.add(key, uses_of(path), cap);
}

}  // namespace tritax::engine

// Resources that an operation uses, the rate at which one workgroup can drive it, and the place of its data.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "model/core/error.hpp"
#include "model/cost/attend_cost.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/engine.hpp"
#include "sim/mix.hpp"

namespace tritax::engine {

double Engine::matmul_cap(const MatmulClass& c, const GpuState& gpu) const {
  const MatmulShape& shape = run_.shapes[c.shape];
  const double steps_ns = work_ns(shape, c.sharers, c.missed.bits, Clock::factor(gpu, shape.dtype));
  return shape.cost.operand_bytes / (std::max(steps_ns, arrival_ns(shape, c.missed.bits)) +
                                     shape.cost.prologue_ns + written_first_ns(shape, c.missed, steps_ns));
}

// The rates of the running matmuls of a GPU follow its clock.
void Engine::follow_clock(GpuState& gpu) {
  gpu.l2_can_fill = l2_can_fill(gpu);
  for (const std::int32_t id : gpu.matmul_classes) {
    run_.fluid.set_cap(id, matmul_cap(matmul_class_[static_cast<std::size_t>(id)], gpu));
  }
}

// Whether matmuls on all compute units of a die can fill the port of its L2; only matmuls use the port. Once
// they cannot, they never can again, because the highest possible clock only falls. Then the dies of a GPU
// need no classes of their own. With a single die there is nothing to gain.
bool Engine::l2_can_fill(const GpuState& gpu) const {
  if (run_.machine.gpu.xcds == 1) return true;
  constexpr double kMargin = 1.001;
  return std::any_of(run_.shapes.begin(), run_.shapes.end(), [&](const MatmulShape& shape) {
    const double least_ns =
        shape.cost.compute_ns / (clock_.most_factor(gpu, shape.dtype) * shape.shared_speedup);
    const KernelCosts& costs = run_.costs[shape.profile];
    const double luck =
        shape.attends ? 1 + run_.machine.gpu.attend_spread : most_luck(run_.machine.gpu, costs);
    const double asked = shape.slowness * shape.cost.operand_bytes;
    return kMargin * luck * run_.machine.gpu.cus_per_xcd * (asked / least_ns) >
           l2_gb_per_s(run_.machine.gpu, costs);
  });
}

// Operands that a matmul of `duration_ns` does not find in the caches. A slab that another matmul is fetching
// arrives at later matmuls no earlier than at the first.
Missed Engine::look_up_operands(std::int32_t rank, std::int32_t die, const Op& op, const MatmulInputs& inputs,
                                const MatmulShape& shape, double duration_ns, double now) {
  GpuState& gpu = run_.gpus[static_cast<std::size_t>(rank)];
  ReuseCache& l2 = gpu.l2[static_cast<std::size_t>(die)];
  Missed missed;
  const bool has_llc = run_.machine.gpu.llc_bytes > 0;
  const bool no_l2 =
      run_.machine.gpu.acquire_drops_l2 && gpu.atomic_pollers[static_cast<std::size_t>(die)] > 0;
  const auto look_up = [&](std::int32_t buffer, std::uint32_t slab, double bytes, std::uint32_t l2_bit,
                           std::uint32_t llc_bit) {
    CacheTraffic& traffic = run_.traffic.at(rank, die, buffer, op.kind);
    traffic.asked_bytes += bytes;
    const auto touch = [&](ReuseCache& cache) {
      return cache.touch(slab, now, duration_ns) ||
             (!slab_overlaps_.empty() && slab_overlaps_.covers(slab, cache, now, duration_ns));
    };
    const bool in_l2 = (touch(l2) || write_back_.operands_stay()) && !no_l2;
    if (in_l2) {
      traffic.l2_hit_bytes += bytes;
      if (!write_back_.operands_stay()) missed.others_ns = std::max(missed.others_ns, l2.arrives_ns(slab));
      return;
    }
    missed.bits |= l2_bit;
    missed.l2_bytes += bytes;
    if (has_llc && touch(gpu.llc)) {
      traffic.llc_hit_bytes += bytes;
      const double in_llc = gpu.llc.arrives_ns(slab);
      missed.others_ns = std::max(missed.others_ns, in_llc);
      l2.expect(slab, std::max(now + shape.from_llc_ns, in_llc));
      return;
    }
    missed.bits |= llc_bit;
    missed.llc_bytes += bytes;
    traffic.hbm_read_bytes += bytes;
  };
  look_up(op.src_buffer, inputs.a_slab, shape.cost.a_bytes, 1, 4);
  look_up(op.b_buffer, inputs.b_slab, shape.cost.b_bytes, 2, 8);
  if (missed.llc_bytes > 0) {
    if (gpu.dirty_bytes > 0) {
      write_back_.find_dirty_share(gpu, rank);
      missed.bits |= static_cast<std::uint32_t>(std::lround(gpu.dirty_share * kEvictionParts))
                     << kEvictionShift;
      missed.write_back_ns = run_.costs[shape.profile].tuned ? 0 : gpu.write_back_ns;
      gpu.dirty_bytes -= gpu.dirty_share * missed.llc_bytes;
      gpu.dirty_reads_bytes -= missed.llc_bytes;
      const auto count = [&](std::int32_t buffer, double bytes) {
        run_.traffic.at(rank, die, buffer, op.kind).hbm_written_bytes += evicted_share(missed.bits) * bytes;
      };
      if ((missed.bits & 4) != 0) count(op.src_buffer, shape.cost.a_bytes);
      if ((missed.bits & 8) != 0) count(op.b_buffer, shape.cost.b_bytes);
    }
    const double arrives_ns = now + shape.from_memory_ns + written_first_ns(shape, missed, 0);
    const auto expect = [&](std::uint32_t slab) {
      if (has_llc) gpu.llc.expect(slab, arrives_ns);
      l2.expect(slab, arrives_ns);
    };
    if ((missed.bits & 4) != 0) expect(inputs.a_slab);
    if ((missed.bits & 8) != 0) expect(inputs.b_slab);
  }
  return missed;
}

std::int32_t Engine::matmul_class(std::int32_t rank, std::int32_t die, std::uint32_t shape_id,
                                  std::int32_t sharers, const Missed& missed, std::uint32_t coalesced) {
  const std::uint32_t misses = missed.bits;
  const bool own = run_.gpus[rank].l2_can_fill;  // each die has its own classes
  if (!own) die = -1;
  const ClassKey key{1ULL << 63 | static_cast<std::uint64_t>(rank) << 48 |
                         static_cast<std::uint64_t>(die & 0xff) << 40 |
                         static_cast<std::uint64_t>(sharers) << 32 |
                         static_cast<std::uint64_t>(shape_id) << kMissBits | misses,
                     std::bit_cast<std::uint64_t>(missed.write_back_ns), coalesced};
  if (const std::int32_t known = classes_.known(key); known != FluidNetwork::kNone) return known;
  GpuState& gpu = run_.gpus[rank];
  const MatmulShape& shape = run_.shapes[shape_id];
  const double a = shape.cost.a_bytes / shape.cost.operand_bytes;
  const double b = shape.cost.b_bytes / shape.cost.operand_bytes;
  const double q = shape.cost.q_bytes / shape.cost.operand_bytes;
  double l2_miss = (misses & 1 ? a : 0) + (misses & 2 ? b : 0);
  double llc_miss = (misses & 4 ? a : 0) + (misses & 8 ? b : 0);
  double evicted = evicted_share(misses);
  if (shape.attends) {
    l2_miss = (a + b) * l2_parts(misses) / kMissParts + q;
    llc_miss = (a + b) * llc_parts(misses) / kMissParts + q;
    evicted = 0;
  }
  std::vector<FluidNetwork::Use> uses;
  if (own) {
    const double asked = a * LockStep::l2_share(coalesced % kCoalescingLevels) +
                         b * LockStep::l2_share(coalesced / kCoalescingLevels) + q;
    const double share = resources_.shares_of(shape.profile).l2;
    uses.push_back({gpu.l2_port[static_cast<std::size_t>(die)], asked * share});
  }
  if (gpu.llc_port != FluidNetwork::kNone) uses.push_back({gpu.llc_port, l2_miss});
  uses.push_back({gpu.hbm, (1 + evicted * write_back_.write_cost()) * llc_miss});
  for (FluidNetwork::Use& use : uses) use.coefficient *= shape.slowness;
  const MatmulClass matmul{shape_id, sharers, missed};
  const std::int32_t id = classes_.add(key, uses, matmul_cap(matmul, gpu));
  gpu.matmul_classes.push_back(id);
  matmul_class_.resize(static_cast<std::size_t>(id) + 1);
  matmul_class_[static_cast<std::size_t>(id)] = matmul;
  return id;
}

DataPath Engine::path_of(WorkgroupState& wg, const Op& op, double now) {
  const std::int32_t rank = wg.rank;
  const std::int32_t die = wg.die;
  const Kernel& kernel = run_.schedule.kernels[wg.kernel];
  DataPath path{move_of(op, rank), wg.profile};
  path.bytes = tile_bytes(run_.schedule, op);
  const auto read_locally = [&](std::int32_t buffer, std::int32_t row, std::int32_t col) {
    tiles_.read(wg, buffer, {row, col, op.rect.rows, op.rect.cols}, path, now);
  };
  if (path.kind == MoveKind::local_load) read_locally(op.buffer, op.rect.row, op.rect.col);
  if (path.copies_own()) read_locally(op.src_buffer, op.src_row, op.src_col);
  const std::int32_t residents = run_.gpus[rank].cus[static_cast<std::size_t>(wg.cu)].residents(kernel.tile);
  path.cap_gb_per_s = run_.moves.workgroup_gb_per_s(wg.kernel, path.kind, std::max(1, residents));
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
  if (path.peer != rank) resources_.sent_bytes(path.from(), path.to()) += path.bytes;
  count_traffic(path, op, die);
  return path;
}

// Source of the data that a transfer reads; by a workgroup on `die`, or by a copy engine (-1).
Engine::Served Engine::served_by(const DataPath& path, const Op& op, std::int32_t die) const {
  if (op.kind == OpKind::store) return {};
  const std::int32_t from = op.kind == OpKind::copy ? op.src_rank : op.rank;
  const bool own_l2 = die >= 0 && from == path.rank && op.kind != OpKind::atomic_add;
  return {run_.home(from), own_l2 ? die : -1, own_l2 ? path.source : Level::hbm};
}

void Engine::count_cells(CacheTraffic& read) const {
  read.asked_bytes +=
      tiles_.bytes_read(Level::l2) + tiles_.bytes_read(Level::llc) + tiles_.bytes_read(Level::hbm);
  read.l2_hit_bytes += tiles_.bytes_read(Level::l2);
  read.llc_hit_bytes += tiles_.bytes_read(Level::llc);
  read.hbm_read_bytes += tiles_.bytes_read(Level::hbm);
}

// Counts the bytes of a transfer in caches and memories; by a workgroup on `die`, or by a copy engine (-1).
void Engine::count_traffic(const DataPath& path, const Op& op, std::int32_t die) {
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
std::vector<FluidNetwork::Use> Engine::uses_of(const DataPath& path) const {
  const GpuState& from = run_.gpu_of(path.from());
  const GpuState& to = run_.gpu_of(path.to());
  const LinkRates& links = run_.moves.links(path.profile, path.traffic());
  const Shares& shares = resources_.shares_of(path.profile);
  std::vector<FluidNetwork::Use> uses;
  const auto memory = [&](const GpuState& gpu, double llc, double hbm) {
    if (gpu.llc_port != FluidNetwork::kNone) uses.push_back({gpu.llc_port, llc});
    uses.push_back({gpu.hbm, hbm});
  };
  const auto through = [&](const auto& ports, const auto& share) {
    const auto port = static_cast<std::size_t>(links.ports);
    // The cost of messages to a NIC does not load the GPU's ports; flags in the words of the data do.
    const double cost = run_.moves.is_message(path) ? path.with_flags : path.link_cost;
    if (ports[port] != FluidNetwork::kNone) uses.push_back({ports[port], cost * share[port]});
  };
  // Re-reads of loaded or written data: from the last-level cache or from HBM.
  double from_hbm = path.pulls() || path.source == Level::hbm ? 1 : 0;
  double from_llc = from_hbm > 0 || path.source == Level::llc ? 1 : 0;
  if (path.mixed) {
    from_hbm = tiles_.bytes_read(Level::hbm) / path.bytes;
    from_llc = from_hbm + tiles_.bytes_read(Level::llc) / path.bytes;
  }
  const bool loads = path.kind == MoveKind::local_load || path.kind == MoveKind::remote_load;
  const double to_llc = loads ? 0 : 1;
  const double to_hbm = path.written_back ? write_back_.write_cost() : 0;
  const bool local = path.peer == path.rank;
  if (!local) {
    if (!path.adds()) memory(from, from_llc, from_hbm);
    through(from.egress, shares.egress);
    const auto& edges =
        run_.topology.routes[static_cast<std::size_t>(path.from())][static_cast<std::size_t>(path.to())];
    for (const int edge : edges) {
      const std::uint8_t crowd = edge == edges.front()  ? path.crowd_out
                                 : edge == edges.back() ? path.crowd_in
                                                        : std::uint8_t{0};
      uses.push_back({resources_.link(edge),
                      crowds_.cost(crowd) * path.link_cost /
                          links.efficiency_on(run_.topology.edges[static_cast<std::size_t>(edge)])});
    }
    through(to.ingress, shares.ingress);
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

std::int32_t Engine::data_class(const DataPath& path) {
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
  if (path.with_flags != 1 && run_.moves.is_message(path))
    key.cost_bits = mix(key.cost_bits ^ mix(std::bit_cast<std::uint64_t>(path.with_flags)));
  if (const std::int32_t known = classes_.known(key); known != FluidNetwork::kNone) return known;
  const double cap = path.cap_gb_per_s > 0 ? path.cap_gb_per_s : std::numeric_limits<double>::infinity();
  return classes_.add(key, uses_of(path), cap);
}

}  // namespace tritax::engine

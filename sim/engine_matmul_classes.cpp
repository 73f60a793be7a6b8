// Resources and rates of matmuls.
#include "sim/engine_matmul_classes.hpp"

#include <algorithm>
#include <bit>

#include "sim/engine_lock_step.hpp"
#include "sim/engine_matmul_times.hpp"

namespace tritax::engine {

double MatmulClasses::cap_of(const Matmul& c, const GpuState& gpu) const {
  const MatmulShape& shape = run_.shapes[c.shape];
  const double steps_ns = work_ns(shape, c.sharers, c.missed.bits, Clock::factor(gpu, shape.dtype));
  return shape.cost.operand_bytes / (std::max(steps_ns, arrival_ns(shape, c.sharers, c.missed.bits)) +
                                     shape.cost.prologue_ns + written_first_ns(shape, c.missed, steps_ns));
}

void MatmulClasses::follow_clock(std::int32_t rank) {
  const GpuState& gpu = run_.gpus[static_cast<std::size_t>(rank)];
  OfGpu& own = of_gpu(rank);
  own.l2_can_fill = l2_can_fill(gpu);
  for (const std::int32_t id : own.classes) {
    run_.fluid.set_cap(id, cap_of(matmuls_[static_cast<std::size_t>(id)], gpu));
  }
}

// Whether matmuls on all compute units of a die can fill the port of its L2; only matmuls use the port. Once
// they cannot, they never can again, because the highest possible clock only falls. Then the dies of a GPU
// need no classes of their own. With a single die there is nothing to gain.
bool MatmulClasses::l2_can_fill(const GpuState& gpu) const {
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

std::int32_t MatmulClasses::class_of(std::int32_t rank, std::int32_t die, std::uint32_t shape_id,
                                     std::int32_t sharers, const Missed& missed, std::uint32_t coalesced) {
  const std::uint32_t misses = missed.bits;
  if (!of_gpu(rank).l2_can_fill) die = -1;
  const ClassKey key{1ULL << 63 | static_cast<std::uint64_t>(rank) << 48 |
                         static_cast<std::uint64_t>(die & 0xff) << 40 |
                         static_cast<std::uint64_t>(sharers) << 32 |
                         static_cast<std::uint64_t>(shape_id) << kMissBits | misses,
                     std::bit_cast<std::uint64_t>(missed.write_back_ns), coalesced};
  if (const std::int32_t known = classes_.known(key); known != FluidNetwork::kNone) return known;
  const GpuState& gpu = run_.gpus[rank];
  const Matmul matmul{shape_id, sharers, missed};
  const std::int32_t id = classes_.add(key, uses_of(rank, die, matmul, coalesced), cap_of(matmul, gpu));
  of_gpu(rank).classes.push_back(id);
  matmuls_.resize(static_cast<std::size_t>(id) + 1);
  matmuls_[static_cast<std::size_t>(id)] = matmul;
  return id;
}

// Loads of one byte of operands, on the port of one die unless `die` is -1.
std::vector<FluidNetwork::Use> MatmulClasses::uses_of(std::int32_t rank, std::int32_t die,
                                                      const Matmul& matmul, std::uint32_t coalesced) const {
  const GpuState& gpu = run_.gpus[static_cast<std::size_t>(rank)];
  const std::uint32_t misses = matmul.missed.bits;
  const MatmulShape& shape = run_.shapes[matmul.shape];
  const double a = shape.cost.a_bytes / shape.cost.operand_bytes;
  const double b = shape.cost.b_bytes / shape.cost.operand_bytes;
  const double q = shape.cost.q_bytes / shape.cost.operand_bytes;
  const double sums = shape.cost.sum_bytes / shape.cost.operand_bytes;
  const bool of_peer = crosses_links(shape, misses);
  double l2_miss = (misses & 1 && !of_peer ? a : 0) + (misses & 2 ? b : 0);
  double llc_miss = (misses & 4 ? a : 0) + (misses & 8 ? b : 0);
  double evicted = evicted_share(misses);
  if (shape.attends) {
    l2_miss = (a + b + sums) * l2_parts(misses) / kMissParts + q;
    llc_miss = (a + b + sums) * llc_parts(misses) / kMissParts + q;
    evicted = 0;
  }
  // A sum that has left a cache comes back, and leaves it again.
  const double l2_leaves = sums * l2_parts(misses) / kMissParts;
  const double llc_leaves = sums * llc_parts(misses) / kMissParts;
  std::vector<FluidNetwork::Use> uses;
  if (die >= 0) {
    const double asked = a * LockStep::l2_share(coalesced % kCoalescingLevels) +
                         b * LockStep::l2_share(coalesced / kCoalescingLevels) + q + sums;
    const double share = resources_.shares_of(shape.profile).l2;
    uses.push_back({gpu.l2_port[static_cast<std::size_t>(die)], asked * share});
  }
  if (gpu.llc_port != FluidNetwork::kNone) uses.push_back({gpu.llc_port, l2_miss + l2_leaves});
  uses.push_back(
      {gpu.hbm, (1 + evicted * write_back_.write_cost()) * llc_miss + write_back_.write_cost() * llc_leaves});
  if (sums > 0 && gpu.atomic_units != FluidNetwork::kNone) uses.push_back({gpu.atomic_units, sums});
  if (of_peer) {
    for (FluidNetwork::Use& use :
         traffic_.uses_of_operand(rank, shape.peer, shape.profile, shape.peer_link_cost)) {
      uses.push_back({use.resource, a * use.coefficient});
    }
  }
  for (FluidNetwork::Use& use : uses) use.coefficient *= shape.slowness;
  return uses;
}

}  // namespace tritax::engine

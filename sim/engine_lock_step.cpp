// Matmuls that share operands and run together.
//
// Compute units share ports to the L2 (24 ports of four or six compute units on an H100; Nsight Compute,
// Kernel Profiling Guide, Hardware Model: L2 Request Coalescer). Compute units of one port that ask for the
// same bytes at about the same time send one request, and get the bytes at the same time. So neighbours run
// in lock step, as long as they wait for the same bytes. Evidence, from products on an H100 and an H200
// (scenarios/measured/h100-1-ports.csv, h100-1-lock-step.csv, and the same files of h200-1):
//
//  - the L2 is full at 7.3 to 8.7 TB/s behind the coalescer (H100), when compute units receive up to 11.9;
//  - neighbours that share data from memory start within some 0.2 us of each other after 30 tiles: a late
//    neighbour finds in the L2 the bytes that the first had to wait for. Of eight that share columns the
//    first takes 0.5 % longer than the mean, the last 0.9 to 1.2 % less (kCatchUp);
//  - there is no such effect if a workgroup's other operand is its own and comes from memory: if neighbours
//    share rows of A, and columns of B are shared by distant workgroups, every request reaches the L2. The
//    same tiles in an order in which neighbours share columns take 13 to 40 % less time;
//  - in lock step the matmuls of a pair differ by 0.1 to 0.6 % of their time, all by 0.7 to 2.5 %.
//
// Not modelled: a full L2 serves ports equally, so compute units of a small port get up to a third more and
// drift away from the units they share operands with (h100-1-port-stamps.csv); and every third pair of a
// cluster shares a port, in the order in which a grid fills it, where the model has neighbouring pairs
// (h100-2-link-shares.csv). docs/development/mechanisms.md has the effects.
#include "sim/engine_lock_step.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tritax::engine {

namespace {
constexpr double kJoins = 0.5;      // share of the requests that joined matmuls share
constexpr double kCatchUp = 0.015;  // share of the time of a matmul behind one that waits for memory
}  // namespace

// Distributes compute units over the ports evenly, in pairs.
LockStep::LockStep(Run& run, const Luck& luck)
    : run_(run), luck_(luck), gpus_(static_cast<std::size_t>(run.simulated_ranks)) {
  const Gpu& gpu = run_.machine.gpu;
  const bool any = std::any_of(run_.profiles.begin(), run_.profiles.end(), [&](KernelProfile profile) {
    return tritax::coalesces(gpu, run_.costs[profile]);
  });
  if (!any) return;
  const std::int64_t pairs = (gpu.cus_per_xcd + 1) / 2;
  for (std::int32_t die = 0; die < gpu.xcds; ++die) {
    for (std::int32_t cu = 0; cu < gpu.cus_per_xcd; ++cu) {
      port_of_cu_.push_back(die * gpu.l2_ports +
                            static_cast<std::int32_t>(cu / 2 * std::int64_t{gpu.l2_ports} / pairs));
    }
  }
}

std::size_t LockStep::readers_of(const WorkgroupState& wg, std::uint32_t slab) const {
  const auto ports = static_cast<std::size_t>(run_.machine.gpu.xcds) * run_.machine.gpu.l2_ports;
  return slab * ports + static_cast<std::size_t>(port_of_cu_[static_cast<std::size_t>(wg.cu)]);
}

// Requests to the L2 of a matmul that starts now and would take `duration_ns` alone, and its random share: a
// matmul that starts shortly behind another one of the same port continues with it.
Coalesced LockStep::coalesce(WorkgroupState& wg, std::uint32_t id, const MatmulInputs& inputs,
                             std::uint32_t misses, double duration_ns, double now) {
  if (!coalesces(wg)) return {0, luck_.spread_of(wg, wg.pc)};
  const KernelCosts& costs = run_.costs_of(wg);
  run_.sender_of(wg).follows = kNobody;
  OfGpu& gpu = of_gpu(wg);
  const std::uint32_t slabs = std::max(inputs.a_slab, inputs.b_slab) + 1;
  if (slabs > gpu.fetched_ns.size()) {
    gpu.fetched_ns.resize(slabs, -1e300);
    gpu.readers.resize(slabs * static_cast<std::size_t>(run_.machine.gpu.xcds) * run_.machine.gpu.l2_ports);
  }
  const bool a_missed = (misses & 1) != 0, b_missed = (misses & 2) != 0;
  if (a_missed) gpu.fetched_ns[inputs.a_slab] = now;
  if (b_missed) gpu.fetched_ns[inputs.b_slab] = now;
  const double latency_ns = run_.machine.gpu.memory_stage_latency_ns();
  const double catch_up_ns = kCatchUp * duration_ns;
  const auto joined = [&](const Readers& readers, bool other_missed) {
    if (other_missed || readers.alone) return 0.0;
    const double behind_ns = now - readers.last_start_ns;
    if (readers.from_memory) return std::max(0.0, 1 - (1 - kJoins) * behind_ns / catch_up_ns);
    return std::exp(-behind_ns / costs.l2_coalescing_ns);
  };
  Readers& a = gpu.readers[readers_of(wg, inputs.a_slab)];
  Readers& b = gpu.readers[readers_of(wg, inputs.b_slab)];
  const double with_a = joined(a, b_missed), with_b = joined(b, a_missed);
  double spread = spread_in_port(wg);
  if (std::max(with_a, with_b) >= kJoins) {
    const Readers& first = with_b >= with_a ? b : a;
    const double left = 1 / first.spread - (now - first.first_start_ns) / duration_ns;
    const double luck = most_luck(run_.machine.gpu, costs);
    spread = left * luck > 1 ? 1 / left : luck;
    if (first.from_memory && first.running) {
      run_.sender_of(wg).follows = static_cast<std::uint32_t>(&first - gpu.readers.data());
      run_.sender_of(wg).leader_start_ns = first.leader_start_ns;
    }
  }
  const auto note = [&](Readers& readers, double with, std::uint32_t slab, bool other_missed) {
    readers.last_start_ns = now;
    if (with >= kJoins) return;
    readers.alone = other_missed;
    readers.first_start_ns = now;
    readers.spread = spread;
    readers.from_memory = now - gpu.fetched_ns[slab] < latency_ns;
    if (readers.running) return;  // waiters of that leader still wait for it
    readers.leader = id;
    readers.leader_op = wg.pc;
    readers.leader_start_ns = now;
    readers.running = true;
  };
  note(a, with_a, inputs.a_slab, b_missed);
  note(b, with_b, inputs.b_slab, a_missed);
  const auto level = [](double share) {
    return static_cast<std::uint32_t>(std::lround((kCoalescingLevels - 1) * share));
  };
  return {level(with_a) | level(with_b) << kCoalescingBits, spread};
}

// Uniform in [0, 1), common to the operations that the workgroups of a port execute at the same time. The
// values of the ports of a GPU are spread evenly.
double LockStep::unit_random_of_port(const WorkgroupState& wg, std::uint32_t op) const {
  const std::uint32_t first = run_.schedule.kernels[wg.kernel].workgroups[wg.number].first_op;
  std::uint32_t ordinal = op - first;
  ordinal -= luck_.added_before(op) - luck_.added_before(first);
  const std::uint64_t round = wg.number / static_cast<std::uint32_t>(run_.machine.gpu.cu_count());
  const auto rank =
      static_cast<std::uint64_t>(run_.alike.lucky_ranks > 0 ? wg.rank % run_.alike.lucky_ranks : wg.rank);
  const double of_all = luck_.unit_random(1ULL << 63 | rank << 48 | (round << 24 ^ ordinal));
  const double place = of_all + port_of_cu_[static_cast<std::size_t>(wg.cu)] * std::numbers::phi;
  return place - std::floor(place);
}

// The random share of a matmul alone: mostly that of its port.
double LockStep::spread_in_port(const WorkgroupState& wg) const {
  if (run_.machine.gpu.matmul_spread == 0) return 1;
  const double of_port = unit_random_of_port(wg, wg.pc);
  const double own = luck_.unit_random(luck_.draw_of(wg.id, wg.pc));
  return 1 + spread_width(run_.machine.gpu, run_.costs_of(wg)) *
                 (2 * ((1 - kOwnSpread) * of_port + kOwnSpread * own) - 1);
}

// The service weight of a store of a finished tile on a full link. Neighbours get similar service: stamps of
// fused-sequential kernels on two H100 (scenarios/measured/h100-2-store-stamps.csv) have correlations of 0.57
// to 0.91 within pairs, none between pairs.
double LockStep::weight_in_port(const WorkgroupState& wg, std::uint32_t op) const {
  constexpr double kCommon = 0.6;  // of the variance of the logarithm
  if (run_.machine.fabric.arbitration_spread == 0) return 1;
  const double of_port = luck_.weight_at(unit_random_of_port(wg, op));
  const double own = luck_.service_weight(wg, op);
  const double variance =
      std::log1p(run_.machine.fabric.arbitration_spread * run_.machine.fabric.arbitration_spread);
  const double a = std::sqrt(kCommon), b = std::sqrt(1 - kCommon);
  const double weight = std::pow(of_port, a) * std::pow(own, b) * std::exp((a + b - 1) * variance / 2);
  return std::clamp(weight, luck_.weight_at(0),
                    ServiceWeights::highest(run_.machine.fabric.arbitration_spread));
}

// A finished matmul that follows a leader does not have its last bytes before the leader has them.
bool LockStep::awaits_leader(WorkgroupState& wg, std::uint32_t id) {
  if (!coalesces(wg)) return false;
  SenderState& sender = run_.sender_of(wg);
  if (sender.follows == kNobody) return false;
  Readers& readers = of_gpu(wg).readers[sender.follows];
  sender.follows = kNobody;
  if (!readers.running || readers.leader_start_ns != sender.leader_start_ns) return false;
  wg.next_waiter = readers.first_waiter;
  readers.first_waiter = id;
  wg.waiting = Waiting::time;
  return true;
}

// The running matmul has all its bytes, and so have its followers.
void LockStep::release_followers(const WorkgroupState& wg, std::uint32_t id, double now) {
  if (!coalesces(wg)) return;
  OfGpu& gpu = of_gpu(wg);
  const MatmulInputs& inputs = run_.inputs_of_op[wg.pc];
  for (const std::uint32_t slab : {inputs.a_slab, inputs.b_slab}) {
    Readers& readers = gpu.readers[readers_of(wg, slab)];
    if (!readers.running || readers.leader != id || readers.leader_op != wg.pc) continue;
    readers.running = false;
    while (readers.first_waiter != kNobody) {
      WorkgroupState& waiter = run_.workgroups[readers.first_waiter];
      run_.queue.push(now, {EventKind::resume_workgroup, readers.first_waiter});
      readers.first_waiter = waiter.next_waiter;
      waiter.next_waiter = kNobody;
    }
  }
}

// Share of the bytes of an operand that its requests ask of the L2.
double LockStep::l2_share(std::uint32_t level) {
  return 1 - static_cast<double>(level) / (kCoalescingLevels - 1);
}

}  // namespace tritax::engine

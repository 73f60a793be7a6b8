// Matmuls that share operands and run together: which neighbours run in lock step, which bytes they ask of
// the L2, and which random share they draw. LockStep owns the ports of compute units and the readers of every
// slab. It changes workgroups that wait for the first reader.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_luck.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

// How far the requests of a matmul for an operand coalesce with requests of other matmuls, in levels.
inline constexpr std::uint32_t kCoalescingBits = 2;
inline constexpr std::uint32_t kCoalescingLevels = 1u << kCoalescingBits;

struct Coalesced {           // requests of a matmul to the L2
  std::uint32_t levels = 0;  // in kCoalescingLevels: of A, and shifted, of B
  double spread = 1;         // relative to the mean duration, see Luck::spread_of()
};

class LockStep {
 public:
  LockStep(Run& run, const Luck& luck);

  // Whether matmuls of the kernel of `wg` coalesce requests with neighbours.
  bool coalesces(const WorkgroupState& wg) const {
    return !port_of_cu_.empty() && run_.costs_of(wg).l2_coalescing_ns > 0;
  }
  Coalesced coalesce(WorkgroupState& wg, std::uint32_t id, const MatmulInputs& inputs, std::uint32_t misses,
                     double duration_ns, double now);
  bool awaits_leader(WorkgroupState& wg, std::uint32_t id);
  void release_followers(const WorkgroupState& wg, std::uint32_t id, double now);
  double weight_in_port(const WorkgroupState& wg, std::uint32_t op) const;
  static double l2_share(std::uint32_t level);

 private:
  // The readers of one slab through one port to the L2: matmuls that read it one after another, and the
  // leader of those that read together.
  struct Readers {
    double last_start_ns = -1e300;
    double first_start_ns = -1e300;
    double spread = 1;         // spread of the first reader
    bool from_memory = false;  // the first reader waits for memory
    bool alone = false;        // the first reader fetches its other operand from memory
    bool running = false;      // `leader` does not have all its operands yet
    std::uint32_t leader = kNobody;
    std::uint32_t leader_op = 0;
    double leader_start_ns = 0;
    std::uint32_t first_waiter = kNobody;  // first of the matmuls that cannot end before the leader
  };
  struct OfGpu {
    std::vector<Readers> readers;    // by slab and port
    std::vector<double> fetched_ns;  // by slab: last fetch from memory
  };
  OfGpu& of_gpu(const WorkgroupState& wg) { return gpus_[static_cast<std::size_t>(wg.rank)]; }
  std::size_t readers_of(const WorkgroupState& wg, std::uint32_t slab) const;
  double spread_in_port(const WorkgroupState& wg) const;
  double unit_random_of_port(const WorkgroupState& wg, std::uint32_t op) const;

  Run& run_;
  const Luck& luck_;
  std::vector<OfGpu> gpus_;               // by rank
  std::vector<std::int32_t> port_of_cu_;  // port to the L2; empty: matmuls do not coalesce
};

}  // namespace tritax::engine

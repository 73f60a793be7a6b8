// Matmuls that share operands and run together: which neighbours go on in lock step, what they ask of the L2,
// and whose luck they have. Owns the ports of compute units; touches what a GPU's readers of slabs, and the
// workgroups that wait for the first of them, are at.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_luck.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

// How far the requests of a matmul for an operand coalesce with those of others, in so many steps.
inline constexpr std::uint32_t kCoalescingBits = 2;
inline constexpr std::uint32_t kCoalescingLevels = 1u << kCoalescingBits;

struct Coalesced {           // what a matmul asks of the L2
  std::uint32_t levels = 0;  // in kCoalescingLevels, of A and, shifted, of B
  double spread = 1;         // of its time, see Luck::spread_of()
};

class LockStep {
 public:
  LockStep(Run& run, const Luck& luck);

  // Whether the matmuls of its kernel join requests with those of neighbours.
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
  std::size_t readers_of(const WorkgroupState& wg, std::uint32_t slab) const;
  double spread_in_port(const WorkgroupState& wg) const;
  double unit_random_of_port(const WorkgroupState& wg, std::uint32_t op) const;

  Run& run_;
  const Luck& luck_;
  std::vector<std::int32_t> port_of_cu_;  // to the L2; empty: matmuls do not coalesce
};

}  // namespace tritax::engine

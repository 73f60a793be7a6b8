// Matmuls that share operands and run together: which neighbours run in lock step, which bytes they ask of
// the L2, and which random share they draw. LockStep owns the ports of compute units. It changes the state of
// a GPU's readers of slabs, and of workgroups that wait for the first reader.
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
  std::size_t readers_of(const WorkgroupState& wg, std::uint32_t slab) const;
  double spread_in_port(const WorkgroupState& wg) const;
  double unit_random_of_port(const WorkgroupState& wg, std::uint32_t op) const;

  Run& run_;
  const Luck& luck_;
  std::vector<std::int32_t> port_of_cu_;  // port to the L2; empty: matmuls do not coalesce
};

}  // namespace tritax::engine

// What a kernel costs by how it is written: the costs of its profile on a machine.
//
// Some numbers of a machine file are no costs of its hardware but of the kernels that measured it, which
// interpret a schedule: reading an operation, fetching it from memory first if caches are cold, setting up
// its tile, handing operands over between waves, putting a finished tile together in LDS. `tritax calibrate`
// measures them with those kernels: they are the profile `interpreter`, Machine::interpreter.
//
// `vendor`: kernels that are compiled for one GEMM or one collective, and tuned, have none of them (cuBLAS on
// H200: scenarios/measured/h200-4-library-microbench.csv). Behind a switch, what stores reach is such a cost
// too: tiles of a schedule fill the packets of NVLink less well than loads and than NCCL does (326 GB/s and
// more, there, against 317 of this project's stores on the same node). Such kernels are `tuned`:
//   - for few rows they multiply the transposed operands;
//   - their compute units fetch together what they share (TMA multicast), whoever else asks for it;
//   - they have more stages on their way than are known, so operands wait for nothing that has to be written
//     back first, and who adds several tiles has asked for all of them when the first comes;
//   - what they store stays in the L2 until after the run, wherever it fits;
//   - staging areas are filled at one rate, whatever the type of numbers;
//   - collectives send whole buffers by channels, not rows of a tile: few workgroups leave no lanes of a link
//     idle, stores fill the links of a switch as well as loads do, and what a workgroup copies to one peer is
//     one transfer, cut only to be simulated.
//
// `triton`: compiled kernels as well. No cost of theirs was calibrated; products of one H200 were compared
// (scenarios/published/verdicts-one-gpu.toml). They are taken to be the interpreter's without what only an
// interpreter has: the time to read an operation and to set it up (of matmuls, copies, stores, staged tiles,
// passed operations, and the floor of short copies), the waves of other roles that it starts and lets meet,
// the LDS that holds its operations, and its fixed depth of a K step. What any kernel has that is not tuned
// by hand stays: cold caches, steps of K, loads that overlap no stores, neighbours that coalesce, rows off
// memory lines, links that few workgroups do not fill.
//
// `mma-sync`: the interpreter's kernels for attention. Costs are its own; what differs is the law of `attend`
// (model/cost/attend_cost.hpp): FlashAttention-2's kind on synchronous matrix instructions, where the other
// profiles stand for what the pipeline of the tile says, up to FlashAttention-3's on asynchronous ones.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "model/core/kernel_profile.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

KernelCosts costs(const Machine& machine, KernelProfile profile);

// Of all profiles.
class CostTable {
 public:
  explicit CostTable(const Machine& machine);
  const KernelCosts& operator[](KernelProfile profile) const {
    return costs_[static_cast<std::size_t>(profile)];
  }
  const KernelCosts& of(const Kernel& kernel) const { return (*this)[kernel.profile]; }

 private:
  std::array<KernelCosts, kKernelProfileCount> costs_;
};

// Those that kernels of the schedule have, each once. Copies by copy engines and schedules without kernels
// count as the interpreter's.
std::vector<KernelProfile> profiles_of(const Schedule& schedule);

// Whether requests of neighbours for the same operands reach the L2 as one (sim/engine_lock_step.cpp).
inline bool coalesces(const Gpu& gpu, const KernelCosts& costs) {
  return costs.l2_coalescing_ns > 0 && gpu.l2_ports > 0;
}

// What the L2 of a die gives to operands.
inline double l2_gb_per_s(const Gpu& gpu, const KernelCosts& costs) {
  return costs.tuned && gpu.l2_lock_step_gb_per_s > 0 ? gpu.l2_lock_step_gb_per_s : gpu.l2_gb_per_s;
}

// Of results into the staging area; 0: no cost.
inline double stage_rate_gb_per_s(const Gpu& gpu, const KernelCosts& costs, DType dtype) {
  const double own = costs.tuned ? 0 : gpu.rate(dtype).stage_gb_per_s;
  return own > 0 ? own : costs.stage_gb_per_s;
}

// From the end of what came before in its stream to the start of the kernel, or of a node of a graph.
inline double kernel_gap_ns(const HostCosts& host, const KernelCosts& costs) {
  return costs.kernel_gap_ns >= 0 ? costs.kernel_gap_ns : host.kernel_gap_ns;
}
inline double graph_node_gap_ns(const HostCosts& host, const KernelCosts& costs) {
  return costs.graph_node_gap_ns >= 0 ? costs.graph_node_gap_ns : host.graph_node_gap_ns;
}

// Makes the schedule what the backend runs: everything by its interpreter, kernels with attention by those
// that it has for that (mma-sync), none of which stands for a library's any more.
void run_by_interpreter(Schedule& schedule);

}  // namespace tritax

// Costs of a kernel that follow from how the kernel is written: the costs of its profile on a machine.
//
// Some numbers of a machine file are not costs of the hardware but of the measuring kernels, which interpret
// a schedule: reading an operation, fetching the operation from memory if caches are cold, setting up its
// tile, handing operands over between waves, assembling a finished tile in LDS. `tritax calibrate` measures
// these costs with those kernels. They are the profile `interpreter`, Machine::interpreter.
//
// `vendor`: tuned kernels that are compiled for one GEMM or one collective do not have these costs (cuBLAS on
// H200: scenarios/measured/h200-4-library-microbench.csv). On a switch, the rate of stores is such a cost
// too: tiles of a schedule fill NVLink packets less well than loads and NCCL do (at least 326 GB/s, in the
// same file, against 317 GB/s for this project's stores on the same node). Vendor kernels are `tuned`:
//   - for few rows they multiply the transposed operands;
//   - their compute units fetch shared operands together (TMA multicast), independent of other requests;
//   - they have more stages in flight than is known, so operands never wait for a write-back, and a workgroup
//     that adds several tiles has requested all tiles when the first arrives;
//   - stored data stay in the L2 until after the run if they fit;
//   - staging areas are filled at one rate for all dtypes;
//   - collectives send whole buffers by channels, not rows of a tile: few workgroups leave no lanes of a link
//     idle, stores fill the links of a switch as well as loads do, and all copies of a workgroup to one peer
//     are one transfer, which is cut only for the simulation.
//
// `triton`: compiled kernels. Their costs were not calibrated; products on one H200 were compared
// (scenarios/published/verdicts-one-gpu.toml). Their costs are the interpreter's costs without those that
// only an interpreter has: the time to read an operation and to set it up (of matmuls, copies, stores, staged
// tiles, passed operations, and the floor of short copies), the start and the meeting of waves with other
// roles, the LDS that holds its operations, and its fixed depth of a K step. The costs of every kernel that
// is not tuned by hand remain: cold caches, steps of K, loads that overlap no stores, coalescing neighbours,
// rows not aligned to memory lines, links that few workgroups do not fill.
//
// `mma-sync`: the interpreter's kernels for attention, with the interpreter's costs. Only the law of `attend`
// differs (model/cost/attend_cost.hpp): FlashAttention-2 on synchronous matrix instructions. With the other
// profiles the pipeline of the tile decides, up to FlashAttention-3 on asynchronous matrix instructions.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "model/core/kernel_profile.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

KernelCosts costs(const Machine& machine, KernelProfile profile);

// The costs of all profiles on a machine.
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

// The profiles of the kernels of a schedule, each once. Copies by copy engines and schedules without kernels
// count as interpreter.
std::vector<KernelProfile> profiles_of(const Schedule& schedule);

// Whether requests of neighbours for the same operands reach the L2 as one request
// (sim/engine_lock_step.cpp).
inline bool coalesces(const Gpu& gpu, const KernelCosts& costs) {
  return costs.l2_coalescing_ns > 0 && gpu.l2_ports > 0;
}

// L2 rate per die for operands.
inline double l2_gb_per_s(const Gpu& gpu, const KernelCosts& costs) {
  return costs.tuned && gpu.l2_lock_step_gb_per_s > 0 ? gpu.l2_lock_step_gb_per_s : gpu.l2_gb_per_s;
}

// Rate of results into the staging area; 0: no cost.
inline double stage_rate_gb_per_s(const Gpu& gpu, const KernelCosts& costs, DType dtype) {
  const double own = costs.tuned ? 0 : gpu.rate(dtype).stage_gb_per_s;
  return own > 0 ? own : costs.stage_gb_per_s;
}

// Time from the end of the previous work in the stream to the start of a kernel, or of a node of a graph.
inline double kernel_gap_ns(const HostCosts& host, const KernelCosts& costs) {
  return costs.kernel_gap_ns >= 0 ? costs.kernel_gap_ns : host.kernel_gap_ns;
}
inline double graph_node_gap_ns(const HostCosts& host, const KernelCosts& costs) {
  return costs.graph_node_gap_ns >= 0 ? costs.graph_node_gap_ns : host.graph_node_gap_ns;
}

// Turns the schedule into the one that the backend runs: every kernel gets the profile interpreter, kernels
// with attention get mma-sync, and no kernel stands for a library kernel.
void run_by_interpreter(Schedule& schedule);

}  // namespace tritax

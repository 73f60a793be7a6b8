#include "model/cost/kernel_costs.hpp"

#include <algorithm>

namespace tritax {

namespace {

constexpr std::int32_t kMostStagesOfVendor = 16;  // nvjet_sm90_tst_64x16_64x16_…, there

KernelCosts of_vendor(const Machine& machine) {
  const KernelCosts& own = machine.interpreter;
  const Gpu& gpu = machine.gpu;
  KernelCosts costs;
  costs.most_operand_stages = kMostStagesOfVendor;
  costs.copy_engine_row_bytes = 0;  // its kernels for odd rows do not use the copy engine
  costs.tuned = true;
  costs.lds_bytes_of_senders = 0;
  costs.stage_op_ns = machine.library.tile_ns;
  if (own.stage_gb_per_s > 0)
    costs.stage_gb_per_s = std::max(own.stage_gb_per_s, gpu.lds_bytes_per_clk * gpu.boost_clock_ghz);
  if (machine.library.kernel_gap_ns > 0) {
    costs.kernel_gap_ns = costs.graph_node_gap_ns = machine.library.kernel_gap_ns;
  }
  return costs;
}

KernelCosts of_triton(const Machine& machine) {
  KernelCosts costs = machine.interpreter;
  costs.matmul_op_ns = costs.copy_op_ns = costs.store_op_ns = costs.stage_op_ns = 0;
  costs.guarded_copy_ns = costs.guarded_copy_least_ns = 0;
  costs.meet_ns = costs.passed_op_ns = costs.sent_signal_ns = 0;
  costs.lds_bytes_of_senders = 0;
  costs.copy_engine_row_bytes = 0;
  costs.compiled_attention = true;
  return costs;
}

// Two blocks of 64 keys and values, in turn (backend_hip/tile_attend.hpp).
constexpr std::int32_t kKeysOfOwnAttention = 64;

KernelCosts of_mma_sync(const Machine& machine) {
  KernelCosts costs = machine.interpreter;
  costs.attend_block_keys = kKeysOfOwnAttention;
  return costs;
}

bool has_attention(const Schedule& schedule, const Kernel& kernel) {
  const auto attends = [&](const Workgroup& workgroup) {
    const auto first = schedule.ops.begin() + static_cast<std::ptrdiff_t>(workgroup.first_op);
    return std::any_of(first, first + workgroup.op_count,
                       [](const Op& op) { return op.kind == OpKind::attend; });
  };
  return std::any_of(kernel.workgroups.begin(), kernel.workgroups.end(), attends) ||
         std::any_of(kernel.items.begin(), kernel.items.end(), attends);
}

}  // namespace

KernelCosts costs(const Machine& machine, KernelProfile profile) {
  switch (profile) {
    case KernelProfile::interpreter:
      break;
    case KernelProfile::triton:
      return of_triton(machine);
    case KernelProfile::vendor:
      return of_vendor(machine);
    case KernelProfile::mma_sync:
      return of_mma_sync(machine);
  }
  return machine.interpreter;
}

CostTable::CostTable(const Machine& machine) {
  for (std::size_t i = 0; i < costs_.size(); ++i) costs_[i] = costs(machine, static_cast<KernelProfile>(i));
}

std::vector<KernelProfile> profiles_of(const Schedule& schedule) {
  std::array<bool, kKernelProfileCount> used{};
  for (const Kernel& kernel : schedule.kernels) used[static_cast<std::size_t>(kernel.profile)] = true;
  // Rates of copy engines are measured without a vendor's library.
  if (schedule.kernels.empty() || !schedule.transfers.empty())
    used[static_cast<std::size_t>(KernelProfile::interpreter)] = true;
  std::vector<KernelProfile> profiles;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) profiles.push_back(static_cast<KernelProfile>(i));
  }
  return profiles;
}

void run_by_interpreter(Schedule& schedule) {
  for (Kernel& kernel : schedule.kernels) {
    kernel.profile = has_attention(schedule, kernel) ? KernelProfile::mma_sync : KernelProfile::interpreter;
    kernel.library = {};
    kernel.start_ns = 0;
    kernel.clk_per_stored_byte = 0;  // the interpreter computes no row
    kernel.payload_share = 1;
  }
}

}  // namespace tritax

#include "model/cost/vendor_machine.hpp"

#include <algorithm>

namespace tritax {

namespace {
constexpr std::int32_t kMostStages = 16;  // nvjet_sm90_tst_64x16_64x16_…, there
}

Machine vendor_machine(const Machine& machine) {
  Machine vendor = machine;
  Gpu& gpu = vendor.gpu;
  gpu.matmul_step_clk = 0;
  gpu.matmul_least_step_clk = 0;
  gpu.matmul_op_ns = 0;
  gpu.most_operand_stages = kMostStages;
  gpu.copy_engine_row_bytes = 0;  // its kernels for odd rows take others than the copy engine
  gpu.turns_products = true;
  // Its compute units fetch together what they share (TMA multicast), whoever else asks for it.
  if (gpu.l2_lock_step_gb_per_s > 0) gpu.l2_gb_per_s = gpu.l2_lock_step_gb_per_s;
  gpu.l2_coalescing_ns = 0;
  gpu.lds_bytes_of_senders = 0;
  gpu.cold_start_ns = 0;
  gpu.cold_code_ns = 0;
  gpu.accumulate_gb_per_s = 0;
  gpu.specialised_copy_efficiency = 0;
  gpu.copy_op_ns = 0;
  gpu.guarded_copy_ns = 0;
  gpu.passed_op_ns = 0;
  gpu.sent_signal_ns = 0;
  gpu.meet_ns = 0;
  gpu.matmul_start_ns = 0;
  gpu.guarded_copy_gb_per_s = 0;
  gpu.guarded_copy_least_ns = 0;
  gpu.busy_copy_ns = 0;
  gpu.ragged_copy_ns = 0;
  gpu.store_op_ns = 0;
  gpu.stage_op_ns = machine.library.tile_ns;
  if (gpu.stage_gb_per_s > 0) {
    gpu.stage_gb_per_s = std::max(gpu.stage_gb_per_s, gpu.lds_bytes_per_clk * gpu.boost_clock_ghz);
    for (MatrixRate& rate : gpu.matrix) rate.stage_gb_per_s = 0;
  }
  if (machine.library.kernel_gap_ns > 0) {
    vendor.host.kernel_gap_ns = machine.library.kernel_gap_ns;
    vendor.host.graph_node_gap_ns = machine.library.kernel_gap_ns;
  }
  Fabric& fabric = vendor.fabric;
  // Its collectives send whole buffers, not rows of a tile.
  fabric.split_line_bytes = fabric.sector_end_bytes = fabric.ragged_end_bytes = 0;
  if (fabric.kind == LinkKind::node_switch && fabric.load_efficiency > fabric.store_efficiency) {
    fabric.store_efficiency = fabric.load_efficiency;
    const double port = fabric.link_raw_gb_per_s * fabric.load_efficiency;
    fabric.store_egress_gb_per_s = std::max(fabric.store_egress_gb_per_s, port);
    fabric.store_ingress_gb_per_s = std::max(fabric.store_ingress_gb_per_s, port);
  }
  return vendor;
}

void run_by_interpreter(Schedule& schedule) {
  schedule.vendor = false;
  for (Kernel& kernel : schedule.kernels) {
    kernel.start_ns = 0;
    kernel.matmul_share = 1;
    kernel.workgroup_gb_per_s = 0;
    kernel.remote_store_gb_per_s = 0;
  }
}

}  // namespace tritax

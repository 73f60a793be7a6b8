// A machine as a vendor's kernels find it, and a vendor's schedule as the backend runs it.
#include "model/cost/vendor_machine.hpp"

#include <gtest/gtest.h>

#include "model/cost/collective_cost.hpp"
#include "tests/cost/example_machines.hpp"

namespace tritax {
namespace {

TEST(VendorMachine, HasNoneOfTheCostsOfTheInterpreter) {
  Machine machine = example::nvidia_node();
  machine.gpu.matmul_step_clk = 250;
  machine.gpu.matmul_op_ns = 170;
  machine.gpu.store_op_ns = 400;
  machine.gpu.cold_start_ns = 900;
  machine.gpu.copy_op_ns = 650;
  machine.gpu.matmul_start_ns = 700;
  machine.gpu.ragged_copy_ns = 1000;
  machine.fabric.split_line_bytes = 12;
  machine.fabric.sector_end_bytes = 15;
  machine.fabric.ragged_end_bytes = 60;
  machine.gpu.stage_op_ns = 1100;
  machine.gpu.stage_gb_per_s = 65;
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp8)].stage_gb_per_s = 37;
  machine.library.tile_ns = 1200;
  machine.library.kernel_gap_ns = 370;
  const Machine vendor = vendor_machine(machine);
  EXPECT_EQ(
      vendor.gpu.matmul_step_clk + vendor.gpu.matmul_op_ns + vendor.gpu.store_op_ns + vendor.gpu.copy_op_ns,
      0);
  EXPECT_EQ(vendor.gpu.cold_start_ns, 0);
  EXPECT_EQ(vendor.gpu.matmul_start_ns, 0);
  EXPECT_GT(vendor.gpu.most_operand_stages, machine.gpu.most_operand_stages);
  EXPECT_EQ(vendor.gpu.ragged_copy_ns, 0);
  EXPECT_EQ(vendor.fabric.split_line_bytes + vendor.fabric.sector_end_bytes + vendor.fabric.ragged_end_bytes,
            0);
  EXPECT_EQ(vendor.gpu.stage_op_ns, 1200);
  EXPECT_EQ(vendor.gpu.stage_gb_per_s, machine.gpu.lds_bytes_per_clk * machine.gpu.boost_clock_ghz);
  EXPECT_EQ(vendor.gpu.stage_rate_gb_per_s(DType::fp8), vendor.gpu.stage_gb_per_s);
  EXPECT_EQ(vendor.host.kernel_gap_ns, 370);
  EXPECT_EQ(vendor.gpu.hbm_gb_per_s, machine.gpu.hbm_gb_per_s);
}

TEST(VendorMachine, FillsTheLinksOfASwitchAsLoadsDoAndLeavesAMeshAlone) {
  Machine machine = example::nvidia_node();
  machine.fabric.link_raw_gb_per_s = 480;
  machine.fabric.store_efficiency = 0.7;
  machine.fabric.load_efficiency = 0.8;
  machine.fabric.store_egress_gb_per_s = machine.fabric.store_ingress_gb_per_s = 317;
  EXPECT_EQ(vendor_machine(machine).fabric.store_egress_gb_per_s, 317);
  machine.fabric.kind = LinkKind::node_switch;
  const Fabric fabric = vendor_machine(machine).fabric;
  EXPECT_EQ(fabric.store_efficiency, 0.8);
  EXPECT_EQ(fabric.store_egress_gb_per_s, 384);
  EXPECT_EQ(fabric.store_ingress_gb_per_s, 384);
}

TEST(RunByInterpreter, LeavesNothingThatStandsForALibrary) {
  Schedule schedule;
  schedule.vendor = true;
  schedule.kernels.resize(1);
  schedule.kernels[0].start_ns = 1;
  schedule.kernels[0].matmul_share = 0.5;
  schedule.kernels[0].workgroup_gb_per_s = 2;
  schedule.kernels[0].remote_store_gb_per_s = 3;
  run_by_interpreter(schedule);
  EXPECT_FALSE(schedule.vendor);
  EXPECT_EQ(schedule.kernels[0].start_ns, 0);
  EXPECT_EQ(schedule.kernels[0].matmul_share, 1);
  EXPECT_EQ(schedule.kernels[0].workgroup_gb_per_s, 0);
  EXPECT_EQ(schedule.kernels[0].remote_store_gb_per_s, 0);
}

TEST(CollectiveProtocol, IsTheFasterOne) {
  LibraryCosts library;
  library.collective_start_ns = 25e3;
  library.channel_gb_per_s = 15;
  EXPECT_EQ(collective_protocol(library, 2, 1, 10).start_ns, 25e3);  // the only one
  library.small_start_ns = 5e3;
  library.small_channel_gb_per_s = 5;
  // 5000 + b/50 = 25000 + b/150 at b = 1.5e6.
  EXPECT_EQ(collective_protocol(library, 2, 1.49e6, 10).start_ns, 5e3);
  EXPECT_EQ(collective_protocol(library, 2, 1.51e6, 10).start_ns, 25e3);
  library.small_step_ns = 1e3;
  EXPECT_EQ(collective_protocol(library, 2, 1e5, 10).start_ns, 5e3);
  EXPECT_EQ(collective_protocol(library, 8, 1e5, 10).start_ns, 11e3);
}

}  // namespace
}  // namespace tritax

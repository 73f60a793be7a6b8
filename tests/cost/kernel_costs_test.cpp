// Costs by how a kernel is written, and a schedule of a library's kernels as the backend runs it.
#include "model/cost/kernel_costs.hpp"

#include <gtest/gtest.h>

#include "model/cost/collective_cost.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/machine/topology.hpp"
#include "tests/cost/example_machines.hpp"

namespace tritax {
namespace {

Machine measured() {
  Machine machine = example::nvidia_node();
  KernelCosts& own = machine.interpreter;
  own.matmul_step_clk = 250;
  own.matmul_op_ns = 170;
  own.store_op_ns = 400;
  own.cold_start_ns = 900;
  own.copy_op_ns = 650;
  own.guarded_copy_ns = 380;
  own.guarded_copy_gb_per_s = 37;
  own.guarded_copy_least_ns = 740;
  own.meet_ns = 90;
  own.ragged_copy_ns = 1000;
  own.split_line_bytes = 12;
  own.sector_end_bytes = 15;
  own.ragged_end_bytes = 60;
  own.stage_op_ns = 1100;
  own.stage_gb_per_s = 65;
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp8)].stage_gb_per_s = 37;
  machine.library.tile_ns = 1200;
  machine.library.kernel_gap_ns = 370;
  machine.host.kernel_gap_ns = 1500;
  return machine;
}

TEST(KernelCosts, OfTheInterpreterAreThoseOfTheMachineFile) {
  const Machine machine = measured();
  const KernelCosts own = costs(machine, KernelProfile::interpreter);
  EXPECT_EQ(own.copy_op_ns, 650);
  EXPECT_EQ(stage_rate_gb_per_s(machine.gpu, own, DType::fp8), 37);
  EXPECT_EQ(stage_rate_gb_per_s(machine.gpu, own, DType::fp16), 65);
  EXPECT_EQ(kernel_gap_ns(machine.host, own), 1500);
}

TEST(KernelCosts, OfAVendorAreNoneOfTheInterpreters) {
  const Machine machine = measured();
  const KernelCosts vendor = costs(machine, KernelProfile::vendor);
  EXPECT_EQ(vendor.matmul_step_clk + vendor.matmul_op_ns + vendor.store_op_ns + vendor.copy_op_ns, 0);
  EXPECT_EQ(vendor.cold_start_ns + vendor.meet_ns + vendor.ragged_copy_ns, 0);
  EXPECT_FALSE(vendor.knows_guarded_copies());
  EXPECT_EQ(vendor.split_line_bytes + vendor.sector_end_bytes + vendor.ragged_end_bytes, 0);
  EXPECT_GT(vendor.most_operand_stages, machine.interpreter.most_operand_stages);
  EXPECT_EQ(vendor.stage_op_ns, 1200);
  const double lds_gb_per_s = machine.gpu.lds_bytes_per_clk * machine.gpu.boost_clock_ghz;
  EXPECT_EQ(stage_rate_gb_per_s(machine.gpu, vendor, DType::fp16), lds_gb_per_s);
  EXPECT_EQ(stage_rate_gb_per_s(machine.gpu, vendor, DType::fp8), lds_gb_per_s);
  EXPECT_EQ(kernel_gap_ns(machine.host, vendor), 370);
  EXPECT_EQ(graph_node_gap_ns(machine.host, vendor), 370);
}

TEST(KernelCosts, OfAVendorLeaveTheGapsOfTheHostWhereItsOwnAreUnknown) {
  Machine machine = measured();
  machine.library.kernel_gap_ns = 0;
  EXPECT_EQ(kernel_gap_ns(machine.host, costs(machine, KernelProfile::vendor)), 1500);
}

TEST(KernelCosts, OfTritonAreTheInterpretersWithoutReadingOperations) {
  const Machine machine = measured();
  const KernelCosts triton = costs(machine, KernelProfile::triton);
  EXPECT_EQ(triton.matmul_op_ns + triton.copy_op_ns + triton.store_op_ns + triton.stage_op_ns, 0);
  EXPECT_EQ(triton.guarded_op_ns() + triton.guarded_copy_least_ns, 0);
  EXPECT_EQ(triton.meet_ns, 0);
  // What any kernel has that nobody has tuned by hand:
  EXPECT_EQ(triton.matmul_step_clk, 250);
  EXPECT_EQ(triton.cold_start_ns, 900);
  EXPECT_EQ(triton.guarded_copy_gb_per_s, 37);
  EXPECT_EQ(triton.ragged_copy_ns, 1000);
  EXPECT_EQ(triton.split_line_bytes, 12);
  EXPECT_EQ(kernel_gap_ns(machine.host, triton), 1500);
  EXPECT_EQ(step_depth(machine.gpu, triton, DType::fp16, {128, 128, 32, 8, Pipeline::overlapped}), 32);
}

TEST(KernelCosts, OfAVendorFillTheLinksOfASwitchAsLoadsDoAndLeaveAMeshAlone) {
  Machine machine = example::nvidia_node();
  machine.fabric.link_raw_gb_per_s = 480;
  machine.fabric.store_efficiency = 0.7;
  machine.fabric.load_efficiency = 0.8;
  machine.fabric.store_egress_gb_per_s = machine.fabric.store_ingress_gb_per_s = 317;
  machine.fabric.kind = LinkKind::mesh;
  const KernelCosts vendor = costs(machine, KernelProfile::vendor);
  EXPECT_EQ(store_efficiency(machine.fabric, vendor), 0.7);
  EXPECT_EQ(store_ports(machine, vendor, 4).egress_gb_per_s, 317);
  machine.fabric.kind = LinkKind::node_switch;
  EXPECT_EQ(store_efficiency(machine.fabric, vendor), 0.8);
  EXPECT_EQ(store_efficiency(machine.fabric, machine.interpreter), 0.7);
  for (int gpus = 2; gpus <= machine.gpus_per_node; ++gpus) {
    EXPECT_EQ(store_ports(machine, vendor, gpus).egress_gb_per_s, 384);
    EXPECT_EQ(store_ports(machine, vendor, gpus).ingress_gb_per_s, 384);
  }
}

TEST(RunByInterpreter, LeavesNothingThatStandsForALibrary) {
  Schedule schedule;
  schedule.kernels.resize(2);
  schedule.kernels[0].profile = KernelProfile::vendor;
  schedule.kernels[1].profile = KernelProfile::triton;
  schedule.kernels[0].library = {LibraryRoutine::all_gather, 2, 1024, 4};
  schedule.kernels[1].payload_share = 0.5;
  run_by_interpreter(schedule);
  for (const Kernel& kernel : schedule.kernels) {
    EXPECT_EQ(kernel.profile, KernelProfile::interpreter);
    EXPECT_EQ(kernel.library, LibraryKernel{});
    EXPECT_EQ(kernel.payload_share, 1);
  }
}

TEST(RunByInterpreter, TakesItsKernelsOfAttentionForAttention) {
  Schedule schedule;
  schedule.ops.resize(2);
  schedule.ops[1].kind = OpKind::attend;
  schedule.kernels.resize(2);
  for (std::uint32_t k = 0; k < 2; ++k) schedule.kernels[k].workgroups.push_back({k, 1});
  run_by_interpreter(schedule);
  EXPECT_EQ(schedule.kernels[0].profile, KernelProfile::interpreter);
  EXPECT_EQ(schedule.kernels[1].profile, KernelProfile::mma_sync);
  const Machine machine = measured();
  const KernelCosts own = costs(machine, KernelProfile::mma_sync);
  EXPECT_EQ(own.copy_op_ns, costs(machine, KernelProfile::interpreter).copy_op_ns);
  EXPECT_GT(own.attend_block_keys, 0);
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

// NCCL_P2P_LL_THRESHOLD is 16384, whatever the times of the protocols are.
TEST(CollectiveProtocol, OfSendsGoesBySizeAlone) {
  LibraryCosts library;
  library.collective_start_ns = 25e3;
  library.channel_gb_per_s = 15;
  EXPECT_EQ(send_protocol(library, 16384).start_ns, 25e3);  // the only one
  library.small_start_ns = 5e3;
  library.small_step_ns = 1e3;
  library.small_channel_gb_per_s = 6;
  EXPECT_EQ(send_protocol(library, 16384).start_ns, 5e3);
  EXPECT_EQ(send_protocol(library, 16384).payload_share, 0.5);
  EXPECT_EQ(send_protocol(library, 16385).start_ns, 25e3);
  EXPECT_EQ(send_protocol(library, 16385).payload_share, 1);
}

}  // namespace
}  // namespace tritax

// Times of library kernels on a machine, worked out by hand.
#include "model/cost/kernel_rates.hpp"

#include <gtest/gtest.h>

#include "tests/cost/example_machines.hpp"

namespace tritax {
namespace {

Machine library_machine() {
  Machine machine = example::nvidia_node();
  machine.gpus_per_node = 8;
  machine.fabric.flag_latency_ns = 2000;
  machine.fabric.signal_round_trip_ns = 0;
  LibraryCosts& library = machine.library;
  library.collective_start_ns = 20e3;
  library.channel_gb_per_s = 12;
  library.small_start_ns = 9e3;
  library.small_step_ns = 1e3;
  library.small_channel_gb_per_s = 4;
  library.kernel_start_ns = 700;
  return machine;
}

KernelRates rates(const Machine& machine, const LibraryKernel& library) {
  Kernel kernel;
  kernel.library = library;
  return kernel_rates(machine, kernel);
}

TEST(KernelRates, OfNoLibraryAreNone) {
  Kernel kernel;
  kernel.payload_share = 0.9375;
  const KernelRates found = kernel_rates(library_machine(), kernel);
  EXPECT_EQ(found.workgroup_gb_per_s + found.remote_store_gb_per_s + found.start_ns, 0);
  EXPECT_EQ(found.matmul_share, 1);
  EXPECT_EQ(found.payload_share, 0.9375);
}

// The example of the header.
TEST(KernelRates, OfAnAllReduceShareThePaceByChunksAndStartLessTheirFlags) {
  const Machine machine = library_machine();
  const KernelRates one = rates(machine, {LibraryRoutine::all_reduce, 2, 1e9, 10, 1, 2});
  EXPECT_EQ(one.start_ns, 16e3);
  EXPECT_EQ(one.remote_store_gb_per_s, 12);
  EXPECT_EQ(one.payload_share, 1);
  EXPECT_EQ(rates(machine, {LibraryRoutine::all_reduce, 2, 1e9, 10, 4, 2}).remote_store_gb_per_s,
            12 * 5 / 8.0);
}

TEST(KernelRates, FollowTheProtocolThatTheLibraryTakesForTheBytes) {
  const Machine machine = library_machine();
  const KernelRates few = rates(machine, {LibraryRoutine::all_gather, 3, 64, 10});
  EXPECT_EQ(few.start_ns, 10e3);
  EXPECT_EQ(few.payload_share, 0.5);
  EXPECT_EQ(few.remote_store_gb_per_s, 4);
  EXPECT_EQ(rates(machine, {LibraryRoutine::all_gather, 3, 1e9, 10}).payload_share, 1);
}

TEST(KernelRates, OfCopiesAndProductsAreTheMachines) {
  Machine machine = library_machine();
  machine.library.slice_copy_gb_per_s = 1000;
  machine.library.odd_row_share = 0.2;
  const KernelRates copy = rates(machine, {.routine = LibraryRoutine::block_copy, .channels = 100});
  EXPECT_EQ(copy.workgroup_gb_per_s, 10);
  EXPECT_EQ(copy.start_ns, 700);
  EXPECT_EQ(rates(machine, {LibraryRoutine::gemm_odd_rows}).matmul_share, 0.2);
  EXPECT_EQ(rates(machine, {LibraryRoutine::gemm_even_rows}).matmul_share, 1);  // unknown
  EXPECT_EQ(rates(machine, {LibraryRoutine::gemm}).matmul_share, 1);
}

}  // namespace
}  // namespace tritax

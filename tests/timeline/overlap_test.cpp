#include "model/timeline/overlap.hpp"

#include <gtest/gtest.h>

#include "model/schedule/builder.hpp"
#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

// The example of the header: products from 0 to 6 us, stores to the peer from 4 to 9, a run of 10.
TEST(Overlap, AddsUpTheExample) {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 7}, OpKind::matmul, 0, 0, 6000});
  timeline.ops.push_back({{0, 0, 2, 0, 7}, OpKind::store, 0, 4000, 9000});
  const Overlap one = overlaps_of(timeline, test::tile_to_both(), 10000)[0];
  EXPECT_DOUBLE_EQ(one.computing_ns, 6000);
  EXPECT_DOUBLE_EQ(one.communicating_ns, 5000);
  EXPECT_DOUBLE_EQ(one.both_ns, 2000);
  EXPECT_DOUBLE_EQ(one.idle_ns, 1000);
  EXPECT_DOUBLE_EQ(one.hidden(), 0.4);
}

// The same, with the kernel and the signal of the header.
TEST(Overlap, GivesTheIdleTimeOfTheExampleItsCauses) {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 7}, OpKind::matmul, 0, 0, 6000});
  timeline.ops.push_back({{0, 0, 2, 0, 7}, OpKind::store, 0, 4000, 9000});
  timeline.ops.push_back({{0, 0, 3, 0, 7}, OpKind::signal, 0, 9000, 9200});
  timeline.kernels = {{0, 0, 0, 9200}};
  const IdleCauses idle = overlaps_of(timeline, test::tile_to_both(), 10000)[0].idle;
  EXPECT_DOUBLE_EQ(idle.other_ns, 200);
  EXPECT_DOUBLE_EQ(idle.launch_ns, 800);
  EXPECT_EQ(idle.flag_ns, 0);
  EXPECT_EQ(idle.kernel_ns, 0);
}

// Rank 1 waits for rank 0's signal from 500 to 7600, behind its launch; rank 0 ends at 7500 and has nothing
// left while rank 1 runs until 15700; the last 300 are of hosts.
TEST(Overlap, TellsFlagsFromKernelsAndLaunches) {
  const std::vector<Overlap> all = overlaps_of(test::measured_tiles(), test::tile_to_both(), 16000);
  const IdleCauses& first = all[0].idle;
  EXPECT_DOUBLE_EQ(first.other_ns, 100 + 500);    // its local store from 4100 to 4200, and the signal
  EXPECT_DOUBLE_EQ(first.kernel_ns, 100 + 8200);  // between products and stores; rank 1 goes on
  EXPECT_DOUBLE_EQ(first.launch_ns, 300);
  EXPECT_EQ(first.flag_ns, 0);
  const IdleCauses& second = all[1].idle;
  EXPECT_DOUBLE_EQ(second.flag_ns, 7100);
  EXPECT_DOUBLE_EQ(second.launch_ns, 500 + 300);
  EXPECT_DOUBLE_EQ(second.kernel_ns, 100);  // between its product and its first store
  EXPECT_DOUBLE_EQ(second.other_ns,
                   100 + 700);  // its local store until that to rank 0 begins, and the signal
  for (const Overlap& one : all) {
    const IdleCauses& idle = one.idle;
    EXPECT_NEAR(idle.launch_ns + idle.flag_ns + idle.kernel_ns + idle.other_ns, one.idle_ns, 1e-6);
  }
}

// At a barrier of hosts a GPU waits for the kernels of the others, and for hosts where none runs.
TEST(Overlap, CountsABarrierAsWaitingForKernelsWhileSomeRun) {
  ScheduleBuilder b("barrier", 2);
  for (const int rank : {0, 1}) {
    Kernel kernel;
    kernel.name = "work";
    kernel.rank = rank;
    const auto k = b.kernel(kernel);
    b.workgroup(k);
    b.launch(rank, k);
    b.host(rank, HostOpKind::device_synchronize);
    b.host(rank, HostOpKind::barrier);
    b.launch(rank, k);
    b.host(rank, HostOpKind::device_synchronize);
  }
  const Schedule schedule = b.finish();
  Timeline timeline;
  timeline.kernels = {{0, 0, 1000, 2000}, {1, 0, 1000, 5000}, {0, 0, 7000, 8000}, {1, 0, 7000, 8000}};
  timeline.host_ops = {{0, 2, 2500, 6000}, {1, 2, 5500, 6000}};
  const std::vector<Overlap> all = overlaps_of(timeline, schedule, 9000);
  EXPECT_DOUBLE_EQ(all[0].idle.kernel_ns, 2000 + 2500);  // its kernels do nothing; from 2500 to 5000
  EXPECT_DOUBLE_EQ(all[0].idle.launch_ns, 9000 - 4500);
  EXPECT_DOUBLE_EQ(all[1].idle.kernel_ns, 5000);
  EXPECT_DOUBLE_EQ(all[1].idle.launch_ns, 4000);
}

// Stores to the own GPU are no communication; what runs at once on several compute units counts once.
TEST(Overlap, CountsPeersOnlyAndEveryTimeOnce) {
  const std::vector<Overlap> all = overlaps_of(test::measured_tiles(), test::tile_to_both(), 16000);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_DOUBLE_EQ(all[0].computing_ns, 4000);
  EXPECT_DOUBLE_EQ(all[0].communicating_ns, 2800);  // the second store of rank 0, from 4200 to 7000
  EXPECT_DOUBLE_EQ(all[0].both_ns, 0);
  Timeline twice = test::measured_tiles();
  twice.ops.push_back({{0, 0, 0, 0, 8}, OpKind::matmul, 0, 1000, 5000});
  const Overlap one = overlaps_of(twice, test::tile_to_both(), 16000)[0];
  EXPECT_DOUBLE_EQ(one.computing_ns, 5000);
  EXPECT_DOUBLE_EQ(one.both_ns, 800);
}

TEST(Overlap, HasNothingHiddenWhereNothingIsSent) {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 7}, OpKind::matmul, 0, 0, 6000});
  const Overlap one = overlaps_of(timeline, test::tile_to_both(), 6000)[0];
  EXPECT_EQ(one.hidden(), 0);
  EXPECT_EQ(one.idle_ns, 0);
}

}  // namespace
}  // namespace tritax

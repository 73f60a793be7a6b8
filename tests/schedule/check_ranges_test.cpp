#include "model/schedule/check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

const std::string kFirstOperation = "kernel 'k' rank 0 workgroup 0 operation 0 ";
const std::string kSecond = "kernel 'k' rank 0 workgroup 0 operation 1 ";

TEST(CheckRanges, TilesOutsideTheirBufferAreRefused) {
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {256, 300, 256, 256}, 0);
                 }),
                 Kind::out_of_range, kFirstOperation + "(load)",
                 "tile C[256:512, 300:556]; the buffer is 512×512");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {-1, 0, 8, 8}, 0);
                 }),
                 Kind::out_of_range, kFirstOperation + "(load)", "C[-1:7");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {0, 0, 0, 8}, 0);
                 }),
                 Kind::out_of_range, kFirstOperation + "(load)", "C[0:0");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {0, 2147483647, 8, 2147483647}, 0);
                 }),
                 Kind::out_of_range, kFirstOperation + "(load)", "2147483647:4294967294");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.copy(s.c, {0, 0, 8, 8}, 1, s.c, 505, 0, 0);
                 }),
                 Kind::out_of_range, kFirstOperation + "(copy)", "C[505:513");
}

TEST(CheckRanges, LibraryKernelsWithoutWhatTheirRatesFollowFromAreRefused) {
  Schedule schedule = one_workgroup([](auto& s) { s.builder.load(s.c, {0, 0, 8, 8}, 0); });
  LibraryKernel& library = schedule.kernels[0].library;
  const LibraryKernel sound{LibraryRoutine::all_reduce, 2, 1024, 4, 1, 2};
  library = sound;
  expect_sound(schedule);
  const auto expect_refused = [&](const LibraryKernel& kernel, const std::string& why) {
    library = kernel;
    expect_finding(schedule, Kind::out_of_range, "kernel 'k' rank 0", "library: " + why);
  };
  for (const double bytes : {-1.0, 1e19, std::numeric_limits<double>::quiet_NaN()}) {
    LibraryKernel kernel = sound;
    kernel.bytes = bytes;
    expect_refused(kernel, "bytes is");
  }
  for (const LibraryKernelCount& count : kLibraryKernelCounts) {
    LibraryKernel kernel = sound;
    kernel.*count.member = -1;
    expect_refused(kernel, std::string(count.name) + " is -1; give a number from");
  }
  expect_refused({LibraryRoutine::all_gather, 0, 1024, 4}, "ranks is 0; give a number from 1");
  expect_refused({LibraryRoutine::all_gather, 2, 1024, 0}, "channels is 0; give a number from 1");
  expect_refused({LibraryRoutine::all_reduce, 2, 1024, 4, 0}, "chunks is 0; give a number from 1");
  expect_refused({LibraryRoutine::block_copy}, "channels is 0; give a number from 1");
  expect_refused({LibraryRoutine::posts, 0, 1024}, "ranks is 0; give a number from 1");
  expect_refused({LibraryRoutine::posts, 1}, "bytes is 0; give a number from 1");
  expect_refused({LibraryRoutine::dispatches}, "bytes is 0; give a number from 1");
  LibraryKernel everybody = sound;
  everybody.ranks = schedule.ranks + 1;
  expect_refused(everybody,
                 fmt::format("ranks is {0}; give a number from 1 to {1}", everybody.ranks, schedule.ranks));
  expect_refused({LibraryRoutine::none, 2}, "it has no routine");
  schedule.kernels[0].payload_share = 0.5;
  expect_refused(sound, "payload_share is 0.5 beside it");
  schedule.kernels[0].payload_share = 1;
  schedule.kernels[0].start_ns = 700;
  expect_refused({LibraryRoutine::plain}, "start_ns is 700 beside it");
}

TEST(CheckRanges, StartsThatNoClockReachesAreRefused) {
  for (const double start_ns : {-1.0, 3.7e12, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    Schedule schedule = one_workgroup([](auto& s) { s.builder.load(s.c, {0, 0, 8, 8}, 0); });
    schedule.kernels[0].start_ns = start_ns;
    expect_finding(schedule, Kind::out_of_range, "kernel 'k' rank 0",
                   "give a time from 0 to 3.6e+12 (an hour)");
  }
}

TEST(CheckRanges, RanksBuffersFlagsAndIndicesOutOfRangeAreRefused) {
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {0, 0, 8, 8}, 2);
                 }),
                 Kind::out_of_range, kFirstOperation + "(load)", "rank 2; the schedule has 2 ranks");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(7, {0, 0, 8, 8}, 0);
                 }),
                 Kind::out_of_range, kFirstOperation + "(load)", "buffer 7; the schedule has 3 buffers");
  expect_finding(one_workgroup([](auto& s) { s.signal(16, 0); }), Kind::out_of_range,
                 kFirstOperation + "(signal)", "flag ready[16]; the array has 16 counters");
  expect_finding(one_workgroup([](auto& s) { s.builder.wait(1, 0, 1, Scope::gpu, kPlain); }),
                 Kind::out_of_range, kFirstOperation + "(wait)", "flag array 1; the schedule has 1");
  expect_finding(one_workgroup([](auto& s) { s.builder.claim(s.ready, 0, 4, 2); }), Kind::out_of_range,
                 kFirstOperation + "(claim)", "skips 2 operations; 0 follow");
}

TEST(CheckRanges, HostProgramsThatLaunchWhatIsNotTheirsAreRefused) {
  SmallSchedule s;
  const auto k = s.kernel("k", 1);
  s.builder.workgroup(k);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::out_of_range, "host operation 0 (launch) of rank 0",
                 "launches a kernel of rank 1");
  Schedule unknown = producer_consumer();
  unknown.host[0][1].kernel = 9;
  expect_finding(unknown, Kind::out_of_range, "host operation 1 (launch) of rank 0",
                 "the schedule has 2 kernels");
  Schedule stream = producer_consumer();
  stream.host[0][1].stream = -1;
  expect_finding(stream, Kind::out_of_range, "host operation 1 (launch) of rank 0", "stream -1");
  Schedule graph = producer_consumer();
  graph.host[0][0] = {HostOpKind::graph_launch, -1, 0, 3};
  expect_finding(graph, Kind::out_of_range, "host operation 0 (graph_launch) of rank 0", "0 graphs");
}

TEST(CheckRanges, AKernelThatNobodyLaunchesIsNamed) {
  Schedule schedule = producer_consumer();
  schedule.host[0].erase(schedule.host[0].begin() + 1);
  expect_finding(schedule, Kind::meaningless, "kernel 'scatter' rank 0", "never launched");
}

TEST(CheckMeaning, AStoreNeedsAnAccumulator) {
  expect_finding(one_workgroup([](auto& s) { s.store(0, 0); }), Kind::meaningless,
                 kFirstOperation + "(store)", "the accumulator is empty");
  expect_finding(one_workgroup([](auto& s) {
                   s.compute(0);
                   s.builder.store(s.c, {0, 0, 128, 256}, 0);
                 }),
                 Kind::meaningless, kSecond + "(store)",
                 "a tile of 128×256 while the accumulator holds 256×256");
}

TEST(CheckMeaning, FilledRegistersMayBeStoredInAnyShapeUntilSomethingElseFillsThem) {
  Schedule schedule = one_workgroup([](auto& s) {
    s.store(0, 0);
    s.builder.atomic_add(s.c, {0, 0, 7, 9}, 1);
    s.builder.load(s.b, {0, 0, 8, 8}, 0);
    s.builder.store(s.c, {0, 0, 8, 8}, 0);
  });
  EXPECT_EQ(places_of(check_schedule(schedule)), 2U);
  schedule.kernels[0].registers_filled = true;
  expect_sound(schedule);
  schedule.ops.back().rect.rows = 4;
  expect_finding(schedule, Kind::meaningless, "kernel 'k' rank 0 workgroup 0 operation 3 (store)",
                 "a tile of 4×8 while the accumulator holds 8×8");
}

TEST(CheckMeaning, AMatmulAfterAStoreMayHaveAnotherShape) {
  expect_sound(one_workgroup([](auto& s) {
    s.compute(0);
    s.store(0, 0);
    s.store(0, 1);
    s.builder.matmul(s.a, s.b, {0, 256, 100, 40}, 0, 512);
    s.builder.matmul(s.a, s.b, {0, 256, 100, 40}, 0, 512);
    s.builder.store(s.c, {0, 256, 100, 40}, 0);
  }));
}

TEST(CheckMeaning, AMatmulNeedsAMatrixTileThatHoldsIt) {
  Schedule schedule = one_workgroup([](auto& s) { s.compute(0); });
  schedule.kernels[0].tile.m = 128;
  expect_finding(schedule, Kind::meaningless, kFirstOperation + "(matmul)",
                 "in a kernel with matrix tiles of 128×256");
  schedule.kernels[0].tile = {};
  expect_finding(schedule, Kind::meaningless, kFirstOperation + "(matmul)",
                 "matrix tile is 0×0×0 with 0 waves");
}

TEST(CheckMeaning, KRangesOutsideTheOperandsAreRefused) {
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.matmul(s.a, s.b, {0, 0, 8, 8}, 0, 513);
                 }),
                 Kind::meaningless, kFirstOperation + "(matmul)",
                 "k range [0, 513); A 'A' has 512 columns and B 'B' has 512 rows");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.matmul(s.a, s.b, {0, 0, 8, 8}, 64, 64);
                 }),
                 Kind::meaningless, kFirstOperation + "(matmul)", "k range [64, 64)");
}

TEST(CheckMeaning, AMatmulReadsAOfAnotherRankOfTheSchedule) {
  expect_sound(one_workgroup([](auto& s) {
    s.builder.matmul_of(1, s.a, s.b, {0, 0, 8, 8}, 0, 512);
    s.builder.store(s.c, {0, 0, 8, 8}, 0);
  }));
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.matmul_of(7, s.a, s.b, {0, 0, 8, 8}, 0, 512);
                 }),
                 Kind::out_of_range, kFirstOperation + "(matmul)", "rank 7; the schedule has 2 ranks");
  Schedule schedule = one_workgroup([](auto& s) { s.compute(0); });
  schedule.ops[0].value = 1;
  expect_finding(schedule, Kind::meaningless, kFirstOperation + "(matmul)",
                 "names its own rank 0 as the owner of A; leave it out");
}

TEST(CheckMeaning, SignalsAndWaitsThatOthersCannotSeeAreRefused) {
  expect_finding(one_workgroup([](auto& s) { s.signal(0, 1); }), Kind::meaningless,
                 kFirstOperation + "(signal)",
                 "releases at gpu scope to rank 1; another GPU sees only system scope");
  expect_finding(one_workgroup([](auto& s) { s.signal(0, 0, 1, Scope::workgroup); }), Kind::meaningless,
                 kFirstOperation + "(signal)", "workgroup scope");
  expect_finding(one_workgroup([](auto& s) { s.wait(0, 0); }), Kind::meaningless, kFirstOperation + "(wait)",
                 "waits for 0");
  expect_finding(one_workgroup([](auto& s) { s.signal(0, 0, -1); }), Kind::meaningless,
                 kFirstOperation + "(signal)", "adds -1");

  SmallSchedule s;
  const auto sender = s.kernel("sender", 1);
  s.builder.workgroup(sender);
  s.signal(0, 0, 1, Scope::system);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.wait(0, 1, Scope::gpu);
  s.builder.launch(0, k);
  s.builder.launch(1, sender);
  expect_finding(s.builder.finish(), Kind::meaningless, kFirstOperation + "(wait)",
                 "acquires at gpu scope what another rank signals (kernel 'sender' rank 1");
}

}  // namespace
}  // namespace tritax

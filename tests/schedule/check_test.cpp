#include "model/schedule/check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"
#include "model/schedule/json.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.where + ": " + finding.message + "\n";
  }
  return text;
}

void expect_sound(const Schedule& schedule) { EXPECT_EQ(text_of(check_schedule(schedule)), ""); }

// The first finding is of this kind, at this place, and says this.
void expect_finding(const Schedule& schedule, Kind kind, const std::string& where,
                    const std::string& message) {
  const auto findings = check_schedule(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, kind) << text_of(findings);
  EXPECT_EQ(findings[0].where, where);
  EXPECT_NE(findings[0].message.find(message), std::string::npos) << findings[0].message;
}

// One workgroup of one kernel on rank 0 of 2, launched; `add` gives it its operations.
template <typename Add>
Schedule one_workgroup(Add add) {
  SmallSchedule s;
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  add(s);
  s.builder.launch(0, k);
  return s.builder.finish();
}

const std::string kFirst = "kernel 'k' rank 0 workgroup 0 operation 0 ";
const std::string kSecond = "kernel 'k' rank 0 workgroup 0 operation 1 ";

TEST(CheckRanges, TilesOutsideTheirBufferAreRefused) {
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {256, 300, 256, 256}, 0);
                 }),
                 Kind::out_of_range, kFirst + "(load)", "tile C[256:512, 300:556]; the buffer is 512×512");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {-1, 0, 8, 8}, 0);
                 }),
                 Kind::out_of_range, kFirst + "(load)", "C[-1:7");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {0, 0, 0, 8}, 0);
                 }),
                 Kind::out_of_range, kFirst + "(load)", "C[0:0");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {0, 2147483647, 8, 2147483647}, 0);
                 }),
                 Kind::out_of_range, kFirst + "(load)", "2147483647:4294967294");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.copy(s.c, {0, 0, 8, 8}, 1, s.c, 505, 0, 0);
                 }),
                 Kind::out_of_range, kFirst + "(copy)", "C[505:513");
}

TEST(CheckRanges, RanksBuffersFlagsAndIndicesOutOfRangeAreRefused) {
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(s.c, {0, 0, 8, 8}, 2);
                 }),
                 Kind::out_of_range, kFirst + "(load)", "rank 2; the schedule has 2 ranks");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.load(7, {0, 0, 8, 8}, 0);
                 }),
                 Kind::out_of_range, kFirst + "(load)", "buffer 7; the schedule has 3 buffers");
  expect_finding(one_workgroup([](auto& s) { s.signal(16, 0); }), Kind::out_of_range, kFirst + "(signal)",
                 "flag ready[16]; the array has 16 counters");
  expect_finding(one_workgroup([](auto& s) { s.builder.wait(1, 0, 1, Scope::gpu, kPlain); }),
                 Kind::out_of_range, kFirst + "(wait)", "flag array 1; the schedule has 1");
  expect_finding(one_workgroup([](auto& s) { s.builder.claim(s.ready, 0, 4, 2); }), Kind::out_of_range,
                 kFirst + "(claim)", "skips 2 operations; 0 follow");
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
  expect_finding(one_workgroup([](auto& s) { s.store(0, 0); }), Kind::meaningless, kFirst + "(store)",
                 "the accumulator is empty");
  expect_finding(one_workgroup([](auto& s) {
                   s.compute(0);
                   s.builder.store(s.c, {0, 0, 128, 256}, 0);
                 }),
                 Kind::meaningless, kSecond + "(store)",
                 "a tile of 128×256 while the accumulator holds 256×256");
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
  expect_finding(schedule, Kind::meaningless, kFirst + "(matmul)",
                 "in a kernel with matrix tiles of 128×256");
  schedule.kernels[0].tile = {};
  expect_finding(schedule, Kind::meaningless, kFirst + "(matmul)", "matrix tile is 0×0×0 with 0 waves");
}

TEST(CheckMeaning, KRangesOutsideTheOperandsAreRefused) {
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.matmul(s.a, s.b, {0, 0, 8, 8}, 0, 513);
                 }),
                 Kind::meaningless, kFirst + "(matmul)",
                 "k range [0, 513); A 'A' has 512 columns and B 'B' has 512 rows");
  expect_finding(one_workgroup([](auto& s) {
                   s.builder.matmul(s.a, s.b, {0, 0, 8, 8}, 64, 64);
                 }),
                 Kind::meaningless, kFirst + "(matmul)", "k range [64, 64)");
}

TEST(CheckMeaning, SignalsAndWaitsThatOthersCannotSeeAreRefused) {
  expect_finding(one_workgroup([](auto& s) { s.signal(0, 1); }), Kind::meaningless, kFirst + "(signal)",
                 "releases at gpu scope to rank 1; another GPU sees only system scope");
  expect_finding(one_workgroup([](auto& s) { s.signal(0, 0, 1, Scope::workgroup); }), Kind::meaningless,
                 kFirst + "(signal)", "workgroup scope");
  expect_finding(one_workgroup([](auto& s) { s.wait(0, 0); }), Kind::meaningless, kFirst + "(wait)",
                 "waits for 0");
  expect_finding(one_workgroup([](auto& s) { s.signal(0, 0, -1); }), Kind::meaningless, kFirst + "(signal)",
                 "adds -1");

  SmallSchedule s;
  const auto sender = s.kernel("sender", 1);
  s.builder.workgroup(sender);
  s.signal(0, 0, 1, Scope::system);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.wait(0, 1, Scope::gpu);
  s.builder.launch(0, k);
  s.builder.launch(1, sender);
  expect_finding(s.builder.finish(), Kind::meaningless, kFirst + "(wait)",
                 "acquires at gpu scope what another rank signals (kernel 'sender' rank 1");
}

TEST(CheckProgress, AWaitThatNothingSignalsIsRefused) {
  expect_finding(producer_consumer(false), Kind::unsatisfiable_wait,
                 "kernel 'scatter' rank 0 workgroup 0 operation 0 (wait)",
                 "waits for ready[0] of rank 0 >= 1, but nothing signals this flag");
}

TEST(CheckProgress, AWaitForMoreThanAllSignalsIsRefused) {
  Schedule schedule = producer_consumer();
  for (Op& op : schedule.ops) {
    if (op.kind == OpKind::wait && op.index == 2) {
      op.value = 2;
    }
  }
  expect_finding(schedule, Kind::unsatisfiable_wait, "kernel 'scatter' rank 0 workgroup 2 operation 0 (wait)",
                 "ready[2] of rank 0 >= 2, but its 1 signals add up to 1");
}

TEST(CheckProgress, TwoWorkgroupsThatWaitForEachOtherDeadlock) {
  SmallSchedule s;
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.workgroup(k);
    s.wait(i);
    s.signal(1 - i, 0);
  }
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::deadlock, kFirst + "(wait)",
                 "kernel 'k' rank 0 workgroup 1 operation 0 (wait) for ready[1] of rank 0 >= 1");
}

TEST(CheckProgress, ADeadlockIsFoundAlthoughNoSingleSignalIsNeeded) {
  SmallSchedule s;  // ready[0] reaches 2, any of the two would do, and both come only after the wait
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.workgroup(k);
    s.wait(0);
    s.signal(0, 0);
  }
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::deadlock, kFirst + "(wait)", "cycle of waits");
}

TEST(CheckProgress, AKernelThatWaitsForTheNextOneInItsStreamDeadlocks) {
  Schedule schedule = producer_consumer();
  std::swap(schedule.host[0][0], schedule.host[0][1]);
  for (HostOp& op : schedule.host[0]) {
    op.stream = 0;
  }
  expect_finding(schedule, Kind::deadlock, "kernel 'scatter' rank 0 workgroup 0 operation 0 (wait)",
                 "cycle of waits");
}

TEST(CheckProgress, RanksThatArriveAtDifferentNumbersOfBarriersDeadlock) {
  Schedule schedule = producer_consumer();
  schedule.host[1].pop_back();
  expect_finding(schedule, Kind::deadlock, "host program of rank 0",
                 "arrives at 1 host barriers, rank 1 only at 0");
}

TEST(CheckOrder, AProducerConsumerScheduleWithFlagsIsSound) { expect_sound(producer_consumer()); }

TEST(CheckOrder, AReadWithoutItsWaitIsRefused) {
  expect_finding(
      producer_consumer(true, false), Kind::unordered_read,
      "kernel 'scatter' rank 0 workgroup 0 operation 0 (copy)",
      "reads C[0:256, 0:256] of rank 0, which kernel 'gemm' rank 0 workgroup 0 operation 1 (store)");
}

TEST(CheckOrder, AReadAfterTheWaitForAnotherTileIsRefused) {
  Schedule schedule = producer_consumer();
  for (Op& op : schedule.ops) {
    if (op.kind == OpKind::wait && op.index == 3) {
      op.index = 2;
    }
  }
  expect_finding(schedule, Kind::unordered_read, "kernel 'scatter' rank 0 workgroup 3 operation 1 (copy)",
                 "workgroup 3 operation 1 (store)");
}

TEST(CheckOrder, ASignalBeforeTheStoreOrdersNothing) {
  Schedule schedule = producer_consumer();
  std::swap(schedule.ops[1], schedule.ops[2]);
  expect_finding(schedule, Kind::unordered_read, "kernel 'scatter' rank 0 workgroup 0 operation 1 (copy)",
                 "workgroup 0 operation 2 (store)");
}

TEST(CheckOrder, KernelEndsStreamsAndHostBarriersOrder) { expect_sound(bulk_synchronous()); }

TEST(CheckOrder, AnotherStreamDoesNotOrder) {
  Schedule schedule = bulk_synchronous();
  schedule.host[1][2].stream = 1;
  schedule.host[1][3].kind = HostOpKind::device_synchronize;
  expect_finding(schedule, Kind::unordered_read, "kernel 'scatter' rank 1 workgroup 0 operation 0 (copy)",
                 "kernel 'gemm' rank 1 workgroup 0 operation 1 (store)");
  EXPECT_EQ(check_schedule(schedule).size(), 2U);
}

TEST(CheckOrder, AHostBarrierWithoutSynchronisationDoesNotOrder) {
  Schedule schedule = bulk_synchronous();
  schedule.host[0].erase(schedule.host[0].begin() + 3);  // stream_synchronize
  const auto findings = check_schedule(schedule);
  ASSERT_EQ(findings.size(), 2U) << text_of(findings);
  EXPECT_EQ(findings[0].where, "kernel 'read' rank 1 workgroup 0 operation 0 (load)");
}

TEST(CheckOrder, AStreamIsNotSynchronisedByTheSynchronisationOfAnother) {
  Schedule schedule = bulk_synchronous();
  schedule.host[0][3].stream = 1;
  EXPECT_EQ(check_schedule(schedule).size(), 2U);
}

TEST(CheckOrder, AHostBarrierMissingOnAllRanksIsAnUnorderedRead) {
  Schedule schedule = bulk_synchronous();
  for (auto& program : schedule.host) {
    program.erase(program.begin() + 4);
  }
  expect_finding(schedule, Kind::unordered_read, "kernel 'read' rank 0 workgroup 2 operation 0 (load)",
                 "kernel 'scatter' rank 1 workgroup 0 operation 0 (copy)");
}

TEST(CheckOrder, AGraphOrdersLikeItsStreams) {
  for (const int stream : {0, 1}) {
    SmallSchedule s(1);
    const auto gemm = s.kernel("gemm", 0);
    s.builder.workgroup(gemm);
    s.compute(0);
    s.store(0, 0);
    const auto read = s.kernel("read", 0);
    s.builder.workgroup(read);
    s.builder.load(s.c, SmallSchedule::tile(0), 0);
    s.builder.graph_launch(0, {{gemm, 0}, {read, stream}});
    EXPECT_EQ(check_schedule(s.builder.finish()).size(), static_cast<std::size_t>(stream));
  }
}

// Four workgroups add 1 to ready[0] after their tile; a fifth waits for `value` and reads all tiles.
Schedule counted(int value) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 4; ++i) {
    s.builder.workgroup(k);
    s.compute(i);
    s.store(i, 0);
    s.signal(0, 0);
  }
  s.builder.workgroup(k);
  s.wait(0, value);
  for (int i = 0; i < 4; ++i) {
    s.builder.load(s.c, SmallSchedule::tile(i), 0);
  }
  s.builder.launch(0, k);
  return s.builder.finish();
}

TEST(CheckOrder, AWaitForAllSignalsIsOrderedAfterAll) { expect_sound(counted(4)); }

TEST(CheckOrder, AWaitForSomeSignalsIsOrderedAfterNone) {
  EXPECT_EQ(check_schedule(counted(3)).size(), 4U);
  EXPECT_EQ(check_schedule(counted(5))[0].kind, Kind::unsatisfiable_wait);
}

TEST(CheckOrder, SignalsOfOneWorkgroupArriveInProgramOrder) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  for (int i = 0; i < 3; ++i) {
    s.compute(i);
    s.store(i, 0);
    s.signal(0, 0);
  }
  s.builder.workgroup(k);
  s.wait(0, 2);
  s.builder.load(s.c, SmallSchedule::tile(0), 0);
  s.builder.load(s.c, SmallSchedule::tile(1), 0);
  s.builder.load(s.c, SmallSchedule::tile(2), 0);  // needs the third signal
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::unordered_read, "kernel 'k' rank 0 workgroup 1 operation 3 (load)",
                 "operation 7 (store)");
}

TEST(CheckOrder, SignalsOfRepeatedLaunchesArriveInStreamOrder) {
  SmallSchedule s(1);
  const auto gemm = s.kernel("gemm", 0);
  s.builder.workgroup(gemm);
  s.compute(0);
  s.store(0, 0);
  s.signal(0, 0);
  const auto read = s.kernel("read", 0);
  s.builder.workgroup(read);
  s.wait(0, 1);
  s.builder.load(s.c, SmallSchedule::tile(0), 0);
  s.builder.launch(0, gemm, 0);
  s.builder.launch(0, read, 1);
  s.builder.host(0, HostOpKind::device_synchronize);
  s.builder.launch(0, gemm, 0);
  expect_sound(s.builder.finish());
}

TEST(CheckOrder, AWriteAfterTheReadIsNoProblemOnlyIfItIsOrdered) {
  for (const bool ordered : {true, false}) {
    SmallSchedule s(1);
    const auto k = s.kernel("k", 0);
    s.builder.workgroup(k);  // writes, and later writes again
    s.compute(0);
    s.store(0, 0);
    s.signal(0, 0);
    if (ordered) {
      s.wait(1);
    }
    s.store(0, 0);
    s.builder.workgroup(k);  // reads in between
    s.wait(0);
    s.builder.load(s.c, SmallSchedule::tile(0), 0);
    s.signal(1, 0);
    s.builder.launch(0, k);
    EXPECT_EQ(check_schedule(s.builder.finish()).empty(), ordered);
  }
}

TEST(CheckOrder, OrderPassesThroughThirdWorkgroupsAndRanks) {
  SmallSchedule s;
  const auto first = s.kernel("first", 0);
  s.builder.workgroup(first);
  s.compute(0);
  s.store(0, 0);
  s.signal(0, 1, 1, Scope::system);
  const auto second = s.kernel("second", 1);
  s.builder.workgroup(second);
  s.wait(0, 1, Scope::system);
  s.signal(1, 0, 1, Scope::system);
  const auto third = s.kernel("third", 0);
  s.builder.workgroup(third);
  s.wait(1, 1, Scope::system);
  s.send(0, 0, 1);
  s.builder.launch(0, first, 0);
  s.builder.launch(0, third, 1);
  s.builder.launch(1, second);
  expect_sound(s.builder.finish());
}

TEST(CheckOrder, InputsThatNobodyWritesNeedNoOrder) {
  expect_sound(one_workgroup([](auto& s) {
    s.compute(0);
    s.store(0, 0);
  }));
}

TEST(CheckOrder, APartThatNobodyWritesBeforeIsNamed) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.compute(0);
  s.store(0, 0);
  s.builder.load(s.c, {0, 0, 256, 300}, 0);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::unordered_read, "kernel 'k' rank 0 workgroup 0 operation 2 (load)",
                 "nothing writes C[0:256, 256:300] of rank 0 before");
}

TEST(CheckOrder, OperandsOfAMatmulThatOthersWriteAreReads) {
  for (const int wait : {0, 1}) {
    SmallSchedule s(1);
    const auto k = s.kernel("k", 0);
    for (int i = 0; i < 4; ++i) {
      s.builder.workgroup(k);
      s.compute(i);
      s.store(i, 0);
      s.signal(i / 2, 0);
    }
    const auto d = s.builder.buffer({"D", DType::fp16, 512, 512, 256, 256});
    s.builder.workgroup(k);
    s.wait(wait, 2);
    s.builder.matmul(s.c, s.b, {256, 0, 256, 256}, 0, 512);  // the lower two tiles of C
    s.builder.store(d, {256, 0, 256, 256}, 0);
    s.builder.launch(0, k);
    EXPECT_EQ(check_schedule(s.builder.finish()).size(), wait == 1 ? 0U : 1U);
  }
}

// Two workgroups claim four tiles from one queue; a third waits for all of them and reads them.
Schedule claimed(int limit) {
  SmallSchedule s(1);
  const auto queue = s.builder.flags("queue", 4);
  const auto k = s.kernel("k", 0);
  for (int workgroup = 0; workgroup < 2; ++workgroup) {
    s.builder.workgroup(k);
    for (int i = 0; i < 4; ++i) {
      s.builder.claim(queue, i, limit, 3);
      s.compute(i);
      s.store(i, 0);
      s.signal(0, 0);
    }
  }
  s.builder.workgroup(k);
  s.wait(0, 4);
  for (int i = 0; i < 4; ++i) {
    s.builder.load(s.c, SmallSchedule::tile(i), 0);
  }
  s.builder.launch(0, k);
  return s.builder.finish();
}

TEST(CheckOrder, BlocksBehindAClaimCountOncePerItem) {
  expect_sound(claimed(1));
  EXPECT_EQ(check_schedule(claimed(0))[0].kind, Kind::unsatisfiable_wait);
  EXPECT_EQ(check_schedule(claimed(2))[0].kind, Kind::unordered_read);  // eight signals, four suffice
}

TEST(Check, NoMoreFindingsThanAskedFor) {
  EXPECT_EQ(check_schedule(counted(3), 2).size(), 2U);
  EXPECT_EQ(check_schedule(producer_consumer(false), 1).size(), 1U);
}

TEST(Check, RequireSoundNamesOriginAndFindings) {
  require_sound({}, "nothing");
  try {
    require_sound(check_schedule(producer_consumer(true, false)), "small.json");
    FAIL();
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("small.json: the schedule is not sound:\n  kernel 'scatter'")) << message;
    EXPECT_NE(message.find("operation 0 (copy)"), std::string::npos);
  }
}

RC_GTEST_PROP(Check, AnyWellFormedScheduleIsCheckedWithoutACrash, ()) {
  const auto findings = check_schedule(*random_schedule());
  RC_ASSERT(findings.size() <= 20U);
}

// Random programs of a few workgroups over four flags and four tiles, against a search over all their
// executions.
struct TinyOp {
  OpKind kind;
  int index;
};

bool finishes_in_some_order(const std::vector<std::vector<TinyOp>>& programs) {
  std::vector<int> counter(4, 0);
  std::vector<std::size_t> next(programs.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t w = 0; w < programs.size(); ++w) {
      while (next[w] < programs[w].size()) {
        const TinyOp& op = programs[w][next[w]];
        if (op.kind == OpKind::wait && counter[static_cast<std::size_t>(op.index)] < 1) {
          break;
        }
        counter[static_cast<std::size_t>(op.index)] += op.kind == OpKind::signal ? 1 : 0;
        ++next[w];
        moved = true;
      }
    }
  }
  for (std::size_t w = 0; w < programs.size(); ++w) {
    if (next[w] < programs[w].size()) {
      return false;
    }
  }
  return true;
}

RC_GTEST_PROP(CheckProgress, FindsADeadlockExactlyWhenTheScheduleCannotFinish, ()) {
  std::vector<std::vector<TinyOp>> programs(static_cast<std::size_t>(2 + below(3)));
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  for (auto& program : programs) {
    s.builder.workgroup(k);
    for (int i = 1 + *rc::gen::inRange(0, 4); i > 0; --i) {
      const int index = *rc::gen::resize(100, rc::gen::inRange(0, 4));
      if (*rc::gen::arbitrary<bool>()) {
        program.push_back({OpKind::signal, index});
        s.signal(index, 0);
      } else {
        program.push_back({OpKind::wait, index});
        s.wait(index);
      }
    }
  }
  s.builder.launch(0, k);
  const auto findings = check_schedule(s.builder.finish());
  RC_TAG(findings.empty() ? "finishes" : "stalls");
  RC_ASSERT(findings.empty() == finishes_in_some_order(programs));
}

// One random execution of the programs: a workgroup that can move is picked until all have ended. The result
// tells for every operation when it happened.
std::vector<std::vector<int>> random_execution(const std::vector<std::vector<TinyOp>>& programs) {
  std::vector<int> counter(4, 0);
  std::vector<std::vector<int>> when(programs.size());
  int left = 0;
  for (const auto& program : programs) {
    left += static_cast<int>(program.size());
  }
  for (int now = 0; now < left;) {
    const auto w = static_cast<std::size_t>(
        *rc::gen::resize(100, rc::gen::inRange<int>(0, static_cast<int>(programs.size()))));
    if (when[w].size() == programs[w].size()) {
      continue;
    }
    const TinyOp& op = programs[w][when[w].size()];
    if (op.kind == OpKind::wait && counter[static_cast<std::size_t>(op.index)] < 1) {
      continue;
    }
    counter[static_cast<std::size_t>(op.index)] += op.kind == OpKind::signal ? 1 : 0;
    when[w].push_back(now++);
  }
  return when;
}

RC_GTEST_PROP(CheckOrder, InASoundScheduleEveryExecutionReadsAfterTheSameWrites, ()) {
  std::vector<std::vector<TinyOp>> programs(static_cast<std::size_t>(2 + below(2)));
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  for (auto& program : programs) {
    s.builder.workgroup(k);
    s.compute(0);
    for (int i = 1 + *rc::gen::inRange(0, 6); i > 0; --i) {
      const int index = *rc::gen::resize(100, rc::gen::inRange(0, 4));
      const OpKind kind = *rc::gen::element(OpKind::signal, OpKind::wait, OpKind::store, OpKind::load);
      program.push_back({kind, index});
      if (kind == OpKind::signal) {
        s.signal(index, 0);
      } else if (kind == OpKind::wait) {
        s.wait(index);
      } else if (kind == OpKind::store) {
        s.store(index, 0);
      } else {
        s.builder.load(s.c, SmallSchedule::tile(index), 0);
      }
    }
  }
  s.builder.launch(0, k);
  RC_PRE(check_schedule(s.builder.finish()).empty());

  const auto one = random_execution(programs);
  const auto other = random_execution(programs);
  for (std::size_t r = 0; r < programs.size(); ++r) {
    for (std::size_t i = 0; i < programs[r].size(); ++i) {
      for (std::size_t w = 0; programs[r][i].kind == OpKind::load && w < programs.size(); ++w) {
        for (std::size_t j = 0; j < programs[w].size(); ++j) {
          if (programs[w][j].kind == OpKind::store && programs[w][j].index == programs[r][i].index) {
            RC_ASSERT((one[w][j] < one[r][i]) == (other[w][j] < other[r][i]));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tritax

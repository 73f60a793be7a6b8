#include "model/schedule/check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/tiny_programs.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

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
  EXPECT_EQ(places_of(check_schedule(schedule)), 2U);
}

TEST(CheckOrder, AHostBarrierWithoutSynchronisationDoesNotOrder) {
  Schedule schedule = bulk_synchronous();
  schedule.host[0].erase(schedule.host[0].begin() + 3);  // stream_synchronize
  const auto findings = check_schedule(schedule);
  ASSERT_EQ(places_of(findings), 2U) << text_of(findings);
  EXPECT_EQ(findings[0].where, "kernel 'read' rank 1 workgroup 0 operation 0 (load)");
}

TEST(CheckOrder, AStreamIsNotSynchronisedByTheSynchronisationOfAnother) {
  Schedule schedule = bulk_synchronous();
  schedule.host[0][3].stream = 1;
  EXPECT_EQ(places_of(check_schedule(schedule)), 2U);
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

TEST(CheckOrder, AWaitForAllSignalsIsOrderedAfterAll) { expect_sound(counted(4)); }

TEST(CheckOrder, AWaitForSomeSignalsIsOrderedAfterNone) {
  EXPECT_EQ(places_of(check_schedule(counted(3))), 4U);
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

#include "model/schedule/check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/tiny_programs.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

const std::string kFirst = "kernel 'k' rank 0 workgroup 0 operation 0 ";

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

}  // namespace
}  // namespace tritax

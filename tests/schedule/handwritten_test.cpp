// The example that the documentation shows is the one that is shipped, and it is sound.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/relax.hpp"

namespace tritax {
namespace {

const std::string kFile = TRITAX_SOURCE_DIR "/scenarios/handwritten.json";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(HandwrittenSchedule, IsTheExampleOfTheDocumentation) {
  const std::string doc = text_of(TRITAX_SOURCE_DIR "/docs/schedule-format.md");
  EXPECT_NE(doc.find("```json\n" + text_of(kFile) + "```"), std::string::npos);
}

TEST(HandwrittenSchedule, IsSoundOnEveryShippedMachine) {
  const Schedule schedule = read_schedule(kFile);
  EXPECT_TRUE(check_schedule(schedule).empty());
  for (const std::string& machine : shipped_machines()) {
    EXPECT_TRUE(check_schedule_on(schedule, find_machine(machine)).empty()) << machine;
  }
  EXPECT_TRUE(check_schedule(with_tile_dependences(schedule)).empty());
}

TEST(HandwrittenSchedule, IsRefusedWithoutAnyOneOfItsFlagOperationsThatOrdersARead) {
  const Schedule schedule = read_schedule(kFile);
  for (std::size_t kernel : {0U, 2U}) {
    Schedule damaged = schedule;
    damaged.ops[schedule.kernels[kernel].workgroups[0].first_op + 2] = Op{};  // the signal
    EXPECT_EQ(check_schedule(damaged)[0].kind, Finding::Kind::unsatisfiable_wait);
  }
  for (std::size_t kernel : {1U, 3U}) {
    Schedule damaged = schedule;
    damaged.ops[schedule.kernels[kernel].workgroups[0].first_op] = Op{};  // the wait
    EXPECT_EQ(check_schedule(damaged)[0].kind, Finding::Kind::unordered_read);
  }
}

TEST(HandwrittenSchedule, StaysTheSameWhenItIsWrittenAndReadAgain) {
  const std::string text = schedule_to_json(read_schedule(kFile), true);
  EXPECT_EQ(schedule_to_json(schedule_from_json(text, "written"), true), text);
}

// Who adds reads what was there: the store wrote C, and nothing else does.
TEST(HandwrittenSchedule, IsRefusedIfItAddsToWhatNothingHasWritten) {
  Schedule schedule = read_schedule(kFile);
  const auto store = std::find_if(schedule.ops.begin(), schedule.ops.end(),
                                  [](const Op& op) { return op.kind == OpKind::store; });
  ASSERT_NE(store, schedule.ops.end());
  store->kind = OpKind::atomic_add;
  const std::vector<Finding> findings = check_schedule(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Finding::Kind::unordered_read);
  EXPECT_EQ(findings[0].where, "kernel 'gemm' rank 0 workgroup 0 operation 1 (atomic_add)");
  EXPECT_EQ(findings[0].message,
            "adds to C[0:64, 0:32] of rank 0, but nothing writes C[0:64, 0:32] of rank 0 before; it is in no "
            "input of "
            "the schedule");
}

}  // namespace
}  // namespace tritax

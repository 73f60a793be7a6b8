// Host operations without meaning: events, transfers, work.
#include <gtest/gtest.h>

#include "model/schedule/builder.hpp"
#include "model/schedule/json.hpp"
#include "tests/schedule/expect_finding.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

struct Copy {
  Copy() {
    a = builder.buffer({"A", DType::fp16, 8, 8, 8, 8});
    b = builder.buffer({"B", DType::fp32, 8, 8, 8, 8});
    builder.input(builder.whole(a));
  }
  ScheduleBuilder builder{"copies", 2};
  std::int16_t a = 0, b = 0;
};

TEST(CheckHost, ACopyOutsideItsBuffersIsRefused) {
  Copy outside;
  outside.builder.host_copy(1, 0, outside.a, {4, 0, 5, 8}, 0, outside.a, 0, 0, 1);
  expect_finding(outside.builder.finish(), Kind::out_of_range, "host operation 0 (copy) of rank 1",
                 "A[4:9, 0:8]");
  Copy source;
  source.builder.host_copy(1, 0, source.a, {0, 0, 4, 8}, 0, source.a, 5, 0, 1);
  expect_finding(source.builder.finish(), Kind::out_of_range, "host operation 0 (copy) of rank 1",
                 "A[5:9, 0:8]");
  Copy rank;
  rank.builder.host_copy(1, 0, rank.a, {0, 0, 4, 8}, 2, rank.a, 0, 0, 1);
  expect_finding(rank.builder.finish(), Kind::out_of_range, "host operation 0 (copy) of rank 1", "rank 2");
}

TEST(CheckHost, ACopyThatConvertsIsRefused) {
  Copy copy;
  copy.builder.host_copy(0, 0, copy.b, {0, 0, 4, 8}, 0, copy.a, 0, 0, 1);
  expect_finding(copy.builder.finish(), Kind::meaningless, "host operation 0 (copy) of rank 0",
                 "must be the same");
}

TEST(CheckHost, AWaitForAnEventThatNobodyHasRecordedIsRefused) {
  Copy copy;
  copy.builder.record_event(1, 3);
  copy.builder.wait_event(0, 3);
  expect_finding(copy.builder.finish(), Kind::meaningless, "host operation 0 (event_wait) of rank 0",
                 "event 3");
}

TEST(CheckHost, WorkOfMoreThanAnHourIsRefused) {
  Copy copy;
  copy.builder.host_work(0, "sleep", 1e13);
  expect_finding(copy.builder.finish(), Kind::out_of_range, "host operation 0 (host_work) of rank 0",
                 "duration_ns");
}

TEST(CheckHost, CopiesAndEventsAreReadAsTheyAreWritten) {
  const Schedule schedule = schedule_from_json(R"({"schema": "tritax.schedule/1", "ranks": 2, "kernels": [],
      "buffers": [{"name": "A", "dtype": "fp16", "shape": [8, 8]}], "host": [[
        {"op": "copy", "stream": 2, "buffer": "A", "at": [4, 0], "shape": [4, 8], "from": {"rank": 1}},
        {"op": "event_record", "event": 5, "stream": 2}, {"op": "event_wait", "event": 5}], []]})",
                                               "test");
  ASSERT_EQ(schedule.transfers.size(), 1U);
  const Op& copy = schedule.transfers[0];
  EXPECT_EQ(copy.rank, 0);
  EXPECT_EQ(copy.src_rank, 1);
  EXPECT_EQ(copy.src_row, 4);
  EXPECT_EQ(schedule.host[0][0].stream, 2);
  EXPECT_EQ(schedule.host[0][1].event, 5);
  const std::string text = schedule_to_json(schedule, true);
  EXPECT_EQ(schedule_to_json(schedule_from_json(text, "again"), true), text);
}

}  // namespace
}  // namespace tritax

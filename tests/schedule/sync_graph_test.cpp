#include "model/schedule/find_phases.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/schedule/accesses.hpp"
#include "model/schedule/check.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

// Kernels on two ranks and three streams, some launched again, with signals and waits at random: a graph with
// every kind of edge (the schedule may deadlock; order is defined all the same).
Schedule random_order() {
  SmallSchedule s(2);
  std::vector<std::int32_t> kernels;
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 3; ++i) {
      const auto k = s.kernel("k", rank);
      kernels.push_back(k);
      for (int workgroups = 1 + below(3); workgroups > 0; --workgroups) {
        s.builder.workgroup(k);
        for (int ops = *rc::gen::resize(100, rc::gen::inRange(1, 5)); ops > 0; --ops) {
          const int flag = *rc::gen::resize(100, rc::gen::inRange(0, 6));
          switch (*rc::gen::resize(100, rc::gen::inRange(0, 3))) {
            case 0:
              s.signal(flag, *rc::gen::inRange(0, 2), 1 + below(2), Scope::system);
              break;
            case 1:
              s.wait(flag, 1 + below(3), Scope::system);
              break;
            default:
              s.builder.barrier();
          }
        }
      }
    }
    for (int i = *rc::gen::resize(100, rc::gen::inRange(3, 8)); i > 0; --i) {
      const int kernel = 3 * rank + *rc::gen::resize(100, rc::gen::inRange(0, 3));
      const int stream = *rc::gen::resize(100, rc::gen::inRange(0, 3));
      s.builder.launch(rank, kernels[static_cast<std::size_t>(kernel)], stream);
      if (*rc::gen::arbitrary<bool>()) {
        s.builder.host(rank, *rc::gen::element(HostOpKind::barrier, HostOpKind::stream_synchronize), 0);
      }
    }
  }
  return s.builder.finish();
}

std::vector<OpPoint> points_of(const SyncGraph& graph) {
  std::vector<OpPoint> points;
  for (std::uint32_t i = 0; i < graph.workgroups().size(); ++i) {
    const WorkgroupRun& workgroup = graph.workgroups()[i];
    const Kernel& kernel = graph.kernel_of(graph.runs()[workgroup.run]);
    for (std::uint32_t op = 0; op < kernel.workgroups[workgroup.workgroup].op_count; ++op) {
      points.push_back({i, op});
    }
  }
  return points;
}

RC_GTEST_PROP(SyncGraph, ManyQuestionsAtOnceHaveTheAnswersOfSingleSearches, ()) {
  const Schedule schedule = random_order();
  const SyncGraph graph = sync_graph_of(schedule);
  const std::vector<OpPoint> points = points_of(graph);
  std::vector<OrderQuery> queries;
  for (const OpPoint& before : points) {
    for (const OpPoint& after : points) {
      queries.push_back({before, after});
    }
  }
  const std::vector<char> answers = are_ordered(graph, queries);
  std::size_t i = 0;
  std::vector<std::vector<char>> past;
  for (const OpPoint& after : points) {
    past.push_back(past_of(graph, {graph.vertex_before(after)}));
  }
  for (const OpPoint& before : points) {
    for (std::size_t a = 0; a < points.size(); ++a, ++i) {
      const OpPoint& after = points[a];
      const bool same = before.workgroup_run == after.workgroup_run;
      const bool expected = same ? before.op < after.op : past[a][graph.vertex_after(before)] != 0;
      RC_ASSERT((answers[i] != 0) == expected);
    }
  }
}

RC_GTEST_PROP(SyncGraph, SidesAreWhatSingleQuestionsSay, ()) {
  const Schedule schedule = random_order();
  const SyncGraph graph = sync_graph_of(schedule);
  std::vector<std::vector<std::uint32_t>> ops(graph.workgroups().size());
  for (const OpPoint& point : points_of(graph)) {
    ops[point.workgroup_run].push_back(point.op);
  }
  std::vector<SideQuery> queries;
  for (const OpPoint& point : points_of(graph)) {
    for (std::uint32_t w = 0; w < ops.size(); ++w) {
      queries.push_back({point, w, ops[w]});
    }
  }
  const std::vector<Sides> sides = sides_of(graph, queries);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto& [point, workgroup_run, its_ops] = queries[i];
    for (std::uint32_t n = 0; n < its_ops.size(); ++n) {
      const OpPoint other{workgroup_run, its_ops[n]};
      const bool same = workgroup_run == point.workgroup_run;
      const std::vector<char> ordered = are_ordered(graph, {{other, point}, {point, other}});
      RC_ASSERT((ordered[0] != 0) == (n < sides[i].before));
      // In a deadlock both may hold; an operation is not behind itself, but no matter of order either.
      RC_ASSERT((ordered[0] != 0 || ordered[1] != 0 || (same && other.op == point.op)) ==
                (n < sides[i].before || n >= sides[i].after));
    }
  }
}

// Both workgroups go back and forth between two flags, one writing a tile and one reading it, each time.
TEST(Accesses, ALongWorkgroupOnOneTileMeetsAReaderOnceARead) {
  constexpr int kTimes = 1000;
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.compute(0);
  for (int i = 0; i < kTimes; ++i) {
    s.store(0, 0);
    s.signal(0, 0);
    s.wait(1, i + 1);
  }
  s.builder.workgroup(k);
  for (int i = 0; i < kTimes; ++i) {
    s.wait(0, i + 1);
    s.builder.load(s.c, SmallSchedule::tile(0), 0);
    s.signal(1, 0);
  }
  s.builder.launch(0, k);
  const Schedule schedule = s.builder.finish();
  const Accesses accesses = find_accesses(sync_graph_of(schedule));
  EXPECT_EQ(accesses.writes.size(), 1U);
  EXPECT_EQ(accesses.read_write.size(), static_cast<std::size_t>(kTimes));
  EXPECT_TRUE(check_schedule(schedule).empty());
}

TEST(SyncGraph, ACounterReachesOnlyWhatItsSignalsAddUpTo) {
  const Schedule schedule = producer_consumer();
  const SyncGraph graph = sync_graph_of(schedule);
  ASSERT_EQ(graph.cells().size(), 4U);
  for (const FlagCell& cell : graph.cells()) {
    EXPECT_EQ(cell.total, 1);
    EXPECT_EQ(cell.signals.size(), 1U);
    EXPECT_EQ(cell.events.size(), 1U);
  }
  EXPECT_EQ(graph.runs().size(), 2U);
  EXPECT_EQ(graph.workgroups().size(), 8U);
}

TEST(SyncGraph, DistinctCountersAreDistinct) {
  SmallSchedule s(2);
  const auto other = s.builder.flags("other", 2);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  for (int rank = 0; rank < 2; ++rank) {
    for (const std::int16_t flag : {s.ready, other}) {
      for (int index = 0; index < 2; ++index) {
        s.builder.signal(flag, index, 1, rank, Scope::system, kPlain);
      }
    }
  }
  s.builder.launch(0, k);
  const Schedule schedule = s.builder.finish();
  EXPECT_EQ(sync_graph_of(schedule).cells().size(), 8U);
}

}  // namespace
}  // namespace tritax

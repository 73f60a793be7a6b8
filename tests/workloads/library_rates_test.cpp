// Law: a schedule of a library has no rates of the machine that it was made for. Saved on one machine it
// takes on another, which differs in the library's times and rates alone, as long as the pattern does there.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/machine/find_machine.hpp"
#include "model/schedule/json.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/registry.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

struct Asked {
  std::string_view machine, workload, pattern;
  Given fields, knobs;
  std::vector<std::string_view> keys;  // of parameters by which it gets faster or slower
};

const std::vector<Asked>& asked() {
  constexpr auto kEagerSlices = static_cast<std::int64_t>(CallForm::eager_slices);
  static const std::vector<Asked> all{
      {"h200-4",
       "gemm-all-scatter",
       "library",
       {{"m", 256}, {"n", 1024}, {"k", 512}, {"gpus", 4}},
       {},
       {"library.small_start_time", "library.small_step_time", "library.small_channel_bandwidth",
        "library.collective_call_time", "library.kernel_start_time", "library.slice_copy_bandwidth"}},
      {"mi300x-8",
       "gemm-all-scatter",
       "library",
       {{"m", 256}, {"n", 1024}, {"k", 512}, {"gpus", 4}},
       {{"form", kEagerSlices}},
       {"library.framework_sync_time", "library.framework_gather_time", "library.collective_start_time"}},
      {"h200-8",
       "gemm-all-reduce",
       "library",
       {{"m", 16}, {"n", 1024}, {"k", 512}, {"gpus", 8}},
       {},
       {"library.small_start_time", "library.small_step_time", "library.small_channel_bandwidth"}},
      {"h200-4",
       "gemm-reduce-scatter",
       "library",
       {{"m", 512}, {"n", 1024}, {"k", 512}, {"gpus", 2}},
       {},
       {"library.small_start_time", "library.collective_call_time"}},
      {"h200-4",
       "all-reduce",
       "library",
       {{"rows", 4096}, {"cols", 2048}, {"gpus", 4}},
       {},
       {"library.collective_start_time", "library.channel_bandwidth"}},
      {"mi300x-8",
       "all-reduce",
       "library",
       {{"rows", 64}, {"cols", 64}, {"gpus", 8}},
       {},
       {"library.collective_start_time", "fabric.flag_latency", "library.collective_call_time"}},
      {"mi300x-8",
       "all-gather",
       "library",
       {{"rows", 2048}, {"cols", 2048}, {"gpus", 8}},
       {},
       {"library.collective_start_time", "library.channel_bandwidth"}},
      {"mi300x-8",
       "all-gather",
       "push",
       {{"rows", 256}, {"cols", 512}, {"posted_bytes_per_peer", 1024}, {"gpus", 8}},
       {{"comm_cus", 4}},
       {"gpu.post_time", "gpu.post_peer_time"}},
      {"h200-4",
       "all-to-all",
       "library",
       {{"rows", 64}, {"cols", 64}, {"gpus", 4}},
       {},
       {"library.small_start_time"}},
      {"h200-4",
       "broadcast",
       "library",
       {{"rows", 64}, {"cols", 512}, {"gpus", 4}},
       {},
       {"library.small_start_time"}},
  };
  return all;
}

Machine scaled(const Machine& machine, std::string_view key, double factor) {
  const std::vector<ParameterChange> changes{
      parse_change(ChangeKind::scale, std::string(key) + "=" + std::to_string(factor))};
  return changed(machine, changes);
}

double saved_ns(const std::string& saved, const Machine& machine) {
  return simulate(schedule_from_json(saved, "saved"), machine).makespan_ns;
}

void expect_as_the_pattern(const Asked& one, const std::vector<double>& factors) {
  const Machine machine = find_machine(std::string(one.machine));
  const Problem problem = problem_with(find_workload(one.workload, "test"), one.fields);
  const std::string saved = schedule_to_json(schedule_with(one.pattern, problem, machine, one.knobs));
  const double usual_ns = saved_ns(saved, machine);
  EXPECT_EQ(usual_ns, time_with(one.pattern, problem, machine, one.knobs));
  for (const std::string_view key : one.keys) {
    bool moves = false;
    for (const double factor : factors) {
      const Machine other = scaled(machine, key, factor);
      const double ns = saved_ns(saved, other);
      EXPECT_EQ(ns, time_with(one.pattern, problem, other, one.knobs)) << key << " times " << factor;
      moves = moves || ns != usual_ns;
    }
    EXPECT_TRUE(moves) << key;
  }
}

TEST(LibrarySchedule, TakesOnAnotherMachineWhatThePatternTakesThere) {
  for (const Asked& one : asked()) {
    SCOPED_TRACE(std::string(one.workload) + " on " + std::string(one.machine));
    expect_as_the_pattern(one, {0.5, 4});
  }
}

// By much more the library would choose another tile, or programs would read memory before the L2.
TEST(LibrarySchedule, FollowsWhatMayChangeALittle) {
  expect_as_the_pattern({"h200-4",
                         "library-gemm",
                         "library",
                         {{"m", 256}, {"n", 513}, {"k", 1024}},
                         {},
                         {"library.odd_row_share", "library.kernel_start_time"}},
                        {0.98});
  expect_as_the_pattern({"h200-4", "paged-attention", "naive", {}, {}, {"gpu.l2_latency"}}, {0.98});
}

}  // namespace
}  // namespace tritax

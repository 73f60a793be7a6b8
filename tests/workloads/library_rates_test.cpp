// Law: a schedule of a library has no rates of the machine that it was made for. Saved on one machine it
// takes on another, which differs in the library's times and rates alone, as long as the pattern does there.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/machine/find_machine.hpp"
#include "model/schedule/json.hpp"
#include "model/workloads/registry.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

struct Asked {
  std::string_view workload;
  Given fields;
};

const std::vector<Asked>& asked() {
  static const std::vector<Asked> all{
      {"gemm-all-scatter", {{"m", 256}, {"n", 1024}, {"k", 512}, {"gpus", 4}}},
      {"gemm-all-reduce", {{"m", 16}, {"n", 1024}, {"k", 512}, {"gpus", 4}}},
      {"gemm-reduce-scatter", {{"m", 512}, {"n", 1024}, {"k", 512}, {"gpus", 2}}},
      {"all-gather-gemm", {{"m", 256}, {"n", 513}, {"k", 1024}, {"gpus", 4}}},
      {"all-reduce", {{"rows", 64}, {"cols", 512}, {"gpus", 4}}},
      {"all-to-all", {{"rows", 64}, {"cols", 64}, {"gpus", 4}}},
      {"broadcast", {{"rows", 64}, {"cols", 512}, {"gpus", 4}}},
  };
  return all;
}

constexpr std::array<std::string_view, 9> kRates{
    "library.collective_call_time", "library.collective_start_time",   "library.channel_bandwidth",
    "library.small_start_time",     "library.small_channel_bandwidth", "library.small_step_time",
    "library.slice_copy_bandwidth", "library.odd_row_share",           "fabric.flag_latency"};

Machine scaled(const Machine& machine, std::string_view key, double factor) {
  const std::vector<ParameterChange> changes{
      parse_change(ChangeKind::scale, std::string(key) + "=" + std::to_string(factor))};
  return changed(machine, changes);
}

Schedule saved(const Schedule& schedule) { return schedule_from_json(schedule_to_json(schedule), "saved"); }

TEST(LibrarySchedule, TakesOnAnotherMachineWhatThePatternTakesThere) {
  const Machine machine = find_machine("h200-4");
  std::map<std::string_view, int> moved;
  for (const Asked& one : asked()) {
    const Problem problem = problem_with(find_workload(one.workload, "test"), one.fields);
    const Schedule kept = saved(schedule_with("library", problem, machine));
    const double usual_ns = simulate(kept, machine).makespan_ns;
    EXPECT_EQ(usual_ns, time_with("library", problem, machine)) << one.workload;
    for (const std::string_view key : kRates) {
      // No share above 1; and by one much smaller the library would choose another tile.
      const bool share = key == "library.odd_row_share";
      const std::vector<double> factors = share ? std::vector{0.98} : std::vector{0.5, 4.0};
      for (const double factor : factors) {
        const Machine other = scaled(machine, key, factor);
        const double ns = simulate(kept, other).makespan_ns;
        EXPECT_EQ(ns, time_with("library", problem, other))
            << one.workload << ": " << key << " times " << factor;
        moved[key] += ns != usual_ns;
      }
    }
  }
  for (const std::string_view key : kRates) EXPECT_GT(moved[key], 0) << key;
}

}  // namespace
}  // namespace tritax

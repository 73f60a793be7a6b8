#include "sim/study/explain.hpp"

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

struct ExampleRun {
  Machine machine = find_machine("mi300x-8");
  GemmAllScatter workload{2048, 2048, 4096, DType::fp16, 4};
  const Pattern& pattern = find_pattern(gemm_all_scatter(), "producer-consumer", "test");
  GemmKnobs knobs = default_gemm_knobs(machine, DType::fp16);

  Schedule schedule() const { return build(pattern, workload, machine, knobs); }
  Rebuild rebuild() const {
    return {[this](const Machine& other, const Values& changed) {
              return build_schedule(pattern, problem_of(workload), other, changed);
            },
            &pattern, values_of(knobs)};
  }
};

const Sensitivity* find_input(const std::vector<Sensitivity>& inputs, const std::string& name) {
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&name](const Sensitivity& input) { return input.input == name; });
  return found == inputs.end() ? nullptr : &*found;
}

TEST(Sensitivities, AVariationIsTheRunOnAMachineWithThatValue) {
  ExampleRun run;
  run.knobs.host_barriers = true;
  const Schedule schedule = run.schedule();
  const double makespan_ns = simulate(schedule, run.machine).makespan_ns;
  const auto inputs = sensitivities(schedule, run.machine, nullptr, makespan_ns, {}, {});
  const Sensitivity* barrier = find_input(inputs, "host.barrier_time");
  ASSERT_NE(barrier, nullptr);
  ASSERT_EQ(barrier->variations.size(), 2U);
  Machine slower = run.machine;
  slower.host.barrier_ns *= 1.1;
  EXPECT_EQ(barrier->variations[1].makespan_ns, simulate(schedule, slower).makespan_ns);
  EXPECT_GT(barrier->variations[1].makespan_ns, makespan_ns);
}

TEST(Sensitivities, AreSortedByTheSizeOfTheirEffect) {
  const ExampleRun run;
  const Schedule schedule = run.schedule();
  const double makespan_ns = simulate(schedule, run.machine).makespan_ns;
  const auto inputs = sensitivities(schedule, run.machine, nullptr, makespan_ns, {}, {});
  EXPECT_TRUE(std::is_sorted(inputs.begin(), inputs.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.effect) > std::abs(b.effect);
  }));
}

TEST(Sensitivities, VaryTheKnobsOnlyWhenTheScheduleCanBeRebuilt) {
  const ExampleRun run;
  const Schedule schedule = run.schedule();
  const double makespan_ns = simulate(schedule, run.machine).makespan_ns;
  const Rebuild rebuild = run.rebuild();
  EXPECT_EQ(find_input(sensitivities(schedule, run.machine, nullptr, makespan_ns, {}, {}), "knob tile_m"),
            nullptr);
  const auto inputs = sensitivities(schedule, run.machine, &rebuild, makespan_ns, {}, {});
  const Sensitivity* tile = find_input(inputs, "knob tile_m");
  ASSERT_NE(tile, nullptr);
  ExampleRun other;
  other.knobs.tile_m /= 2;
  EXPECT_EQ(tile->variations.front().makespan_ns, simulate(other.schedule(), other.machine).makespan_ns);
}

TEST(Sensitivities, AVariationThatCannotRunSaysWhy) {
  ExampleRun run;
  run.knobs.gemm_cus = 256;
  run.knobs.comm_cus = 48;  // all 304 compute units: one more is too many
  const Schedule schedule = run.schedule();
  const double makespan_ns = simulate(schedule, run.machine).makespan_ns;
  const Rebuild rebuild = run.rebuild();
  const auto inputs = sensitivities(schedule, run.machine, &rebuild, makespan_ns, {}, {});
  const Sensitivity* split = find_input(inputs, "knob comm_cus");
  ASSERT_NE(split, nullptr);
  ASSERT_EQ(split->variations.size(), 2U);
  EXPECT_TRUE(std::isfinite(split->variations[0].makespan_ns));
  EXPECT_TRUE(std::isnan(split->variations[1].makespan_ns));
  EXPECT_NE(split->variations[1].obstacle.find("304"), std::string::npos) << split->variations[1].obstacle;
}

TEST(Sensitivities, DoNotDependOnTheNumberOfCores) {
  const ExampleRun run;
  const Schedule schedule = run.schedule();
  const double makespan_ns = simulate(schedule, run.machine).makespan_ns;
  const auto many = sensitivities(schedule, run.machine, nullptr, makespan_ns, {}, {});
  const tbb::global_control one_core(tbb::global_control::max_allowed_parallelism, 1);
  const auto one = sensitivities(schedule, run.machine, nullptr, makespan_ns, {}, {});
  ASSERT_EQ(many.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(many[i].input, one[i].input);
    EXPECT_EQ(many[i].effect, one[i].effect);
  }
}

TEST(Explain, EveryInputIsInExactlyOneList) {
  const ExampleRun run;
  const Schedule schedule = run.schedule();
  const Rebuild rebuild = run.rebuild();
  const Explanation why = explain(schedule, run.machine, &rebuild, {}, {});
  const std::size_t all =
      sensitivities(schedule, run.machine, &rebuild, why.result.makespan_ns, {}, {}).size();
  EXPECT_EQ(why.with_effect.size() + why.without_effect.size() + why.not_variable.size(), all);
  for (const Sensitivity& input : why.with_effect) {
    EXPECT_NE(input.effect, 0) << input.input;
  }
  for (const Sensitivity& input : why.without_effect) {
    EXPECT_EQ(input.effect, 0) << input.input;
    EXPECT_TRUE(input.could_run) << input.input;
  }
}

TEST(Explain, NamesTheMachinePartsThatTheRunNeverTouches) {
  const ExampleRun run;
  const Explanation why = explain(run.schedule(), run.machine, nullptr, {}, {});
  for (const char* untouched : {"library.channel_bandwidth", "fabric.load_efficiency", "gpu.hbm_size"}) {
    EXPECT_NE(find_input(why.without_effect, untouched), nullptr) << untouched;
  }
  EXPECT_NE(find_input(why.with_effect, "fabric.store_efficiency"), nullptr);
}

// Removing a tax moves everything behind it, so the run may get longer.
TEST(Explain, ARunThatIsLongerWithoutATaxIsNotSaidToSaveTime) {
  Taxes taxes;
  taxes.makespan_ns = 1000e3;
  taxes.launch_ns = -12.7e3;
  taxes.bulk_synchronous_ns = 80e3;
  taxes.locality_ns = -1;  // rounding
  taxes.all_removed_ns = 1010e3;
  taxes.remainder_ns = -10e3 - 67.3e3;
  const std::string saved = describe_taxes(taxes);
  EXPECT_EQ(saved.find('-'), std::string::npos) << saved;
  EXPECT_NE(saved.find("1010.0 us, 1 % more"), std::string::npos) << saved;
  EXPECT_NE(saved.find("tile dependences instead of barriers 80.0 us"), std::string::npos) << saved;
  const std::string longer = describe_longer(taxes);
  EXPECT_EQ(longer.rfind("With free launches it takes 12.7 us longer: ", 0), 0U) << longer;
  EXPECT_EQ(longer.find("chip"), std::string::npos) << longer;
  taxes.launch_ns = 0;
  EXPECT_EQ(describe_longer(taxes), "");
}

TEST(Explain, ReportsProgressUpToTheLastSimulation) {
  const ExampleRun run;
  std::atomic<std::size_t> largest{0};
  std::atomic<std::size_t> expected{0};
  explain(run.schedule(), run.machine, nullptr, {}, [&](std::size_t done, std::size_t total) {
    std::size_t seen = largest.load();
    while (done > seen && !largest.compare_exchange_weak(seen, done)) {
    }
    expected = total;
  });
  EXPECT_GT(expected.load(), 0U);
  EXPECT_EQ(largest.load(), expected.load());
}

}  // namespace
}  // namespace tritax

// Link counters: the observed rates integrate to the bytes that the links carried.
#include <gtest/gtest.h>

#include "model/machine/topology.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

struct LinkIntegral : SimulationObserver {
  std::vector<double> carried, rate, since;
  void link_rate(int edge, double time_ns, double gb_per_s) override {
    const auto e = static_cast<std::size_t>(edge);
    if (e >= rate.size()) {
      carried.resize(e + 1, 0);
      rate.resize(e + 1, 0);
      since.resize(e + 1, 0);
    }
    carried[e] += rate[e] * (time_ns - since[e]);
    rate[e] = gb_per_s;
    since[e] = time_ns;
  }
};

TEST(LinkCounters, IntegrateToTheBytesOfTheLinkAndItsProtocolOverhead) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter workload{1024, 2048, 512, DType::fp16, 4};
  GemmKnobs knobs = default_gemm_knobs(machine, workload.dtype);
  const Schedule schedule = build("fused-sequential", workload, machine, knobs);
  LinkIntegral links;
  SimulationOptions options;
  options.observer = &links;
  options.link_counters = true;
  const SimulationResult result = simulate(schedule, machine, options);
  ASSERT_EQ(links.carried.size(), result.link_bytes.size());
  for (std::size_t edge = 0; edge < links.carried.size(); ++edge) {
    EXPECT_EQ(links.rate[edge], 0) << "the link is idle at the end";
    const double expected = result.link_bytes[edge] / machine.fabric.store_efficiency;
    EXPECT_GT(expected, 0);
    EXPECT_NEAR(links.carried[edge], expected, 1e-6 * expected);
  }
}

TEST(LinkCounters, AreSilentUnlessAskedFor) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter workload{512, 512, 256, DType::fp16, 2};
  const Schedule schedule =
      build("fused-sequential", workload, machine, default_gemm_knobs(machine, workload.dtype));
  LinkIntegral links;
  SimulationOptions options;
  options.observer = &links;
  simulate(schedule, machine, options);
  EXPECT_TRUE(links.rate.empty());
}

}  // namespace
}  // namespace tritax

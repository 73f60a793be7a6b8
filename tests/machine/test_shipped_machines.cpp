#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "machine_text.hpp"
#include "model/machine/changes.hpp"
#include "model/machine/check_machine.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/topology.hpp"

namespace tritax {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> machine_files();
}

namespace {

TEST(ShippedMachines, AreThoseThatTheCommandLineLists) {
  EXPECT_EQ(shipped_machines(),
            (std::vector<std::string>{
                "a100-8",   "a100-8-1005mhz", "b200-8",   "b300-8",     "gb200-4",  "gb200-72",
                "gb300-4",  "h100-4",         "h100-8",   "h200-4",     "h200-8",   "h200-8-no-multicast",
                "h200-8x8", "mi250x-4",       "mi300x-8", "mi300x-8x8", "mi308x-8", "mi325x-8",
                "mi350x-8", "mi355x-8",       "pvc-1550"}));
}

TEST(ShippedMachines, AreCompiledInByteForByte) {
  std::size_t files = 0;
  const std::string folder = std::string(TRITAX_SOURCE_DIR) + "/model/machine/machines";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files += entry.path().extension() == ".toml";
  EXPECT_EQ(embedded::machine_files().size(), files);
  for (const auto& [name, text] : embedded::machine_files()) {
    EXPECT_EQ(text, read_text(shipped_path(std::string(name)))) << name;
  }
}

TEST(ShippedMachines, AreNamedLikeTheirFiles) {
  for (const std::string& name : shipped_machines()) {
    EXPECT_EQ(find_machine(name).name, name);
    EXPECT_EQ(read_machine(shipped_path(name)).name, name);
    EXPECT_EQ(find_machine(shipped_path(name)).name, name);
  }
}

// The dtypes for which the matrix cores have instructions.
int dtypes_of(const Gpu& gpu) {
  int count = 0;
  for (const MatrixRate& rate : gpu.matrix) count += rate.flop_per_clk_per_cu > 0;
  return count;
}

TEST(ShippedMachines, StateEveryParameterOfEveryDtypeOnce) {
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    // Before Hopper and CDNA 3 there was no fp8, and Xe-HPC has none.
    const bool without_fp8 = name.starts_with("a100-8") || name == "mi250x-4" || name == "pvc-1550";
    EXPECT_EQ(dtypes_of(machine.gpu), without_fp8 ? kDTypeCount - 1 : kDTypeCount) << name;
    std::size_t expected = 0;
    for (const ParameterSpec& spec : parameter_specs()) {
      if (spec.presence != Presence::required) continue;
      expected += spec.table == "gpu.matrix" ? static_cast<std::size_t>(dtypes_of(machine.gpu)) : 1;
    }
    std::set<std::string> keys;
    std::size_t required = 0;
    for (const Parameter& parameter : machine.parameters) {
      EXPECT_TRUE(keys.insert(parameter.key).second) << name << " " << parameter.key;
      const ParameterSpec* spec = find_parameter_spec(parameter.key);
      ASSERT_NE(spec, nullptr) << parameter.key;
      required += spec->presence == Presence::required;
      EXPECT_GE(parameter.source.size(), 10U)
          << name << " " << parameter.key << ": name the source or the reason";
    }
    EXPECT_EQ(required, expected) << name;
  }
}

// A row that sets a value makes it derived or measured; an assumption has no such row.
TEST(ShippedMachines, AnAssumedValueServesNoPublishedRow) {
  for (const std::string& name : shipped_machines()) {
    for (const Parameter& parameter : find_machine(name).parameters) {
      if (parameter.how != Provenance::assumed) continue;
      EXPECT_EQ(parameter.serves, "") << name << " " << parameter.key;
    }
  }
}

TEST(ShippedMachines, AnUnknownNameOffersTheNearest) {
  try {
    find_machine("mi300x8");
    FAIL() << "found a machine of that name";
  } catch (const UserError& error) {
    expect_contains(error.what(), "unknown machine \"mi300x8\", did you mean \"mi300x-8\"?");
    expect_contains(error.what(), "h200-8");
  }
}

TEST(ShippedMachines, APathThatDoesNotExistIsNoMachineName) {
  try {
    find_machine("mine.toml");
    FAIL() << "read a file that does not exist";
  } catch (const UserError& error) {
    expect_contains(error.what(), "mine.toml: cannot be read: No such file or directory");
  }
}

// Data sheet peaks (stas00/ml-engineering @744d01e compute/accelerator/README.md; vendors' data sheets),
// dense TFLOP/s. `ghz` is the clock to which the data sheet refers.
struct Peak {
  std::string machine;
  DType dtype;
  double ghz;
  double tflops;
};

class DataSheet : public testing::TestWithParam<Peak> {};

TEST_P(DataSheet, PeakIsComputeUnitsTimesRateTimesClock) {
  const Peak& peak = GetParam();
  const Gpu gpu = find_machine(peak.machine).gpu;
  const double tflops = gpu.cu_count() * gpu.rate(peak.dtype).flop_per_clk_per_cu * peak.ghz * 1e-3;
  EXPECT_NEAR(tflops / peak.tflops, 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(
    Peaks, DataSheet,
    testing::Values(Peak{"mi300x-8", DType::fp16, 2.1, 1307.4}, Peak{"mi300x-8", DType::bf16, 2.1, 1307.4},
                    Peak{"mi300x-8", DType::fp8, 2.1, 2614.9}, Peak{"mi300x-8", DType::fp32, 2.1, 163.4},
                    Peak{"mi325x-8", DType::bf16, 2.1, 1307.4}, Peak{"mi325x-8", DType::fp8, 2.1, 2614.9},
                    Peak{"mi355x-8", DType::bf16, 2.4, 2516.6}, Peak{"mi355x-8", DType::fp8, 2.4, 5033},
                    Peak{"mi355x-8", DType::fp32, 2.4, 157.3}, Peak{"h200-4", DType::bf16, 1.83, 989.4},
                    Peak{"h200-8", DType::fp8, 1.83, 1979}, Peak{"h200-8", DType::fp32, 1.98, 67.0},
                    Peak{"mi250x-4", DType::fp16, 1.7, 191.5}, Peak{"mi250x-4", DType::bf16, 1.7, 191.5},
                    Peak{"mi250x-4", DType::fp32, 1.7, 47.9}, Peak{"mi350x-8", DType::bf16, 2.2, 2306.9},
                    Peak{"mi350x-8", DType::fp8, 2.2, 4613.7}, Peak{"a100-8", DType::fp16, 1.41, 312},
                    Peak{"a100-8", DType::bf16, 1.41, 312}, Peak{"a100-8", DType::fp32, 1.41, 19.5},
                    Peak{"pvc-1550", DType::fp16, 1.6, 839}, Peak{"pvc-1550", DType::bf16, 1.6, 839},
                    Peak{"pvc-1550", DType::fp32, 1.6, 52.4}, Peak{"a100-8", DType::fp64, 1.41, 19.5},
                    Peak{"h200-8", DType::fp64, 1.98, 66.9}, Peak{"mi300x-8", DType::fp64, 2.1, 163.4},
                    Peak{"mi355x-8", DType::fp64, 2.4, 78.6}));

// Stream-K was measured on an A100 whose clock was locked: 222.3 TFLOP/s are its peak (arXiv:2301.03598).
TEST(ShippedMachines, AClockCanBeLockedBelowThatOfTheLoad) {
  const std::vector<ParameterChange> lock{
      parse_change(ChangeKind::set, "gpu.boost_clock=1005MHz"),
      parse_change(ChangeKind::set, "gpu.matrix.fp16.load_clock=1005MHz"),
      parse_change(ChangeKind::set, "gpu.matrix.bf16.load_clock=1005MHz"),
      parse_change(ChangeKind::set, "gpu.matrix.fp32.load_clock=1005MHz"),
      parse_change(ChangeKind::set, "gpu.matrix.fp64.load_clock=1005MHz")};
  const Machine locked = changed(find_machine("a100-8"), lock);
  const MatrixRate& rate = locked.gpu.rate(DType::fp16);
  EXPECT_NEAR(locked.gpu.cu_count() * rate.flop_per_clk_per_cu * rate.load_clock_ghz * 1e-3, 222.3, 0.1);
  EXPECT_DOUBLE_EQ(locked.gpu.boost_clock_ghz, rate.load_clock_ghz);
  const Machine shipped = find_machine("a100-8-1005mhz");
  EXPECT_EQ(shipped.gpu.boost_clock_ghz, locked.gpu.boost_clock_ghz);
  EXPECT_EQ(shipped.gpu.rate(DType::fp16).load_clock_ghz, rate.load_clock_ghz);
}

// Two dies of a package are GPUs of their own: 200 GB/s between them, 350 in all, each 64 of 128 GB.
TEST(ShippedMachines, TheDiesOfAnMi250xHaveAWiderLinkWithinThePackage) {
  const Machine machine = find_machine("mi250x-4");
  EXPECT_EQ(machine.gpu_count(), 8);
  EXPECT_EQ(2 * machine.gpu.hbm_bytes, 128e9);
  EXPECT_EQ(machine.fabric.link_raw_gb_per_s + machine.fabric.network_gb_per_s, 350);
  const Topology topology = build_topology(machine, 8);
  EXPECT_EQ(topology.routes[0][1].size(), 1U);
  EXPECT_EQ(topology.edges[static_cast<std::size_t>(topology.routes[0][1][0])].raw_gb_per_s, 200);
  EXPECT_FALSE(topology.edges[static_cast<std::size_t>(topology.routes[0][1][0])].network);
  for (const int edge : topology.routes[0][2]) {
    if (!topology.edges[static_cast<std::size_t>(edge)].network) continue;
    EXPECT_EQ(topology.edges[static_cast<std::size_t>(edge)].raw_gb_per_s, 150);
  }
}

// Best rates found with real kernels, TFLOP/s: AMD ROCm blog on max-achievable FLOPS; stas00/ml-engineering
// @744d01e.
TEST(ShippedMachines, SustainedMatrixRateIsTheBestThatKernelsReach) {
  const auto sustained = [](const std::string& machine, DType dtype) {
    const Gpu gpu = find_machine(machine).gpu;
    const MatrixRate& rate = gpu.rate(dtype);
    return gpu.cu_count() * rate.flop_per_clk_per_cu * rate.issue_efficiency * rate.load_clock_ghz * 1e-3;
  };
  EXPECT_NEAR(sustained("mi300x-8", DType::fp16), 654, 2);
  EXPECT_NEAR(sustained("mi300x-8", DType::bf16), 708, 2);
  EXPECT_NEAR(sustained("mi300x-8", DType::fp8), 1273, 2);
  EXPECT_NEAR(sustained("mi325x-8", DType::fp16), 794, 2);
  EXPECT_NEAR(sustained("mi325x-8", DType::bf16), 843, 2);
  EXPECT_NEAR(sustained("mi325x-8", DType::fp8), 1519, 2);
  EXPECT_NEAR(sustained("mi355x-8", DType::bf16), 1565, 2);
  EXPECT_NEAR(sustained("mi250x-4", DType::bf16), 147, 0.5);
  EXPECT_NEAR(sustained("a100-8", DType::bf16), 271.2, 0.5);
}

// Nothing can be used more than fully: sustained rates stay below the vendors' peaks.
TEST(ShippedMachines, SustainedRatesStayBelowPeaks) {
  const std::vector<std::pair<std::string, double>> hbm_peaks{
      {"mi300x-8", 5300}, {"mi325x-8", 6000}, {"mi355x-8", 8000}, {"h100-4", 3350}, {"h200-4", 4800},
      {"h200-8", 4800},   {"mi250x-4", 1640}, {"mi350x-8", 8000}, {"a100-8", 2039}, {"pvc-1550", 3277}};
  for (const auto& [name, peak] : hbm_peaks) {
    const Machine machine = find_machine(name);
    EXPECT_LT(machine.gpu.hbm_gb_per_s, peak) << name;
    EXPECT_GT(machine.gpu.hbm_gb_per_s, 0.6 * peak) << name;
    EXPECT_TRUE(find_inconsistencies(machine).empty()) << name;
  }
}

// ROCm/iris @3b4c197 examples/02_all_load, 03_all_store: 8 MI300X at once push twice as fast as they pull,
// although one pair pulls a little faster than it pushes.
TEST(ShippedMachines, Mi300xPushesFasterThanItPullsWhenAllGpusMove) {
  const Fabric fabric = find_machine("mi300x-8").fabric;
  EXPECT_GT(fabric.load_efficiency, fabric.store_efficiency);
  EXPECT_NEAR(fabric.store_egress_gb_per_s / fabric.load_ingress_gb_per_s, 300.6 / 139.1, 1e-9);
}

TEST(Inconsistencies, AreFoundInEveryPartOfAMachine) {
  Machine machine = find_machine("h200-4");
  ASSERT_TRUE(find_inconsistencies(machine).empty());
  machine.gpu.registers_per_thread_max = machine.gpu.registers_per_cu + 100;
  machine.gpu.l2_bytes = 2 * machine.gpu.hbm_bytes;
  machine.interpreter.l2_coalescing_ns = 0;
  machine.gpu.l2_ports = 1000;
  machine.gpu.shader_engines = 1000;
  machine.fabric.store_latency_ns = 2 * machine.fabric.load_round_trip_ns;
  std::vector<std::string> keys;
  for (const Inconsistency& found : find_inconsistencies(machine)) keys.push_back(found.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"gpu.registers_per_thread_max", "gpu.l2_ports", "gpu.l2_ports",
                                            "gpu.shader_engines", "gpu.l2_size", "fabric.store_latency"}));
}

}  // namespace
}  // namespace tritax

// `--set`, `--scale`, and machine files with a base.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "model/machine/changes.hpp"
#include "model/machine/check_machine.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/write_machine.hpp"
#include "tests/machine/machine_text.hpp"

namespace tritax {
namespace {

Machine set(const std::string& machine, const std::vector<std::string>& texts) {
  std::vector<ParameterChange> changes;
  for (const std::string& text : texts) changes.push_back(parse_change(ChangeKind::set, text));
  return changed(find_machine(machine), changes);
}

Machine scaled(const std::string& machine, const std::string& text) {
  return changed(find_machine(machine), std::vector{parse_change(ChangeKind::scale, text)});
}

template <typename Work>
std::string refusal_of(const Work& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of_set(const std::string& text) {
  return refusal_of([&] { set("mi300x-8", {text}); });
}

TEST(MachineChanges, AValueHasAUnitAsFilesHaveIt) {
  EXPECT_EQ(set("mi300x-8", {"gpu.hbm_bandwidth=2TB/s"}).gpu.hbm_gb_per_s, 2000);
  EXPECT_EQ(set("mi300x-8", {"gpu.hbm_bandwidth=2 TB/s"}).gpu.hbm_gb_per_s, 2000);
  EXPECT_EQ(set("mi300x-8", {"host.barrier_time=3us"}).host.barrier_ns, 3000);
  EXPECT_EQ(set("mi300x-8", {"gpu.matrix.fp16.load_clock=1200MHz"}).gpu.rate(DType::fp16).load_clock_ghz,
            1.2);
  EXPECT_EQ(set("mi300x-8", {"fabric.store_efficiency=50%"}).fabric.store_efficiency, 0.5);
  EXPECT_EQ(set("mi300x-8", {"fabric.store_efficiency=0.5"}).fabric.store_efficiency, 0.5);
  EXPECT_EQ(set("mi300x-8", {"gpu.async_tile_copy=true"}).gpu.async_tile_copy, true);
  EXPECT_EQ(set("mi300x-8", {"gpu.cus_per_xcd=32"}).gpu.cus_per_xcd, 32);
}

TEST(MachineChanges, LinksTakeThePortsThatTheyMakeUpWithThem) {
  const Machine machine = find_machine("mi300x-8");
  const Machine half = set("mi300x-8", {"fabric.link=32GB/s"});
  EXPECT_EQ(half.fabric.link_raw_gb_per_s, 32);
  EXPECT_DOUBLE_EQ(half.fabric.store_egress_gb_per_s, machine.fabric.store_egress_gb_per_s / 2);
  EXPECT_DOUBLE_EQ(half.fabric.load_ingress_gb_per_s, machine.fabric.load_ingress_gb_per_s / 2);
  EXPECT_DOUBLE_EQ(half.copy_engine.gb_per_s, machine.copy_engine.gb_per_s / 2);
  EXPECT_EQ(half.fabric.store_latency_ns, machine.fabric.store_latency_ns);
  EXPECT_EQ(half.fabric.store_efficiency, machine.fabric.store_efficiency);
}

TEST(MachineChanges, WhatIsGivenAsWellIsNotTakenAlong) {
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"fabric.link=32GB/s", "fabric.store_egress=100GB/s"},
        std::vector<std::string>{"fabric.store_egress=100GB/s", "fabric.link=32GB/s"}}) {
    EXPECT_EQ(set("mi300x-8", order).fabric.store_egress_gb_per_s, 100);
  }
}

TEST(MachineChanges, FewerGpusOfAMeshHaveFewerLinksAndSmallerPorts) {
  const Machine four = set("mi300x-8", {"gpus_per_node=4"});
  EXPECT_EQ(four.gpu_count(), 4);
  EXPECT_DOUBLE_EQ(four.fabric.store_egress_gb_per_s,
                   find_machine("mi300x-8").fabric.store_egress_gb_per_s * 3 / 7);
  EXPECT_EQ(set("h200-8", {"gpus_per_node=4"}).fabric.store_egress_gb_per_s,
            find_machine("h200-8").fabric.store_egress_gb_per_s);
  EXPECT_EQ(set("mi300x-8", {"gpus_per_node=1"}).gpu_count(), 1);
}

TEST(MachineChanges, ScalingEveryMachineByHalfLeavesItConsistent) {
  for (const std::string& name : shipped_machines()) {
    SCOPED_TRACE(name);
    for (const std::string key : {"fabric.link", "gpu.hbm_bandwidth", "gpu.l2_bandwidth", "gpu.lds_per_cu"}) {
      SCOPED_TRACE(key);
      const Machine half = scaled(name, key + "=0.5");
      EXPECT_TRUE(find_inconsistencies(half).empty());
      EXPECT_DOUBLE_EQ(parameter_value(half, key), 0.5 * parameter_value(find_machine(name), key));
    }
  }
}

TEST(MachineChanges, ASetValueAndTheFactorToItAreOneMachine) {
  const Machine by_value = set("mi300x-8", {"fabric.link=32GB/s"});
  const Machine by_factor = scaled("mi300x-8", "fabric.link=0.5");
  for (const Parameter& parameter : by_value.parameters) {
    EXPECT_DOUBLE_EQ(parameter_value(by_value, parameter.key), parameter_value(by_factor, parameter.key));
  }
}

TEST(MachineChanges, AreToldWithWhatFollowsAndWhereTheOldValueWasFrom) {
  const Machine machine = set("mi300x-8", {"fabric.link=32GB/s"});
  EXPECT_EQ(machine.title(), "mi300x-8 with fabric.link=32 GB/s");
  const std::vector<std::string> told = describe_changes(machine);
  ASSERT_EQ(told.size(), 6U);
  EXPECT_EQ(told[0], "fabric.link=32 GB/s (was 64 GB/s)");
  EXPECT_EQ(told[1], "fabric.store_egress=150.3 GiB/s (was 300.6 GiB/s)");
  const auto link = std::find_if(machine.parameters.begin(), machine.parameters.end(),
                                 [](const Parameter& p) { return p.key == "fabric.link"; });
  ASSERT_NE(link, machine.parameters.end());
  EXPECT_EQ(link->how, Provenance::assumed);
  EXPECT_THAT(link->source, testing::StartsWith("--set fabric.link=32GB/s; in the file: 64 GB/s, xGMI"));
}

TEST(MachineChanges, WhatTheFileSaysAlreadyIsNoChange) {
  EXPECT_TRUE(set("mi300x-8", {"fabric.link=64GB/s"}).changes.empty());
  EXPECT_TRUE(scaled("mi300x-8", "fabric.link=1").changes.empty());
}

TEST(MachineChanges, BadKeysAreRefusedWithTheNearest) {
  EXPECT_THAT(refusal_of_set("fabric.lnk=32GB/s"), testing::HasSubstr("did you mean 'fabric.link'?"));
  EXPECT_THAT(refusal_of_set("hbm_bandwidth=1TB/s"), testing::HasSubstr("did you mean 'gpu.hbm_bandwidth'?"));
  EXPECT_THAT(refusal_of_set("gpu.matrix.load_clock=1GHz"),
              testing::HasSubstr("is no parameter of a machine"));
}

TEST(MachineChanges, BadValuesAreRefused) {
  EXPECT_THAT(refusal_of_set("fabric.link"), testing::HasSubstr("is no KEY=VALUE"));
  EXPECT_THAT(refusal_of_set("fabric.link="), testing::HasSubstr("is no KEY=VALUE"));
  EXPECT_THAT(refusal_of_set("fabric.link=fast"), testing::HasSubstr("does not begin with a number"));
  EXPECT_THAT(refusal_of_set("fabric.link=32"), testing::HasSubstr("has no unit; give one of B/s, KB/s"));
  EXPECT_THAT(refusal_of_set("fabric.link=32GHz"), testing::HasSubstr("unit \"GHz\" does not fit"));
  EXPECT_THAT(refusal_of_set("fabric.link=-1GB/s"), testing::HasSubstr("out of range"));
  EXPECT_THAT(refusal_of_set("fabric.link=nanGB/s"), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(refusal_of_set("fabric.link=1e999GB/s"), testing::HasSubstr("out of range"));
  EXPECT_THAT(refusal_of_set("gpu.cus_per_xcd=3.5"), testing::HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal_of_set("gpu.async_tile_copy=1"), testing::HasSubstr("true or false"));
  EXPECT_THAT(refusal_of_set("gpus_per_node=0"), testing::HasSubstr("whole number from 1 to 1024"));
  EXPECT_THAT(refusal_of_set("nodes=2"), testing::HasSubstr("needs fabric.network_bandwidth"));
  EXPECT_THAT(refusal_of_set("fabric.store_egress=10TB/s"), testing::HasSubstr("makes no sense then"));
  EXPECT_THAT(refusal_of([] {
                set("h200-4", {"gpus_per_node=4", "gpus_per_node=8"});
              }),
              testing::HasSubstr("changes it too"));
}

TEST(MachineChanges, BadFactorsAreRefused) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { scaled("mi300x-8", text); }); };
  EXPECT_THAT(refusal("fabric.link=0"), testing::HasSubstr("a factor is above 0"));
  EXPECT_THAT(refusal("fabric.link=0.5GB/s"), testing::HasSubstr("a factor has no unit"));
  EXPECT_THAT(refusal("gpu.async_tile_copy=0.5"), testing::HasSubstr("use --set"));
  EXPECT_THAT(refusal("gpus_per_node=2"), testing::HasSubstr("only --set changes it"));
  EXPECT_THAT(refusal("gpu.cus_per_xcd=0.9"), testing::HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal("gpu.l2_lock_step_bandwidth=0.5"), testing::HasSubstr("has none to scale"));
}

TEST(MachineChanges, ADtypeWithoutMatrixCoresGetsNone) {
  Machine machine = find_machine("mi300x-8");
  std::erase_if(machine.parameters, [](const Parameter& p) { return p.key.starts_with("gpu.matrix.fp8"); });
  const std::vector<ParameterChange> change{parse_change(ChangeKind::set, "gpu.matrix.fp8.load_clock=1GHz")};
  EXPECT_THAT(refusal_of([&] { changed(machine, change); }), testing::HasSubstr("do not have this dtype"));
}

TEST(MachineChanges, AChangedMachineIsWrittenAndReadBack) {
  const Machine machine = set("mi300x-8", {"fabric.link=32GB/s", "nodes=2", "fabric.network_bandwidth=50GB/s",
                                           "fabric.network_latency=2us"});
  const Machine again = parse_machine(write_machine(machine, "changed"), "written");
  EXPECT_EQ(again.nodes, 2);
  ASSERT_EQ(again.parameters.size(), machine.parameters.size());
  for (const Parameter& parameter : again.parameters) {
    EXPECT_EQ(parameter_value(again, parameter.key), parameter_value(machine, parameter.key))
        << parameter.key;
  }
}

constexpr const char* kSlowLinks = R"(base = "mi300x-8"
name = "slow-links"
[fabric]
store_latency = { value = 400, unit = "ns", source = "a test", how = "assumed" }
)";

TEST(BaseMachine, AFileSaysOnlyWhatDiffers) {
  const Machine base = find_machine("mi300x-8");
  const Machine machine = parse_machine(kSlowLinks, "slow-links.toml");
  EXPECT_EQ(machine.name, "slow-links");
  EXPECT_EQ(machine.base, "mi300x-8");
  EXPECT_EQ(machine.fabric.store_latency_ns, 400);
  ASSERT_EQ(machine.parameters.size(), base.parameters.size());
  for (const Parameter& parameter : base.parameters) {
    if (parameter.key == "fabric.store_latency") continue;
    EXPECT_EQ(parameter_value(machine, parameter.key), parameter_value(base, parameter.key)) << parameter.key;
  }
}

TEST(BaseMachine, MistakesArePlacedInTheFileThatMakesThem) {
  const auto refusal = [](const std::string& text) {
    return refusal_of([&] { parse_machine(text, "mine.toml"); });
  };
  EXPECT_THAT(refusal("base = \"mi300x-9\"\nname = \"x\"\n"),
              testing::AllOf(testing::StartsWith("mine.toml:1: base: unknown machine \"mi300x-9\""),
                             testing::HasSubstr("did you mean \"mi300x-8\"?")));
  EXPECT_THAT(refusal("base = 8\nname = \"x\"\n"),
              testing::StartsWith("mine.toml:1: base: must be the name"));
  EXPECT_THAT(refusal("base = \"mi300x-8\"\n"), testing::HasSubstr("name: is missing"));
  EXPECT_THAT(refusal("base = \"mi300x-8\"\nname = \"x\"\n[fabric]\nlnk = 3\n"),
              testing::StartsWith("mine.toml:4: fabric.lnk: unknown key"));
  EXPECT_THAT(refusal("base = \"mi300x-8\"\nname = \"x\"\n[fabric]\nlink = { value = 32, unit = \"GB/s\", "
                      "source = \"s\", how = \"assumed\" }\n"),
              testing::AllOf(testing::StartsWith("mine.toml: base mi300x-8.toml (shipped):"),
                             testing::HasSubstr("fabric.store_egress")));
}

TEST(BaseMachine, AFileIsNotItsOwnBase) {
  const std::string path = testing::TempDir() + "circle-of-machines.toml";
  std::ofstream(path) << "base = \"circle-of-machines.toml\"\nname = \"x\"\n";
  EXPECT_THAT(refusal_of([&] { read_machine(path); }), testing::HasSubstr("is one its own base?"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tritax

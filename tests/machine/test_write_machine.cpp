#include <gtest/gtest.h>

#include "model/machine/machine.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/write_machine.hpp"

namespace tritax {
namespace {

void expect_equal(const Machine& a, const Machine& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.gpus_per_node, b.gpus_per_node);
  EXPECT_EQ(a.gpu.name, b.gpu.name);
  EXPECT_EQ(a.gpu.arch, b.gpu.arch);
  EXPECT_EQ(a.fabric.kind, b.fabric.kind);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const Parameter& p = a.parameters[i];
    const Parameter& q = b.parameters[i];
    EXPECT_EQ(p.key, q.key);
    EXPECT_EQ(p.value, q.value) << p.key;
    EXPECT_EQ(p.unit, q.unit) << p.key;
    EXPECT_EQ(p.source, q.source) << p.key;
    EXPECT_EQ(p.how, q.how) << p.key;
    EXPECT_EQ(p.serves, q.serves) << p.key;
    EXPECT_EQ(p.residual, q.residual) << p.key;
    EXPECT_EQ(parameter_value(a, p.key), parameter_value(b, p.key)) << p.key;
  }
}

TEST(WriteMachine, WhatIsReadAgainIsWhatWasWritten) {
  for (const std::string& name : shipped_machines()) {
    SCOPED_TRACE(name);
    const Machine machine = find_machine(name);
    expect_equal(parse_machine(write_machine(machine, "one line\nand another"), "written"), machine);
  }
}

TEST(WriteMachine, TextsMayHoldWhatTomlGivesAMeaning) {
  Machine machine = find_machine("h200-4");
  machine.description = "a \"quoted\" \\ back\\slash, tab\t, µs";
  machine.parameters.front().source = "C:\\path, \"x\" = {1}";
  expect_equal(parse_machine(write_machine(machine, ""), "written"), machine);
}

TEST(ParameterValues, AreSetWhereTheSimulatorReadsThem) {
  Machine machine = find_machine("h200-4");
  set_parameter_value(machine, "gpu.matrix.fp8.load_clock", 1.25);
  set_parameter_value(machine, "fabric.store_egress", 123);
  set_parameter_value(machine, "host.barrier_time", 7);
  EXPECT_EQ(machine.gpu.rate(DType::fp8).load_clock_ghz, 1.25);
  EXPECT_NE(machine.gpu.rate(DType::bf16).load_clock_ghz, 1.25);
  EXPECT_EQ(machine.fabric.store_egress_gb_per_s, 123);
  EXPECT_EQ(machine.host.barrier_ns, 7);
  EXPECT_EQ(parameter_value(machine, "gpu.matrix.fp8.load_clock"), 1.25);
}

}  // namespace
}  // namespace tritax

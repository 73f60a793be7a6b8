#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <cstdio>

#include "machine_text.hpp"
#include "model/machine/check_machine.hpp"
#include "model/machine/parameters.hpp"

namespace tritax {
namespace {

TEST(MachineReader, ConvertsUnitsToNanosecondsBytesGigabytesPerSecondAndGigahertz) {
  std::string text = mi300x_text();
  text = with_value(text, "gpu", "l2_latency", "0.5", "us");
  text = with_value(text, "gpu", "hbm_latency", "2e-6", "s");
  text = with_value(text, "gpu", "l2_size", "3", "MiB");
  text = with_value(text, "gpu", "hbm_size", "200", "GB");
  text = with_value(text, "gpu", "boost_clock", "2100", "MHz");
  text = with_value(text, "gpu", "hbm_bandwidth", "5.25", "TB/s");
  text = with_value(text, "fabric", "store_egress", "300", "GiB/s");
  text = with_value(text, "fabric", "store_efficiency", "75", "%");
  const Machine machine = parse_machine(text, "mine.toml");
  EXPECT_DOUBLE_EQ(machine.gpu.l2_latency_ns, 500);
  EXPECT_DOUBLE_EQ(machine.gpu.hbm_latency_ns, 2000);
  EXPECT_DOUBLE_EQ(machine.gpu.l2_bytes, 3145728);
  EXPECT_DOUBLE_EQ(machine.gpu.hbm_bytes, 200e9);
  EXPECT_DOUBLE_EQ(machine.gpu.boost_clock_ghz, 2.1);
  EXPECT_DOUBLE_EQ(machine.gpu.hbm_gb_per_s, 5250);
  EXPECT_DOUBLE_EQ(machine.fabric.store_egress_gb_per_s, 322.1225472);
  EXPECT_DOUBLE_EQ(machine.fabric.store_efficiency, 0.75);
}

TEST(MachineReader, KeepsEveryParameterWithItsProvenance) {
  const Machine machine = parse_machine(mi300x_text(), "mine.toml");
  bool found = false;
  for (const Parameter& parameter : machine.parameters) {
    if (parameter.key != "fabric.store_egress") continue;
    found = true;
    EXPECT_DOUBLE_EQ(parameter.value, 300.6);
    EXPECT_EQ(parameter.unit, "GiB/s");
    EXPECT_EQ(parameter.how, Provenance::measured);
    EXPECT_EQ(parameter.serves, "IR-ALLSTORE-4096MiB");
    EXPECT_DOUBLE_EQ(parameter.residual, 0.01);
    expect_contains(parameter.source, "ROCm/iris @3b4c197");
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(machine.file, "mine.toml");
}

TEST(MachineReader, OffersTheNearestNameForAnUnknownKey) {
  const std::string text = with(mi300x_text(), "\nl2_bandwidth = {", "\nl2_bandwith = {");
  const std::string message = failure_of(text);
  expect_contains(message, "mine.toml:" + std::to_string(line_of(text, "l2_bandwith")) + ": ");
  expect_contains(message, "gpu.l2_bandwith: unknown key; did you mean \"l2_bandwidth\"?");
}

TEST(MachineReader, OffersTheNearestNameForAnUnknownTableDtypeOrField) {
  expect_contains(failure_of(with(mi300x_text(), "[fabric]", "[fabrik]")), "did you mean \"fabric\"?");
  expect_contains(failure_of(with(mi300x_text(), "[gpu.matrix.bf16]", "[gpu.matrix.bf61]")),
                  "gpu.matrix.bf61: unknown key; did you mean \"bf16\"?");
  expect_contains(failure_of(with(mi300x_text(), "source = ", "sourc = ")), "did you mean \"source\"?");
}

TEST(MachineReader, ListsTheKnownKeysWhenNoneIsNear) {
  const std::string message =
      failure_of(with(mi300x_text(), "nodes = 1\n", "nodes = 1\nwarp_drive_flux = 3\n"));
  expect_contains(message, "warp_drive_flux: unknown key; known here:");
  expect_contains(message, "gpus_per_node");
}

TEST(MachineReader, NamesUnitAndAllowedUnitsWhenTheDimensionIsWrong) {
  const std::string text = with_value(mi300x_text(), "gpu", "l2_bandwidth", "17", "ms");
  const std::string message = failure_of(text);
  expect_contains(
      message, "mine.toml:" + std::to_string(line_of(text, "\nl2_bandwidth = ") + 1) + ": gpu.l2_bandwidth");
  expect_contains(message, "unit \"ms\" does not fit; allowed: B/s, KB/s, MB/s, GB/s, TB/s, MiB/s, GiB/s");
}

TEST(MachineReader, RefusesAUnitWhereACountIsMeantAndAMissingUnitWhereOneIsNeeded) {
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "xcds", "8", "GB")), "allowed: \"\"");
  expect_contains(failure_of(with_line(mi300x_text(), "gpu", "l2_latency",
                                       "l2_latency = { value = 1, source = \"a test\", how = \"assumed\" }")),
                  "unit \"\" does not fit; allowed: ns, us, ms, s");
}

TEST(MachineReader, RefusesNegativeZeroInfiniteAndNotANumber) {
  for (const std::string value : {"-5", "0", "1e-307", "inf", "-inf", "nan", "1e300"}) {
    const std::string message = failure_of(with_value(mi300x_text(), "gpu", "hbm_bandwidth", value, "GB/s"));
    expect_contains(message, "gpu.hbm_bandwidth: value ");
    expect_contains(message, "is out of range; allowed: at least 1e-06 and at most 1e+09");
  }
}

TEST(MachineReader, StatesBoundsInTheUnitOfTheFile) {
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "l2_latency", "-2", "us")),
                  "value -2 us is out of range; allowed: at least 1e-06 and at most 1e+09");
}

TEST(MachineReader, AcceptsZeroWhereItMeansThatACostIsAbsent) {
  const Machine machine =
      parse_machine(with_value(mi300x_text(), "host", "kernel_gap", "0", "ns"), "mine.toml");
  EXPECT_EQ(machine.host.kernel_gap_ns, 0);
}

TEST(MachineReader, RefusesWhatIsSoSmallThatTimesWouldOverflow) {
  const auto refused = [](const std::string& table, const std::string& key, const std::string& unit,
                          const std::string& allowed) {
    for (const std::string value : {"1e-307", "1e-12"}) {
      expect_contains(failure_of(with_value(mi300x_text(), table, key, value, unit)),
                      table + "." + key + ": value " + value);
      expect_contains(failure_of(with_value(mi300x_text(), table, key, value, unit)), allowed);
    }
  };
  refused("fabric", "link", "GB/s", "allowed: at least 1e-06 and at most");
  refused("library", "channel_bandwidth", "GB/s", "allowed: at least 1e-06 and at most");
  refused("gpu", "llc_bandwidth", "GB/s", "allowed: 0, or at least 1e-06 and at most");
  refused("gpu", "boost_clock", "GHz", "allowed: at least 0.001 and at most 100");
  refused("gpu", "lds_bandwidth", "B/clk", "allowed: at least 0.001 and at most");
  refused("gpu", "hbm_size", "GB", "allowed: at least 1e-09 and at most");
  refused("fabric", "store_efficiency", "share", "allowed: at least 0.001 and at most 1");
}

TEST(MachineReader, TakesAByteOrderMark) {
  EXPECT_EQ(parse_machine("\xEF\xBB\xBF" + mi300x_text(), "mine.toml").name, "mi300x-8");
}

TEST(MachineReader, RefusesFractionsOfCountsAndSharesAboveOne) {
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "xcds", "7.5", "")), "must be a whole number");
  expect_contains(failure_of(with_value(mi300x_text(), "fabric", "store_efficiency", "101", "%")),
                  "out of range; allowed: at least 0.1 and at most 100");
}

TEST(MachineReader, RefusesValuesOfTheWrongType) {
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "l2_latency", "\"fast\"", "ns")),
                  "value must be a number");
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "async_tile_copy", "1", "")),
                  "value must be true or false");
  expect_contains(failure_of(with_line(mi300x_text(), "gpu", "l2_latency", "l2_latency = 102")),
                  "gpu.l2_latency: must be written { value =");
}

TEST(MachineReader, NamesTheMissingKeyTableOrValue) {
  expect_contains(failure_of(with_line(mi300x_text(), "gpu", "hbm_latency", "")),
                  "gpu.hbm_latency: is missing");
  expect_contains(failure_of(with_line(mi300x_text(), "gpu.matrix.bf16", "load_clock", "")),
                  "gpu.matrix.bf16.load_clock: is missing");
  expect_contains(failure_of(with(mi300x_text(), "name = \"mi300x-8\"\n", "")), "name: is missing");
  expect_contains(failure_of(mi300x_text().substr(0, mi300x_text().find("[library]"))),
                  "library: is missing");
  expect_contains(
      failure_of(with_line(mi300x_text(), "gpu", "hbm_latency",
                           "hbm_latency = { unit = \"ns\", source = \"a test\", how = \"assumed\" }")),
      "gpu.hbm_latency.value: is missing");
  expect_contains(failure_of(""), "name: is missing");
}

TEST(MachineReader, AnAssumedValueNeedsItsReason) {
  expect_contains(
      failure_of(with_line(mi300x_text(), "gpu", "l2_latency",
                           "l2_latency = { value = 1, unit = \"ns\", source = \"\", how = \"assumed\" }")),
      "an assumed value needs its reason in `source`");
  expect_contains(failure_of(with_line(mi300x_text(), "gpu", "l2_latency",
                                       "l2_latency = { value = 1, unit = \"ns\", how = \"measured\" }")),
                  "`source` must name where the value comes from");
}

TEST(MachineReader, RefusesAnUnknownProvenanceAndResidual) {
  expect_contains(failure_of(with_line(
                      mi300x_text(), "gpu", "l2_latency",
                      "l2_latency = { value = 1, unit = \"ns\", source = \"a test\", how = \"guessed\" }")),
                  "how = \"guessed\" is unknown; allowed: datasheet, measured, derived, calibrated, assumed");
  expect_contains(failure_of(with(mi300x_text(), "residual = 0.01", "residual = 1.5")),
                  "residual must be at least 0 and below 1");
}

TEST(MachineReader, ADtypeWithoutATableHasNoMatrixRate) {
  std::string text = mi300x_text();
  const std::size_t begin = text.find("[gpu.matrix.fp8]");
  text.erase(begin, text.find("[gpu.matrix.fp32]") - begin);
  const Machine machine = parse_machine(text, "mine.toml");
  EXPECT_EQ(machine.gpu.rate(DType::fp8).flop_per_clk_per_cu, 0);
  EXPECT_GT(machine.gpu.rate(DType::fp16).flop_per_clk_per_cu, 0);
}

TEST(MachineReader, RefusesSizesOfTheMachineThatMakeNoSense) {
  for (const std::string value : {"0", "-1", "2.5", "1000000", "99999999999999", "\"8\""}) {
    expect_contains(failure_of(with(mi300x_text(), "gpus_per_node = 8", "gpus_per_node = " + value)),
                    "gpus_per_node: must be a whole number from 1 to 1024");
  }
  expect_contains(failure_of(with(mi300x_text(), "kind = \"mesh\"", "kind = \"torus\"")),
                  "fabric.kind: \"torus\" is unknown; allowed: mesh, switch, ring");
}

TEST(MachineReader, RefusesParametersThatContradictEachOther) {
  expect_contains(failure_of(with_value(mi300x_text(), "gpu.matrix.fp16", "load_clock", "2500", "MHz")),
                  "gpu.matrix.fp16.load_clock: 2.5 exceeds gpu.boost_clock (2.1)");
  const Machine h200 = find_machine("h200-4");
  Machine hot = h200;
  set_parameter_value(hot, "gpu.matrix.bf16.sustained_clock", 1.9);
  const auto findings = find_inconsistencies(hot);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].key, "gpu.matrix.bf16.sustained_clock");
  Machine unlimited = h200;
  unlimited.gpu.power_limit_w = 0;
  std::vector<std::string> keys;
  for (const Inconsistency& found : find_inconsistencies(unlimited)) keys.push_back(found.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"gpu.operand_energy", "gpu.load_power", "gpu.idle_power",
                                            "gpu.flat_voltage_clock"}));
  Machine half = h200;
  half.gpu.operand_pj_per_byte = 0;
  ASSERT_EQ(find_inconsistencies(half).size(), 1u);
  EXPECT_EQ(find_inconsistencies(half)[0].key, "gpu.miss_energy");
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "lds_per_workgroup_max", "65", "KiB")),
                  "exceeds gpu.lds_per_cu");
  expect_contains(failure_of(with_value(mi300x_text(), "gpu", "llc_size", "0", "B")),
                  "gpu.llc_bandwidth: must be 0 exactly if gpu.llc_size is 0");
  const std::string text = with_value(mi300x_text(), "fabric", "store_egress", "500", "GB/s");
  expect_contains(failure_of(text), "mine.toml:" + std::to_string(line_of(text, "store_egress = ")) +
                                        ": fabric.store_egress: 500 exceeds the raw rate of all links");
}

TEST(MachineReader, SeveralNodesNeedANetwork) {
  const std::string two_nodes = with(mi300x_text(), "nodes = 1", "nodes = 2");
  expect_contains(failure_of(two_nodes),
                  "fabric.network_bandwidth: is missing; a machine of 2 nodes needs it");
  const Machine machine = parse_machine(
      with(two_nodes, "[fabric]\n",
           "[fabric]\n"
           "network_bandwidth = { value = 50, unit = \"GB/s\", source = \"a test\", how = \"assumed\" }\n"
           "network_latency = { value = 2, unit = \"us\", source = \"a test\", how = \"assumed\" }\n"),
      "mine.toml");
  EXPECT_EQ(machine.gpu_count(), 16);
  EXPECT_DOUBLE_EQ(machine.fabric.network_gb_per_s, 50);
  EXPECT_DOUBLE_EQ(machine.fabric.network_latency_ns, 2000);
}

TEST(MachineReader, NamesFileAndLineOfBrokenToml) {
  const std::string message = failure_of("name = \"x\"\nnodes = = 3\n");
  expect_contains(message, "mine.toml:2: is not valid TOML");
  // Found by fuzzing: text on which toml++ 3.3 asserts.
  expect_contains(failure_of("[=x]\n"), "mine.toml");
  expect_contains(failure_of("[\t\x1b]\n"), "mine.toml");
}

TEST(MachineReader, RefusesNonAsciiCharactersAndQuotesWhereTomlForbidsThem) {
  for (const std::string bad : {"\u02FE = 1", "name = \u00E9", "name = 1\"\u00E9\"",
                                "name = \"\"\"\\ \n \u00E9\"\"\"", "name = \"\\\u00E9\""}) {
    expect_contains(failure_of("# \u00E9\n" + bad + "\n"), ": is not valid TOML: unexpected byte 0x");
  }
}

TEST(MachineReader, AcceptsAnyLanguageInTextsAndComments) {
  const std::string shipped = "\"8x AMD Instinct MI300X, full xGMI mesh, 7 links per GPU\"";
  for (const std::string text : {"\"\u00E9 \\\" # '\u00B5\"", "'\u00E9 \\'",
                                 "\"\"\"\u00E9 \"quoted\"\n\\\" \u00B5\"\"\"\"\"", "'''it's \n\u00B5'''"}) {
    const std::string file = with(mi300x_text(), shipped, text + " # \u00B5 \" '");
    EXPECT_NO_THROW(parse_machine(file, "mine.toml")) << text;
    EXPECT_NO_THROW(parse_machine("\uFEFF" + file, "mine.toml")) << text;
  }
}

// A file cut anywhere before its last parameter is refused; nothing but UserError leaves the reader.
RC_GTEST_PROP(MachineReader, RefusesEveryTruncatedFile, ()) {
  const std::string text = mi300x_text();
  const std::size_t last = text.find("arbitration_spread");
  const std::string cut = text.substr(0, *rc::gen::inRange<std::size_t>(0, last));
  RC_ASSERT_THROWS_AS(parse_machine(cut, "cut.toml"), UserError);
}

// Any single damaged byte gives a machine or a UserError.
RC_GTEST_PROP(MachineReader, SurvivesEveryDamagedByte, ()) {
  std::string text = mi300x_text();
  text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  try {
    parse_machine(text, "damaged.toml");
  } catch (const UserError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("damaged.toml:"));
  }
}

// The same quantity written in different units is the same number.
RC_GTEST_PROP(MachineReader, UnitsOfOneDimensionAgree, ()) {
  const int ns = *rc::gen::inRange(1, 1000000);
  const auto read = [](const std::string& value, const std::string& unit) {
    return parse_machine(with_value(mi300x_text(), "fabric", "flag_latency", value, unit), "mine.toml")
        .fabric.flag_latency_ns;
  };
  const double in_ns = read(std::to_string(ns), "ns");
  RC_ASSERT(in_ns == ns);
  RC_ASSERT(std::abs(read(std::to_string(ns) + "e-3", "us") - in_ns) <= 1e-12 * in_ns);
  RC_ASSERT(std::abs(read(std::to_string(ns) + "e-9", "s") - in_ns) <= 1e-12 * in_ns);
}

TEST(MachineFile, ThatDoesNotExistIsNamed) {
  try {
    read_machine("/nonexistent/mine.toml");
    FAIL() << "read a file that does not exist";
  } catch (const UserError& error) {
    expect_contains(error.what(), "/nonexistent/mine.toml: cannot be read: No such file or directory");
  }
}

TEST(MachineFile, ThatIsADirectoryOrEndlessIsRefused) {
  EXPECT_THROW(read_machine("/tmp"), UserError);
  EXPECT_THROW(read_machine("/dev/zero"), UserError);
}

TEST(ParameterList, HasEveryKeyOnceAndAMeaningForEach) {
  for (const ParameterSpec& spec : parameter_specs()) {
    EXPECT_FALSE(spec.meaning.empty()) << spec.name;
    EXPECT_FALSE(unit_names(spec.dimension).empty()) << spec.name;
    int same = 0;
    for (const ParameterSpec& other : parameter_specs())
      same += other.table == spec.table && other.name == spec.name;
    EXPECT_EQ(same, 1) << spec.name;
  }
}

TEST(ParameterList, IsFoundByDottedKey) {
  ASSERT_NE(find_parameter_spec("gpu.matrix.bf16.load_clock"), nullptr);
  EXPECT_EQ(find_parameter_spec("gpu.matrix.bf16.load_clock")->name, "load_clock");
  ASSERT_NE(find_parameter_spec("fabric.link"), nullptr);
  EXPECT_EQ(find_parameter_spec("gpu.matrix.fp128.load_clock"), nullptr);
  EXPECT_EQ(find_parameter_spec("gpu.link"), nullptr);
  EXPECT_EQ(find_parameter_spec(""), nullptr);
}

// The documentation and the list cannot drift apart.
TEST(ParameterList, IsDocumentedWhole) {
  const std::string docs = read_text(std::string(TRITAX_SOURCE_DIR) + "/docs/machines.md");
  for (const ParameterSpec& spec : parameter_specs()) {
    EXPECT_NE(docs.find("| `" + std::string(spec.name) + "` |"), std::string::npos) << spec.name;
  }
}

TEST(MachineReader, RefusesKeysOfSoManyPartsThatTheParserRunsOutOfStack) {
  std::string key = "a";
  for (int i = 0; i < 70'000; ++i) key += ".a";
  const auto expect_refusal = [](const std::string& text, int line) {
    expect_contains(failure_of(text), fmt::format("mine.toml:{}: is nested 16 levels deep or more", line));
  };
  expect_refusal("name = 'x'\n" + key + " = 1\n", 2);
  expect_refusal("\n\n[" + key + "]\n", 3);
  expect_refusal("a = {" + key + " = 1}\n", 1);
  expect_refusal("a = " + std::string(70'000, '[') + "\n", 1);
  std::string tables = "1";
  for (int i = 0; i < 1'000; ++i) tables = "{a.a.a.a = " + tables + "}";
  expect_refusal("a = " + tables + "\n", 1);
}

TEST(MachineReader, DotsAndBracketsInTextsAndNumbersAreNoDepth) {
  const std::string dots(100, '.');
  const std::string text = with(mi300x_text(), "name = ", "# " + dots + "\nname = ");
  EXPECT_NO_THROW(parse_machine(text, "mine.toml"));
  const std::string quoted =
      with(mi300x_text(), "source = ", "source = '" + dots + "[[[[[[[[[[[[[[[[[[', x = ");
  expect_contains(failure_of(quoted), "unknown key");
}

// The shortest of equal matmuls would take no time; a link would carry a day of padding for every row.
TEST(MachineReader, RefusesSpreadsAndPaddingThatNoSimulationEndsWith) {
  const std::string h200 = read_text(shipped_path("h200-4"));
  expect_contains(failure_of(with_value(h200, "gpu", "matmul_spread", "0.5", "share")),
                  "gpu.matmul_spread: value 0.5 share is out of range; allowed: at least 0 and at most 0.4");
  for (const std::string key : {"split_line_bytes", "sector_end_bytes", "ragged_end_bytes"}) {
    expect_contains(failure_of(with_value(h200, "fabric", key, "1e18", "B")), "at most 4096");
  }
}

TEST(MachineReader, RefusesMoreComputeUnitsThanAnyoneWouldWaitFor) {
  const std::string text = with_value(read_text(shipped_path("h200-4")), "gpu", "xcds", "64", "");
  expect_contains(failure_of(text), "gpu.cus_per_xcd: 132 on each of 64 dies are 8448 compute units");
  EXPECT_NO_THROW(parse_machine(with_value(text, "gpu", "cus_per_xcd", "64", ""), "mine.toml"));
}

TEST(MachineReader, RefusesPowerLimitsThatLeaveNothingAboveTheIdlePower) {
  const std::string h100 = read_text(shipped_path("h100-4"));
  expect_contains(failure_of(with_value(h100, "gpu", "power_limit", "74", "W")),
                  "gpu.idle_power: 74 exceeds");
  const Machine machine = parse_machine(with_value(h100, "gpu", "power_limit", "250", "W"), "mine.toml");
  EXPECT_EQ(machine.gpu.load_power_w, 700);
  // Where it is not stated, the limit of the file is the one that its clocks were measured under.
  EXPECT_EQ(parse_machine(mi300x_text(), "mine.toml").gpu.load_power_w, 750);
}

}  // namespace
}  // namespace tritax

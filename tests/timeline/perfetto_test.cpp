// Measured timelines as traces: read back whole, set beside a simulation, and refused when they do not fit.
#include "model/timeline/perfetto.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::measured_tiles;
using test::tile_to_both;

Topology two_gpus() {
  Machine machine;
  machine.gpus_per_node = 2;
  machine.fabric.link_raw_gb_per_s = 64;
  return build_topology(machine, 2);
}

std::string measured_json() {
  return measured_timeline_to_perfetto_json(measured_tiles(), tile_to_both(), "two \"H200\"");
}

// A simulation in which the first kernel begins at 3000 ns.
Timeline simulated() {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 1}, OpKind::matmul, 0, 3100, 7000});
  timeline.kernels = {{0, 0, 3000, 9000}, {1, 0, 3500, 9000}};
  return timeline;
}

json event_named(const json& trace, const std::string& name, int process) {
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["name"] == name && event["pid"] == process) return event;
  }
  ADD_FAILURE() << "no event " << name;
  return {};
}

std::map<int, std::pair<int, std::string>> processes(const json& trace) {
  std::map<int, std::pair<int, std::string>> all;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") all[event["pid"]].second = event["args"]["name"];
    if (event["name"] == "process_sort_index") all[event["pid"]].first = event["args"]["sort_index"];
  }
  return all;
}

TEST(MeasuredTrace, NamesItsGpusAndSaysWhatItIs) {
  const json trace = json::parse(measured_json());
  EXPECT_EQ(trace["otherData"]["schedule"], "tile to both");
  EXPECT_EQ(trace["otherData"]["measured"], "two \"H200\"");
  EXPECT_EQ(trace["otherData"]["ranks"], 2);
  EXPECT_EQ(processes(trace).at(1).second, "GPU 1 measured");
  EXPECT_DOUBLE_EQ(event_named(trace, "matmul C[1,2]", 0)["dur"], 4.0);
}

TEST(MeasuredTrace, TellsTheClockWhereItIsKnown) {
  Timeline timeline = measured_tiles();
  timeline.ops[0].clock_ghz = 1.6254;
  const std::string text = measured_timeline_to_perfetto_json(timeline, tile_to_both(), "");
  int told = 0;
  for (const MeasuredTrace::Event& event : parse_measured_trace(text, "m.json").events) {
    const std::size_t at = event.arguments.find("\"clock_ghz\"");
    if (at == std::string::npos) continue;
    ++told;
    EXPECT_EQ(event.arguments.substr(at, 18), "\"clock_ghz\":1.625,") << event.arguments;
  }
  EXPECT_EQ(told, 1);
}

TEST(MeasuredTrace, HasNoOverlapOnATrackThoughStoresDo) {
  std::map<std::pair<int, int>, double> last_end;
  const json trace = json::parse(measured_json());
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    double& end = last_end[{event["pid"], event["tid"]}];
    EXPECT_GE(event["ts"].get<double>() + 1e-9, end) << event;
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
}

TEST(SideBySide, PutsEachMeasuredGpuUnderItsSimulationWithTheFirstKernelsAligned) {
  const json trace = json::parse(side_by_side_perfetto_json(simulated(), tile_to_both(), two_gpus(),
                                                            parse_measured_trace(measured_json(), "m.json")));
  const auto all = processes(trace);
  std::map<int, std::string> in_order;
  for (const auto& [process, place] : all) in_order[place.first] = place.second;
  EXPECT_EQ(
      in_order,
      (std::map<int, std::string>{
          {0, "GPU 0 simulated"}, {1, "GPU 0 measured"}, {2, "GPU 1 simulated"}, {3, "GPU 1 measured"}}));
  int measured_gpu_1 = -1;
  for (const auto& [process, place] : all) {
    if (place.second == "GPU 1 measured") measured_gpu_1 = process;
  }
  // 7600 ns after the first measured begin, which is put at 3000 ns.
  const json matmul = event_named(trace, "matmul C[1,2]", measured_gpu_1);
  EXPECT_DOUBLE_EQ(matmul["ts"], 10.6);
  EXPECT_DOUBLE_EQ(matmul["dur"], 4.0);
  EXPECT_EQ(matmul["args"]["kernel"], "gemm");
  EXPECT_DOUBLE_EQ(event_named(trace, "matmul C[1,2]", 0)["ts"], 3.1);
}

TEST(SideBySide, KeepsEveryMeasuredEventAndTrackName) {
  const json alone = json::parse(measured_json());
  const json both = json::parse(side_by_side_perfetto_json(simulated(), tile_to_both(), two_gpus(),
                                                           parse_measured_trace(measured_json(), "m.json")));
  const auto count = [](const json& trace, int from, const std::string& phase, const std::string& name) {
    int found = 0;
    for (const json& event : trace["traceEvents"]) {
      found +=
          event["pid"] >= from && event["ph"] == phase && (name.empty() || event["name"] == name) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count(both, 3, "X", ""), count(alone, 0, "X", ""));
  EXPECT_EQ(count(both, 3, "M", "thread_name"), count(alone, 0, "M", "thread_name"));
}

TEST(SideBySide, RefusesAMeasurementOfAnotherSchedule) {
  const MeasuredTrace measured = parse_measured_trace(measured_json(), "m.json");
  for (const int change : {0, 1, 2}) {
    MeasuredTrace other = measured;
    if (change == 0) other.schedule = "another";
    if (change == 1) other.ranks = 4;
    if (change == 2) other.operations += 1;
    EXPECT_THROW(side_by_side_perfetto_json(simulated(), tile_to_both(), two_gpus(), other), UserError);
  }
}

TEST(MeasuredTrace, ThatIsDamagedIsRefusedWithThePlace) {
  const std::string good = measured_json();
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& words) {
    std::string text = good;
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    try {
      parse_measured_trace(text, "m.json");
      ADD_FAILURE() << "accepted " << to;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("m.json"), std::string::npos) << error.what();
    }
  };
  refused("{", "", "not a JSON object");
  refused("\"otherData\"", "\"other\"", "otherData");
  refused("\"ranks\":2", "\"ranks\":-2", "ranks = -2");
  refused("\"traceEvents\":[", "\"traceEvents\":{}, \"x\":[", "not a list");
  refused("\"ts\":0.000", "\"ts\":\"soon\"", "ts is not a number");
  refused("\"ts\":0.000", "\"ts\":-5", "ts = -5");
  refused("\"ph\":\"X\",\"pid\":0", "\"ph\":\"X\",\"pid\":9", "pid = 9");
  refused("\"args\":{\"workgroups\"", "\"args\":[],\"y\":{\"workgroups\"", "args is not an object");
  EXPECT_THROW(parse_measured_trace("[1,2", "m.json"), UserError);
  EXPECT_THROW(read_measured_trace("no-such-file.json"), UserError);
}

TEST(MeasuredTrace, OfJsonThatReadersCannotFollowIsRefused) {
  for (const std::size_t depth : {20, 1'000, 100'000}) {
    const std::string text = "{\n\"args\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
    try {
      parse_measured_trace(text, "m.json");
      ADD_FAILURE() << depth;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("m.json: line 2 is nested more than 16 levels deep", 0), 0u)
          << error.what();
    }
  }
}

// The timeline by hand, as if it had been simulated.
json simulated_trace() {
  const Schedule schedule = tile_to_both();
  return json::parse(timeline_to_perfetto_json(measured_tiles(), schedule, two_gpus()));
}

TEST(SimulatedTrace, HasAnArrowFromTheSignalToTheWaitThatHadToWait) {
  const json trace = simulated_trace();
  json from, to;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") from.push_back(event);
    if (event["ph"] == "f") to.push_back(event);
  }
  ASSERT_EQ(from.size(), 1u);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(from[0]["id"], to[0]["id"]);
  EXPECT_EQ(to[0]["bp"], "e");
  // Each lies inside the interval that it belongs to, on its track.
  const auto lies_in = [](const json& arrow, const json& interval) {
    EXPECT_EQ(arrow["tid"], interval["tid"]);
    EXPECT_GE(arrow["ts"], interval["ts"]);
    EXPECT_LT(arrow["ts"].get<double>(), interval["ts"].get<double>() + interval["dur"].get<double>());
  };
  lies_in(from[0], event_named(trace, "signal ready[3] -> GPU 1", 0));
  lies_in(to[0], event_named(trace, "wait ready[3] >= 1", 1));
}

TEST(SimulatedTrace, HasTheCriticalPathOnATrackOfItsOwn) {
  const json trace = simulated_trace();
  std::vector<std::string> steps;
  double until = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["pid"] != 3 || event["ph"] != "X") continue;
    EXPECT_NEAR(event["ts"].get<double>(), until, 1e-9);
    until = event["ts"].get<double>() + event["dur"].get<double>();
    steps.push_back(event["name"].get<std::string>() + " of " +
                    std::to_string(event["args"]["gpu"].get<int>()));
  }
  EXPECT_NEAR(until, 15.7, 1e-9);
  ASSERT_EQ(steps.size(), 9u);
  EXPECT_EQ(steps[3], "signal ready[3] -> GPU 1 of 0");
  EXPECT_EQ(steps[4], "wait ready[3] >= 1 of 1");
  EXPECT_EQ(processes(trace).at(3), (std::pair{-1, std::string("critical path")}));
}

TEST(MeasuredTrace, HasNoCauses) {
  EXPECT_EQ(measured_json().find("critical path"), std::string::npos);
  EXPECT_EQ(measured_json().find("\"ph\":\"s\""), std::string::npos);
}

}  // namespace
}  // namespace tritax

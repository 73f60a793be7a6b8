#include "sim/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/schedule/builder.hpp"
#include "model/timeline/perfetto.hpp"

namespace tritax {
namespace {

using nlohmann::json;

Topology mesh(int gpus) {
  Machine machine;
  machine.gpus_per_node = gpus;
  machine.fabric.link_raw_gb_per_s = 64;
  return build_topology(machine, gpus);
}

constexpr Rect kStoredTile{4, 8, 4, 4};  // tile [1,2] of C

// Two kernels a rank: "gemm" (matmul, store to the peer, signal, matmul) and "read" (wait, load).
Schedule two_kernels() {
  ScheduleBuilder b("a \"quoted\" name", 2);
  const auto a_buffer = b.buffer({"A", DType::fp16, 8, 16, 4, 4});
  const auto b_buffer = b.buffer({"B", DType::fp16, 16, 8, 4, 4});
  const auto c = b.buffer({"C", DType::fp16, 8, 16, 4, 4});
  const auto ready = b.flags("ready", 4);
  for (const int rank : {0, 1}) {
    Kernel gemm;
    gemm.name = "gemm";
    gemm.rank = rank;
    gemm.tile = {4, 4, 4, 1, Pipeline::serial};
    const auto g = b.kernel(gemm);
    for (int workgroup = 0; workgroup < 2; ++workgroup) {
      b.workgroup(g);
      b.matmul(a_buffer, b_buffer, {4, 0, 4, 4}, 0, 16);
      b.store(c, kStoredTile, 1 - rank);
      b.signal(ready, 3, 1, 1 - rank, Scope::system, LockProtocol::load_store);
      b.matmul(a_buffer, b_buffer, {4, 0, 4, 4}, 0, 16);
      b.store(c, kStoredTile, rank);
    }
    Kernel read;
    read.name = "read";
    read.rank = rank;
    const auto r = b.kernel(read);
    b.workgroup(r);
    b.wait(ready, 3, 2, Scope::system, LockProtocol::load_store);
    b.load(c, kStoredTile, rank);
    b.launch(rank, g, 0);
    b.launch(rank, r, 1);
    b.host(rank, HostOpKind::device_synchronize);
  }
  return b.finish();
}

// Rank 0's part of a run in which both GEMM workgroups share compute unit 5 and stores overlap what follows.
Timeline record(const Schedule& schedule) {
  TimelineRecorder recorder(schedule);
  recorder.host_op_started(0, 0, 0);
  recorder.host_op_finished(0, 0, 1500);
  recorder.kernel_started(0, 2000.25);
  recorder.host_op_started(0, 1, 1500);
  recorder.host_op_finished(0, 1, 3000);
  recorder.kernel_started(1, 3500);
  for (const std::uint32_t workgroup : {0U, 1U}) {
    const auto at = [&](std::uint32_t op) { return OpPlace{0, workgroup, op, 0, 5}; };
    recorder.op_started(at(0), 2000.25);
    recorder.op_finished(at(0), 4000.4);
    recorder.op_started(at(1), 4000.4);
    recorder.op_started(at(2), 4000.4);
    recorder.op_finished(at(1), 6000);
    recorder.op_finished(at(2), 6100);
    recorder.op_started(at(3), 6100);
    recorder.op_finished(at(3), 8000.75);
    recorder.op_started(at(4), 8000.75);
    recorder.op_finished(at(4), 9000);
  }
  recorder.link_rate(0, 4000.4, 50.5);
  recorder.link_rate(0, 6000, 0);
  recorder.kernel_finished(0, 9000);
  recorder.op_started({1, 0, 0, 0, 6}, 3600);
  recorder.host_op_started(0, 2, 3000);
  return recorder.take();
}

struct Track {
  int process = 0;
  int thread = 0;
  auto operator<=>(const Track&) const = default;
};

// The process of that name.
int process_of(const json& trace, const std::string& name) {
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name" && event["args"]["name"] == name) return event["pid"];
  }
  ADD_FAILURE() << "no process '" << name << "'";
  return -1;
}

std::map<Track, std::string> track_names(const json& trace) {
  std::map<Track, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") names[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  return names;
}

void expect_no_overlap(const json& trace) {
  std::map<Track, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    tracks[{event["pid"], event["tid"]}].emplace_back(begin, begin + event["dur"].get<double>());
  }
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
      EXPECT_LE(spans[i - 1].second, spans[i].first + 1e-6)
          << "GPU " << track.process << " track " << track.thread;
    }
  }
}

TEST(Timeline, RecordsBeginAndEndOfEveryOperation) {
  const Schedule schedule = two_kernels();
  const Timeline timeline = record(schedule);
  ASSERT_EQ(timeline.ops.size(), 11U);
  EXPECT_EQ(timeline.ops[1].kind, OpKind::store);
  EXPECT_EQ(timeline.ops[1].place.cu, 5);
  EXPECT_EQ(timeline.ops[1].begin_ns, 4000.4);
  EXPECT_EQ(timeline.ops[1].end_ns, 6000);
  ASSERT_EQ(timeline.kernels.size(), 2U);
  EXPECT_EQ(timeline.kernels[0].end_ns, 9000);
  EXPECT_EQ(timeline.kernels[1].stream, 1);
  ASSERT_EQ(timeline.links.size(), 2U);
  EXPECT_EQ(timeline.links[0].gb_per_s, 50.5);
}

TEST(Timeline, WhatIsStillRunningEndsAtTheLastTimeSeen) {
  const Schedule schedule = two_kernels();
  TimelineRecorder recorder(schedule);
  recorder.host_op_started(0, 0, 0);
  recorder.host_op_finished(0, 0, 10);
  recorder.kernel_started(0, 20);
  recorder.op_started({0, 0, 0, 0, 0}, 30);
  recorder.op_started({0, 1, 0, 0, 1}, 40);
  const Timeline timeline = recorder.take();
  EXPECT_EQ(timeline.ops[0].end_ns, 40);
  EXPECT_EQ(timeline.kernels[0].end_ns, 40);
}

TEST(PerfettoTrace, HasOneProcessAGpuAndNamedTracks) {
  const Schedule schedule = two_kernels();
  const json trace = json::parse(timeline_to_perfetto_json(record(schedule), schedule, mesh(2)));
  std::map<int, std::string> processes;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
  }
  EXPECT_EQ(processes,
            (std::map<int, std::string>{{0, "GPU 0"}, {1, "GPU 1"}, {2, "links"}, {3, "critical path"}}));
  std::set<std::string> tracks;
  for (const auto& [track, name] : track_names(trace)) {
    if (track.process == 0) {
      EXPECT_TRUE(tracks.insert(name).second) << name;
    }
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"host", "stream 0", "stream 1", "CU 5", "CU 5 stores",
                                           "CU 5 slot 2", "CU 5 slot 2 stores", "CU 6"}));
}

TEST(PerfettoTrace, PutsStoresAndSharedComputeUnitsOnTracksOfTheirOwnSoThatNothingOverlaps) {
  const Schedule schedule = two_kernels();
  const json trace = json::parse(timeline_to_perfetto_json(record(schedule), schedule, mesh(2)));
  expect_no_overlap(trace);
  const auto names = track_names(trace);
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] == "kernel" || event["cat"] == "host") continue;
    const std::string& track = names.at({event["pid"], event["tid"]});
    EXPECT_EQ(event["cat"] == "store", track.ends_with("stores")) << event;
  }
}

TEST(PerfettoTrace, NamesOperationsAndGivesTheirTimesInMicroseconds) {
  const Schedule schedule = two_kernels();
  const json trace = json::parse(timeline_to_perfetto_json(record(schedule), schedule, mesh(2)));
  EXPECT_EQ(trace["otherData"]["schedule"], "a \"quoted\" name");
  const int path = process_of(trace, "critical path");
  std::map<std::string, json> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] != path) events[event["name"]] = event;
  }
  ASSERT_TRUE(events.count("matmul C[1,2]"));
  ASSERT_TRUE(events.count("store C[1,2] -> GPU 1"));
  ASSERT_TRUE(events.count("signal ready[3] -> GPU 1"));
  ASSERT_TRUE(events.count("wait ready[3] >= 2"));
  ASSERT_TRUE(events.count("launch read"));
  ASSERT_TRUE(events.count("gemm"));
  const json& store = events["store C[1,2] -> GPU 1"];
  EXPECT_DOUBLE_EQ(store["ts"], 4.0);
  EXPECT_DOUBLE_EQ(store["dur"], 2.0);
  EXPECT_EQ(store["args"]["bytes"], 32);
  EXPECT_EQ(store["args"]["kernel"], "gemm");
  EXPECT_EQ(events["wait ready[3] >= 2"]["args"]["flag"], "ready");
}

TEST(PerfettoTrace, ShowsLinksAsCounters) {
  const Schedule schedule = two_kernels();
  const Topology topology = mesh(2);
  const json trace = json::parse(timeline_to_perfetto_json(record(schedule), schedule, topology));
  std::vector<std::pair<double, double>> samples;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], topology.edges[0].name);
    samples.emplace_back(event["ts"], event["args"]["GB/s"]);
  }
  EXPECT_EQ(samples, (std::vector<std::pair<double, double>>{{4.0, 50.5}, {6.0, 0.0}}));
}

TEST(PerfettoTrace, WritesALineForEachOfManyIntervals) {
  const Schedule schedule = two_kernels();
  Timeline timeline;
  constexpr int kIntervals = 20000;
  for (int i = 0; i < kIntervals; ++i) {
    const double begin = 100.0 * (i / 300);
    timeline.ops.push_back(
        {{0, 0, 0, 0, i % 300}, OpKind::matmul, static_cast<std::uint32_t>(i / 300), begin, begin + 100});
  }
  const std::string text = timeline_to_perfetto_json(timeline, schedule, mesh(2));
  // One line an event: the intervals, name and order of 300 compute units, 2 hosts and 2 processes; and two
  // more. Beside them the critical path.
  const json trace = json::parse(text);
  const int process = process_of(trace, "critical path");
  const auto path = std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                                  [process](const json& event) { return event["pid"] == process; });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') - path, kIntervals + 2 * (300 + 4) + 2);
}

}  // namespace
}  // namespace tritax

// The predictions of published numbers on AMD machines, so that no later change loses them silently. The
// numbers stand in scenarios/published with their sources; `scripts/make-accuracy --check` holds whole groups
// to the bounds of docs/accuracy.toml.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/parameters.hpp"
#include "sim/simulate.hpp"
#include "sim/study/reproduce.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

// Ids of entries that set a parameter of a machine.
std::set<std::string> served_ids(const std::vector<PublishedEntry>& entries) {
  std::set<std::string> machines, served;
  for (const PublishedEntry& entry : entries) {
    for (const Scenario& scenario : entry.scenarios) machines.insert(scenario.machine);
  }
  for (const std::string& machine : machines) {
    for (const Parameter& parameter : find_machine(machine).parameters) {
      std::istringstream ids(parameter.serves);
      for (std::string id; ids >> id;) served.insert(id);
    }
  }
  return served;
}

bool is_looked_at(const PublishedEntry& entry) {
  if (entry.id.starts_with("FD-c-b")) return entry.id.ends_with("-full-r1");
  static const std::set<std::string> groups{"comm-cu-sweep", "gemm-collective-baseline",
                                            "gemm-collective-small"};
  static const std::vector<std::string> starts{"IR-PR215-LS-", "IR-ALLLOAD-", "IR-ALLSTORE-",
                                               "GM-G0",        "GM-MM-",      "FD-rccl-b"};
  return groups.contains(entry.group) ||
         std::ranges::any_of(starts, [&](const std::string& start) { return entry.id.starts_with(start); });
}

// What a further step takes, as RCCL's form of flash decode was timed, of a form that was timed alone.
PublishedEntry further_step(PublishedEntry entry) {
  entry.id += "-further";
  entry.metric = Metric::time_difference;
  entry.clock = Clock::host;
  entry.references = entry.scenarios;
  entry.references.front().knobs.give("steps", 1);
  entry.scenarios.front().knobs.give("steps", 2);
  return entry;
}

// Those that the tests below look at.
const std::vector<ReproducedRow>& rows() {
  static const std::vector<ReproducedRow> all = [] {
    std::vector<PublishedEntry> entries = shipped_published();
    const std::set<std::string> served = served_ids(entries);
    std::erase_if(entries, [&](const PublishedEntry& entry) {
      return !is_looked_at(entry) && !served.contains(entry.id);
    });
    for (std::size_t i = entries.size(); i-- > 0;) {
      if (entries[i].id.starts_with("FD-c-b")) entries.push_back(further_step(entries[i]));
    }
    return reproduce(entries);
  }();
  return all;
}

const ReproducedRow& row(std::string_view id) {
  for (const ReproducedRow& r : rows()) {
    if (r.id == id) return r;
  }
  throw std::out_of_range(std::string(id));
}

void expect_within(const ReproducedRow& r, double allowed) {
  ASSERT_TRUE(r.error.has_value()) << r.id << ": " << r.failure;
  EXPECT_LE(std::abs(*r.error), allowed) << r.id;
}

// The order of the four at 16384 cubed; each within 20 %.
void expect_patterns_in_order() {
  const auto predicted = [](const char* id) {
    const ReproducedRow& r = row(id);
    EXPECT_LE(std::abs(r.error.value()), 0.20) << id;
    return r.predicted.value();
  };
  const double specialised = predicted("IR-PR215-LS-WS-ms");
  const double producer_consumer = predicted("IR-PR215-LS-PC-ms");
  const double fused = predicted("IR-PR215-LS-SEQ-ms");
  const double bulk_synchronous = predicted("IR-PR215-LS-BSP-ms");
  EXPECT_LT(1.2 * specialised, producer_consumer);
  EXPECT_LT(1.2 * specialised, fused);
  EXPECT_LT(1.08 * producer_consumer, fused);
  EXPECT_LT(1.1 * fused, bulk_synchronous);
}

// All GPUs at once, from 64 MiB per peer; fewer bytes are held with their group.
void expect_traffic() {
  int seen = 0;
  for (const ReproducedRow& r : rows()) {
    if (r.id.rfind("IR-ALLLOAD-", 0) != 0 && r.id.rfind("IR-ALLSTORE-", 0) != 0) continue;
    if (std::stod(r.id.substr(r.id.rfind('-') + 1)) < 64) continue;
    expect_within(r, 0.08);
    ++seen;
  }
  EXPECT_GE(seen, 10);
}

// To seven peers each within 12 %; the group holds those to three.
void expect_bandwidth_by_compute_units() {
  int seen = 0;
  for (const ReproducedRow& r : rows()) {
    if (r.group != "comm-cu-sweep" || r.id.rfind("IR-CU4", 0) == 0) continue;
    expect_within(r, 0.12);
    ++seen;
  }
  EXPECT_GE(seen, 20);
}

// From 2048 cubed up.
void expect_library_products() {
  int seen = 0;
  for (const ReproducedRow& r : rows()) {
    // HipKittens' tables; ids end with the edge of the cube.
    if (r.id.rfind("GM-G0", 0) != 0 || r.id.find('-', 4) == std::string::npos) continue;
    if (r.id.rfind("GM-G08", 0) == 0) continue;  // MI350X, of which there are data sheets only
    const std::string edge = r.id.substr(r.id.rfind('-') + 1);
    if (edge.find_first_not_of("0123456789") != std::string::npos || std::stoi(edge) < 2048) continue;
    // Two are known to be a little further off: 2048 cubed and 16384 cubed of two tables.
    const bool known = r.id == "GM-G01-2048" || r.id == "GM-G02-16384";
    // These two by more: the table of MI355X was measured with cold operands, and has no cube of 4096.
    const bool cube = r.id == "GM-G04-4096" || r.id == "GM-G05-4096";
    expect_within(r, cube ? 0.17 : known ? 0.14 : 0.12);
    ++seen;
  }
  EXPECT_GE(seen, 20);
  for (const char* few_rows : {"256x1024x28672", "512x1024x28672", "1024x1024x28672", "1024x512x14336"}) {
    expect_within(row(std::string("GM-MM-") + few_rows), 0.13);
  }
}

// A value that was set from a row still gives that row. What frameworks take for a call is what an older
// model left of products of 1024 cubed; with what today's leaves, those of 2048 cubed come out worse.
void expect_calibration_rows() {
  int seen = 0;
  for (const ReproducedRow& r : rows()) {
    if (!r.calibration || !r.chosen.empty()) continue;
    ++seen;
    ASSERT_TRUE(r.error.has_value()) << r.id;
    const bool of_call = r.group == "gemm-library" && r.id.find("-1024") != std::string::npos;
    // The model stores a workgroup's own copy after those to its peers, the kernel beside them.
    const bool of_posts = r.id == "IR-CU4T-1";
    EXPECT_LE(std::abs(*r.error), of_call ? 0.22 : of_posts ? 0.13 : 0.09) << r.id;
  }
  EXPECT_GE(seen, 25);
}

// Flash decode, step after step: full fusion saves a launch and a call, which is a lot for one sequence and
// nothing for eight with a long cache.
void expect_fusion_by_batch() {
  const auto gain = [](int batch, int keys) {
    const std::string end = std::to_string(batch) + "-h96-d128-g8-kv" + std::to_string(keys);
    return row("FD-rccl-b" + end).predicted.value() /
           row("FD-c-b" + end + "-full-r1-further").predicted.value();
  };
  for (const int keys : {16384, 32768, 65536, 131072}) EXPECT_GT(gain(1, keys), 1.1) << keys;
  for (const int keys : {32768, 131072, 262144}) EXPECT_LT(gain(8, keys), 1) << keys;
}

// Products and gathers that are neither small nor huge.
void expect_large_baselines() {
  int large = 0;
  for (const ReproducedRow& r : rows()) {
    const bool library = r.group == "gemm-collective-baseline" || r.group == "gemm-collective-small";
    large += library && r.error && std::abs(*r.error) <= 0.14;
  }
  EXPECT_GE(large, 64);
}

// One test, for all numbers are recomputed once for it.
TEST(PublishedNumbers, ArePredictedWithinTheirBounds) {
  expect_patterns_in_order();
  expect_traffic();
  expect_bandwidth_by_compute_units();
  expect_library_products();
  expect_calibration_rows();
  expect_fusion_by_batch();
  expect_large_baselines();
}

struct PaperTimes {
  double fused_sequential = 0, bulk_synchronous = 0, producer_consumer = 0, workgroup_specialised = 0;
  double best_split() const { return std::min(producer_consumer, workgroup_specialised); }
};

// M = 8192 in fp16 on 8 MI300X with tiles of 256x64, peers in the fixed order of Iris; split patterns compute
// on 256 compute units and communicate on 48.
PaperTimes times_of_the_paper(std::int64_t n, std::int64_t k, std::uint64_t seed) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter workload{8192, n, k, DType::fp16, 8};
  SimulationOptions options;
  options.seed = seed;
  const auto time_ns = [&](const char* pattern, std::int32_t gemm_cus, std::int32_t comm_cus) {
    GemmKnobs knobs;  // as in ROCm/iris
    knobs.tile_m = 256;
    knobs.tile_n = 64;
    knobs.tile_k = 64;
    knobs.gemm_cus = gemm_cus;
    knobs.comm_cus = comm_cus;
    const Schedule schedule = build(pattern, workload, machine, knobs);
    return simulate(schedule, machine, options).makespan_ns;
  };
  return {time_ns("fused-sequential", 304, 0), time_ns("bulk-synchronous", 304, 304),
          time_ns("producer-consumer", 256, 48), time_ns("workgroup-specialised", 256, 48)};
}

// ROCm/iris PR 215: 16384 cubed, tiles of 128x128, peers in fixed order.
TEST(PublishedRanking, OfTheFourPatternsHoldsForFourSeeds) {
  const Machine machine = find_machine("mi300x-8");
  const GemmAllScatter workload{16384, 16384, 16384, DType::fp16, 8};
  struct Run {
    const char* pattern;
    std::int32_t comm_cus;
  };
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SimulationOptions options;
    options.seed = seed;
    double before_ns = 0;
    for (const Run& run : {Run{"workgroup-specialised", 48}, Run{"producer-consumer", 48},
                           Run{"fused-sequential", 0}, Run{"bulk-synchronous", 256}}) {
      GemmKnobs knobs;  // as in ROCm/iris
      knobs.tile_m = knobs.tile_n = 128;
      knobs.tile_k = 64;
      knobs.gemm_cus = 256;
      knobs.comm_cus = run.comm_cus;
      const Schedule schedule = build(run.pattern, workload, machine, knobs);
      const double time_ns = simulate(schedule, machine, options).makespan_ns;
      EXPECT_LT(1.05 * before_ns, time_ns) << run.pattern << ", seed " << seed;
      before_ns = time_ns;
    }
  }
}

// arXiv:2511.12500 §5.2: 288 tiles are one round on 304 compute units but two on 256, and 224 tiles one on
// either, which leaves the scatter units of its own. That bulk-synchronous comes after fused-sequential takes
// workgroups that do not all end their tiles at the same time (`matmul_spread`).
TEST(PublishedRanking, OfThePaperShapesHoldsForFourSeeds) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const PaperTimes wide = times_of_the_paper(4608, 36864, seed);
    EXPECT_LT(wide.fused_sequential, 0.95 * wide.bulk_synchronous) << seed;
    EXPECT_LT(wide.fused_sequential, 0.95 * wide.best_split()) << seed;
    const PaperTimes narrow = times_of_the_paper(3584, 14336, seed);
    EXPECT_LT(narrow.best_split(), 0.9 * narrow.fused_sequential) << seed;
    EXPECT_LT(narrow.best_split(), 0.9 * narrow.bulk_synchronous) << seed;
  }
}

}  // namespace
}  // namespace tritax

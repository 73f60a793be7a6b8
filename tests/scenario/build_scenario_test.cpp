#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "model/core/error.hpp"
#include "model/scenario/scenario.hpp"
#include "model/scenario/workload_schedules.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"

namespace tritax {
namespace {

RemoteAccess access(RemoteOperation operation, Peers peers, std::int64_t bytes, int gpus) {
  RemoteAccess workload;
  workload.operation = operation;
  workload.peers = peers;
  workload.bytes = bytes;
  workload.gpus = gpus;
  return workload;
}

// Bytes that the operations of `rank` exchange with each other rank.
std::map<int, double> bytes_by_peer(const Schedule& schedule, int rank) {
  std::map<int, double> bytes;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.rank != rank) continue;
    for (const Workgroup& workgroup : kernel.workgroups) {
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule.ops[workgroup.first_op + i];
        const int peer = op.kind == OpKind::copy && op.src_rank != rank ? op.src_rank : op.rank;
        bytes[peer] += bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
      }
    }
  }
  return bytes;
}

class EveryOperation : public testing::TestWithParam<RemoteOperation> {};

TEST_P(EveryOperation, MovesItsBytesToEveryPeerWrittenOutOrCoarsened) {
  const Machine machine = find_machine("mi300x-8");
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{3} << 28}) {
    const Schedule schedule = remote_access_schedule(access(GetParam(), Peers::all, bytes, 8), machine);
    EXPECT_LT(schedule.kernels.at(0).workgroups.size(), 50000u);
    for (int rank = 0; rank < 8; ++rank) {
      const auto moved = bytes_by_peer(schedule, rank);
      EXPECT_EQ(moved.size(), 7u);
      EXPECT_EQ(moved.count(rank), 0u);
      for (const auto& [peer, sum] : moved) EXPECT_EQ(sum, static_cast<double>(bytes)) << peer;
    }
  }
}

TEST_P(EveryOperation, IsSoundAlsoAfterJson) {
  const Machine machine = find_machine("mi300x-8");
  for (const std::int64_t bytes : {std::int64_t{1} << 19, std::int64_t{1} << 26}) {  // exact and coarsened
    const Schedule built = remote_access_schedule(access(GetParam(), Peers::all, bytes, 4), machine);
    const Schedule read = schedule_from_json(schedule_to_json(built), "text");
    for (const Schedule& schedule : {built, read}) {
      EXPECT_NO_THROW(require_sound(check_schedule(schedule), "built"));
      EXPECT_NO_THROW(require_sound(check_schedule_on(schedule, machine), "built"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RemoteAccess, EveryOperation,
                         testing::Values(RemoteOperation::load, RemoteOperation::store,
                                         RemoteOperation::atomic_add, RemoteOperation::get,
                                         RemoteOperation::put));

TEST(RemoteAccessSchedule, VisitsPeersInTheSameOrderOnEveryGpu) {
  const Schedule schedule = remote_access_schedule(access(RemoteOperation::store, Peers::all, 1 << 20, 4),
                                                   find_machine("mi300x-8"));
  const Workgroup& first = schedule.kernels.at(2).workgroups.at(0);  // of rank 2
  ASSERT_EQ(first.op_count, 3u);
  EXPECT_EQ(schedule.ops[first.first_op].rank, 0);
  EXPECT_EQ(schedule.ops[first.first_op + 1].rank, 1);
  EXPECT_EQ(schedule.ops[first.first_op + 2].rank, 3);
}

TEST(RemoteAccessSchedule, StartsLargerBlocksAtEveryPeerOnlyWhereArbitrationSpreadsThem) {
  Machine machine = find_machine("mi300x-8");
  const auto first_peers_of_the_middle = [&] {
    const Schedule schedule =
        remote_access_schedule(access(RemoteOperation::store, Peers::all, std::int64_t{1} << 30, 8), machine);
    const Kernel& kernel = schedule.kernels.at(0);
    std::set<int> peers;
    for (std::size_t i = kernel.workgroups.size() / 2; i < kernel.workgroups.size() / 2 + 7; ++i) {
      peers.insert(schedule.ops[kernel.workgroups[i].first_op].rank);
    }
    return peers;
  };
  machine.fabric.arbitration_spread = 0.1;
  EXPECT_EQ(first_peers_of_the_middle().size(), 7u);
  machine.fabric.arbitration_spread = 0;
  EXPECT_EQ(first_peers_of_the_middle(), std::set<int>{1});
}

TEST(RemoteAccessSchedule, KeepsLoadsOfOneBlockIndependent) {
  const Schedule schedule =
      remote_access_schedule(access(RemoteOperation::load, Peers::all, 1 << 19, 8), find_machine("mi300x-8"));
  const Kernel& kernel = schedule.kernels.at(0);
  EXPECT_EQ(kernel.workgroups.size(), 7u * 512);
  for (const Workgroup& workgroup : kernel.workgroups) EXPECT_EQ(workgroup.op_count, 1u);
}

TEST(RemoteAccessSchedule, RunsOnGpuZeroAloneForOnePeerAndForItself) {
  const Machine machine = find_machine("mi300x-8");
  const Schedule pair =
      remote_access_schedule(access(RemoteOperation::load, Peers::one, 1 << 20, 2), machine);
  EXPECT_EQ(pair.kernels.size(), 1u);
  EXPECT_EQ(bytes_by_peer(pair, 0), (std::map<int, double>{{1, 1 << 20}}));
  const Schedule self =
      remote_access_schedule(access(RemoteOperation::put, Peers::self, 1 << 20, 1), machine);
  EXPECT_EQ(bytes_by_peer(self, 0), (std::map<int, double>{{0, 1 << 20}}));
}

TEST(RemoteAccessSchedule, StartsCoarsenedGridsWithTheBytesThatTheHardwareKeepsInFlight) {
  const Machine machine = find_machine("mi300x-8");
  const Schedule schedule =
      remote_access_schedule(access(RemoteOperation::store, Peers::all, std::int64_t{1} << 32, 8), machine);
  const Kernel& kernel = schedule.kernels.at(0);
  // 8 workgroups of four waves fill the 32 wave slots of a CU; each holds one block of 1 KiB.
  const Op& first = schedule.ops[kernel.workgroups.at(0).first_op];
  EXPECT_EQ(bytes_of(schedule.buffers.at(1), first.rect), 8 * 1024);
  EXPECT_EQ(kernel.resources.lds_bytes, 65536);  // one a CU
  EXPECT_LE(kernel.workgroups.size(), 20000u);
}

RC_GTEST_PROP(CoarsenedBlocks, SumToTheRowsAndNeverIdleASlotForLong, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 1 << 22);
  const auto granule = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto slots = *rc::gen::inRange<std::int64_t>(1, 400);
  const auto generations = *rc::gen::inRange<std::int64_t>(4, 60);
  const auto blocks = coarsened_blocks(rows, granule, slots, generations);
  RC_ASSERT(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}) == rows);
  const std::int64_t widest = std::max(granule, rows / (slots * generations));
  std::int64_t left = rows;
  std::set<std::int64_t> sizes(blocks.begin(), blocks.end());
  RC_ASSERT(sizes.size() <= 23u);  // granule · 2^i and the remainder
  for (const std::int64_t block : blocks) {
    RC_ASSERT(block >= 1 && block <= widest);
    RC_ASSERT(block <= std::max(granule, left / (2 * slots)));
    left -= block;
  }
}

TEST(AllGatherSchedule, LoadsATileOnceAndStoresItToEveryRank) {
  AllGather workload;
  workload.rows = 100;  // ragged on purpose
  workload.cols = 70;
  workload.gpus = 4;
  Knobs knobs;
  knobs.comm_tile_m = 32;
  knobs.comm_tile_n = 32;
  knobs.comm_cus = 5;
  const Schedule schedule = all_gather_schedule(workload, find_machine("mi355x-8"), knobs);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(schedule.kernels.at(static_cast<std::size_t>(rank)).workgroups.size(), 5u);
    auto moved = bytes_by_peer(schedule, rank);
    const double shard = 100 * 70 * 2;
    for (int peer = 0; peer < 4; ++peer) {
      EXPECT_EQ(moved[peer], peer == rank ? 2 * shard : shard);  // own: one load, one store
    }
  }
}

TEST(AllGatherSchedule, LimitsAWorkgroupThatPostsLessThanTheWindow) {
  Machine machine = find_machine("mi355x-8");
  machine.gpu.cu_remote_store_gb_per_s = 12;
  machine.gpu.remote_store_window_bytes = 7 * 4096;
  AllGather workload;
  workload.rows = workload.cols = 128;
  workload.gpus = 8;
  Knobs knobs;
  knobs.comm_cus = 1;
  const auto limit = [&](std::int64_t posted, int gpus) {
    workload.posted_bytes_per_peer = posted;
    workload.gpus = gpus;
    return all_gather_schedule(workload, machine, knobs).kernels.at(0).remote_store_gb_per_s;
  };
  EXPECT_DOUBLE_EQ(limit(2048, 8), 6);
  EXPECT_DOUBLE_EQ(limit(1024, 8), 3);
  EXPECT_DOUBLE_EQ(limit(7 * 512, 2), 1.5);  // one peer
  EXPECT_EQ(limit(0, 8), 0);
  EXPECT_EQ(limit(4096, 8), 0);
  EXPECT_EQ(limit(1 << 20, 8), 0);
}

TEST(AllGatherSchedule, NeedsAWindowToCompareWhatIsPostedWith) {
  AllGather workload;
  workload.rows = workload.cols = 128;
  workload.gpus = 2;
  workload.posted_bytes_per_peer = 2048;
  Scenario scenario;
  scenario.workload = workload;
  scenario.knobs.comm_cus = 1;
  scenario.where = "file.toml:3";
  Machine machine = find_machine("mi355x-8");
  EXPECT_NO_THROW(build_scenario(scenario, machine));
  machine.gpu.remote_store_window_bytes = 0;
  try {
    build_scenario(scenario, machine);
    FAIL() << "built without gpu.remote_store_window";
  } catch (const UserError& error) {
    const std::string message = error.what();
    for (const char* part : {"file.toml:3", "posted_bytes_per_peer", "gpu.remote_store_window", "mi355x-8"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

TEST(AllGatherSchedule, MovesTheSameBytesWithTheLibrary) {
  AllGather workload;
  workload.rows = 1000;
  workload.cols = 64;
  workload.gpus = 8;
  workload.library = true;
  const Schedule schedule = all_gather_schedule(workload, find_machine("mi300x-8"), {});
  const auto moved = bytes_by_peer(schedule, 3);
  ASSERT_EQ(moved.size(), 8u);
  for (const auto& [peer, bytes] : moved) EXPECT_EQ(bytes, 1000 * 64 * 2) << peer;
}

TEST(LibraryGemmSchedule, TakesTheGivenTileOrLetsTheLibraryPick) {
  LibraryGemm workload{4096, 4096, 4096, DType::bf16, GemmCaller::loop, {}};
  const Machine machine = find_machine("mi325x-8");
  // 256 tiles of 256×256 leave 48 of 304 CUs idle; the library has 256×224, which fills them in one wave.
  EXPECT_EQ(library_gemm_schedule(workload, machine).kernels.at(0).workgroups.size(), 304U);
  workload.tile = {128, 256, 64, 8, Pipeline::overlapped};
  const Schedule schedule = library_gemm_schedule(workload, machine);
  EXPECT_EQ(schedule.kernels.at(0).tile.m, 128);
  EXPECT_EQ(schedule.kernels.at(0).tile.n, 256);
  EXPECT_EQ(schedule.kernels.at(0).workgroups.size(), 512U);
  workload.tile.m = 8192;
  EXPECT_THROW(library_gemm_schedule(workload, machine), UserError);
}

TEST(LibraryGemmSchedule, WritesProductsOfEightBitNumbersAsSixteenBits) {
  const Machine machine = find_machine("mi355x-8");
  for (const DType dtype : {DType::bf16, DType::fp8}) {
    const Schedule schedule = library_gemm_schedule({512, 512, 512, dtype, GemmCaller::loop, {}}, machine);
    EXPECT_EQ(schedule.buffers.at(static_cast<std::size_t>(schedule.result_buffer)).dtype, DType::bf16);
    EXPECT_EQ(schedule.buffers.at(0).dtype, dtype);
  }
}

TEST(BuildScenario, RefusesMoreGpusThanTheMachineHas) {
  Scenario scenario;
  scenario.where = "file.toml:3";
  scenario.workload = access(RemoteOperation::load, Peers::all, 1 << 20, 9);
  try {
    build_scenario(scenario, find_machine("mi300x-8"));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("file.toml:3: gpus = 9"), std::string::npos) << error.what();
  }
}

// The message of the UserError of building; empty if it is accepted.
std::string message_of(const Workload& workload, const Knobs& knobs = {}) {
  Scenario scenario;
  scenario.where = "file.toml:3";
  scenario.workload = workload;
  scenario.knobs = knobs;
  try {
    build_scenario(scenario, find_machine("mi300x-8"));
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(BuildScenario, RefusesWhatTheMemoryDoesNotHold) {
  const auto most = std::int64_t{19} << 30;  // nine times 19 GiB fit 192 GB
  EXPECT_EQ(message_of(access(RemoteOperation::load, Peers::all, most, 8)), "");
  EXPECT_NE(message_of(access(RemoteOperation::load, Peers::all, most * 2, 8)).find("GB"), std::string::npos);
  AllGather gather;
  gather.rows = gather.cols = 1 << 18;
  Knobs knobs;
  knobs.comm_cus = 1;
  EXPECT_NE(message_of(gather, knobs).find("GB"), std::string::npos);
}

TEST(BuildScenario, RefusesTilesTooSmallToSchedule) {
  AllGather gather;
  gather.rows = gather.cols = 8192;
  Knobs knobs;
  knobs.comm_cus = 1;
  knobs.comm_tile_m = knobs.comm_tile_n = 1;
  EXPECT_NE(message_of(gather, knobs).find("comm_tile"), std::string::npos);
}

TEST(BuildScenario, AsksForAPatternWhereThereIsNone) {
  Scenario scenario;
  scenario.workload = GemmAllScatter{256, 256, 256, DType::fp16, 2};
  EXPECT_THROW(build_scenario(scenario, find_machine("mi300x-8")), UserError);
}

TEST(BuildScenario, TakesTheTileOfTheMachineWhereTheFileGivesNone) {
  Scenario scenario;
  scenario.workload = GemmAllScatter{512, 512, 512, DType::fp16, 2};
  scenario.pattern = "fused-sequential";
  const Machine machine = find_machine("h200-4");
  EXPECT_EQ(resolved_knobs(scenario, machine).tile_m, default_knobs(machine, DType::fp16).tile_m);
  scenario.tile_given = true;
  scenario.knobs.tile_m = 64;
  EXPECT_EQ(resolved_knobs(scenario, machine).tile_m, 64);
}

TEST(ShippedScenarios, AllParseAndBuild) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TRITAX_SOURCE_DIR) + "/scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    for (const Scenario& scenario : read_scenarios(entry.path().string())) {
      EXPECT_NO_THROW({
        const Schedule schedule = build_scenario(scenario, find_machine(scenario.machine));
        EXPECT_FALSE(schedule.ops.empty()) << scenario.id;
      }) << scenario.where;
    }
  }
  EXPECT_GE(files, 3u);
}

TEST(BuildScenario, NamesThePlaceOfWhatTheMachineDoesNotAllow) {
  const std::string file = R"([[scenario]]
id = "one"
machine = "mi300x-8"
workload = "gemm-all-scatter"
m = 1024
n = 1024
k = 256
gpus = 2
pattern = "producer-consumer"
knobs = { )";
  const auto message = [](Scenario scenario, const std::string& where) -> std::string {
    scenario.where = where;
    try {
      build_scenario(scenario, find_machine("mi300x-8"));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const std::string knobs :
       {"tile = [512, 512, 64]", "comm_cus = 999", "gemm_cus = 200, comm_cus = 200"}) {
    const Scenario scenario = parse_scenarios(file + knobs + " }\n", "f.toml").at(0);
    EXPECT_EQ(message(scenario, scenario.where).rfind("f.toml:1: scenario \"one\": ", 0), 0u) << knobs;
    // What comes from no file has no place, and says the same.
    EXPECT_EQ("f.toml:1: scenario \"one\": " + message(scenario, ""), message(scenario, scenario.where));
  }
}

}  // namespace
}  // namespace tritax

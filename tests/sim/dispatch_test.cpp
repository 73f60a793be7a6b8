// Compute units as slots: which workgroups fit, where each goes, and releases.
#include "sim/dispatch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hand_machine.hpp"
#include "model/schedule/shader_engines.hpp"

namespace tritax {
namespace {

Demand demand_of(std::int32_t threads, std::int32_t registers, std::int32_t lds_bytes) {
  Kernel kernel;
  kernel.resources = {threads, registers, lds_bytes};
  return Dispatcher(hand::machine().gpu).demand_of(kernel);
}

int fill(Dispatcher& dispatcher, std::int32_t die, const Demand& demand) {
  int count = 0;
  for (std::int32_t cu = dispatcher.place(die, 0, demand); cu >= 0; cu = dispatcher.place(die, 0, demand)) {
    dispatcher.take(cu, demand);
    ++count;
  }
  return count;
}

// A compute unit of the hand-made GPU: 4 SIMDs of 8 waves of 64 lanes, 131072 registers, 65536 bytes of LDS.
// A die has 4 of them.

TEST(Occupancy, IsLimitedByTheScarcestResource) {
  const Gpu gpu = hand::machine().gpu;
  struct Case {
    Demand demand;
    int per_cu;
  };
  for (const Case& c : {Case{demand_of(256, 32, 0), 8},      // 4 waves of 32
                        Case{demand_of(1024, 32, 0), 2},     // 16 waves of 32
                        Case{demand_of(256, 128, 0), 4},     // 32768 registers of 131072
                        Case{demand_of(256, 129, 0), 3},     // 33024 registers
                        Case{demand_of(256, 32, 16384), 4},  // a quarter of the LDS
                        Case{demand_of(256, 32, 16385), 3},  // a little more
                        Case{demand_of(65, 32, 0), 16},      // a started wave counts as a whole one
                        Case{demand_of(65, 512, 0), 2}}) {   // … with all of its registers
    Dispatcher dispatcher(gpu);
    EXPECT_EQ(fill(dispatcher, 0, c.demand), 4 * c.per_cu)
        << c.demand.waves << " waves, " << c.demand.registers << " registers, " << c.demand.lds
        << " bytes of LDS";
  }
}

TEST(Occupancy, OfAKernelThatFitsNoEmptyComputeUnitIsZero) {
  const Gpu gpu = hand::machine().gpu;
  for (const Demand& demand : {demand_of(2049, 1, 0), demand_of(256, 513, 0), demand_of(256, 32, 65537)}) {
    Dispatcher dispatcher(gpu);
    EXPECT_FALSE(dispatcher.fits(demand));
    EXPECT_EQ(dispatcher.place(0, 0, demand), -1);
  }
  EXPECT_TRUE(Dispatcher(gpu).fits(demand_of(2048, 64, 65536)));
}

TEST(Placement, TakesTheEmptiestComputeUnitAndTheLowestAmongEqual) {
  Dispatcher dispatcher(hand::machine().gpu);
  const Demand demand = demand_of(256, 32, 0);
  for (const int expected : {4, 5, 6, 7, 4, 5, 6, 7}) {
    const std::int32_t cu = dispatcher.place(1, 0, demand);
    EXPECT_EQ(cu, expected);
    dispatcher.take(cu, demand);
  }
  dispatcher.release(6, demand);
  EXPECT_EQ(dispatcher.place(1, 0, demand), 6);
}

TEST(Placement, StaysWithinTheReservedRange) {
  Dispatcher dispatcher(hand::machine().gpu);
  Demand demand = demand_of(256, 32, 65536);
  demand.cu_begin = 3;
  demand.cu_end = 6;
  EXPECT_EQ(fill(dispatcher, 0, demand), 1);  // 3
  EXPECT_EQ(fill(dispatcher, 1, demand), 2);  // 4, 5
}

TEST(Placement, OfADifferentKernelUsesWhatTheFirstLeaves) {
  Dispatcher dispatcher(hand::machine().gpu);
  const Demand gemm = demand_of(256, 256, 49152);  // half of the registers, three quarters of the LDS
  EXPECT_EQ(fill(dispatcher, 0, gemm), 4);
  EXPECT_EQ(fill(dispatcher, 0, demand_of(256, 64, 0)), 4 * 4);  // registers of the other half
  EXPECT_EQ(fill(dispatcher, 0, demand_of(256, 32, 0)), 0);      // none are left
  EXPECT_EQ(fill(dispatcher, 1, gemm), 4);                       // the other die is not touched
}

Gpu with_engines(std::int32_t cus_per_xcd, std::int32_t engines) {
  Gpu gpu = hand::machine().gpu;
  gpu.cus_per_xcd = cus_per_xcd;
  gpu.shader_engines = engines;
  return gpu;
}

TEST(ShaderEngines, ShareADieAsEvenlyAsCanBe) {
  const Gpu gpu = with_engines(38, 4);
  std::vector<std::int32_t> begins;
  for (std::int32_t engine = 0; engine <= 4; ++engine) begins.push_back(engine_begin(gpu, engine));
  EXPECT_EQ(begins, (std::vector<std::int32_t>{0, 10, 19, 29, 38}));
  EXPECT_EQ(engine_begin(with_engines(32, 4), 3), 24);
  EXPECT_EQ(engine_begin(with_engines(3, 4), 4), 3);  // fewer than engines: some have none
}

TEST(ShaderEngines, TakeTurnsAsLongAsTheyHaveComputeUnits) {
  EXPECT_EQ(engine_turns(with_engines(5, 3)), (std::vector<std::int32_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(engine_turns(with_engines(4, 1)), (std::vector<std::int32_t>{0, 0, 0, 0}));
  const std::vector<std::int32_t> turns = engine_turns(with_engines(38, 4));
  ASSERT_EQ(turns.size(), 38);
  for (std::int32_t turn = 0; turn < 36; ++turn) EXPECT_EQ(turns[static_cast<std::size_t>(turn)], turn % 4);
  EXPECT_EQ(turns[36], 0);
  EXPECT_EQ(turns[37], 2);
}

// Persistent workgroups that need a compute unit each, on engines of 10, 9, 10 and 9.
TEST(ShaderEngines, KeepAWorkgroupWaitingThatFindsItsOwnFull) {
  Dispatcher dispatcher(with_engines(38, 4));
  Demand alone = demand_of(256, 500, 0);
  alone.in_turn = true;
  const auto place = [&](std::uint32_t turn) {
    const std::int32_t cu = dispatcher.place(0, turn, alone);
    if (cu >= 0) dispatcher.take(cu, alone);
    return cu;
  };
  for (std::uint32_t turn = 0; turn < 32; ++turn) EXPECT_GE(place(turn), 0);  // eight for each engine
  for (std::uint32_t turn = 0; turn < 5; ++turn)
    EXPECT_GE(place(turn), 0);    // of another kernel, from the first on
  EXPECT_EQ(place(5), -1);        // the second engine has nine
  dispatcher.release(10, alone);  // its first compute unit
  EXPECT_EQ(place(5), 10);
  Demand anywhere = alone;
  anywhere.in_turn = false;
  EXPECT_EQ(dispatcher.place(0, 5, anywhere), 28);  // the tenth of the third engine
}

TEST(ShaderEngines, LeaveASecondKernelWhatNobodyWaitsFor) {
  Gpu gpu = with_engines(38, 4);
  gpu.xcds = 8;
  EXPECT_EQ(workgroups_beside(gpu, 256), 40);  // eight each, so two, one, two and one
  EXPECT_EQ(workgroups_beside(gpu, 250), 40);  // the fullest die counts
  EXPECT_EQ(workgroups_beside(gpu, 40), 256);
  EXPECT_EQ(workgroups_beside(gpu, 48), 232);
  EXPECT_EQ(workgroups_beside(gpu, 8), 288);
  EXPECT_EQ(workgroups_beside(gpu, 304), 0);
  gpu.shader_engines = 1;
  EXPECT_EQ(workgroups_beside(gpu, 256), 48);
}

TEST(ShaderEngines, FitBesideIsHowManyAreLeft) {
  Gpu gpu = with_engines(38, 4);
  gpu.xcds = 8;
  for (std::int32_t taken = 0; taken <= 304; taken += 8) {
    const std::int32_t beside = workgroups_beside(gpu, taken);
    EXPECT_TRUE(fit_beside(gpu, taken, beside)) << taken;
    EXPECT_FALSE(fit_beside(gpu, taken, beside + 8)) << taken;
    EXPECT_FALSE(fit_beside(gpu, taken, beside + 1)) << taken;  // on the first die
  }
  EXPECT_TRUE(fit_beside(gpu, 250, 40));
  EXPECT_FALSE(fit_beside(gpu, 250, 41));
  gpu.shader_engines = 1;
  EXPECT_TRUE(fit_beside(gpu, 4, 296));   // 1 and 37 on four dies, 37 on the others
  EXPECT_FALSE(fit_beside(gpu, 300, 4));  // both kernels begin with the first die
}

TEST(ShaderEngines, HoldAKernelThatFillsTheDie) {
  Dispatcher dispatcher(with_engines(38, 4));
  Demand alone = demand_of(256, 500, 0);
  alone.in_turn = true;
  for (std::uint32_t turn = 0; turn < 38; ++turn) {
    const std::int32_t cu = dispatcher.place(1, turn, alone);
    ASSERT_GE(cu, 38) << turn;
    dispatcher.take(cu, alone);
  }
  EXPECT_EQ(dispatcher.place(1, 38, alone), -1);
}

// Engines of two and one compute units: the second workgroup of either kernel belongs to the latter, and that
// of the second kernel does not go where a compute unit of the former is free from the first microsecond on.
TEST(ShaderEngines, LetAWorkgroupOfASecondKernelStartWhenItsOwnIsFree) {
  Machine machine = hand::machine();
  machine.gpu.xcds = 1;
  machine.gpu.cus_per_xcd = 3;
  machine.gpu.shader_engines = 2;
  for (const Placement placement : {Placement::persistent, Placement::dispatch}) {
    hand::Draft draft(1);
    const auto kernel = [&](const char* name) {
      Kernel alone;
      alone.name = name;
      alone.resources.lds_bytes = 65536;
      alone.tile = {hand::kTile, hand::kTile, hand::kTile, 4, Pipeline::overlapped};
      alone.placement = placement;
      return draft.builder.kernel(alone);
    };
    const auto first = kernel("first");
    draft.builder.workgroup(first);
    draft.matmul(0);
    draft.builder.workgroup(first);
    for (std::int32_t row = 1; row < 4; ++row) draft.matmul(row);
    const auto second = kernel("second");
    for (std::int32_t row = 4; row < 6; ++row) {
      draft.builder.workgroup(second);
      draft.matmul(row);
    }
    draft.builder.launch(0, first, 0);
    draft.builder.launch(0, second, 1);
    draft.builder.host(0, HostOpKind::device_synchronize);
    const hand::Observed out = hand::run(draft.builder.finish(), machine);
    const bool in_turn = placement == Placement::persistent;
    EXPECT_NEAR((out.seen.ops.at({1, 0, 0}).begin_ns), 0, hand::kExact);
    EXPECT_NEAR((out.seen.ops.at({1, 1, 0}).begin_ns), in_turn ? 3 * hand::kStepNs : hand::kStepNs,
                hand::kExact);
  }
}

// The emptiest compute unit that has room, the lowest among equal ones, or none: by looking at all of them.
std::int32_t emptiest(const Dispatcher& dispatcher, const Gpu& gpu, std::int32_t die, const Demand& demand) {
  std::int32_t best = -1;
  for (std::int32_t cu = die * gpu.cus_per_xcd; cu < (die + 1) * gpu.cus_per_xcd; ++cu) {
    const bool in_range = demand.cu_end == 0 || (cu >= demand.cu_begin && cu < demand.cu_end);
    if (!in_range || !dispatcher.has_room(cu, demand)) continue;
    if (best < 0 || dispatcher.resident(cu) < dispatcher.resident(best)) best = cu;
  }
  return best;
}

// However often a die was full before: few kernels, so that the same one asks again and again.
RC_GTEST_PROP(DispatcherLaw, PlacesWhereALookAtEveryComputeUnitWould, ()) {
  Gpu gpu = hand::machine().gpu;
  gpu.shader_engines = *rc::gen::inRange(1, 5);
  Dispatcher dispatcher(gpu);
  std::vector<Demand> demands{demand_of(256, 128, 32768), demand_of(512, 64, 16384), demand_of(64, 32, 0)};
  demands[2].cu_begin = 1;
  demands[2].cu_end = 6;
  std::vector<std::pair<std::int32_t, Demand>> resident;
  for (int step = 0; step < 200; ++step) {
    if (resident.empty() || *rc::gen::inRange(0, 3) > 0) {
      const Demand& demand = demands[*rc::gen::inRange<std::size_t>(0, demands.size())];
      const std::int32_t die = *rc::gen::inRange(0, 2);
      const std::int32_t expected = emptiest(dispatcher, gpu, die, demand);
      RC_ASSERT(dispatcher.place(die, 0, demand) == expected);
      if (expected < 0) continue;
      dispatcher.take(expected, demand);
      resident.emplace_back(expected, demand);
    } else {
      const std::size_t i = *rc::gen::inRange<std::size_t>(0, resident.size());
      dispatcher.release(resident[i].first, resident[i].second);
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Whatever is taken and given back in whatever order: room never runs below zero (take asserts it), and in
// the end everything is free again.
RC_GTEST_PROP(DispatcherLaw, ReleasesGiveBackExactlyWhatWasTaken, ()) {
  const Gpu gpu = hand::machine().gpu;
  Dispatcher dispatcher(gpu);
  std::vector<std::pair<std::int32_t, Demand>> resident;
  for (int step = 0; step < 100; ++step) {
    if (resident.empty() || *rc::gen::inRange(0, 3) > 0) {
      const Demand demand =
          demand_of(*rc::gen::inRange(1, 1025), *rc::gen::inRange(1, 129), *rc::gen::inRange(0, 65537));
      const std::int32_t cu = dispatcher.place(*rc::gen::inRange(0, 2), 0, demand);
      if (cu < 0) continue;
      dispatcher.take(cu, demand);
      resident.emplace_back(cu, demand);
    } else {
      const std::size_t i = *rc::gen::inRange<std::size_t>(0, resident.size());
      dispatcher.release(resident[i].first, resident[i].second);
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::int32_t cu = 0; cu < gpu.cu_count(); ++cu) {
      RC_ASSERT(dispatcher.resident(cu) == std::count_if(resident.begin(), resident.end(),
                                                         [&](const auto& r) { return r.first == cu; }));
    }
  }
  for (const auto& [cu, demand] : resident) dispatcher.release(cu, demand);
  const Demand whole = demand_of(2048, 64, 65536);
  RC_ASSERT(fill(dispatcher, 0, whole) == 4);
  RC_ASSERT(fill(dispatcher, 1, whole) == 4);
}

}  // namespace
}  // namespace tritax

// Cache hits of regions that overlap without being equal.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "hand_machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/items.hpp"
#include "sim/region_cells.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr std::int32_t kSide = 128;  // of the square buffers of these tests
constexpr double kBufferBytes = 2.0 * kSide * kSide;

// One fp16 buffer "X" in tiles, and kernels of workgroups that do one thing after the other.
struct Uses {
  explicit Uses(std::int32_t tile_rows, std::int32_t tile_cols, int ranks = 1) : builder("uses", ranks) {
    x = builder.buffer({"X", DType::fp16, kSide, kSide, tile_rows, tile_cols});
    y = builder.buffer({"Y", DType::fp16, kSide, kSide, tile_rows, tile_cols});
  }
  void kernel(int rank = 0) {
    Kernel next;
    next.name = "uses";
    next.rank = rank;
    kernel_id = builder.kernel(next);
    builder.launch(rank, kernel_id);
  }
  void workgroup() { builder.workgroup(kernel_id); }
  void store(const Rect& rect) {
    builder.store(x, rect, 0);
    builder.barrier();
  }
  void load(const Rect& rect) { builder.load(x, rect, 0); }
  Schedule finish() {
    builder.host(0, HostOpKind::device_synchronize);
    return builder.finish();
  }

  ScheduleBuilder builder;
  std::int32_t kernel_id = -1;
  std::int16_t x = 0, y = 0;
};

CacheTraffic read_of(const SimulationResult& result, std::int32_t buffer) {
  CacheTraffic sum;
  for (const CacheRow& row : result.caches) {
    if (row.buffer == buffer && !is_asynchronous(row.operation)) sum += row.traffic;
  }
  return sum;
}

constexpr Rect kWhole{0, 0, kSide, kSide};

// Tiles of 64 x 64 in two columns, one of each die, then strips of 32 rows and all of it read by the first.
Schedule strips_over_tiles() {
  Uses uses(64, 64);
  uses.kernel();
  for (const std::int32_t col : {0, 64}) {  // workgroups go round robin over dies
    uses.workgroup();
    for (const std::int32_t row : {0, 64}) uses.store({row, col, 64, 64});
  }
  uses.kernel();
  uses.workgroup();
  for (std::int32_t row = 0; row < kSide; row += 32) uses.load({row, 0, 32, kSide});
  uses.load(kWhole);
  return uses.finish();
}

TEST(RegionCells, FindTheHalfOfAStripThatTheOwnDieHasWritten) {
  Machine machine = hand::machine();
  const CacheTraffic without = read_of(simulate(strips_over_tiles(), machine), 0);
  EXPECT_EQ(without.asked_bytes, 2 * kBufferBytes);
  EXPECT_EQ(without.l2_hit_bytes, kBufferBytes / 2 + kBufferBytes);
  EXPECT_EQ(without.hbm_read_bytes, kBufferBytes / 2);
  machine.gpu.llc_bytes = 1e6;
  machine.gpu.llc_gb_per_s = hand::kUnlimited;
  const CacheTraffic with = read_of(simulate(strips_over_tiles(), machine), 0);
  EXPECT_EQ(with.l2_hit_bytes, kBufferBytes / 2 + kBufferBytes);
  EXPECT_EQ(with.llc_hit_bytes, kBufferBytes / 2);
}

// 4 KiB of 8 KiB a strip come from memory.
TEST(RegionCells, LoadTheMemoryWithWhatTheL2DoesNotHaveAlone) {
  Machine machine = hand::machine();
  const auto strip_ns = [&] {
    hand::Observed out = hand::run(strips_over_tiles(), machine);
    return out.seen.ops.at({1, 0, 0}).length_ns();
  };
  machine.gpu.hbm_gb_per_s = 4;
  EXPECT_NEAR(strip_ns(), 4096 / 4, hand::kExact);
  machine.gpu.hbm_gb_per_s = hand::kUnlimited;
  machine.gpu.l2_latency_ns = 100;
  machine.gpu.hbm_latency_ns = 700;
  EXPECT_NEAR(strip_ns(), (100 + 700) / 2, hand::kExact);
}

RegionCells cells_in(const Schedule& schedule) { return region_cells_of(schedule, schedule.ranks); }

TEST(RegionCells, AreTheCoarsestGridOfWhatOverlaps) {
  const Schedule schedule = strips_over_tiles();
  const RegionCells cells = cells_in(schedule);
  ASSERT_TRUE(cells.has(0));
  EXPECT_EQ(cells.count(0, 0), 4u * 2);
  std::vector<std::size_t> of_tile;
  cells.for_each(0, 0, {64, 64, 64, 64}, [&](std::size_t cell, double bytes) {
    of_tile.push_back(cell);
    EXPECT_EQ(bytes, 2 * 32 * 64);
  });
  EXPECT_EQ(of_tile, (std::vector<std::size_t>{5, 7}));
  EXPECT_FALSE(cells.has(1));  // nobody uses it
}

TEST(RegionCells, AreNotNeededWhereNoTwoReadsOverlap) {
  Uses strips(64, 64);
  strips.kernel();
  strips.workgroup();
  for (const std::int32_t row : {0, 64}) strips.store({row, 0, 64, 64});
  for (std::int32_t row = 0; row < kSide; row += 32) strips.load({row, 0, 32, kSide});
  EXPECT_TRUE(cells_in(strips.finish()).empty());
  Uses on_two(64, 64, 2);
  for (const int rank : {0, 1}) {
    on_two.kernel(rank);
    on_two.workgroup();
    on_two.builder.load(on_two.x, {32 * rank, 0, 64, 64}, rank);
  }
  EXPECT_TRUE(cells_in(on_two.finish()).empty());
}

TEST(RegionCells, AreNotMadeWhereTheyWouldBeFarMoreThanUses) {
  ScheduleBuilder builder("many", 1);
  const std::int32_t count = 500;  // on a diagonal, each over a corner of the next
  const std::int16_t x = builder.buffer({"X", DType::fp16, 2 * count + 2, 2 * count + 2, 4, 4});
  Kernel many;
  many.name = "many";
  builder.workgroup(builder.kernel(many));
  for (std::int32_t i = 0; i < count; ++i) builder.load(x, {2 * i, 2 * i, 3, 3}, 0);
  EXPECT_TRUE(cells_in(builder.finish()).empty());
}

// Half of the rows of a tile that has been read are there, the other half is not.
TEST(RegionCells, TellHalvesOfATileApart) {
  Uses uses(64, 64);
  uses.kernel();
  uses.workgroup();
  for (const std::int32_t row : {0, 0, 32}) uses.load({row, 0, 32, 64});
  uses.load({0, 0, 64, 64});
  const CacheTraffic read = read_of(simulate(uses.finish(), hand::machine()), 0);
  EXPECT_EQ(read.hbm_read_bytes, 2 * 64 * 64);
  EXPECT_EQ(read.l2_hit_bytes, 2 * 32 * 64 + 2 * 64 * 64);
}

TEST(RegionCells, AreFilledByCopyEnginesBehindTheL2) {
  Machine machine = hand::machine();
  machine.gpu.llc_bytes = 1e6;
  machine.gpu.llc_gb_per_s = hand::kUnlimited;
  machine.copy_engine.engines = 1;
  machine.copy_engine.gb_per_s = 100;
  machine.copy_engine.packet_ns = 1000;
  Uses uses(64, 64);
  uses.builder.host_copy(0, 0, uses.x, {0, 0, 48, kSide}, 0, uses.y, 0, 0, 0);
  uses.kernel();
  uses.workgroup();
  uses.load({32, 0, 32, kSide});  // 16 of its rows have been copied
  uses.load(kWhole);              // the first 32 have been copied, the next are in the L2
  const CacheTraffic read = read_of(simulate(uses.finish(), machine), 0);
  EXPECT_EQ(read.l2_hit_bytes, 2 * 32 * kSide);
  EXPECT_EQ(read.llc_hit_bytes, 2 * (16 + 32) * kSide);
  EXPECT_EQ(read.hbm_read_bytes, 2 * (16 + 64) * kSide);
}

Machine with_small_caches() {
  Machine machine = hand::machine(2);
  machine.gpu.l2_bytes = *rc::gen::inRange(1, 80) * 512.0;
  machine.gpu.llc_bytes = *rc::gen::element(0.0, 1024.0, 8192.0, 20000.0, 65536.0);
  machine.gpu.llc_gb_per_s = 2000;
  machine.gpu.hbm_gb_per_s = 1000;
  machine.gpu.cu_load_gb_per_s = 50;
  machine.gpu.l2_latency_ns = 100;
  machine.gpu.llc_latency_ns = 300;
  machine.gpu.hbm_latency_ns = 700;
  return machine;
}

bool equal_traffic(const CacheTraffic& a, const CacheTraffic& b) {
  return a.asked_bytes == b.asked_bytes && a.l2_hit_bytes == b.l2_hit_bytes &&
         a.llc_hit_bytes == b.llc_hit_bytes && a.hbm_read_bytes == b.hbm_read_bytes;
}

// Read and written as a whole, or by bands of rows one after the other.
RC_GTEST_PROP(RegionCellsLaw, ARegionAsOneOrAsItsPartsHitsAndMissesTheSameBytes, ()) {
  constexpr std::int32_t kStep = 16, kSteps = kSide / kStep;
  Uses whole(64, 64), parts(64, 64);
  for (Uses* uses : {&whole, &parts}) {
    uses->kernel();
    uses->workgroup();
  }
  double read_bytes = 0;
  const std::int32_t count = *rc::gen::inRange(1, 30);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t row = *rc::gen::inRange(0, kSteps), col = *rc::gen::inRange(0, kSteps);
    const std::int32_t rows = *rc::gen::inRange(1, kSteps - row + 1);
    const std::int32_t cols = *rc::gen::inRange(1, kSteps - col + 1);
    const bool stores = *rc::gen::inRange(0, 3) == 0;
    const std::int32_t band = *rc::gen::inRange(1, rows + 1);
    const auto use = [&](Uses& uses, std::int32_t from, std::int32_t height) {
      const Rect rect{from * kStep, col * kStep, height * kStep, cols * kStep};
      stores ? uses.store(rect) : uses.load(rect);
    };
    use(whole, row, rows);
    for (std::int32_t r = 0; r < rows; r += band) use(parts, row + r, std::min(band, rows - r));
    if (!stores) read_bytes += 2.0 * rows * cols * kStep * kStep;
  }
  // What they leave is the same too, and both are cut alike.
  for (std::int32_t i = 0; i < kSteps * kSteps; ++i) {
    for (Uses* uses : {&whole, &parts}) {
      uses->load({i / kSteps * kStep, i % kSteps * kStep, kStep, kStep});
    }
  }
  for (Uses* uses : {&whole, &parts}) uses->load(kWhole);
  const Machine machine = with_small_caches();
  const CacheTraffic a = read_of(simulate(whole.finish(), machine), 0);
  const CacheTraffic b = read_of(simulate(parts.finish(), machine), 0);
  RC_ASSERT(equal_traffic(a, b));
  RC_ASSERT(a.asked_bytes == read_bytes + 2 * kBufferBytes);
  RC_ASSERT(a.asked_bytes == a.l2_hit_bytes + a.llc_hit_bytes + a.hbm_read_bytes);
}

std::vector<std::int32_t> random_cuts() {
  std::vector<std::int32_t> cuts = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(1, kSide));
  cuts.insert(cuts.end(), {0, kSide});
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

// In tiles of one element each region begins in a tile of its own, which names it. What another GPU reads
// gives them cells.
RC_GTEST_PROP(RegionCellsLaw, EqualOrDisjointRegionsGiveTheSameToTheBitByTilesAndByCells, ()) {
  const std::vector<std::int32_t> rows = random_cuts(), cols = random_cuts();
  Uses by_tiles(1, 1, 2), by_cells(1, 1, 2);
  for (Uses* uses : {&by_tiles, &by_cells}) {
    uses->kernel(1);
    uses->workgroup();
    for (const std::int16_t buffer : {uses->x, uses->y}) {
      uses->builder.load(buffer, {0, 0, 64, kSide}, 1);
      uses->builder.load(buffer, {uses == &by_cells ? 32 : 0, 0, 64, kSide}, 1);
    }
  }
  const std::int32_t kernels = *rc::gen::inRange(1, 3);
  for (std::int32_t k = 0; k < kernels; ++k) {
    for (Uses* uses : {&by_tiles, &by_cells}) uses->kernel();
    const std::int32_t workgroups = *rc::gen::inRange(1, 5);
    for (std::int32_t w = 0; w < workgroups; ++w) {
      for (Uses* uses : {&by_tiles, &by_cells}) uses->workgroup();
      const std::int32_t count = *rc::gen::inRange(1, 12);
      for (std::int32_t i = 0; i < count; ++i) {
        const auto r = *rc::gen::inRange<std::size_t>(0, rows.size() - 1);
        const auto c = *rc::gen::inRange<std::size_t>(0, cols.size() - 1);
        const Rect rect{rows[r], cols[c], rows[r + 1] - rows[r], cols[c + 1] - cols[c]};
        const int kind = *rc::gen::inRange(0, 4);
        for (Uses* uses : {&by_tiles, &by_cells}) {
          if (kind == 0) uses->load(rect);
          if (kind == 1) uses->store(rect);
          if (kind == 2) uses->builder.reduce(uses->y, rect, 0);
          if (kind == 3) uses->builder.copy(uses->y, rect, 0, uses->x, rect.row, rect.col, 0);
        }
      }
    }
  }
  const Machine machine = with_small_caches();
  const Schedule cells_schedule = by_cells.finish();
  RC_ASSERT(cells_in(cells_schedule).has(0) && cells_in(cells_schedule).has(1));
  SimulationResult a = simulate(by_tiles.finish(), machine), b = simulate(cells_schedule, machine);
  RC_ASSERT(std::bit_cast<std::uint64_t>(a.ranks[0].makespan_ns) ==
            std::bit_cast<std::uint64_t>(b.ranks[0].makespan_ns));
  RC_ASSERT(a.ranks[0].account.locality_ns == b.ranks[0].account.locality_ns);
  for (SimulationResult* result : {&a, &b}) {
    std::erase_if(result->caches, [](const CacheRow& row) { return row.rank != 0; });
  }
  RC_ASSERT(a.caches.size() == b.caches.size());
  for (std::size_t i = 0; i < a.caches.size(); ++i) {
    RC_ASSERT(equal_traffic(a.caches[i].traffic, b.caches[i].traffic));
  }
}

}  // namespace
}  // namespace tritax

// Microbenchmarks in which matrix cores work.
#include "model/microbench/case_table.hpp"

namespace tritax {

void Cases::matmuls() {
  constexpr int kTiles = 4;
  constexpr std::array<std::pair<int, int>, 5> kShapes{
      {{128, 256}, {256, 128}, {128, 128}, {64, 256}, {64, 128}}};
  for (const DType dtype : kMatrixTypes) {
    for (const auto& [m, n] : kShapes) {
      if (dtype == DType::fp8 && m == 64 && n == 128) continue;  // no such kernel
      for (const int k : {1024, 4096, 16384}) {
        for (const int workgroups : some_and_all({1, 32, 64})) {
          if (dtype != DType::bf16 && (k != 4096 || workgroups != compute_units_)) continue;
          add(gpus_,
              {per(row("matmul", tile_text(m, n),
                       parameters("gpus", gpus_, "dtype", name_of(dtype), "k", k, "workgroups", workgroups)),
                   "us/tile", 1.0 / kTiles)},
              [=, m = m, n = n, ranks = gpus_] {
                return matmul_tiles(ranks, dtype, m, n, k, workgroups, kTiles);
              });
        }
      }
    }
  }
}

// Tiles whose steps need few bytes, and tiles of fewer rows than the instruction has. By one workgroup, so
// that operands come out of the L2 at once.
void Cases::steps() {
  constexpr int kTiles = 4;
  constexpr std::array<std::pair<int, int>, 6> kShapes{
      {{16, 64}, {64, 64}, {128, 64}, {256, 64}, {16, 128}, {64, 128}}};
  for (const auto& [m, n] : kShapes) {
    for (const int k : {4096, 16384}) {
      add(1,
          {per(row("step", tile_text(m, n), parameters("k", k, "workgroups", 1)), "us/tile", 1.0 / kTiles)},
          [=, m = m, n = n] { return matmul_tiles(1, DType::bf16, m, n, k, 1, kTiles); });
    }
  }
}

// Products whose workgroups ask for the operands that they share at the same time, or one after the other.
void Cases::staggered() {
  constexpr std::int32_t kDepth = 4096;
  constexpr int kTiles = 5;
  for (const auto& [m, n] : {std::pair{128, 256}, std::pair{128, 128}, std::pair{64, 256}}) {
    for (std::size_t i = 0; i < kStaggerNames.size(); ++i) {
      add(1,
          {per(row("stagger", tile_text(m, n),
                   parameters("k", kDepth, "workgroups", compute_units_, "start", kStaggerNames[i])),
               "us", 1)},
          [=, m = m, n = n, all = compute_units_] {
            return staggered_tiles(m, n, kDepth, all, kTiles, static_cast<Stagger>(i));
          });
    }
  }
}

// Tiles that are stored one after the other: beside what a matmul and a store take alone, the way through the
// staging area.
void Cases::staging(std::string_view group, DType dtype) {
  constexpr int kTiles = 16;
  std::vector<std::pair<int, int>> tiles{{128, 256}, {128, 128}, {64, 256}, {64, 128}};
  if (bytes_of(dtype) == 2) tiles.insert(tiles.end(), {{256, 64}, {128, 64}, {64, 64}});  // fp8: no kernels
  for (const auto& [m, n] : tiles) {
    for (const int k : {1024, 4096}) {
      for (const int workgroups : some_and_all({1})) {
        for (const bool each : {false, true}) {
          add(1,
              {per(row(std::string(group), tile_text(m, n),
                       parameters("k", k, "workgroups", workgroups, "stores", each ? "each" : "last")),
                   "us/tile", 1.0 / kTiles)},
              [=, m = m, n = n] { return matmul_tiles(1, dtype, m, n, k, workgroups, kTiles, each); });
        }
      }
    }
  }
}

// What a workgroup leaves to its sending waves behind the store of a tile; by few of them, so that they do
// not wait for each other.
void Cases::passed() {
  constexpr std::int32_t kDepth = 1024;
  constexpr int kTiles = 16, kWorkgroups = 8;
  for (const std::int32_t n : {256, 128}) {
    for (const OpKind kind : {OpKind::store, OpKind::signal}) {
      for (const int count : {0, 1, 2, 4}) {
        add(1,
            {per(row("passed", tile_text(128, n),
                     parameters("k", kDepth, "workgroups", kWorkgroups, "operation",
                                kind == OpKind::store ? "store" : "signal", "count", count)),
                 "us/tile", 1.0 / kTiles)},
            [=] { return low_tiles(n, kDepth, kWorkgroups, kTiles, kind, count); });
      }
    }
  }
}

// What a workgroup takes around its operations: two rows that differ by one operation.
void Cases::chains() {
  constexpr std::int32_t kDepth = 1024;
  constexpr std::array<std::pair<const char*, ChainEnd>, 5> kEnds{{{"matmul", ChainEnd::matmul},
                                                                   {"store", ChainEnd::store},
                                                                   {"signal", ChainEnd::signal},
                                                                   {"wait", ChainEnd::wait},
                                                                   {"barrier", ChainEnd::barrier}}};
  for (const int workgroups : {1, 16, 32}) {
    const auto chain_row = [&](const char* name, int tiles) {
      return per(row("chain", name, parameters("workgroups", workgroups, "tiles", tiles)), "us", 1);
    };
    if (2 * workgroups > compute_units_) continue;  // those that wait have compute units of their own
    for (const auto& [name, end] : kEnds) {
      for (const int tiles : {1, 2}) {
        if (tiles > 1 && end != ChainEnd::matmul) continue;
        add(1, {chain_row(name, tiles)}, [=, end = end] { return chain(kDepth, workgroups, tiles, end); });
      }
    }
    for (const int tiles : {1, 2}) {
      add(1, {chain_row("copy", tiles)}, [=] { return lone_copies(workgroups, tiles); });
    }
  }
}

// The clock of the matrix cores by how many of them work.
void Cases::clocks() {
  constexpr std::int32_t kDepth = 16384;
  constexpr int kTiles = 4;
  for (const DType dtype : kMatrixTypes) gemm_clocks(dtype, false);  // before long load
  for (const auto& [m, n] : {std::pair{128, 256}, std::pair{128, 128}, std::pair{64, 256}}) {
    for (const int quarters : {0, 1, 2, 3, 4}) {
      const int workgroups = std::max(1, compute_units_ * quarters / 4);
      MicrobenchRow made =
          row("clock", tile_text(m, n),
              parameters("dtype", name_of(DType::bf16), "k", kDepth, "workgroups", workgroups),
              MicrobenchMetric::clock);
      made.unit = "GHz";
      add(
          1, {std::move(made)},
          [=, m = m, n = n] { return matmul_tiles(1, DType::bf16, m, n, kDepth, workgroups, kTiles); }, true);
    }
  }
  for (const DType dtype : kMatrixTypes) gemm_clocks(dtype, true);
}

// Of a whole product, with all its traffic, on all GPUs, of which one is the slowest: in the first
// milliseconds, and once the power limit holds.
void Cases::gemm_clocks(DType dtype, bool sustained) {
  constexpr std::int32_t kShort = 8192;
  constexpr std::int32_t kLong = 12288;
  const std::int32_t size = sustained ? kLong : kShort;
  for (const auto& [m, n] : {std::pair{128, 256}, std::pair{128, 128}}) {
    MicrobenchRow made = row("clock", tile_text(m, n),
                             parameters("gpus", gpus_, "dtype", name_of(dtype), "size", size, "workgroups",
                                        compute_units_, "sustained", sustained ? "yes" : "no"),
                             MicrobenchMetric::clock);
    made.unit = "GHz";
    const PlainGemm gemm{dtype, size, size, size, m, n};
    add(
        gpus_, {std::move(made)},
        [=, all = compute_units_, ranks = gpus_] { return plain_gemm(gemm, all, ranks); }, sustained);
  }
}

// The same for products that draw more than the matrix cores alone: narrower tiles, and operands that fewer
// workgroups share, so that more of them come from memory. Short enough that the power limit over
// milliseconds does not hold yet.
void Cases::powers() {
  constexpr std::int32_t kRows = 12288;
  constexpr std::int32_t kHalf = 6144;
  struct Case {
    std::int32_t m, n, group_m;
    bool wide;
  };
  for (const auto& [m, n, group_m, wide] : {Case{128, 256, 8, false},
                                            {128, 128, 8, false},
                                            {128, 128, 4, false},
                                            {64, 256, 8, false},
                                            {128, 256, 8, true},
                                            {128, 256, 2, true},
                                            {128, 128, 4, true},
                                            {128, 128, 2, true},
                                            {128, 128, 1, true}}) {
    const std::int32_t cols = wide ? kRows : kHalf;
    const std::int32_t depth = wide ? kHalf : kRows;
    MicrobenchRow made = row("power", tile_text(m, n),
                             parameters("gpus", gpus_, "dtype", name_of(DType::bf16), "m", kRows, "n", cols,
                                        "k", depth, "group", group_m, "workgroups", compute_units_),
                             MicrobenchMetric::clock);
    made.unit = "GHz";
    const PlainGemm gemm{DType::bf16, kRows, cols, depth, m, n, group_m};
    add(gpus_, {std::move(made)},
        [=, all = compute_units_, ranks = gpus_] { return plain_gemm(gemm, all, ranks); });
  }
}

void Cases::contention() {
  constexpr std::int64_t kCopied = 512 * kMebibyte;
  constexpr int kMostSenders = 16;
  const int gemm_workgroups = std::max(1, compute_units_ - kMostSenders);
  for (const bool fetch : {false, true}) {
    const std::string what = fetch ? "remote loads" : "remote copies";
    for (const int senders : {0, 4, 8, kMostSenders}) {
      if (fetch && senders == 0) continue;
      const Parameters named = parameters("gemm_workgroups", gemm_workgroups, "senders", senders);
      MicrobenchRow gemm = row("contention", "gemm beside " + what, named, MicrobenchMetric::kernel_time);
      gemm.kernel = senders > 0 ? 1 : 0;
      std::vector<MicrobenchRow> rows{per(std::move(gemm), "us", 1)};
      if (senders > 0) {
        rows.push_back(rate(row("contention", what + " beside gemm", named, MicrobenchMetric::kernel_time),
                            static_cast<double>(kCopied)));
      }
      add(2, std::move(rows), [=] { return gemm_beside_copies(gemm_workgroups, senders, kCopied, fetch); });
    }
  }
}

// What a kernel pays for code, operations and tables that lie in no cache: a single K step leaves little
// else.
void Cases::cold() {
  constexpr std::int32_t kDepth = 64;
  for (const auto& [m, n] : {std::pair{128, 256}, std::pair{64, 128}}) {
    for (const std::int64_t flush : {std::int64_t{0}, 256 * kMebibyte}) {
      add_flushed(1, flush,
                  {per(row("cold", tile_text(m, n),
                           parameters("k", kDepth, "workgroups", compute_units_, "flush", flush)),
                       "us", 1)},
                  [=, m = m, n = n, all = compute_units_] {
                    return matmul_tiles(1, DType::bf16, m, n, kDepth, all, 1);
                  });
    }
  }
  // Likewise of kernels without matmuls, alone and behind a short kernel.
  for (const bool behind : {false, true}) {
    for (const TrafficPattern traffic : {TrafficPattern::local, TrafficPattern::one_pair}) {
      for (const std::int64_t flush : {std::int64_t{0}, 256 * kMebibyte}) {
        const int ranks = traffic == TrafficPattern::local ? 1 : 2;
        MotionCase c = matrix_copies(ranks, compute_units_, 128, 128);
        c.traffic = traffic;
        c.bytes = std::int64_t{2} * c.tile_rows * c.tile_cols * c.workgroups;
        c.behind_matmul = behind;
        add_flushed(ranks, flush,
                    {per(row("cold", behind ? "copy-out behind a matmul" : "copy-out",
                             parameters("traffic", name_of(traffic), "workgroups", c.workgroups, "tile",
                                        tile_text(c.tile_rows, c.tile_cols), "flush", flush)),
                         "us", 1)},
                    [=] { return motion(c); });
      }
    }
  }
}

void Cases::spread() {
  MicrobenchRow made = row("spread", "128x256", parameters("size", 8192, "workgroups", compute_units_),
                           MicrobenchMetric::matmul_spread);
  made.unit = "share";
  add(2, {std::move(made)}, [all = compute_units_] { return gemm_beside_copies(all, 0, 0); });
}

// Tiles whose columns of B come from memory and serve nobody else, as in a product with few rows; from caches
// that hold nothing, by few and more until memory is full, and from caches full of what has to be written
// back first.
void Cases::streams() {
  constexpr std::int32_t kDepth = 8192;
  for (const auto& [m, n] :
       {std::pair{64, 128}, std::pair{128, 128}, std::pair{64, 256}, std::pair{128, 256}}) {
    for (const int workgroups : some_and_all({8, 16, 24, 32, 48, 64, 96})) {
      for (const std::int64_t flush : {std::int64_t{0}, 256 * kMebibyte}) {
        // Fewer do to tell what overwritten caches cost.
        if (flush > 0 && workgroups % 16 != 0 && workgroups < compute_units_) continue;
        add_flushed(1, flush,
                    {per(row("stream", tile_text(m, n),
                             parameters("k", kDepth, "workgroups", workgroups, "flush", flush)),
                         "us", 1)},
                    [=, m = m, n = n] { return matmul_streams(m, n, kDepth, workgroups); });
      }
    }
  }
}

// The same beside a product that works on until after their end.
void Cases::busy_streams() {
  constexpr std::int32_t kDepth = 8192;
  constexpr int kMost = 24;
  const int others = compute_units_ - kMost;
  if (others < 8) return;  // too few to tell quarters of them apart
  for (const auto& [m, n] : {std::pair{64, 256}, std::pair{128, 256}}) {
    for (const int workgroups : {8, kMost}) {
      for (const int quarters : {1, 2, 3, 4}) {
        const int products = others * quarters / 4;
        MicrobenchRow made = row("busy-stream", tile_text(m, n),
                                 parameters("k", kDepth, "workgroups", workgroups, "products", products),
                                 MicrobenchMetric::kernel_time);
        made.kernel = 1;  // after the product
        add(1, {per(std::move(made), "us", 1)},
            [=, m = m, n = n] { return matmul_streams(m, n, kDepth, workgroups, products); });
      }
    }
  }
}

}  // namespace tritax

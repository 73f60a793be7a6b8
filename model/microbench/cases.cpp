#include "model/microbench/case_table.hpp"

namespace tritax {

void Cases::launches() {
  for (const int workgroups : some_and_all({1})) {
    for (const int count : {1, 2, 4, 100}) {
      for (const bool in_graph : {false, true}) {
        add(1,
            {per(row("launch", in_graph ? "graph" : "stream",
                     parameters("kernels", count, "workgroups", workgroups), MicrobenchMetric::wall_time),
                 "us/kernel", 1.0 / count)},
            [=] { return empty_kernels(count, in_graph, workgroups); });
      }
    }
  }
  constexpr int kSynchronises = 1000;
  add(1,
      {per(row("launch", "synchronise", parameters("count", kSynchronises), MicrobenchMetric::wall_time),
           "us", 1.0 / kSynchronises)},
      [=] { return idle_synchronises(kSynchronises); });
  // As in a run that is measured: hosts launch, wait, and meet.
  constexpr std::int64_t kBefore = 256 * kMebibyte;
  for (int ranks = 1; ranks <= gpus_; ranks *= 2) {
    for (const bool in_graph : {false, true}) {
      for (const int count : {1, 2, 4}) {
        for (const int workgroups : some_and_all({1})) {
          const auto step_row = [&](const std::string& name, MicrobenchMetric metric) {
            const Parameters named =
                parameters("gpus", ranks, "kernels", count, "workgroups", workgroups, "flush", kBefore);
            return per(row("launch", name, named, metric), "us", 1);
          };
          const std::string name = in_graph ? "graph step" : "step";
          add_flushed(ranks, kBefore,
                      {step_row(name, MicrobenchMetric::wall_time),
                       step_row("around a " + name, MicrobenchMetric::host_time)},
                      [=] { return matmul_steps(ranks, count, in_graph, workgroups); });
        }
      }
    }
  }
}

void Cases::barriers() {
  constexpr int kCount = 1000;
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    add(ranks,
        {per(row("barrier", "host barrier", parameters("ranks", ranks), MicrobenchMetric::wall_time), "us",
             1.0 / kCount)},
        [=] { return host_barriers(ranks, kCount); });
  }
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    add(ranks, {per(row("barrier", "device barrier", parameters("ranks", ranks)), "us", 1.0 / kCount)},
        [=] { return device_barriers(ranks, kCount); });
  }
}

void Cases::flags() {
  constexpr int kRounds = 1000;
  for (const bool two_gpus : {false, true}) {
    for (std::size_t p = 0; p < kLockProtocolNames.size(); ++p) {
      add(two_gpus ? 2 : 1,
          {per(row("flag", two_gpus ? "round trip between two GPUs" : "round trip on one GPU",
                   parameters("protocol", kLockProtocolNames[p])),
               "ns", 1e3 / kRounds)},
          [=] { return flag_ping_pong(two_gpus, kRounds, static_cast<LockProtocol>(p)); });
    }
  }
}

void Cases::flag_cost() {
  constexpr int kCount = 1000;
  for (const bool two_gpus : {false, true}) {
    for (std::size_t p = 0; p < kLockProtocolNames.size(); ++p) {
      const Parameters named = parameters("gpus", two_gpus ? 2 : 1, "protocol", kLockProtocolNames[p]);
      const auto of_kernel = [&](const char* name, int kernel) {
        MicrobenchRow made = row("flag-cost", name, named, MicrobenchMetric::kernel_time);
        made.kernel = kernel;
        return per(std::move(made), "ns", 1e3 / kCount);
      };
      add(two_gpus ? 2 : 1, {of_kernel("signal alone", 0), of_kernel("wait for a set flag", 1)},
          [=] { return flag_costs(two_gpus, kCount, static_cast<LockProtocol>(p)); });
    }
  }
}

// What one operation costs besides its bytes: tiles of several sizes, read from memory and from L2, by a
// copying kernel and by workgroups of a matmul kernel.
void Cases::tile_sizes() {
  constexpr std::int64_t kWalked = 64 * kMebibyte;
  constexpr std::int64_t kInL2 = 4 * kMebibyte;
  constexpr int kWorkgroups = 4;
  constexpr int kDataThreads = 256;
  constexpr std::int32_t kAccumulatorRows = 128;  // of a load; more do not fit
  for (const Motion kind : {Motion::copy_out, Motion::load}) {
    for (const TrafficPattern traffic : {TrafficPattern::local, TrafficPattern::one_pair}) {
      for (const int threads : {0, kDataThreads}) {
        if (kind == Motion::load && threads == 0) continue;
        for (const std::int64_t footprint : {kWalked, kInL2}) {
          for (const std::int32_t rows : {16, 32, 64, 128, 256}) {
            if (kind == Motion::load && rows > kAccumulatorRows) continue;
            const int ranks = traffic == TrafficPattern::local ? 1 : 2;
            const MotionCase c{kind, traffic, ranks, kWorkgroups, threads, kWalked, rows, footprint};
            const double tiles = static_cast<double>(c.bytes) / (rows * c.tile_cols * 2.0) / kWorkgroups;
            add(ranks,
                {per(row("tile-size", std::string(name_of(kind)),
                         parameters("traffic", name_of(traffic), "kernel", threads == 0 ? "matmul" : "data",
                                    "workgroups", kWorkgroups, "rows", rows, "footprint", footprint)),
                     "ns/tile", 1e3 / tiles)},
                [=] { return motion(c); });
          }
        }
      }
    }
  }
}

// What a copy takes that cannot begin while the one before it is still under way.
void Cases::guarded_copies() {
  constexpr std::int64_t kWalked = 64 * kMebibyte;
  constexpr std::int64_t kInL2 = 4 * kMebibyte;
  constexpr int kWorkgroups = 4;
  for (const int threads : {0, 256}) {
    for (const std::int64_t footprint : {kWalked, kInL2}) {
      for (const std::int32_t rows : {32, 64, 128, 256}) {
        MotionCase c{Motion::copy_out, TrafficPattern::one_pair, 2, kWorkgroups, threads, kWalked, rows,
                     footprint};
        c.guarded = true;
        MicrobenchRow made = row("guarded", std::string(name_of(c.motion)),
                                 parameters("kernel", threads == 0 ? "matmul" : "data", "workgroups",
                                            kWorkgroups, "rows", rows, "footprint", footprint),
                                 MicrobenchMetric::kernel_time);
        made.kernel = 1;  // after the one that sets the flag
        const double tiles = static_cast<double>(c.bytes) / (rows * c.tile_cols * 2.0) / kWorkgroups;
        add(c.ranks, {per(std::move(made), "ns/tile", 1e3 / tiles)}, [=] { return motion(c); });
      }
    }
  }
  for (const auto& [m, n] : {std::pair{64, 128}, std::pair{128, 128}, std::pair{128, 256}}) {
    for (const TrafficPattern traffic : {TrafficPattern::one_pair, TrafficPattern::all_rotated}) {
      for (const int threads : {0, 256}) {
        for (const int workgroups : {4, 8, 12, 16, 20, 24, 32})
          guarded_copy(traffic, m, n, workgroups, threads);
      }
    }
  }
}

// In a matrix, as the patterns do it.
void Cases::guarded_copy(TrafficPattern traffic, std::int32_t m, std::int32_t n, int workgroups,
                         int threads) {
  constexpr int kTiles = 64;  // of a workgroup
  MotionCase c = matrix_copies(2, workgroups, m, n);
  c.traffic = traffic;
  c.threads = threads;
  c.bytes = std::int64_t{2} * m * n * workgroups * kTiles;
  c.guarded = c.flag_each = true;
  MicrobenchRow made =
      row("guarded", std::string(name_of(c.motion)),
          parameters("traffic", name_of(traffic), "gpus", 2, "kernel", threads == 0 ? "matmul" : "data",
                     "workgroups", workgroups, "tile", tile_text(m, n), "columns", c.matrix_cols),
          MicrobenchMetric::kernel_time);
  made.kernel = traffic == TrafficPattern::one_pair ? 1 : 2;  // after those that set the flags
  add(2, {per(std::move(made), "ns/tile", 1e3 / kTiles)}, [=] { return motion(c); });
}

// Guarded copies beside a product that works on from before their begin until after their end.
void Cases::beside() {
  constexpr int kTiles = 64;  // of a workgroup
  constexpr int kMostCopying = 16;
  for (const auto& [m, n] : {std::pair{64, 128}, std::pair{128, 128}, std::pair{128, 256}}) {
    for (const int threads : {0, 256}) {
      for (const int workgroups : {4, kMostCopying}) {
        for (const int quarters : {1, 2, 3, 4}) {
          for (const auto& [product_m, product_n] : {std::pair{128, 256}, std::pair{64, 128}}) {
            MotionCase c = matrix_copies(2, workgroups, m, n);
            c.traffic = TrafficPattern::one_pair;
            c.threads = threads;
            c.bytes = std::int64_t{2} * m * n * workgroups * kTiles;
            c.guarded = c.flag_each = true;
            c.products = std::max(1, (compute_units_ - kMostCopying) * quarters / 4);
            c.product_rows = product_m;
            c.product_cols = product_n;
            MicrobenchRow made = row("beside", std::string(name_of(c.motion)),
                                     parameters("kernel", threads == 0 ? "matmul" : "data", "workgroups",
                                                workgroups, "tile", tile_text(m, n), "products", c.products,
                                                "product tile", tile_text(product_m, product_n)),
                                     MicrobenchMetric::kernel_time);
            made.kernel = 2;  // after the one that sets the flags and the product
            add(2, {per(std::move(made), "ns/tile", 1e3 / kTiles)}, [=] { return motion(c); });
          }
        }
      }
    }
  }
}

void Cases::motions(const std::string& group, TrafficPattern traffic, int ranks) {
  constexpr int kAtomicShare = 16;  // fewer bytes: atomics are slow
  for (std::size_t kind = 0; kind < kMotionNames.size(); ++kind) {
    for (const int threads : {256, 1024}) {
      for (const int workgroups : {1, 2, 4, 8, 16, 32, 64, 128}) {
        if (workgroups > compute_units_) continue;
        MotionCase c{static_cast<Motion>(kind), traffic, ranks, workgroups, threads, bytes_for(workgroups)};
        if (c.motion == Motion::atomic_add) c.bytes /= kAtomicShare;
        add(ranks,
            {rate(row(group, std::string(name_of(c.motion)),
                      parameters("traffic", name_of(traffic), "gpus", ranks, "workgroups", workgroups,
                                 "threads", threads, "bytes", c.bytes)),
                  static_cast<double>(c.bytes))},
            [=] { return motion(c); });
      }
    }
  }
}

void Cases::stored_tiles(const std::string& group, TrafficPattern traffic, int ranks) {
  constexpr int kTiles = 60;
  for (const auto& [m, n] : {std::pair{128, 256}, std::pair{128, 128}}) {
    for (const int workgroups : some_and_all({1, 2, 4, 8, 16, 32, 64})) {
      const std::int64_t bytes = std::int64_t{2} * m * n * workgroups * kTiles;
      add(ranks,
          {rate(row(group, "tile-store",
                    parameters("traffic", name_of(traffic), "gpus", ranks, "workgroups", workgroups, "tile",
                               tile_text(m, n), "bytes", bytes)),
                static_cast<double>(bytes))},
          [=, m = m, n = n] { return tile_stores(ranks, traffic, m, n, workgroups, kTiles); });
    }
  }
}

// Tiles of a wide matrix, as the patterns move them: the rows of a tile are far apart.
MotionCase Cases::matrix_copies(int ranks, int workgroups, std::int32_t m, std::int32_t n) const {
  MotionCase c{Motion::copy_out, TrafficPattern::all_rotated, ranks, workgroups, 256, bytes_for(workgroups)};
  c.tile_rows = m;
  c.tile_cols = n;
  c.matrix_cols = 8192;
  return c;
}

// Likewise, stored behind a product. Side by side, as in stored_tiles(), all workgroups write at multiples of
// one large power of two from each other, and a link carries 10 to 25 % less (2 H200, 2026-11-23).
void Cases::matrix_stores(TrafficPattern traffic, int ranks) {
  constexpr int kTiles = 60;
  constexpr std::int32_t kColumns = 8192;
  for (const auto& [m, n] : {std::pair{128, 128}, std::pair{128, 256}}) {
    for (const int workgroups : some_and_all(kAroundFull)) {
      const std::int64_t bytes = std::int64_t{2} * m * n * workgroups * kTiles;
      add(ranks,
          {rate(row("stores", "tile-store",
                    parameters("traffic", name_of(traffic), "gpus", ranks, "workgroups", workgroups, "tile",
                               tile_text(m, n), "columns", kColumns, "bytes", bytes)),
                static_cast<double>(bytes))},
          [=, m = m, n = n] { return tile_stores(ranks, traffic, m, n, workgroups, kTiles, kColumns); });
    }
  }
}

void Cases::matrix() {
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    for (const auto& [m, n] : {std::pair{64, 128}, std::pair{128, 128}, std::pair{128, 256}}) {
      for (const int workgroups : some_and_all(kAroundFull)) {
        const MotionCase c = matrix_copies(ranks, workgroups, m, n);
        add(ranks,
            {rate(row("matrix", std::string(name_of(c.motion)),
                      parameters("traffic", name_of(c.traffic), "gpus", ranks, "workgroups", workgroups,
                                 "tile", tile_text(m, n), "columns", c.matrix_cols, "bytes", c.bytes)),
                  static_cast<double>(c.bytes))},
            [=] { return motion(c); });
      }
    }
  }
}

void Cases::ragged() {
  for (const auto& [m, n] : {std::pair{128, 128}, std::pair{128, 256}}) {
    for (const std::int32_t first_col : {0, 1, 2, 4, 8, 16}) {
      for (const int workgroups : some_and_all({4})) {
        MotionCase c = matrix_copies(2, workgroups, m, n);
        c.first_col = first_col;
        add(2,
            {rate(row("ragged", std::string(name_of(c.motion)),
                      parameters("traffic", name_of(c.traffic), "gpus", 2, "workgroups", workgroups, "tile",
                                 tile_text(m, n), "first column", c.first_col, "bytes", c.bytes)),
                  static_cast<double>(c.bytes))},
            [=] { return motion(c); });
      }
    }
  }
}

void Cases::remote() {
  motions("remote", TrafficPattern::one_pair, 2);
  stored_tiles("remote", TrafficPattern::one_pair, 2);
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    motions("remote", TrafficPattern::all_rotated, ranks);
    stored_tiles("remote", TrafficPattern::all_rotated, ranks);
    if (ranks > 2) motions("remote", TrafficPattern::all_in_order, ranks);
  }
}

// More than a link carries, wanted by all compute units at once; on one GPU, than its memory does.
void Cases::arbitration() {
  for (int ranks = 1; ranks <= gpus_; ranks *= 2) {
    MotionCase c = matrix_copies(ranks, compute_units_, 128, 128);
    if (ranks == 1) c.traffic = TrafficPattern::local;
    MicrobenchRow copies = row("arbitration", "copies",
                               parameters("gpus", ranks, "workgroups", compute_units_, "tile",
                                          tile_text(c.tile_rows, c.tile_cols), "bytes", c.bytes),
                               MicrobenchMetric::copy_spread);
    copies.unit = "share";
    add(ranks, {std::move(copies)}, [=] { return motion(c); });
  }
}

// Loads and copies of what lies in L2, by workgroups.
void Cases::caches() {
  constexpr std::int64_t kFootprint = 8 * kMebibyte;
  for (const Motion kind : {Motion::load, Motion::copy_out}) {
    for (const int workgroups : some_and_all({1, 2, 4, 8, 16, 32, 64})) {
      MotionCase c{kind, TrafficPattern::local, 1, workgroups, 256, bytes_for(workgroups)};
      c.footprint = kFootprint;
      add(1,
          {rate(row("l2", std::string(name_of(kind)),
                    parameters("workgroups", workgroups, "threads", c.threads, "footprint", kFootprint,
                               "bytes", c.bytes)),
                static_cast<double>(c.bytes))},
          [=] { return motion(c); });
    }
  }
}

// How much has to move before a pair of GPUs reaches its rate.
void Cases::sizes() {
  constexpr int kWorkgroups = 32;
  for (std::size_t kind = 0; kind < kMotionNames.size(); ++kind) {
    for (const std::int64_t mebibytes : {1, 4, 16, 64, 256}) {
      MotionCase c{static_cast<Motion>(kind), TrafficPattern::one_pair, 2, kWorkgroups, 1024,
                   mebibytes * kMebibyte};
      if (c.motion == Motion::atomic_add && mebibytes > 16) continue;  // atomics are slow
      add(2,
          {rate(row("size", std::string(name_of(c.motion)),
                    parameters("traffic", name_of(c.traffic), "workgroups", kWorkgroups, "threads", c.threads,
                               "bytes", c.bytes)),
                static_cast<double>(c.bytes))},
          [=] { return motion(c); });
    }
  }
}

std::vector<Microbench> microbenchmarks(int gpus, int compute_units) {
  std::vector<Microbench> benches = Cases(gpus, compute_units).all();
  for (Microbench& bench : benches) {
    bench.schedule = [build = std::move(bench.schedule)] {
      Schedule schedule = build();
      schedule.one_process = true;  // tritax-gpu
      return schedule;
    };
  }
  return benches;
}

}  // namespace tritax

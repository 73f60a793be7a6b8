#include "model/microbench/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/microbench/schedules.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr double kGbPerSecond = 1e-3;  // of a byte a microsecond

using Parameters = std::vector<std::pair<std::string, std::string>>;

template <typename... Rest>
Parameters parameters(const char* name, const auto& value, const Rest&... rest) {
  Parameters all;
  if constexpr (sizeof...(rest) > 0) all = parameters(rest...);
  all.insert(all.begin(), {name, fmt::format("{}", value)});
  return all;
}

std::string tile_text(std::int32_t m, std::int32_t n) { return fmt::format("{}x{}", m, n); }

// Long enough that starting the kernel does not count, short enough that a lone workgroup comes to an end.
std::int64_t bytes_for(int workgroups) { return std::min(256 * kMebibyte, 16 * kMebibyte * workgroups); }

constexpr std::array kMatrixTypes{DType::bf16, DType::fp16, DType::fp8};

// Makes the table, group by group.
class Cases {
 public:
  Cases(int gpus, int compute_units) : gpus_(gpus), compute_units_(compute_units) {}

  std::vector<Microbench> all() {
    launches();
    barriers();
    flags();
    flag_cost();
    tile_sizes();
    guarded_copies();
    motions("local", Traffic::local, 1);
    stored_tiles("local", Traffic::local, 1);
    matrix();
    ragged();
    remote();
    matmuls();
    staging();
    powers();
    clocks();
    contention();
    cold();
    spread();
    arbitration();
    streams();
    caches();
    sizes();
    return std::move(cases_);
  }

 private:
  // A row without its way from time to value.
  static MicrobenchRow row(std::string group, std::string name, Parameters named,
                           MicrobenchMetric metric = MicrobenchMetric::device_time) {
    MicrobenchRow made;
    made.group = std::move(group);
    made.name = std::move(name);
    made.parameters = std::move(named);
    made.metric = metric;
    return made;
  }
  static MicrobenchRow per(MicrobenchRow row, std::string unit, double per_us) {
    row.unit = std::move(unit);
    row.per_us = per_us;
    return row;
  }
  static MicrobenchRow rate(MicrobenchRow row, double bytes) {
    row.unit = "GB/s";
    row.over_us = bytes * kGbPerSecond;
    return row;
  }
  void add(int gpus, std::vector<MicrobenchRow> rows, std::function<Schedule()> schedule,
           bool sustained = false) {
    if (gpus <= gpus_) cases_.push_back({gpus, sustained, 0, std::move(schedule), std::move(rows)});
  }
  // After `flush` bytes were written on every GPU.
  void add_flushed(int gpus, std::int64_t flush, std::vector<MicrobenchRow> rows,
                   std::function<Schedule()> schedule) {
    if (gpus > gpus_) return;
    cases_.push_back({gpus, false, static_cast<double>(flush), std::move(schedule), std::move(rows)});
  }

  // Those of `wanted` below the number of compute units, then all of them.
  std::vector<int> some_and_all(std::initializer_list<int> wanted) const {
    std::vector<int> counts;
    std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(counts),
                 [this](int count) { return count < compute_units_; });
    counts.push_back(compute_units_);
    return counts;
  }

  void launches();
  void barriers();
  void flags();
  void flag_cost();
  void tile_sizes();
  void guarded_copies();
  void motions(const std::string& group, Traffic traffic, int ranks);
  void stored_tiles(const std::string& group, Traffic traffic, int ranks);
  void matrix();
  void ragged();
  void remote();
  void matmuls();
  void staging();
  void clocks();
  void powers();
  void gemm_clocks(DType dtype, bool sustained);
  void contention();
  void cold();
  MotionCase matrix_copies(int ranks, int workgroups, std::int32_t m, std::int32_t n) const;
  void spread();
  void arbitration();
  void streams();
  void caches();
  void sizes();

  int gpus_;
  int compute_units_;
  std::vector<Microbench> cases_;
};

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
    for (const int count : {1, 2, 4}) {
      for (const int workgroups : some_and_all({1})) {
        add_flushed(
            ranks, kBefore,
            {per(row("launch", "step",
                     parameters("gpus", ranks, "kernels", count, "workgroups", workgroups, "flush", kBefore),
                     MicrobenchMetric::wall_time),
                 "us", 1)},
            [=] { return matmul_steps(ranks, count, workgroups); });
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
    for (const Traffic traffic : {Traffic::local, Traffic::one_pair}) {
      for (const int threads : {0, kDataThreads}) {
        if (kind == Motion::load && threads == 0) continue;
        for (const std::int64_t footprint : {kWalked, kInL2}) {
          for (const std::int32_t rows : {16, 32, 64, 128, 256}) {
            if (kind == Motion::load && rows > kAccumulatorRows) continue;
            const int ranks = traffic == Traffic::local ? 1 : 2;
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
        MotionCase c{Motion::copy_out, Traffic::one_pair, 2, kWorkgroups, threads, kWalked, rows, footprint};
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
}

void Cases::motions(const std::string& group, Traffic traffic, int ranks) {
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

void Cases::stored_tiles(const std::string& group, Traffic traffic, int ranks) {
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
  MotionCase c{Motion::copy_out, Traffic::all_rotated, ranks, workgroups, 256, bytes_for(workgroups)};
  c.tile_rows = m;
  c.tile_cols = n;
  c.matrix_cols = 8192;
  return c;
}

void Cases::matrix() {
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    for (const auto& [m, n] : {std::pair{64, 128}, std::pair{128, 128}, std::pair{128, 256}}) {
      for (const int workgroups : some_and_all({4, 8, 16, 32, 64})) {
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
  motions("remote", Traffic::one_pair, 2);
  stored_tiles("remote", Traffic::one_pair, 2);
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    motions("remote", Traffic::all_rotated, ranks);
    stored_tiles("remote", Traffic::all_rotated, ranks);
    if (ranks > 2) motions("remote", Traffic::all_in_order, ranks);
  }
}

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

// Tiles that are stored one after the other: beside what a matmul and a store take alone, the way through the
// staging area.
void Cases::staging() {
  constexpr int kTiles = 16;
  for (const auto& [m, n] :
       {std::pair{128, 256}, std::pair{128, 128}, std::pair{64, 256}, std::pair{64, 128}}) {
    for (const int k : {1024, 4096}) {
      for (const int workgroups : some_and_all({1})) {
        for (const bool each : {false, true}) {
          add(1,
              {per(row("staging", tile_text(m, n),
                       parameters("k", k, "workgroups", workgroups, "stores", each ? "each" : "last")),
                   "us/tile", 1.0 / kTiles)},
              [=, m = m, n = n] { return matmul_tiles(1, DType::bf16, m, n, k, workgroups, kTiles, each); });
        }
      }
    }
  }
}

// The clock of the matrix cores by how many of them work.
void Cases::clocks() {
  constexpr std::int32_t kDepth = 16384;
  constexpr int kTiles = 4;
  for (const DType dtype : kMatrixTypes) gemm_clocks(dtype, false);  // before anything that heats the GPU
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
}

void Cases::spread() {
  MicrobenchRow made = row("spread", "128x256", parameters("size", 8192, "workgroups", compute_units_),
                           MicrobenchMetric::matmul_spread);
  made.unit = "share";
  add(2, {std::move(made)}, [all = compute_units_] { return gemm_beside_copies(all, 0, 0); });
}

// More than a link carries, wanted by all compute units at once.
void Cases::arbitration() {
  for (int ranks = 2; ranks <= gpus_; ranks *= 2) {
    const MotionCase c = matrix_copies(ranks, compute_units_, 128, 128);
    MicrobenchRow copies = row("arbitration", "copies",
                               parameters("gpus", ranks, "workgroups", compute_units_, "tile",
                                          tile_text(c.tile_rows, c.tile_cols), "bytes", c.bytes),
                               MicrobenchMetric::copy_spread);
    copies.unit = "share";
    add(ranks, {std::move(copies)}, [=] { return motion(c); });
  }
}

// Tiles whose columns of B come from memory and serve nobody else, as in a product with few rows; from caches
// that hold nothing, and from caches full of what has to be written back first.
void Cases::streams() {
  constexpr std::int32_t kDepth = 8192;
  for (const auto& [m, n] :
       {std::pair{64, 128}, std::pair{128, 128}, std::pair{64, 256}, std::pair{128, 256}}) {
    for (const int workgroups : some_and_all({16, 32, 64})) {
      for (const std::int64_t flush : {std::int64_t{0}, 256 * kMebibyte}) {
        add_flushed(1, flush,
                    {per(row("stream", tile_text(m, n),
                             parameters("k", kDepth, "workgroups", workgroups, "flush", flush)),
                         "us", 1)},
                    [=, m = m, n = n] { return matmul_streams(m, n, kDepth, workgroups); });
      }
    }
  }
}

// Loads and copies of what lies in L2, by workgroups.
void Cases::caches() {
  constexpr std::int64_t kFootprint = 8 * kMebibyte;
  for (const Motion kind : {Motion::load, Motion::copy_out}) {
    for (const int workgroups : some_and_all({1, 2, 4, 8, 16, 32, 64})) {
      MotionCase c{kind, Traffic::local, 1, workgroups, 256, bytes_for(workgroups)};
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
      MotionCase c{static_cast<Motion>(kind), Traffic::one_pair, 2, kWorkgroups, 1024, mebibytes * kMebibyte};
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

}  // namespace

std::vector<Microbench> microbenchmarks(int gpus, int compute_units) {
  return Cases(gpus, compute_units).all();
}

}  // namespace tritax

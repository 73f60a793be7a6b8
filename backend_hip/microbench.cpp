#include "backend_hip/microbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "backend_hip/measure.hpp"
#include "backend_hip/microbench_schedules.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

constexpr std::array<int, 8> kWorkgroups{1, 2, 4, 8, 16, 32, 64, 128};
constexpr double kMicrosecond = 1e-6;

// Writes rows as they come.
class Rows {
 public:
  Rows(const MicrobenchOptions& options, const RunOptions& run) : run_(run) {
    if (std::filesystem::exists(options.output))
      throw UserError(fmt::format("{}: exists already", options.output));
    out_.open(options.output);
    out_ << "# " << measurement_place() << '\n'
         << "# commit " << options.commit << "; command: " << options.command << '\n'
         << "# time_us and its quantiles are what was measured; value is what follows from them\n"
         << "group,name,parameters,value,unit,time_us,time_p10_us,time_p90_us,runs\n";
    if (!out_) throw UserError(fmt::format("{}: cannot be written", options.output));
    run_.quiet = true;
  }

  Measurement run(const Schedule& schedule) const { return measure(schedule, run_); }

  // After at least `warmup_us` of the same work.
  Measurement run_long(const Schedule& schedule, double warmup_us) const {
    RunOptions once = run_;
    once.repeats = 1;
    RunOptions longer = run_;
    longer.warmup = static_cast<int>(warmup_us / measure(schedule, once).device_us.median) + 1;
    return measure(schedule, longer);
  }

  void write(const std::string& group, const std::string& name, const std::string& parameters, double value,
             const std::string& unit, const Spread& time, int runs) {
    out_ << fmt::format("{},{},{},{:.4g},{},{:.3f},{:.3f},{:.3f},{}\n", group, name, parameters, value, unit,
                        time.median, time.p10, time.p90, runs)
         << std::flush;
    fmt::print("{:10} {:24} {:60} {:10.4g} {}\n", group, name, parameters, value, unit);
    std::fflush(stdout);
  }

 private:
  RunOptions run_;
  std::ofstream out_;
};

void launches(Rows& rows, int) {
  for (const int workgroups : {1, 132}) {
    for (const int count : {1, 2, 4, 100}) {
      for (const bool in_graph : {false, true}) {
        const Measurement measured = rows.run(empty_kernels(count, in_graph, workgroups));
        rows.write("launch", in_graph ? "graph" : "stream",
                   fmt::format("kernels={};workgroups={}", count, workgroups),
                   measured.wall_us.median / count, "us/kernel", measured.wall_us, measured.runs);
      }
    }
  }
}

void barriers(Rows& rows, int gpus) {
  constexpr int kCount = 1000;
  for (int ranks = 2; ranks <= gpus; ranks *= 2) {
    const Measurement measured = rows.run(host_barriers(ranks, kCount));
    rows.write("launch", "host barrier", fmt::format("ranks={}", ranks), measured.wall_us.median / kCount,
               "us", measured.wall_us, measured.runs);
  }
}

void flags(Rows& rows, int gpus) {
  constexpr int kRounds = 1000;
  for (const bool two_gpus : {false, true}) {
    if (two_gpus && gpus < 2) continue;
    for (std::size_t protocol = 0; protocol < kLockProtocolNames.size(); ++protocol) {
      const Measurement measured =
          rows.run(flag_ping_pong(two_gpus, kRounds, static_cast<LockProtocol>(protocol)));
      rows.write("flag", two_gpus ? "round trip, two GPUs" : "round trip, one GPU",
                 fmt::format("protocol={}", kLockProtocolNames[protocol]),
                 measured.device_us.median / kRounds * 1e3, "ns", measured.device_us, measured.runs);
    }
  }
}

void flag_cost_rows(Rows& rows, int gpus) {
  constexpr int kCount = 1000;
  for (const bool two_gpus : {false, true}) {
    if (two_gpus && gpus < 2) continue;
    for (std::size_t protocol = 0; protocol < kLockProtocolNames.size(); ++protocol) {
      const Measurement measured =
          rows.run(flag_costs(two_gpus, kCount, static_cast<LockProtocol>(protocol)));
      const std::string parameters =
          fmt::format("gpus={};protocol={}", two_gpus ? 2 : 1, kLockProtocolNames[protocol]);
      rows.write("flag", "signal alone", parameters, measured.kernel_us[0].median / kCount * 1e3, "ns",
                 measured.kernel_us[0], measured.runs);
      rows.write("flag", "wait for a set flag", parameters, measured.kernel_us[1].median / kCount * 1e3, "ns",
                 measured.kernel_us[1], measured.runs);
    }
  }
}

// Long enough that starting the kernel does not count, short enough that a lone workgroup comes to an end.
std::int64_t bytes_for(int workgroups) {
  constexpr std::int64_t kMebibyte = 1 << 20;
  return std::min(256 * kMebibyte, 16 * kMebibyte * workgroups);
}

void motion_rows(Rows& rows, const char* group, Traffic traffic, int ranks) {
  for (std::size_t kind = 0; kind < kMotionNames.size(); ++kind) {
    for (const int threads : {256, 1024}) {
      for (const int workgroups : kWorkgroups) {
        MotionCase c{static_cast<Motion>(kind), traffic, ranks, workgroups, threads, bytes_for(workgroups)};
        if (c.motion == Motion::atomic_add) c.bytes /= 16;
        const Measurement measured = rows.run(motion(c));
        rows.write(group, std::string(kMotionNames[kind]),
                   fmt::format("traffic={};gpus={};workgroups={};threads={};bytes={}",
                               kTrafficNames[static_cast<std::size_t>(traffic)], ranks, workgroups, threads,
                               c.bytes),
                   static_cast<double>(c.bytes) / (measured.device_us.median * kMicrosecond) * 1e-9, "GB/s",
                   measured.device_us, measured.runs);
      }
    }
  }
}

// What one operation costs besides its bytes: tiles of several sizes, read from memory and from L2, by a
// copying kernel and by workgroups of a matmul kernel.
void tile_sizes(Rows& rows, int gpus) {
  constexpr std::int64_t kWalked = std::int64_t{64} << 20;
  constexpr std::int64_t kInL2 = std::int64_t{4} << 20;
  for (const Motion kind : {Motion::copy_out, Motion::load}) {
    for (const Traffic traffic : {Traffic::local, Traffic::one_pair}) {
      const int ranks = traffic == Traffic::local ? 1 : 2;
      if (gpus < ranks) continue;
      for (const int threads : {0, 256}) {
        if (kind == Motion::load && threads == 0) continue;
        for (const std::int64_t footprint : {kWalked, kInL2}) {
          for (const std::int32_t tile_rows : {16, 32, 64, 128, 256}) {
            if (kind == Motion::load && tile_rows > 128) continue;  // more than an accumulator
            constexpr int kWorkgroupsUsed = 4;
            const MotionCase c{kind, traffic, ranks, kWorkgroupsUsed, threads, kWalked, tile_rows, footprint};
            const Measurement measured = rows.run(motion(c));
            const double tiles = static_cast<double>(c.bytes) / (tile_rows * 256.0) / kWorkgroupsUsed;
            rows.write("tile-size", std::string(kMotionNames[static_cast<std::size_t>(kind)]),
                       fmt::format("traffic={};kernel={};workgroups={};rows={};footprint={}",
                                   kTrafficNames[static_cast<std::size_t>(traffic)],
                                   threads == 0 ? "matmul" : "data", kWorkgroupsUsed, tile_rows, footprint),
                       measured.device_us.median / tiles * 1e3, "ns/tile", measured.device_us, measured.runs);
          }
        }
      }
    }
  }
}

// Tiles of a wide matrix, as the patterns move them: the rows of a tile are far apart.
void matrix_motion(Rows& rows, int gpus) {
  constexpr std::int32_t kMatrixCols = 8192;
  for (int ranks = 2; ranks <= gpus; ranks *= 2) {
    for (const auto& [tile_rows, tile_cols] :
         {std::pair{64, 128}, std::pair{128, 128}, std::pair{128, 256}}) {
      for (const int workgroups : {4, 8, 16, 32, 64, 132}) {
        MotionCase c{Motion::copy_out, Traffic::all_rotated, ranks, workgroups, 256, bytes_for(workgroups)};
        c.tile_rows = tile_rows;
        c.tile_cols = tile_cols;
        c.matrix_cols = kMatrixCols;
        const Measurement measured = rows.run(motion(c));
        rows.write("matrix", std::string(kMotionNames[static_cast<std::size_t>(c.motion)]),
                   fmt::format("traffic=all-rotated;gpus={};workgroups={};tile={}x{};columns={};bytes={}",
                               ranks, workgroups, tile_rows, tile_cols, kMatrixCols, c.bytes),
                   static_cast<double>(c.bytes) / (measured.device_us.median * kMicrosecond) * 1e-9, "GB/s",
                   measured.device_us, measured.runs);
      }
    }
  }
}

void tile_store_rows(Rows& rows, const char* group, Traffic traffic, int ranks) {
  constexpr int kTiles = 60;
  for (const auto& [m, n] : {std::pair{128, 256}, std::pair{128, 128}}) {
    for (const int workgroups : {1, 2, 4, 8, 16, 32, 64, 132}) {
      const Measurement measured = rows.run(tile_stores(ranks, traffic, m, n, workgroups, kTiles));
      const double bytes = 2.0 * m * n * workgroups * kTiles;
      rows.write(
          group, "tile-store",
          fmt::format("traffic={};gpus={};workgroups={};tile={}x{};bytes={:.0f}",
                      kTrafficNames[static_cast<std::size_t>(traffic)], ranks, workgroups, m, n, bytes),
          bytes / (measured.device_us.median * kMicrosecond) * 1e-9, "GB/s", measured.device_us,
          measured.runs);
    }
  }
}

void local_motion(Rows& rows, int) {
  motion_rows(rows, "local", Traffic::local, 1);
  tile_store_rows(rows, "local", Traffic::local, 1);
}

void remote_motion(Rows& rows, int gpus) {
  motion_rows(rows, "remote", Traffic::one_pair, 2);
  tile_store_rows(rows, "remote", Traffic::one_pair, 2);
  for (int ranks = 2; ranks <= gpus; ranks *= 2) {
    motion_rows(rows, "remote", Traffic::all_rotated, ranks);
    tile_store_rows(rows, "remote", Traffic::all_rotated, ranks);
    if (ranks > 2) motion_rows(rows, "remote", Traffic::all_in_order, ranks);
  }
}

void matmul(Rows& rows, int) {
  constexpr int kTiles = 4;
  const std::array<std::pair<int, int>, 5> shapes{{{128, 256}, {256, 128}, {128, 128}, {64, 256}, {64, 128}}};
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    for (const auto& [m, n] : shapes) {
      if (dtype == DType::fp8 && m == 64 && n == 128) continue;  // no such kernel
      for (const int k : {1024, 4096, 16384}) {
        for (const int workgroups : {1, 32, 64, 132}) {
          if (dtype != DType::bf16 && (k != 4096 || workgroups != 132)) continue;
          const Measurement measured = rows.run(matmul_tiles(dtype, m, n, k, workgroups, kTiles));
          rows.write("matmul", fmt::format("{}x{}", m, n),
                     fmt::format("dtype={};k={};workgroups={}", name_of(dtype), k, workgroups),
                     measured.device_us.median / kTiles, "us/tile", measured.device_us, measured.runs);
        }
      }
    }
  }
}

// Tiles that are stored one after the other: beside what a matmul and a store take alone, the way through the
// staging area.
void stored_tiles(Rows& rows, int) {
  constexpr int kTiles = 16;
  for (const auto& [m, n] :
       {std::pair{128, 256}, std::pair{128, 128}, std::pair{64, 256}, std::pair{64, 128}}) {
    for (const int k : {1024, 4096}) {
      for (const int workgroups : {1, 132}) {
        for (const bool each : {false, true}) {
          const Measurement measured = rows.run(matmul_tiles(DType::bf16, m, n, k, workgroups, kTiles, each));
          rows.write("staging", fmt::format("{}x{}", m, n),
                     fmt::format("k={};workgroups={};stores={}", k, workgroups, each ? "each" : "last"),
                     measured.device_us.median / kTiles, "us/tile", measured.device_us, measured.runs);
        }
      }
    }
  }
}

// The clock that the matrix cores sustain: after a tenth of a second of the same work, because the power
// controller looks at milliseconds.
void clocks(Rows& rows, int) {
  constexpr std::int32_t kDepth = 16384;
  constexpr int kTiles = 4;
  constexpr double kWarmupUs = 1e5;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    for (const auto& [m, n] : {std::pair{128, 256}, std::pair{128, 128}, std::pair{64, 256}}) {
      for (const int workgroups : {1, 33, 66, 99, 132}) {
        if (dtype != DType::bf16 && workgroups != 132) continue;
        const Measurement measured =
            rows.run_long(matmul_tiles(dtype, m, n, kDepth, workgroups, kTiles), kWarmupUs);
        rows.write("clock", fmt::format("{}x{}", m, n),
                   fmt::format("dtype={};k={};workgroups={}", name_of(dtype), kDepth, workgroups),
                   measured.clock_ghz[0].median, "GHz", measured.device_us, measured.runs);
      }
    }
  }
}

void contention(Rows& rows, int) {
  constexpr int kGemmWorkgroups = 116;
  for (const int senders : {0, 4, 8, 16}) {
    const Measurement measured =
        rows.run(gemm_beside_copies(kGemmWorkgroups, senders, std::int64_t{1} << 29));
    const Spread gemm = measured.kernel_us[senders > 0 ? 1 : 0];
    rows.write("contention", "gemm beside remote copies",
               fmt::format("gemm_workgroups={};senders={}", kGemmWorkgroups, senders), gemm.median, "us",
               gemm, measured.runs);
    if (senders == 0) continue;
    const Spread copies = measured.kernel_us[0];
    rows.write("contention", "remote copies beside gemm",
               fmt::format("gemm_workgroups={};senders={}", kGemmWorkgroups, senders),
               static_cast<double>(std::int64_t{1} << 29) / (copies.median * kMicrosecond) * 1e-9, "GB/s",
               copies, measured.runs);
  }
}

struct Group {
  std::string_view name;
  int gpus;  // needed
  void (*run)(Rows& rows, int gpus);
};

constexpr std::array<Group, 12> kGroups{{{"launch", 1, launches},
                                         {"barrier", 2, barriers},
                                         {"flag", 1, flags},
                                         {"tile-size", 1, tile_sizes},
                                         {"flag-cost", 1, flag_cost_rows},
                                         {"matrix", 2, matrix_motion},
                                         {"staging", 1, stored_tiles},
                                         {"clock", 1, clocks},
                                         {"local", 1, local_motion},
                                         {"remote", 2, remote_motion},
                                         {"matmul", 1, matmul},
                                         {"contention", 2, contention}}};

void check_names(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const Group& group : kGroups) names.emplace_back(group.name);
  for (const std::string& name : only) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = nearest_name(name, names);
    throw UserError(fmt::format("--only: unknown group '{}'{}; groups: {}", name,
                                nearest.empty() ? "" : ", did you mean '" + nearest + "'?",
                                fmt::join(names, ", ")));
  }
}

}  // namespace

void run_microbenchmarks(const MicrobenchOptions& options, const RunOptions& run) {
  check_names(options.only);
  const int gpus = static_cast<int>(list_gpus().size());
  if (gpus == 0) throw UserError("no GPU: the runtime finds no device on this machine");
  Rows rows(options, run);
  for (const Group& group : kGroups) {
    const bool asked = options.only.empty() ||
                       std::find(options.only.begin(), options.only.end(), group.name) != options.only.end();
    if (!asked) continue;
    if (gpus < group.gpus) {
      fmt::print("{}: left out, it needs {} GPUs\n", group.name, group.gpus);
      continue;
    }
    group.run(rows, gpus);
  }
}

}  // namespace tritax::gpu

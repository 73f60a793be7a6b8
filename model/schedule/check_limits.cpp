// Checks sizes that exceed any memory, and counters that would overflow, before memory for a schedule is
// allocated.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "model/schedule/findings.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

// The sum of a side and the side of its tile fits in 32 bits.
constexpr std::int32_t kLargestSide = 1 << 30;
// Numbers of flag arrays have 16 bits, and the simulator adds an array for tile dependences (relax.hpp).
constexpr std::size_t kMaxFlagArrays = std::numeric_limits<std::int16_t>::max();
constexpr std::size_t kMaxBuffers = std::size_t{std::numeric_limits<std::int16_t>::max()} + 1;
constexpr std::int32_t kMaxCounters = 1 << 24;  // of a flag array
// Over all ranks of a schedule, as the simulator stores them: each limit takes about 1.5 GB.
constexpr std::int64_t kMaxAllCounters = std::int64_t{1} << 27;
constexpr std::int64_t kMaxTiles = std::int64_t{1} << 26;
// Workgroups, items and operations, counted per launch: the checker's graph has as many points.
constexpr std::uint64_t kMaxExecuted = std::uint64_t{1} << 28;
// A counter has 32 bits on the GPU; values are signed here.
constexpr std::int64_t kMaxCounter = std::numeric_limits<std::int32_t>::max();

bool is_side(std::int32_t side) { return side >= 1 && side <= kLargestSide; }

// If a count is too large, its elements are not checked one by one.
bool check_counts(const Schedule& schedule, Findings& findings) {
  const auto check = [&](std::string_view what, std::size_t count, std::size_t most) {
    if (count <= most) return;
    findings.add(Kind::out_of_range, "schedule",
                 fmt::format("{} {}; a schedule has at most {}", count, what, most));
  };
  check("flag arrays", schedule.flags.size(), kMaxFlagArrays);
  check("buffers", schedule.buffers.size(), kMaxBuffers);
  return findings.empty();
}

void check_buffers(const Schedule& schedule, Findings& findings) {
  for (const Buffer& buffer : schedule.buffers) {
    if (!is_side(buffer.rows) || !is_side(buffer.cols) || !is_side(buffer.tile_rows) ||
        !is_side(buffer.tile_cols)) {
      findings.add(Kind::out_of_range, fmt::format("buffer '{}'", buffer.name),
                   fmt::format("shape {}×{} with tile {}×{}; all must be 1 to {}", buffer.rows, buffer.cols,
                               buffer.tile_rows, buffer.tile_cols, kLargestSide));
    }
    std::string fault = fault_of_codec(buffer);
    if (!fault.empty())
      findings.add(Kind::meaningless, fmt::format("buffer '{}'", buffer.name), std::move(fault));
  }
}

void check_counters(const Schedule& schedule, Findings& findings) {
  std::int64_t counters = 0;
  for (const FlagArray& flag : schedule.flags) {
    if (flag.count < 1 || flag.count > kMaxCounters) {
      findings.add(Kind::out_of_range, fmt::format("flags '{}'", flag.name),
                   fmt::format("{} counters; there must be 1 to {}", flag.count, kMaxCounters));
    }
    counters += flag.count;
  }
  if (counters * schedule.ranks > kMaxAllCounters) {
    findings.add(
        Kind::out_of_range, "schedule",
        fmt::format(
            "its flag arrays have {} counters on each of {} ranks; all ranks together have at most {}",
            counters, schedule.ranks, kMaxAllCounters));
  }
}

// Buffers whose tiles are tracked individually: matmul operands are not.
std::vector<char> followed_buffers(const Schedule& schedule) {
  std::vector<char> followed(schedule.buffers.size(), 0);
  const auto add = [&](std::int16_t buffer) {
    if (buffer >= 0 && static_cast<std::size_t>(buffer) < followed.size()) {
      followed[static_cast<std::size_t>(buffer)] = 1;
    }
  };
  for (const Op& op : schedule.ops) {
    add(op.buffer);
    if (traits_of(op.kind).reads == Reads::source) add(op.src_buffer);
  }
  return followed;
}

std::int64_t pieces(std::int32_t side, std::int32_t tile) { return (std::int64_t{side} + tile - 1) / tile; }

void check_tiles(const Schedule& schedule, Findings& findings) {
  const std::vector<char> followed = followed_buffers(schedule);
  std::int64_t tiles = 0;
  for (std::size_t i = 0; i < followed.size(); ++i) {
    if (followed[i] == 0) {
      continue;
    }
    const Buffer& buffer = schedule.buffers[i];
    const std::int64_t own = pieces(buffer.rows, buffer.tile_rows) * pieces(buffer.cols, buffer.tile_cols);
    if (own > kMaxTiles / schedule.ranks - tiles) {
      findings.add(Kind::out_of_range, fmt::format("buffer '{}'", buffer.name),
                   fmt::format("{}×{} in tiles of {}×{} are {} tiles on each of {} ranks; what is loaded, "
                               "stored or copied has at most {} on all ranks together: give larger tiles",
                               buffer.rows, buffer.cols, buffer.tile_rows, buffer.tile_cols, own,
                               schedule.ranks, kMaxTiles));
      return;
    }
    tiles += own;
  }
}

class LaunchCounter {
 public:
  explicit LaunchCounter(const Schedule& schedule) {
    for (const Kernel& kernel : schedule.kernels) {
      std::uint64_t size = 2;  // its start and its end
      for (std::size_t p = 0; p < program_count(kernel); ++p) {
        size += 1 + std::uint64_t{program_of(kernel, p).op_count};
      }
      size_.push_back(size);
    }
    for (const Graph& graph : schedule.graphs) {
      std::uint64_t size = 0;
      for (const GraphNode& node : graph) {
        size += of_kernel(node.kernel);
      }
      size_of_graph_.push_back(size);
    }
  }

  std::uint64_t count(const HostOp& op) const {
    if (op.kind == HostOpKind::launch) {
      return of_kernel(op.kernel);
    }
    const bool known = op.graph >= 0 &&
                       static_cast<std::size_t>(op.graph) < size_of_graph_.size();  // else refused elsewhere
    return op.kind == HostOpKind::graph_launch && known ? size_of_graph_[static_cast<std::size_t>(op.graph)]
                                                        : 0;
  }

 private:
  std::uint64_t of_kernel(std::int32_t kernel) const {
    const bool known = kernel >= 0 && static_cast<std::size_t>(kernel) < size_.size();
    return known ? size_[static_cast<std::size_t>(kernel)] : 0;
  }

  std::vector<std::uint64_t> size_;
  std::vector<std::uint64_t> size_of_graph_;
};

void check_launches(const Schedule& schedule, Findings& findings) {
  const LaunchCounter counter(schedule);
  std::uint64_t executed = 0;
  for (std::size_t rank = 0; rank < schedule.host.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.host[rank].size(); ++i) {
      executed += counter.count(schedule.host[rank][i]);
      if (executed > kMaxExecuted) {
        findings.add(Kind::out_of_range, describe_host_op(schedule, rank, i),
                     fmt::format("the launches up to here run {} workgroups and operations; a schedule runs "
                                 "at most {}",
                                 executed, kMaxExecuted));
        return;
      }
    }
  }
}

}  // namespace

void check_limits(const Schedule& schedule, Findings& findings) {
  if (!check_counts(schedule, findings)) return;
  check_buffers(schedule, findings);
  check_counters(schedule, findings);
  if (findings.empty()) {
    check_tiles(schedule, findings);
    check_launches(schedule, findings);
  }
}

void check_overflow(const SyncGraph& graph, Findings& findings) {
  for (const FlagCell& cell : graph.cells()) {
    if (cell.total <= kMaxCounter) {
      continue;
    }
    const std::string what = fmt::format(
        "adds to {}, whose signals and claims add up to {}; a counter of 32 bits holds at most {}",
        describe_flag(graph.schedule(), cell.flag, cell.index, cell.rank), cell.total, kMaxCounter);
    // Claims and items add 1 each and cannot overflow alone, so there are signals.
    findings.add(Kind::out_of_range, graph.describe_vertex(cell.signals.back()), what);
  }
}

}  // namespace tritax

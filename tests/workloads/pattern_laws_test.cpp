// Laws that every pattern obeys, on random shapes, machines and knobs.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "model/schedule/check.hpp"
#include "tests/cost/example_machines.hpp"
#include "tests/workloads/draw.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

struct Case {
  const Pattern* pattern = nullptr;
  GemmAllScatter workload;
  Machine machine;
  GemmKnobs knobs;
  Schedule schedule;
};

std::int32_t some_tile() { return 16 * between(1, 4); }

// Small ragged problems on small machines, so that every branch of a grid is met: more workgroups than tiles,
// fewer, dies that do not divide the grid, communication tiles larger and smaller than the GEMM's.
Case some_case(const Pattern& pattern) {
  Case c;
  c.pattern = &pattern;
  c.machine = example::amd_node();
  c.machine.gpu.xcds = between(1, 4);
  c.machine.gpu.cus_per_xcd = between(2, 7);
  c.machine.library.channels = between(1, 19);
  c.workload.gpus = between(1, 8);
  c.workload.m = between(1, 200);
  c.workload.n = c.workload.gpus + between(0, 400);
  c.workload.k = between(1, 100);
  GemmKnobs& knobs = c.knobs;
  knobs.tile_m = some_tile();
  knobs.tile_n = some_tile();
  if (coin()) knobs.comm_tile_m = some_tile();
  if (coin()) knobs.comm_tile_n = some_tile();
  const int cus = c.machine.gpu.cu_count();
  if (coin()) knobs.gemm_cus = between(1, cus - 1);
  if (coin()) knobs.comm_cus = between(1, cus - std::max(1, knobs.gemm_cus));
  knobs.group_m = between(1, 8);
  knobs.xcd_remap = coin();
  if (knobs.xcd_remap && coin()) knobs.xcd_chunk = between(1, 40);
  knobs.peer_order = static_cast<PeerOrder>(between(0, static_cast<int>(kPeerOrderNames.size()) - 1));
  knobs.launch = coin() ? LaunchMode::stream : LaunchMode::graph;
  knobs.host_barriers = coin();
  c.schedule = build(pattern, c.workload, c.machine, knobs);
  return c;
}

template <typename Visit>
void for_each_op(const Schedule& schedule, Visit visit) {
  for (const Kernel& kernel : schedule.kernels) {
    for (const Workgroup& workgroup : kernel.workgroups) {
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i)
        visit(kernel, schedule.ops[workgroup.first_op + i]);
    }
  }
}

bool writes(const Op& op) { return op.kind == OpKind::store || op.kind == OpKind::copy; }

// How often each element of a matrix was touched.
class Coverage {
 public:
  Coverage(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols), count_(static_cast<std::size_t>(rows * cols), 0) {}

  void add(const Rect& rect) {
    RC_ASSERT(rect.rows > 0 && rect.cols > 0 && rect.row >= 0 && rect.col >= 0);
    RC_ASSERT(rect.row + rect.rows <= rows_ && rect.col + rect.cols <= cols_);
    for (std::int64_t i = rect.row; i < rect.row + rect.rows; ++i) {
      for (std::int64_t j = rect.col; j < rect.col + rect.cols; ++j)
        ++count_[static_cast<std::size_t>(i * cols_ + j)];
    }
  }
  bool all_once() const {
    return std::all_of(count_.begin(), count_.end(), [](int count) { return count == 1; });
  }

 private:
  std::int64_t rows_;
  std::int64_t cols_;
  std::vector<int> count_;
};

void writes_every_element_of_the_result_once_on_every_rank(const Case& c) {
  std::vector<Coverage> result(static_cast<std::size_t>(c.workload.gpus),
                               Coverage(c.workload.m, c.workload.n));
  for_each_op(c.schedule, [&](const Kernel&, const Op& op) {
    if (writes(op) && op.buffer == c.schedule.result_buffer)
      result[static_cast<std::size_t>(op.rank)].add(op.rect);
  });
  for (const Coverage& coverage : result) RC_ASSERT(coverage.all_once());
}

RC_GTEST_PROP(EveryPattern, WritesEveryElementOfTheResultOnceOnEveryRank, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns)
    writes_every_element_of_the_result_once_on_every_rank(some_case(pattern));
}

void multiplies_every_element_of_the_own_columns_once_over_the_whole_depth(const Case& c) {
  std::vector<Coverage> product;
  for (int rank = 0; rank < c.workload.gpus; ++rank) {
    product.emplace_back(c.workload.m, owned_columns(c.workload, rank).size());
  }
  for_each_op(c.schedule, [&](const Kernel& kernel, const Op& op) {
    if (op.kind != OpKind::matmul) return;
    RC_ASSERT(op.k_begin == 0 && op.k_end == c.workload.k);
    RC_ASSERT(op.rect.rows <= kernel.tile.m && op.rect.cols <= kernel.tile.n);
    product[static_cast<std::size_t>(kernel.rank)].add(op.rect);
  });
  for (const Coverage& coverage : product) RC_ASSERT(coverage.all_once());
}

RC_GTEST_PROP(EveryPattern, MultipliesEveryElementOfTheOwnColumnsOnceOverTheWholeDepth, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns)
    multiplies_every_element_of_the_own_columns_once_over_the_whole_depth(some_case(pattern));
}

void sends_the_own_block_to_every_peer_and_nothing_else(const Case& c) {
  std::vector<double> sent(static_cast<std::size_t>(c.workload.gpus), 0);
  for_each_op(c.schedule, [&](const Kernel& kernel, const Op& op) {
    if (!writes(op) || op.rank == kernel.rank) return;
    sent[static_cast<std::size_t>(kernel.rank)] +=
        bytes_of(c.schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
    if (op.kind == OpKind::copy) RC_ASSERT(op.src_rank == kernel.rank);
  });
  for (int rank = 0; rank < c.workload.gpus; ++rank) {
    RC_ASSERT(sent[static_cast<std::size_t>(rank)] == egress_bytes(c.workload, rank));
  }
}

RC_GTEST_PROP(EveryPattern, SendsTheOwnBlockToEveryPeerAndNothingElse, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns)
    sends_the_own_block_to_every_peer_and_nothing_else(some_case(pattern));
}

void signals_every_flag_as_often_as_its_waiters_need(const Case& c) {
  std::map<std::array<int, 3>, int> value;  // (rank, flag, index)
  for_each_op(c.schedule, [&](const Kernel&, const Op& op) {
    if (op.kind == OpKind::signal) value[{op.rank, op.flag, op.index}] += op.value;
  });
  for_each_op(c.schedule, [&](const Kernel& kernel, const Op& op) {
    if (op.kind != OpKind::wait && op.kind != OpKind::signal) return;
    RC_ASSERT(op.index >= 0 && op.index < c.schedule.flags[static_cast<std::size_t>(op.flag)].count);
    if (op.kind == OpKind::wait) RC_ASSERT((value[{kernel.rank, op.flag, op.index}] == op.value));
  });
}

RC_GTEST_PROP(EveryPattern, SignalsEveryFlagAsOftenAsItsWaitersNeed, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns)
    signals_every_flag_as_often_as_its_waiters_need(some_case(pattern));
}

int area_of_overlap(const Rect& x, const Rect& y) {
  const int rows = std::min(x.row + x.rows, y.row + y.rows) - std::max(x.row, y.row);
  const int cols = std::min(x.col + x.cols, y.col + y.cols) - std::max(x.col, y.col);
  return std::max(0, rows) * std::max(0, cols);
}

void wait_for_every_gemm_tile_of_what_they_send_and_for_no_other(const Case& c) {
  std::map<std::pair<int, int>, Rect> tile_of_lock;  // (rank, index); lock is the first flag array
  Rect stored;
  for_each_op(c.schedule, [&](const Kernel& kernel, const Op& op) {
    if (op.kind == OpKind::store) stored = op.rect;
    if (op.kind == OpKind::signal && op.scope == Scope::gpu) tile_of_lock[{kernel.rank, op.index}] = stored;
  });
  RC_ASSERT(tile_of_lock.empty() == (!c.pattern->uses("lock") || c.workload.gpus == 1));
  if (!c.pattern->uses("lock")) return;  // ordered by kernels and registers instead

  std::vector<Rect> waited;
  bool collecting = false;
  for_each_op(c.schedule, [&](const Kernel& kernel, const Op& op) {
    const bool lock = op.kind == OpKind::wait && op.scope == Scope::gpu;
    if (lock) {
      if (!collecting) waited.clear();
      waited.push_back(tile_of_lock.at({kernel.rank, op.index}));
    }
    if (op.kind == OpKind::copy) {
      int covered = 0;
      for (const Rect& rect : waited) {
        const int overlap = area_of_overlap(rect, op.rect);
        RC_ASSERT(overlap > 0);
        covered += overlap;
      }
      RC_ASSERT(covered == op.rect.rows * op.rect.cols);
    }
    collecting = lock;
  });
}

RC_GTEST_PROP(PatternsWithLocks, WaitForEveryGemmTileOfWhatTheySendAndForNoOther, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns)
    wait_for_every_gemm_tile_of_what_they_send_and_for_no_other(some_case(pattern));
}

void launches_each_kernel_once_on_its_own_rank_and_ends_synchronised(const Case& c) {
  std::vector<int> launches(c.schedule.kernels.size(), 0);
  for (int rank = 0; rank < c.workload.gpus; ++rank) {
    const std::vector<HostOp>& host = c.schedule.host[static_cast<std::size_t>(rank)];
    const auto launch = [&](std::int32_t kernel) {
      RC_ASSERT(c.schedule.kernels[static_cast<std::size_t>(kernel)].rank == rank);
      ++launches[static_cast<std::size_t>(kernel)];
    };
    for (const HostOp& op : host) {
      if (op.kind == HostOpKind::launch) launch(op.kernel);
      if (op.kind != HostOpKind::graph_launch) continue;
      for (const GraphNode& node : c.schedule.graphs[static_cast<std::size_t>(op.graph)]) launch(node.kernel);
    }
    if (c.knobs.host_barriers) {
      RC_ASSERT(host.front().kind == HostOpKind::barrier);
      RC_ASSERT(host.back().kind == HostOpKind::barrier);
      RC_ASSERT(host[host.size() - 2].kind == HostOpKind::device_synchronize);
    } else {
      RC_ASSERT(host.back().kind == HostOpKind::device_synchronize);
    }
  }
  RC_ASSERT(std::all_of(launches.begin(), launches.end(), [](int count) { return count == 1; }));
}

RC_GTEST_PROP(EveryPattern, LaunchesEachKernelOnceOnItsOwnRankAndEndsSynchronised, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns)
    launches_each_kernel_once_on_its_own_rank_and_ends_synchronised(some_case(pattern));
}

void passes_the_checker(const Case& c) {
  for (const Finding& finding : check_schedule(c.schedule)) RC_FAIL(finding.where + ": " + finding.message);
  for (const Finding& finding : check_schedule_on(c.schedule, c.machine))
    RC_FAIL(finding.where + ": " + finding.message);
}

RC_GTEST_PROP(EveryPattern, PassesTheChecker, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns) passes_the_checker(some_case(pattern));
}

void with_one_gpu_only_multiplies(Case c) {
  c.workload.gpus = 1;
  const Schedule schedule = build(*c.pattern, c.workload, c.machine, c.knobs);
  RC_ASSERT(schedule.kernels.size() == 1u);
  RC_ASSERT(schedule.flags.empty());
  for_each_op(schedule, [](const Kernel&, const Op& op) {
    RC_ASSERT(op.kind == OpKind::matmul || op.kind == OpKind::store);
    RC_ASSERT(op.rank == 0);
  });
}

RC_GTEST_PROP(EveryPattern, WithOneGpuOnlyMultiplies, ()) {
  for (const Pattern& pattern : gemm_all_scatter().patterns) with_one_gpu_only_multiplies(some_case(pattern));
}

}  // namespace
}  // namespace tritax

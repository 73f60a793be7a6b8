#include "model/schedule/operations.hpp"
#include "model/schedule/op_views.hpp"

#include <algorithm>
#include <vector>

namespace tritax {

namespace {

// Pairs of a query and a visible key of an attend_backward: query r sees the keys below limit + r.
double seen_pairs(const Op& op) {
  const BackwardView view(op);
  const std::int64_t keys = op.rect.rows;
  if (!view.is_masked()) return static_cast<double>(keys * (std::int64_t{op.k_end} - op.k_begin));
  std::int64_t seen = 0;
  for (std::int64_t row = op.k_begin; row < op.k_end; ++row) {
    seen += std::clamp<std::int64_t>(view.limit() + row - op.rect.row, 0, keys);
  }
  return static_cast<double>(seen);
}

}  // namespace

double flops_of(const Op& op) {
  const std::int64_t keys = std::int64_t{op.k_end} - op.k_begin;
  if (op.kind == OpKind::matmul) return 2.0 * op.rect.rows * op.rect.cols * static_cast<double>(keys);
  if (op.kind == OpKind::sparse_product) return 2.0 * static_cast<double>(keys);
  if (op.kind == OpKind::attend_backward) return 10.0 * (op.rect.cols / 2) * seen_pairs(op);
  if (op.kind != OpKind::attend) return 0;
  std::int64_t seen = keys * op.rect.rows;
  const AttendView view(op);
  if (view.is_masked()) {
    seen = 0;
    for (std::int64_t row = 0; row < op.rect.rows; ++row) {
      seen += std::clamp<std::int64_t>(
          view.first_unseen() + row / std::max(1, view.rows_alike()) - op.k_begin, 0, keys);
    }
  }
  return 4.0 * op.rect.cols * static_cast<double>(seen);
}

std::uint64_t executed_operations(const Schedule& schedule) {
  std::vector<std::uint64_t> of_kernel;
  for (const Kernel& kernel : schedule.kernels) {
    std::uint64_t& count = of_kernel.emplace_back(kernel.workgroups.size() + kernel.items.size());
    for (const auto* programs : {&kernel.workgroups, &kernel.items}) {
      for (const Workgroup& program : *programs) count += program.op_count;
    }
  }
  std::uint64_t executed = 0;
  const auto add = [&](std::int32_t kernel) { executed += of_kernel[static_cast<std::size_t>(kernel)]; };
  for (const auto& program : schedule.host) {
    for (const HostOp& op : program) {
      if (op.kind == HostOpKind::launch) add(op.kernel);
      if (op.kind != HostOpKind::graph_launch) continue;
      for (const GraphNode& node : schedule.graphs[static_cast<std::size_t>(op.graph)]) add(node.kernel);
    }
  }
  return executed;
}

}  // namespace tritax

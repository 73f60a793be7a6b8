// A schedule repeated several times, as a loop over its host programs: every run has kernels and flags of
// its own, and works on the same buffers.
#pragma once

#include "model/schedule/schedule.hpp"

namespace tritax {

inline Schedule repeated(const Schedule& once, int times) {
  Schedule all = once;
  const auto flags = static_cast<std::int16_t>(once.flags.size());
  const auto kernels = static_cast<std::int32_t>(once.kernels.size());
  const auto graphs = static_cast<std::int32_t>(once.graphs.size());
  for (int run = 1; run < times; ++run) {
    all.flags.insert(all.flags.end(), once.flags.begin(), once.flags.end());
    const auto first_op = static_cast<std::uint32_t>(all.ops.size());
    for (Op op : once.ops) {
      if (op.flag >= 0) op.flag = static_cast<std::int16_t>(op.flag + run * flags);
      all.ops.push_back(op);
    }
    for (Kernel kernel : once.kernels) {
      for (Workgroup& workgroup : kernel.workgroups) workgroup.first_op += first_op;
      for (Item& item : kernel.items) item.first_op += first_op;
      all.kernels.push_back(std::move(kernel));
    }
    for (Graph graph : once.graphs) {
      for (GraphNode& node : graph) node.kernel += run * kernels;
      all.graphs.push_back(std::move(graph));
    }
    for (std::size_t rank = 0; rank < once.host.size(); ++rank) {
      for (HostOp op : once.host[rank]) {
        if (op.kernel >= 0) op.kernel += run * kernels;
        if (op.graph >= 0) op.graph += run * graphs;
        all.host[rank].push_back(op);
      }
    }
  }
  return all;
}

}  // namespace tritax

#include "model/schedule/operations.hpp"

#include <vector>

namespace tritax {

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

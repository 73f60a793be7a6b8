#include "model/timeline/timeline.hpp"

namespace tritax {

std::vector<std::vector<std::int32_t>> streams_of_kernels(const Schedule& schedule) {
  std::vector<std::vector<std::int32_t>> streams(schedule.kernels.size());
  for (const auto& program : schedule.host) {
    for (const HostOp& op : program) {
      if (op.kind == HostOpKind::launch) {
        streams[static_cast<std::size_t>(op.kernel)].push_back(op.stream);
      } else if (op.kind == HostOpKind::graph_launch) {
        for (const GraphNode& node : schedule.graphs[static_cast<std::size_t>(op.graph)]) {
          streams[static_cast<std::size_t>(node.kernel)].push_back(node.stream);
        }
      }
    }
  }
  return streams;
}

}  // namespace tritax

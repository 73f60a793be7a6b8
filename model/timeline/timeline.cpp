#include "model/timeline/timeline.hpp"

namespace tritax {

std::vector<std::vector<std::int32_t>> streams_of_kernels(const Schedule& schedule) {
  std::vector<std::vector<std::int32_t>> streams(schedule.kernels.size());
  for (const auto& program : schedule.host) {
    for_each_launch(schedule, program, [&](const GraphNode& node) {
      streams[static_cast<std::size_t>(node.kernel)].push_back(node.stream);
    });
  }
  return streams;
}

}  // namespace tritax

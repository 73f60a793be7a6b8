#pragma once

#include <cstdint>
#include <map>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Bytes that the operations of `rank` exchange with each other rank.
inline std::map<int, double> bytes_by_peer(const Schedule& schedule, int rank) {
  std::map<int, double> bytes;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.rank != rank) continue;
    for (const Workgroup& workgroup : kernel.workgroups) {
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule.ops[workgroup.first_op + i];
        const int peer = op.kind == OpKind::copy && op.src_rank != rank ? op.src_rank : op.rank;
        bytes[peer] += bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
      }
    }
  }
  return bytes;
}

}  // namespace tritax

// The host programs of the schedules in schedules.cpp and schedules_matmul.cpp. For these two files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/schedule/builder.hpp"

namespace tritax {

// Every rank: a barrier, its kernel (-1: none), a device synchronisation, a barrier. `before`: kernels of the
// first ranks that theirs follow.
inline void launch_and_wait(ScheduleBuilder& builder, int ranks, const std::vector<std::int32_t>& kernels,
                            const std::vector<std::int32_t>& before = {}) {
  for (int rank = 0; rank < ranks; ++rank) {
    builder.host(rank, HostOpKind::barrier);
    if (static_cast<std::size_t>(rank) < before.size())
      builder.launch(rank, before[static_cast<std::size_t>(rank)]);
    if (kernels[static_cast<std::size_t>(rank)] >= 0)
      builder.launch(rank, kernels[static_cast<std::size_t>(rank)]);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
}

}  // namespace tritax

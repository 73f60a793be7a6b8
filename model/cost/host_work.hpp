// Computes how long a host is busy with labelled work.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// The duration in the schedule; without one, the machine's library time for work of this label; 0 for an
// unknown label.
inline double host_work_ns(const LibraryCosts& library, const HostOp& op) {
  if (op.duration_ns >= 0) return op.duration_ns;
  if (op.label == kCollectiveCall) return library.collective_call_ns;
  if (op.label == kFrameworkSync) return library.framework_sync_ns;
  return op.label == kFrameworkGather ? library.framework_gather_ns : 0;
}

}  // namespace tritax

// How long a host is busy with labelled work.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// What the schedule says; where it says nothing, what the machine's library takes for work of this label, and
// nothing for a label that no machine knows.
inline double host_work_ns(const LibraryCosts& library, const HostOp& op) {
  if (op.duration_ns >= 0) return op.duration_ns;
  if (op.label == kCollectiveCall) return library.collective_call_ns;
  if (op.label == kFrameworkSync) return library.framework_sync_ns;
  return op.label == kFrameworkGather ? library.framework_gather_ns : 0;
}

}  // namespace tritax

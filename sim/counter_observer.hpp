// Interface for observers that record the clock of the matrix cores and the reads of operations from caches
// and memory. The simulation calls it only if link counters are requested; other runs pay nothing.
#pragma once

#include <cstdint>

#include "model/timeline/counters.hpp"

namespace tritax {

class CounterObserver {
 public:
  virtual ~CounterObserver() = default;
  // The matrix cores of a GPU have this clock from now on: the lowest of the clocks of all matrix types in
  // use. The first call is at time 0; a run without matrix products makes no call.
  virtual void clock_changed(int rank, double time_ns, double ghz) = 0;
  // An operation that has started, or a copy that a copy engine has taken, reads these bytes from the caches
  // and the memory of GPU `from`. At most one call each; the read is complete at the end of the operation.
  virtual void op_reads(const OpPlace& place, int from, const ReadBytes& bytes) = 0;
  virtual void copy_reads(int rank, std::uint32_t host_op, int from, const ReadBytes& bytes) = 0;
};

}  // namespace tritax

// What a simulation tells those observers that are of this kind too, if it was asked for link counters: the
// clock of the matrix cores, and what operations read from caches and memory. Nobody else pays for it.
#pragma once

#include <cstdint>

#include "model/timeline/counters.hpp"

namespace tritax {

class CounterObserver {
 public:
  virtual ~CounterObserver() = default;
  // From here on the matrix cores of a GPU have this clock; of those that compute with several types, the
  // lowest. First at time 0; never in a run without matrix products.
  virtual void clock_changed(int rank, double time_ns, double ghz) = 0;
  // An operation that has started, or a copy that a copy engine has taken, reads this from the caches and the
  // memory of GPU `from`. At most once each; by its end everything has been read.
  virtual void op_reads(const OpPlace& place, int from, const ReadBytes& bytes) = 0;
  virtual void copy_reads(int rank, std::uint32_t host_op, int from, const ReadBytes& bytes) = 0;
};

}  // namespace tritax

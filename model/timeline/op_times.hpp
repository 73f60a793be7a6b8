// How long tile operations take, by kind: one definition for simulated and for measured timelines, so that
// the two can be compared.
//
//   synchronous (matmul, load, reduce, wait, signal, claim, barrier)
//       time = end - begin
//   asynchronous (store, copy, atomic_add)
//       time = end - max(begin, end of the asynchronous operation before it in its workgroup)
//
// An asynchronous operation ends when its data has drained. A GPU has several stores of one tile under way at
// once, the simulator one after the other; so measured, the times of a run of them (with no other operation
// between) add up to the time from the first begin to the last end on both sides.
//
// What a measured stamp means (backend_hip/interpreter.hpp, wgmma_feeder.hpp):
//   begin  the workgroup turned to the operation; of a store by the copy engine: the tile is staged and its
//          sender turned to it.
//   end    matmul: the accumulators are final. load, reduce: the tile is in registers. wait, claim: all
//          waves know. signal: the flag is set, after the release. Asynchronous: by the copy engine, when it
//          has performed the stores; by threads, when the last operation of a run has drained, and within a
//          run when the last word has been handed to the memory system.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "model/timeline/timeline.hpp"

namespace tritax {

// Operations that ought to take alike.
struct OpGroup {
  std::string kernel;
  OpKind kind = OpKind::barrier;
  bool remote = false;  // data, flag or source of another rank
  std::string size;     // rows x columns, of matmul x K: "128x256x4096"; "" for operations without a tile
  friend bool operator==(const OpGroup&, const OpGroup&) = default;
  friend bool operator<(const OpGroup& a,
                        const OpGroup& b) {  // not every standard library orders strings by <=>
    return std::tie(a.kernel, a.kind, a.remote, a.size) < std::tie(b.kernel, b.kind, b.remote, b.size);
  }
};

struct OpTimes {
  OpGroup group;
  std::int64_t count = 0;
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  double sum_us = 0;  // over all workgroups and ranks
};

// For every interval of `timeline` (in its order) the begin that its time counts from, in ns.
std::vector<double> service_begins(const Timeline& timeline);

// The group of an operation of `kernel`.
OpGroup group_of(const Kernel& kernel, const Op& op);

// All groups of a run, in the order of the kernels' names, kinds, local before remote, sizes. Quantiles by
// linear interpolation.
std::vector<OpTimes> op_times(const Timeline& timeline, const Schedule& schedule);

}  // namespace tritax

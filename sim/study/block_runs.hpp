// How long the patterns of a problem keep the GPUs busy inside a longer stream of work, without the host that
// launches them; used to chain many problems (model_time.hpp).
//
// A simulation of one problem begins with a launch on idle GPUs. Behind other work that launch may be hidden,
// and a graph has no such launch. So every run is simulated on the same machine with a host that takes no
// time (calls, turns, latency, gaps, synchronisation; host barriers within a pattern stay), and the host
// costs of its kernels are summed separately. Harness barriers do not count. The launch tax of such a run is
// the start time of kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/select/selector.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"
#include "sim/study/trust.hpp"

namespace tritax {

struct BlockRun {
  const Pattern* pattern = nullptr;  // null: a stream that no workload simulates
  Values knobs;
  TimeAccount account;       // on the GPUs, by a host that takes no time
  double gaps_ns = 0;        // before its kernels, one behind the other in a stream …
  double graph_gaps_ns = 0;  // … or as nodes of a graph
  double calls_ns = 0;       // that a host is busy with it, without a graph
  double last_share = 1;     // of the account that is left when its last kernel starts, at most
  bool holds_host = false;   // a host waits for GPUs in the midst of it: no graph can hold it
  bool searched = true;      // more than its default knobs were tried
  bool doubted = false;      // its time is known to be wrong (trust.hpp)

  double gpu_ns() const { return account.sum_ns(); }
};

struct BlockRuns {
  std::vector<BlockRun> runs;  // one per pattern that can be built, in the order of the workload's table
  std::vector<std::string> left_out;  // "pattern: reason"
  Trust trust;

  // Throws UserError if the pattern could not be built.
  const BlockRun& of(std::string_view pattern) const;
};

struct BlockOptions {
  const Selector* selector = nullptr;  // chooses the knobs to try for every pattern; null: the usual selector
  std::uint64_t seed = 1;
  int threads = 0;                          // 0: all cores
  const std::atomic<bool>* stop = nullptr;  // once true, the returned result is no answer; may be null
  bool in_graph = false;                    // the block is part of a graph
};

// For every pattern the knobs that are fastest alone, launched in streams; `graph_gaps_ns` gives the gaps in
// a graph. A block in a graph has the same kernels, but for all-reduces: the library is then a serving
// engine's own all-reduce, where calls of it were measured on the machine (launching.hpp). Throws UserError
// as `simulate` does.
BlockRuns runs_of(const Problem& problem, const Machine& machine, const BlockOptions& options);

// Kernels bound by memory or by the matrix cores: each kernel takes one latency of HBM, all together take the
// time of their bytes or flops.
BlockRun stream_run(const Machine& machine, DType dtype, int kernels, double bytes, double flops);

}  // namespace tritax

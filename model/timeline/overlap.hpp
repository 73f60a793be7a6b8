// How much computing and communicating go on at once on each GPU, and how long it does neither: the figures
// of trace analyses such as Holistic Trace Analysis (github.com/facebookresearch/HolisticTraceAnalysis).
//
// A GPU computes while a product runs on any of its compute units. It communicates while any of its
// workgroups moves a tile to or from another GPU, or one of its copy engines does. With c, m and b the times
// of computing, communicating and both,
//
//   idle = time of the run - (c + m - b),   hidden = b / m
//
// For example products from 0 to 6 us and stores to peers from 4 to 9 in a run of 10: c 6, m 5, b 2, idle 1,
// two fifths hidden. That both go on says nothing of how much they slow each other down.
//
// Each moment of a GPU's idle time has one cause, the first of these that holds:
//
//   other    an operation on its own memory goes on (a load, a local store, a reduction)
//   flag     a workgroup waits for a flag that a peer raises
//   other    any other operation goes on: a signal, a barrier, a wait for a flag of this GPU
//   kernel   a kernel of it runs, but none of its operations: it begins or ends; or none runs, and its host
//            waits at a barrier, or has nothing left to start, while kernels or copies of other GPUs run
//   launch   nothing of it runs: host calls, launch latency, the gap between kernels, the harness
//
// In the example, with a kernel from 0 to 9.2 us that signals the peer from 9 to 9.2: 0.2 us other, and 0.8
// launch.
#pragma once

#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax {

// The idle time by cause; adds up to it.
struct IdleCauses {
  double launch_ns = 0;
  double flag_ns = 0;
  double kernel_ns = 0;
  double other_ns = 0;
};

struct Overlap {
  double computing_ns = 0;
  double communicating_ns = 0;
  double both_ns = 0;
  double idle_ns = 0;
  IdleCauses idle;
  double hidden() const { return communicating_ns > 0 ? both_ns / communicating_ns : 0; }
};

// By rank. `run_ns` is the time of the run.
std::vector<Overlap> overlaps_of(const Timeline& timeline, const Schedule& schedule, double run_ns);

}  // namespace tritax

// Computes a lower bound of the time of a schedule without a simulation.
//
// The bound walks the host programs of all ranks, like the simulator, with a lower bound of the time of every
// kernel:
//
//   kernel >= chain    operations of a workgroup follow each other; stores, copies and signals wait for the
//                      store before them, other operations overlap it. Matmuls have the highest clock, stores
//                      have the limit of one compute unit and the largest arbitration weight.
//   kernel >= power    its matmuls together under the power limit (power_bound.hpp)
//   kernel >= wire     bytes / rate of every link and fabric port that the kernel sends over
//   copy   >= packet and bytes at the rate of a copy engine (host_walk.hpp)
//   rank   >= memory   operands, inputs and results over the HBM rate, each byte once, from its first launch
//
// Everything else in the simulator (contention, cache misses, flags, polls, dispatch, arbitration) only adds
// time. The bound reads the schedule and knows no patterns: a new pattern needs no new bound. Operations
// after a `claim` do not count, because they may be skipped; items of a queue count like workgroups, because
// each item is certainly executed once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/machine/machine.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

struct TimeBound {
  double total_ns = 0;     // no simulation of the schedule ends earlier
  double compute_ns = 0;   // chain and power bound of the matmuls, largest over all kernels
  double wire_ns = 0;      // busiest link or fabric port
  double memory_ns = 0;    // operands and unwritten inputs from HBM, results to HBM
  double operands_ns = 0;  // part of memory_ns: reads and stores of computing kernels

  // Lower bound of the computing kernels without waits: by matrix cores or by memory.
  double computing_ns() const { return std::max(compute_ns, operands_ns); }
};

// `topology` is of schedule.ranks GPUs. `ranks`: only the workgroups and copy engines of the first `ranks`
// ranks are evaluated; a looser bound if ranks differ, in less time. Throws UserError if the GPU has no
// matrix instruction for the dtype.
TimeBound time_bound(const Schedule& schedule, const Machine& machine, const Topology& topology,
                     std::int32_t ranks = std::numeric_limits<std::int32_t>::max());

// How the products of one rank are distributed to its compute units. A product is the sum that one workgroup
// computes before it stores the sum.
struct Rounds {
  std::int64_t tiles = 0;  // of C; each is one product, or `parts` products if K is split
  std::int64_t parts = 1;
  std::int32_t tile_m = 0;  // shape of the tiles
  std::int32_t tile_n = 0;
  std::int32_t workers = 0;  // workgroups or compute units that can run products at once, also idle ones
  std::int64_t rounds = 0;   // products that the busiest worker computes in sequence
  double tile_ns = 0;        // one product without contention, at the clock under full load
  double sent_bytes = 0;     // to all other ranks
  double fetched_bytes = 0;  // from all other ranks
  std::int32_t senders = 0;  // workgroups that send or fetch without computing
  std::int64_t products() const { return tiles * parts; }
  double fill() const {  // share of the slots in all rounds that have a matmul
    return rounds == 0 ? 0 : static_cast<double>(products()) / (static_cast<double>(rounds) * workers);
  }
};

// Rounds of rank 0, which has the widest share of the columns.
Rounds gemm_rounds(const Schedule& schedule, const Machine& machine);

}  // namespace tritax

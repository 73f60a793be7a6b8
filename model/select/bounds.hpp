// A lower bound of the time of a schedule, without simulating it.
//
// The bound walks the host programs of all ranks, as the simulator does, with every kernel at a time that it
// cannot beat:
//
//   kernel >= chain    operations of a workgroup follow each other; stores, copies and signals wait for the
//                      store before them, the rest runs beside it. Matmuls count at the highest clock, stores
//                      at the limit of one compute unit and the largest arbitration weight.
//   kernel >= power    what the power limit leaves its matmuls together (power_bound.hpp)
//   kernel >= wire     bytes / rate of every link and fabric port that the kernel sends over
//   copy   >= packet and bytes at the rate of a copy engine (host_walk.hpp)
//   rank   >= memory   operands, inputs and results over the HBM rate, each byte once, from its first launch
//
// Everything else in the simulator (contention, cache misses, flags, polls, dispatch, arbitration) only
// delays. The bound knows no pattern, it reads the schedule: a new pattern needs no bound of its own.
// Operations behind a `claim` count nowhere, for they may be skipped; items of a queue count as workgroups
// would, for each is surely run by one.
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
  double memory_ns = 0;    // operands and what nobody writes out of HBM, results into it
  double operands_ns = 0;  // of that, what computes reads and stores

  // What computes takes at least, whatever it waits for: by matrix cores or by memory.
  double computing_ns() const { return std::max(compute_ns, operands_ns); }
};

// `topology` is that of schedule.ranks GPUs. `ranks`: of only so many, the first, is asked what their own
// workgroups and copy engines take; a looser bound where ranks are not alike, in less time. Throws UserError
// when the GPU has no matrix instruction for the dtype.
TimeBound time_bound(const Schedule& schedule, const Machine& machine, const Topology& topology,
                     std::int32_t ranks = std::numeric_limits<std::int32_t>::max());

// How the products of one rank, each what one workgroup adds up before it stores it, fall onto its compute
// units.
struct Rounds {
  std::int64_t tiles = 0;  // of C; each is one product, or `parts` of them where K is split
  std::int64_t parts = 1;
  std::int32_t tile_m = 0;  // their shape
  std::int32_t tile_n = 0;
  std::int32_t workers = 0;  // workgroups or compute units that can run them side by side, also without one
  std::int64_t rounds = 0;   // products that the busiest of them computes one after another
  double tile_ns = 0;        // one product, unobstructed, at the clock under full load
  double sent_bytes = 0;     // to all other ranks
  double fetched_bytes = 0;  // from all other ranks
  std::int32_t senders = 0;  // workgroups that send or fetch and do not compute
  std::int64_t products() const { return tiles * parts; }
  double fill() const {  // share of the slots in all rounds that have a matmul
    return rounds == 0 ? 0 : static_cast<double>(products()) / (static_cast<double>(rounds) * workers);
  }
};

// Of rank 0, which has the widest share of the columns.
Rounds gemm_rounds(const Schedule& schedule, const Machine& machine);

}  // namespace tritax

// The table of all microbenchmarks: what is run, and which numbers come of each run.
//
// One description for everybody: the GPU backend runs the schedules and writes the numbers as rows of a CSV
// file; `tritax calibrate` finds every row of such a file in this table again, simulates its schedule and
// compares the same quantity. A row is known by group, name and parameters.
//
//   launch      empty kernels: one launch and synchronisation; many in a stream; many in a graph; and the
//               host programs of the patterns, on all GPUs at once
//   barrier     host barriers
//   flag        round trips of a flag between two GPUs and between two workgroups of one, by lock protocol
//   flag-cost   what a signal, and a wait for a flag that is set, take alone
//   tile-size   loads and copies of tiles of several sizes, from memory and from L2
//   guarded     the same copies, each behind a wait for a flag that is set
//   beside      and beside products
//   local       store, load, copy and atomic addition within a GPU, by workgroups; stores of finished tiles
//   matrix      copies to peers out of a wide matrix, as the patterns move tiles
//   stores      finished tiles stored into a wide matrix of peers, likewise
//   ragged      the same of tiles whose rows begin anywhere within 32 bytes
//   remote      as local, to peers: one pair, all at once in order and rotated
//   matmul      tile time by tile, K, dtype and number of active compute units
//   step        tiles of 64 columns and of 16 rows by one workgroup: what a K step of few bytes takes
//   staging     finished tiles stored one after the other, and only the last one
//   fp8-staging the same of fp8 tiles
//   passed      tiles so low that bytes hardly count, stored again and again, or with signals behind them
//   chain       one tile on its way: computed, stored, signalled, awaited, behind a barrier; and lone copies
//   power       the clock of the matrix cores during products: by tile and by how operands are shared
//   clock       the clock that the matrix cores sustain, by how many of them work
//   contention  a GEMM beside remote copies
//   cold        one tile a workgroup, with the caches as the last run left them and overwritten; copies alone
//               and behind a short kernel, which nothing is fitted to
//   spread      how unequal the times of equal tiles are
//   arbitration how unequal the service of a full link is, and on one GPU that of a full memory
//   stream      tiles whose columns of B come from memory
//   busy-stream and beside a product
//   l2          loads and copies of what lies in L2
//   size        bandwidth of a pair of GPUs by the bytes moved
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

inline constexpr std::array<std::string_view, 29> kMicrobenchGroups{
    "launch",      "barrier", "flag",        "flag-cost", "tile-size", "guarded",    "beside",  "local",
    "matrix",      "stores",  "ragged",      "remote",    "matmul",    "step",       "stagger", "staging",
    "fp8-staging", "passed",  "chain",       "power",     "clock",     "contention", "cold",    "spread",
    "arbitration", "stream",  "busy-stream", "l2",        "size"};

enum class MicrobenchMetric : std::uint8_t {
  wall_time,    // of the host programs
  device_time,  // of the slowest rank: its first workgroup's begin to its last one's end
  host_time,    // of the host programs less that of the kernels of the slowest rank
  kernel_time,  // of one kernel
  clock,        // mean clock of the slowest kernel, in GHz
  // Relative standard deviations, from the 10 % and 90 % quantiles:
  matmul_spread,  // of the times of matmuls, as if normally distributed
  copy_spread     // of the rates of copies, as if lognormally distributed (model/cost/service_weights.hpp)
};

// One number that comes of a run.
struct MicrobenchRow {
  std::string group;
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;
  MicrobenchMetric metric = MicrobenchMetric::device_time;
  int kernel = 0;      // of kernel_time
  std::string unit;    // of `value` in a file
  double per_us = 0;   // value = time in us * per_us; or,
  double over_us = 0;  // where this is not 0, value = over_us / time in us

  // "gpus=1;workgroups=4": as in a file.
  std::string parameter_text() const;

  // The value of a parameter; "" and 0 if the row has none of that name.
  std::string_view text(std::string_view parameter) const;
  std::int64_t number(std::string_view parameter) const;

  // What a file says beside the time.
  double value(double time_us, double clock_ghz, double spread) const;
};

// Rows and columns of a tile as rows of microbenchmarks name it, "128x256"; asserts that it is one.
std::pair<std::int32_t, std::int32_t> tile_of(std::string_view text);

// One schedule to run.
struct Microbench {
  int gpus = 1;            // needed
  bool sustained = false;  // run it only after some tenths of a second of the same work
  double flush_bytes = 0;  // written on every GPU before each run
  std::function<Schedule()> schedule;
  std::vector<MicrobenchRow> rows;  // of one group; not empty
};

// All microbenchmarks of a node with `gpus` GPUs of `compute_units` each, in the order of kMicrobenchGroups;
// those that need more GPUs are left out.
std::vector<Microbench> microbenchmarks(int gpus, int compute_units);

}  // namespace tritax

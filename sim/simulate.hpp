// The simulator: a schedule and a machine in, a time and an account of it out.
//
// Deterministic discrete events; equal input gives equal bits on every run. Bandwidth is fluid and max-min
// fair (sim/fluid.hpp), compute units are slots with registers, LDS and waves (sim/dispatch.hpp), operand
// reuse is followed per slab and cache (sim/cache.hpp), flags propagate with a latency and polling costs what
// its protocol costs. There is no overlap ratio: whatever overlaps does so because it uses different
// resources at the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/cache_traffic.hpp"
#include "sim/observer.hpp"

namespace tritax {

// Where one nanosecond of the critical path went. The eight parts sum to the makespan.
struct TimeAccount {
  double compute_ns = 0;           // matrix cores at their unobstructed rate
  double memory_ns = 0;            // useful local memory traffic
  double wire_ns = 0;              // useful link traffic and latency
  double launch_ns = 0;            // launch tax
  double bulk_synchronous_ns = 0;  // bulk-synchronous tax
  double locality_ns = 0;          // inter-kernel data locality tax
  double contention_ns = 0;        // slowed by others on a shared resource
  double harness_ns = 0;           // host barriers around the measured region (model/schedule/harness.hpp)

  double sum_ns() const {
    return compute_ns + memory_ns + wire_ns + launch_ns + bulk_synchronous_ns + locality_ns + contention_ns +
           harness_ns;
  }
};

// What a counterfactual run changes (DESIGN: the second account of the taxes).
struct Counterfactual {
  bool free_launches = false;  // launches, gaps and host calls cost nothing
  // Tile dependences instead of kernel boundaries and of host barriers between them; those of a harness stay.
  bool dependences_for_barriers = false;
  bool intermediates_on_chip = false;  // re-reads of written tiles cost no memory traffic
};

// Whether nodes, or GPUs, that behave alike are simulated once (sim/symmetry.hpp).
enum class Symmetry : std::uint8_t {
  automatic,  // nodes, where a run has more than kMostRanksInFull
  off,        // every rank is simulated
  on,         // nodes, of runs of any size
  same_luck,  // every rank is simulated, but those that behave alike draw the same: what `on` gives
  ranks,  // GPUs of one node as well: some per cent too fast, for the slowest of many has worse luck than one
  ranks_same_luck,  // every rank is simulated, with the luck of `ranks`
};
inline constexpr std::array<std::string_view, 6> kSymmetryNames{"auto",      "off",   "on",
                                                                "same-luck", "ranks", "ranks-same-luck"};
inline constexpr int kMostRanksInFull = 16;

struct SimulationOptions {
  std::uint64_t seed = 1;  // of the arbitration spread
  Symmetry symmetry = Symmetry::automatic;
  Counterfactual counterfactual;
  bool link_counters = false;  // report link rates to the observer
  SimulationObserver* observer = nullptr;
  double written_before_bytes =
      0;  // to every GPU just before the run; what caches hold of it is written back in it
  bool warm =
      false;  // the same kernels ran just before: code, operations, and operands that fit are in the caches
  double give_up_after_ns = 0;  // stop and set `gave_up` once it is certain to take longer; 0: never
  const std::atomic<bool>* stop = nullptr;  // likewise when somebody else sets it; may be null
};

// For a run that is measured again and again, with so many bytes written to every GPU before each time;
// nothing if that is not known. Between equal runs with nothing written comes nothing that would change the
// caches.
SimulationOptions found_in_caches(const std::optional<double>& flush_bytes);

struct RankResult {
  TimeAccount account;          // of the critical path that ends at this rank's last operation
  double makespan_ns = 0;       // end of this rank's host program and of its kernels
  double kernels_ns = 0;        // first workgroup to last completion
  double cu_busy_ns = 0;        // sum over compute units of time with a workgroup
  double matrix_busy_ns = 0;    // mean over compute units of the time in which a matmul runs
  double matrix_clock_ghz = 0;  // of the matrix cores at the end; 0: none worked
  double matrix_work = 0;       // clk/GHz^3 that its matmuls drew, see sim/engine_clock.cpp
};

struct SimulationResult {
  double makespan_ns = 0;
  double kernels_ns = 0;  // first workgroup start to last kernel end, over all ranks
  TimeAccount account;    // sums exactly to makespan_ns
  std::vector<RankResult> ranks;
  std::int32_t simulated_ranks = 0;  // of `ranks`; the results of the others are those of these
  std::uint64_t tile_operations = 0;
  std::uint64_t events = 0;        // that the engine handled
  double matrix_flops = 0;         // executed, without padding
  double hbm_bytes = 0;            // what takes as long to read: a byte written counts as often as it costs
  double l2_hit_fraction = 0;      // of matmul operand bytes
  double llc_hit_fraction = 0;     // of the bytes that missed L2
  std::vector<CacheRow> caches;    // rows that had traffic
  std::vector<double> link_bytes;  // by topology edge
  bool gave_up = false;
};

// Runs the schedule. Throws UserError when the schedule does not fit the machine or when it stalls: the
// message says who waits for what (rank, kernel, workgroup, operation, flag, its value and the awaited
// value).
SimulationResult simulate(const Schedule& schedule, const Machine& machine,
                          const SimulationOptions& options = {});

// The two accounts of the three taxes for one schedule.
struct Taxes {
  TimeAccount account;  // along the critical path
  double makespan_ns = 0;
  double launch_ns = 0;            // makespan minus makespan with free launches
  double bulk_synchronous_ns = 0;  // … with dependences for barriers
  double locality_ns = 0;          // … with intermediates on chip
  double all_removed_ns = 0;       // makespan with all three removed
  double remainder_ns = 0;         // (makespan - all_removed) - (launch + bulk_synchronous + locality)
};
Taxes account_taxes(const Schedule& schedule, const Machine& machine, const SimulationOptions& options = {});

// The same in parts that can run side by side, for a caller that has simulated the schedule already.
struct CounterfactualMakespans {
  double free_launches_ns = 0;
  double intermediates_on_chip_ns = 0;
  double dependences_for_barriers_ns = 0;
  double all_ns = 0;
};
// Both give two: the first with the order that the schedule has, the second with tile dependences instead,
// for which it also has to run with the order.
void simulate_in_order(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                       CounterfactualMakespans& makespans);
void simulate_by_dependences(const Schedule& schedule, const Machine& machine,
                             const SimulationOptions& options, CounterfactualMakespans& makespans);
// `run` is what `simulate` gives with the same options and without a counterfactual.
Taxes taxes_of(const SimulationResult& run, const CounterfactualMakespans& makespans);

}  // namespace tritax

// The simulator: takes a schedule and a machine, returns a time and the account of the time.
//
// Deterministic discrete events; equal input gives equal bits on every run. Bandwidth is fluid and max-min
// fair (sim/fluid.hpp), compute units are slots with registers, LDS and waves (sim/dispatch.hpp), operand
// reuse is followed per slab and cache (sim/cache.hpp), flags propagate with a latency, and polling costs
// depend on the lock protocol. There is no overlap ratio: operations overlap because they use different
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

// Where the time of the critical path goes. The eight parts sum to the makespan.
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

// Changes of a counterfactual run (DESIGN: the second account of the taxes).
struct Counterfactual {
  bool free_launches = false;  // launches, gaps and host calls cost nothing
  // Tile dependences replace kernel boundaries and host barriers between kernels; barriers of a harness stay.
  bool dependences_for_barriers = false;
  bool intermediates_on_chip = false;  // re-reads of written tiles cost no memory traffic
};

// Whether nodes, or GPUs, that behave alike are simulated once (sim/symmetry.hpp).
enum class Symmetry : std::uint8_t {
  automatic,  // nodes, if a run has more than kMostRanksInFull ranks
  off,        // every rank is simulated
  on,         // nodes, for runs of any size
  ranks,      // also GPUs of one node: some per cent too fast, as the slowest of many is slower than one
};
inline constexpr std::array<std::string_view, 4> kSymmetryNames{"auto", "off", "on", "ranks"};
inline constexpr int kMostRanksInFull = 16;

struct SimulationOptions {
  std::uint64_t seed = 1;  // of the arbitration spread
  Symmetry symmetry = Symmetry::automatic;
  // Simulate every rank with the random shares that `symmetry` gives to ranks that stand for others: both
  // runs must agree.
  bool same_luck = false;
  Counterfactual counterfactual;
  bool link_counters = false;  // report link rates to the observer
  SimulationObserver* observer = nullptr;
  double written_before_bytes =
      0;              // to every GPU just before the run; the run writes back the part that caches still hold
  bool warm = false;  // the same kernels ran just before: caches hold code, operations, and operands that fit
  double give_up_after_ns = 0;  // stop and set `gave_up` once the run certainly takes longer; 0: never
  const std::atomic<bool>* stop = nullptr;  // stop and set `gave_up` once this is true; may be null
};

// Options for a run that is measured repeatedly, with `flush_bytes` written to every GPU before each
// repetition; defaults if unknown. With 0 bytes the run is warm: nothing changes the caches between equal
// runs.
SimulationOptions found_in_caches(const std::optional<double>& flush_bytes);

struct RankResult {
  TimeAccount account;          // of the critical path that ends at this rank's last operation
  double makespan_ns = 0;       // end of this rank's host program and of its kernels
  double kernels_ns = 0;        // first workgroup to last completion
  double cu_busy_ns = 0;        // sum over compute units of time with a workgroup
  double matrix_busy_ns = 0;    // mean over compute units of the time in which a matmul runs
  double matrix_clock_ghz = 0;  // of the matrix cores at the end; 0: no matmul ran
  double matrix_work = 0;       // clk/GHz^3 drawn by its matmuls, see sim/engine_clock.cpp
};

struct SimulationResult {
  double makespan_ns = 0;
  double kernels_ns = 0;  // first workgroup start to last kernel end, over all ranks
  TimeAccount account;    // sums exactly to makespan_ns
  std::vector<RankResult> ranks;
  std::int32_t simulated_ranks = 0;  // of `ranks`; results of the other ranks are copies
  std::uint64_t tile_operations = 0;
  std::uint64_t events = 0;        // handled by the engine
  double matrix_flops = 0;         // executed, without padding
  double hbm_bytes = 0;            // in bytes of equal read time: a byte written counts by its cost
  double l2_hit_fraction = 0;      // share of the matmul operand bytes
  double llc_hit_fraction = 0;     // share of the bytes that missed L2
  std::vector<CacheRow> caches;    // rows with traffic
  std::vector<double> link_bytes;  // by topology edge
  bool gave_up = false;
};

// Runs the schedule. Throws UserError if the schedule does not fit the machine or if it stalls: the message
// lists the waiting workgroups (rank, kernel, workgroup, operation, flag, its value and the awaited value).
SimulationResult simulate(const Schedule& schedule, const Machine& machine,
                          const SimulationOptions& options = {});

// The two accounts of the three taxes for one schedule.
struct Taxes {
  TimeAccount account;  // along the critical path
  double makespan_ns = 0;
  double launch_ns = 0;            // makespan minus makespan with free launches
  double bulk_synchronous_ns = 0;  // … with dependences for barriers
  double locality_ns = 0;          // … with intermediates on chip
  double all_removed_ns = 0;       // makespan with all three taxes removed
  double remainder_ns = 0;         // (makespan - all_removed) - (launch + bulk_synchronous + locality)
};
Taxes account_taxes(const Schedule& schedule, const Machine& machine, const SimulationOptions& options = {});

// The makespans of account_taxes in two parts that can run side by side, for a caller that has already
// simulated the schedule.
struct CounterfactualMakespans {
  double free_launches_ns = 0;
  double intermediates_on_chip_ns = 0;
  double dependences_for_barriers_ns = 0;
  double all_ns = 0;
};
// Each function sets two makespans: the first with the order of the schedule, the second with tile
// dependences, which also runs the schedule in its order.
void simulate_in_order(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                       CounterfactualMakespans& makespans);
void simulate_by_dependences(const Schedule& schedule, const Machine& machine,
                             const SimulationOptions& options, CounterfactualMakespans& makespans);
// `run` is the result of `simulate` with the same options and without a counterfactual.
Taxes taxes_of(const SimulationResult& run, const CounterfactualMakespans& makespans);

}  // namespace tritax

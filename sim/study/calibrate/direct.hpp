// Parameters that follow from their rows by arithmetic.
#pragma once

#include <vector>

#include "sim/study/calibrate/fit.hpp"

namespace tritax {

// gpu.matrix.<dtype>.light_clock: median clock with one workgroup. Unless `only_light`,
// gpu.matrix.<dtype>.load_clock and sustained_clock: mean over tiles of the clock during whole products.
// Leaves the values in `machine`.
std::vector<FittedUnknown> estimate_clocks(const std::vector<Observation>& table, bool only_light,
                                           Machine& machine);

// gpu.flag_same_die_latency (on GPUs of several dies gpu.flag_cross_die_latency, because neighbouring
// workgroups lie on different dies) and fabric.flag_latency from round trips with plain loads and stores:
// half of a round trip is one release, the latency, and, because a poll is under way when the flag arrives,
// half a poll on average. The simulator's polls begin with the wait, so its round trips are whole numbers of
// polls and no smooth function of the latency to fit. Relies on release_time and poll_load_time.
std::vector<FittedUnknown> estimate_flag_latencies(const std::vector<Observation>& table, Machine& machine);

// gpu.cold_start_time and gpu.dirty_share: what a short kernel, and a product whose operands fill the
// memory's bandwidth, take more after the caches were overwritten; both simulated, for each has some of the
// other. gpu.cold_code_time: half of what a copying kernel behind a short matmul takes more than the two do
// alone, as measured. Relies on what kernels and memory take with caches as the last run left them.
std::vector<FittedUnknown> estimate_cold_caches(const std::vector<Observation>& table, Machine& machine);

// gpu.passed_op_time: what a tile takes more for each operation that its workgroup leaves to the sending
// waves, less what the store or signal itself is simulated to take; the last tile of a workgroup has nothing
// behind it that waits. Relies on what stores and signals take.
FittedUnknown estimate_passed_ops(const std::vector<Observation>& table, Machine& machine);

// host.kernel_gap: half of what a step of four kernels takes more than one of two, besides what that is
// simulated to be, as long as a step waits for its kernels and not for the calls that launch them. Relies on
// what kernels and hosts take.
FittedUnknown estimate_kernel_gap(const std::vector<Observation>& table, Machine& machine);

// Of tiles that come further and further, each less the one before: gpu.sent_signal_time, besides the
// release; gpu.meet_time, of a wait besides the latency of the flag and half a poll, and of a barrier. Relies
// on release_time, poll_load_time and the latency of flags.
std::vector<FittedUnknown> estimate_chains(const std::vector<Observation>& table, Machine& machine);

// What copies take more if their rows begin and end off the multiples of 16 bytes: gpu.ragged_copy_time by
// few workgroups, fabric.ragged_end_bytes on a full link, at the rate of those that do not;
// fabric.split_line_bytes and fabric.sector_end_bytes, if they begin on those, but within a line.
std::vector<FittedUnknown> estimate_ragged_rows(const std::vector<Observation>& table, Machine& machine);

// gpu.matmul_spread and fabric.arbitration_spread as measured.
std::vector<FittedUnknown> estimate_spreads(const std::vector<Observation>& table, Machine& machine);

}  // namespace tritax

// Parameters that follow from their rows by arithmetic.
#pragma once

#include <vector>

#include "sim/study/calibrate/fit.hpp"

namespace tritax {

// gpu.matrix.<dtype>.light_clock: median clock with one workgroup. Unless `only_light`, also
// gpu.matrix.<dtype>.load_clock and sustained_clock: mean over tiles of the clock during whole products. Sets
// the values in `machine`.
std::vector<FittedUnknown> estimate_clocks(const std::vector<Observation>& table, bool only_light,
                                           Machine& machine);

// gpu.flag_same_die_latency (on GPUs of several dies gpu.flag_cross_die_latency, because neighbouring
// workgroups lie on different dies) and fabric.flag_latency from round trips with plain loads and stores:
// half of a round trip is one release, the latency, and half a poll on average, because a poll is under way
// when the flag arrives. The simulator's polls begin with the wait, so its round trips are whole numbers of
// polls and no smooth function of the latency. Relies on release_time and poll_load_time.
std::vector<FittedUnknown> estimate_flag_latencies(const std::vector<Observation>& table, Machine& machine);

// gpu.cold_start_time and gpu.dirty_share: the extra time of a short kernel, and of a product whose operands
// fill the memory's bandwidth, after the caches were overwritten; both are simulated, because each effect
// contains some of the other. gpu.cold_code_time: half of the measured extra time of a copying kernel behind
// a short matmul over both kernels alone. Relies on the times of kernels and memory with caches as the last
// run left them.
std::vector<FittedUnknown> estimate_cold_caches(const std::vector<Observation>& table, Machine& machine);

// gpu.passed_op_time: the extra time of a tile per operation that its workgroup leaves to the sending waves,
// less the simulated time of the store or signal itself; nothing waits behind the last tile of a workgroup.
// Relies on the times of stores and signals.
FittedUnknown estimate_passed_ops(const std::vector<Observation>& table, Machine& machine);

// host.kernel_gap: half of the extra time of a step of four kernels over a step of two, less its simulated
// part, as long as a step waits for its kernels and not for the calls that launch them. Relies on the times
// of kernels and hosts.
FittedUnknown estimate_kernel_gap(const std::vector<Observation>& table, Machine& machine);

// Differences between tiles of longer and longer chains: gpu.sent_signal_time, less the release;
// gpu.meet_time, of a wait less the latency of the flag and half a poll, and of a barrier. Relies on
// release_time, poll_load_time and the latency of flags.
std::vector<FittedUnknown> estimate_chains(const std::vector<Observation>& table, Machine& machine);

// Extra time of copies whose rows do not begin and end at multiples of 16 bytes: gpu.ragged_copy_time by few
// workgroups, fabric.ragged_end_bytes on a full link, at the rate of aligned copies; fabric.split_line_bytes
// and fabric.sector_end_bytes for rows that begin at multiples of 16 bytes, but within a line.
std::vector<FittedUnknown> estimate_ragged_rows(const std::vector<Observation>& table, Machine& machine);

// gpu.matmul_spread and fabric.arbitration_spread as measured.
std::vector<FittedUnknown> estimate_spreads(const std::vector<Observation>& table, Machine& machine);

}  // namespace tritax

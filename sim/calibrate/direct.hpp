// Parameters that follow from their rows by arithmetic.
#pragma once

#include <vector>

#include "sim/calibrate/fit.hpp"

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

// gpu.dirty_share: what a product whose operands fill the memory's bandwidth takes more after the caches were
// overwritten, besides the cold start, is written back at hbm_write_bandwidth.
std::vector<FittedUnknown> estimate_dirty_share(const std::vector<Observation>& table, Machine& machine);

// What copies take more if their rows begin and end off the multiples of 16 bytes: gpu.ragged_copy_time by
// few workgroups, fabric.ragged_end_bytes on a full link, at the rate of those that do not.
std::vector<FittedUnknown> estimate_ragged_rows(const std::vector<Observation>& table, Machine& machine);

// gpu.matmul_spread and fabric.arbitration_spread as measured; gpu.cold_start_time: what a short kernel takes
// more after its caches were overwritten.
std::vector<FittedUnknown> estimate_spread_and_start(const std::vector<Observation>& table, Machine& machine);

}  // namespace tritax

// The simulated value of a microbenchmark: the quantity that a file of measurements holds.
#pragma once

#include "model/machine/machine.hpp"
#include "model/microbench/cases.hpp"

namespace tritax {

// Time in us of `row`, a row of `bench` with schedule `schedule`: of the host programs, of the slowest rank
// or of a kernel, as the row says; for the clock, the time of the slowest rank. Throws as `simulate` does.
double simulated_time_us(const Schedule& schedule, const Microbench& bench, const MicrobenchRow& row,
                         const Machine& machine);

}  // namespace tritax

// What the simulator says of a microbenchmark: the same quantity that a file of measurements holds.
#pragma once

#include "model/machine/machine.hpp"
#include "model/microbench/cases.hpp"

namespace tritax {

// Time in us of `row`, a row of `bench`, whose schedule is `schedule`: of the host programs, of the slowest
// rank or of a kernel, as the row says; for the clock the time of the slowest rank. Throws what `simulate`
// throws.
double simulated_time_us(const Schedule& schedule, const Microbench& bench, const MicrobenchRow& row,
                         const Machine& machine);

}  // namespace tritax

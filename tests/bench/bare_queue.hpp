// Yardstick of the benchmarks: a loop that only takes events from a std::priority_queue and
// put new ones in. A simulator of discrete events cannot be faster; the ratio to it does not depend on the
// machine as much as events per second do.
#pragma once

#include <cstdint>

namespace tritax {

// Processor seconds of a loop of `events` pops and pushes with `pending` events in the queue.
double bare_queue_seconds(std::uint64_t events, std::uint64_t pending);

}  // namespace tritax

// Bandwidths of a collective alone, as nccl-tests and rccl-tests state them (NVIDIA/nccl-tests
// doc/PERFORMANCE.md).
//
//   algbw = bytes of the message / time        busbw = bytes that a GPU moves / time
//
// The time is that of the kernels: those benchmarks launch many calls, one behind the other.
#pragma once

#include <optional>

#include "model/core/fields.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax {

struct MessageRates {
  double message_bytes = 0;  // message_bytes() of the problem
  double bus_bytes = 0;      // Work::bytes_per_gpu
  double kernels_ns = 0;
};

// Nothing for a problem that is no collective alone.
std::optional<MessageRates> message_rates(const Problem& problem, const SimulationResult& result);

const Fields<MessageRates>& message_fields();

}  // namespace tritax

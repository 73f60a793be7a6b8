#include "sim/study/message_rates.hpp"

namespace tritax {

std::optional<MessageRates> message_rates(const Problem& problem, const SimulationResult& result) {
  const double bytes = message_bytes(problem);
  if (bytes <= 0 || result.kernels_ns <= 0) return std::nullopt;
  return MessageRates{bytes, work_of(problem).bytes_per_gpu, result.kernels_ns};
}

// Bytes per ns are GB/s.
const Fields<MessageRates>& message_fields() {
  static const Fields<MessageRates> fields{
      {{.name = "algbw",
        .unit = FieldUnit::gb_per_s,
        .meaning = "rate of a collective alone: message bytes per kernel time, as in nccl-tests",
        .shows = shown::kColumns | shown::kJson | shown::kRow,
        .optional = true,
        .if_any = true},
       [](const MessageRates& one) { return one.message_bytes / one.kernels_ns; }},
      {{.name = "busbw",
        .unit = FieldUnit::gb_per_s,
        .meaning =
            "rate of a collective alone: bytes that a GPU moves per kernel time; compare it with links",
        .shows = shown::kColumns | shown::kJson | shown::kRow,
        .optional = true,
        .if_any = true},
       [](const MessageRates& one) { return one.bus_bytes / one.kernels_ns; }}};
  return fields;
}

}  // namespace tritax

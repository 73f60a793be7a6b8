#include "model/timeline/counters.hpp"

#include <algorithm>
#include <cmath>

namespace tritax {

namespace {

struct SpanOfRead {
  double begin_ns = 0, end_ns = 0;
};

SpanOfRead span_of_read(const Timeline& timeline, const CacheRead& read) {
  if (read.by_engine) {
    const CopyInterval& copy = timeline.copies[read.interval];
    return {copy.begin_ns, copy.end_ns};
  }
  const OpInterval& op = timeline.ops[read.interval];
  return {op.begin_ns, op.end_ns};
}

}  // namespace

ReadRates read_rates(const Timeline& timeline, const Counters& counters, std::int32_t ranks,
                     std::size_t most_steps) {
  ReadRates rates;
  rates.of_gpu.resize(static_cast<std::size_t>(ranks));
  double last_ns = 0;
  for (const CacheRead& read : counters.reads) {
    last_ns = std::max(last_ns, span_of_read(timeline, read).end_ns);
  }
  if (counters.reads.empty()) return rates;
  // Whole nanoseconds, as traces have them.
  rates.step_ns =
      std::max<std::int64_t>(1, std::llround(std::ceil(last_ns / static_cast<double>(most_steps))));
  const auto step_ns = static_cast<double>(rates.step_ns);
  const auto steps = static_cast<std::size_t>(std::max(1.0, std::ceil(last_ns / step_ns)));
  for (auto& gpu : rates.of_gpu) gpu.resize(steps);
  const auto step_at = [&](double time_ns) {
    return std::min(steps - 1, static_cast<std::size_t>(time_ns / step_ns));
  };
  for (const CacheRead& read : counters.reads) {
    auto& gpu = rates.of_gpu[static_cast<std::size_t>(read.rank)];
    const SpanOfRead span = span_of_read(timeline, read);
    const double length_ns = span.end_ns - span.begin_ns;
    for (std::size_t step = step_at(span.begin_ns); step <= step_at(span.end_ns); ++step) {
      const double from_ns = std::max(span.begin_ns, static_cast<double>(step) * step_ns);
      const double to_ns = std::min(span.end_ns, static_cast<double>(step + 1) * step_ns);
      const double part = length_ns > 0 ? std::max(0.0, to_ns - from_ns) / length_ns : 1;
      gpu[step].l2 += part * static_cast<double>(read.l2_bytes) / step_ns;
      gpu[step].llc += part * static_cast<double>(read.llc_bytes) / step_ns;
      gpu[step].hbm += part * static_cast<double>(read.hbm_bytes) / step_ns;
    }
  }
  return rates;
}

}  // namespace tritax

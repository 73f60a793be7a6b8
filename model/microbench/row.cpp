// Rows of microbenchmarks: their parameters, and their way from time to value.
#include <fmt/format.h>

#include <charconv>

#include "model/core/error.hpp"
#include "model/microbench/cases.hpp"

namespace tritax {

std::string MicrobenchRow::parameter_text() const {
  std::string all;
  for (const auto& [key, setting] : parameters) {
    all += fmt::format("{}{}={}", all.empty() ? "" : ";", key, setting);
  }
  return all;
}

std::string_view MicrobenchRow::text(std::string_view parameter) const {
  for (const auto& [key, setting] : parameters) {
    if (key == parameter) return setting;
  }
  return "";
}

std::int64_t MicrobenchRow::number(std::string_view parameter) const {
  const std::string_view digits = text(parameter);
  std::int64_t parsed = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  return parsed;
}

double MicrobenchRow::value(double time_us, double clock_ghz, double spread) const {
  if (metric == MicrobenchMetric::clock) return clock_ghz;
  if (metric == MicrobenchMetric::matmul_spread || metric == MicrobenchMetric::copy_spread) return spread;
  return over_us > 0 ? over_us / time_us : time_us * per_us;
}

std::pair<std::int32_t, std::int32_t> tile_of(std::string_view text) {
  std::pair<std::int32_t, std::int32_t> tile;
  const std::size_t x = text.find('x');
  TRITAX_ASSERT(x != std::string_view::npos, "a row of a microbenchmark names its tile");
  std::from_chars(text.data(), text.data() + x, tile.first);
  std::from_chars(text.data() + x + 1, text.data() + text.size(), tile.second);
  return tile;
}

}  // namespace tritax

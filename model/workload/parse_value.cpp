#include "model/workload/parse_value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

#include "model/core/error.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {

namespace {

constexpr std::array<std::string_view, 2> kSwitch{"off", "on"};

// The allowed values in words; empty: the range.
std::string allowed_of(const Spec& spec) {
  if (spec.counts_gpus) return fmt::format("{} to the number of GPUs of the machine", spec.low);
  if (spec.columns() == 1) return std::string(spec.allowed);
  return spec.step > 1 ? fmt::format("multiples of {} up to {}", spec.step, spec.high)
                       : fmt::format("{} to {}", spec.low, spec.high);
}

std::int64_t parse_size(const std::string& text, const std::string& place, const Spec& spec) {
  const std::optional<std::int64_t> bytes = parse_bytes(text);
  if (!bytes) {
    throw UserError(
        fmt::format("{}: '{}' is not a size; give bytes, for example 65536, 64KiB or 1GiB", place, text));
  }
  if (*bytes < spec.low || *bytes > spec.high) {
    throw UserError(
        fmt::format("{}: {} is out of range; give {} to {} bytes", place, text, spec.low, spec.high));
  }
  return *bytes;
}

}  // namespace

std::span<const std::string_view> switch_names() { return kSwitch; }

std::int64_t parse_integer(const std::string& text, const std::string& place, std::int64_t lowest,
                           std::int64_t highest, const std::string& allowed) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end) {
    throw UserError(fmt::format("{}: '{}' is not a whole number", place, text));
  }
  if (error == std::errc::result_out_of_range || value < lowest || value > highest) {
    throw UserError(fmt::format("{}: {} is out of range; give {}", place, text,
                                allowed.empty() ? fmt::format("{} to {}", lowest, highest) : allowed));
  }
  return value;
}

std::vector<std::int64_t> parse_shape(const std::string& text, const std::string& place, const Spec& spec) {
  const std::string place_and_text = fmt::format("{} {}", place, text);
  const std::string allowed = allowed_of(spec);
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    shape.push_back(
        parse_integer(text.substr(begin, end - begin), place_and_text, spec.low, spec.high, allowed));
    if (shape.back() % spec.step != 0) {
      throw UserError(fmt::format("{}: {} is not allowed; give {}", place_and_text, shape.back(), allowed));
    }
    begin = end + 1;
  }
  if (shape.size() != spec.columns()) {
    throw UserError(fmt::format("{}: '{}' has {} number{}; give {}, for example {}", place, text,
                                shape.size(), shape.size() == 1 ? "" : "s", spec.columns(),
                                spec.columns() == 3 ? "256x256x64" : "256x256"));
  }
  return shape;
}

std::size_t parse_name(const std::string& word, const std::string& place,
                       std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) {
      return i;
    }
  }
  const std::string nearest = nearest_name(word, names);
  throw UserError(fmt::format("{}: unknown name '{}'{}; known are {}", place, word,
                              nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                              fmt::join(names, ", ")));
}

std::vector<std::int64_t> parse_value(const std::string& text, const std::string& place, const Spec& spec) {
  if (spec.columns() > 1) return parse_shape(text, place, spec);
  switch (spec.kind) {
    case ValueKind::integer:
      return {parse_integer(text, place, spec.low, spec.high, allowed_of(spec))};
    case ValueKind::name:
      return {static_cast<std::int64_t>(parse_name(text, place, spec.names))};
    case ValueKind::boolean:
      return {static_cast<std::int64_t>(parse_name(text, place, kSwitch))};
    case ValueKind::file:
      if (text.empty()) throw UserError(fmt::format("{}: no file is named; give the path of one", place));
      return {number_of_file(text)};
    case ValueKind::bytes:
      break;
  }
  return {parse_size(text, place, spec)};
}

}  // namespace tritax

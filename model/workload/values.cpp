#include "model/workload/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {

namespace {

// Whether `column` is `name`, or `name`, "_" and `part`.
bool is_column(std::string_view column, std::string_view name, std::string_view part) {
  if (part.empty()) return column == name;
  return column.size() == name.size() + 1 + part.size() && column.starts_with(name) &&
         column[name.size()] == '_' && column.ends_with(part);
}

}  // namespace

std::size_t Spec::columns() const {
  std::size_t count = 0;
  for (const std::string_view part : parts) count += part.empty() ? 0 : 1;
  return std::max<std::size_t>(count, 1);
}

std::string Spec::column(std::size_t part) const {
  return parts[part].empty() ? std::string(name) : fmt::format("{}_{}", name, parts[part]);
}

std::string Spec::option_name() const {
  return option.empty() ? tritax::option_name(name) : std::string(option);
}

std::string option_name(std::string_view name) {
  std::string text = fmt::format("--{}", name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

Values::Values(std::span<const Spec> specs) : specs_(specs) {
  for (const Spec& spec : specs) {
    for (std::size_t part = 0; part < spec.columns(); ++part) numbers_.push_back(spec.usual[part]);
  }
  given_.resize(numbers_.size(), false);
}

std::optional<std::size_t> Values::find(std::string_view column) const {
  std::size_t place = 0;
  for (const Spec& spec : specs_) {
    const std::size_t columns = spec.columns();
    for (std::size_t part = 0; part < columns; ++part, ++place) {
      if (is_column(column, spec.name, spec.parts[part])) return place;
    }
  }
  return std::nullopt;
}

bool Values::given(std::string_view column) const {
  const auto place = find(column);
  return place && given_[*place];
}

std::int64_t Values::operator[](std::string_view column) const {
  const auto place = find(column);
  TRITAX_ASSERT(place.has_value(), "the table of values has no such column");
  return numbers_[*place];
}

std::int64_t Values::get_or(std::string_view column, std::int64_t fallback) const {
  const auto place = find(column);
  return place ? numbers_[*place] : fallback;
}

std::optional<std::int64_t> Values::if_given(std::string_view column) const {
  const auto place = find(column);
  if (!place || !given_[*place]) return std::nullopt;
  return numbers_[*place];
}

void Values::give(std::string_view column, std::int64_t value) {
  const auto place = find(column);
  TRITAX_ASSERT(place.has_value(), "the table of values has no such column");
  give_at(*place, value);
}

void Values::assume(std::string_view column, std::int64_t value) {
  const auto place = find(column);
  TRITAX_ASSERT(place.has_value(), "the table of values has no such column");
  numbers_[*place] = value;
}

void Values::give_at(std::size_t column, std::int64_t value) {
  numbers_[column] = value;
  given_[column] = true;
}

std::size_t Values::first_column(std::size_t spec) const {
  std::size_t place = 0;
  for (std::size_t i = 0; i < spec; ++i) place += specs_[i].columns();
  return place;
}

Values Values::with(const Values& other) const {
  if (other.numbers_.empty()) return *this;
  TRITAX_ASSERT(specs_.data() == other.specs_.data(), "values of two different tables");
  Values both = *this;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (other.given_[i]) both.give_at(i, other.numbers_[i]);
  }
  return both;
}

const Spec* find_spec(std::span<const Spec> specs, std::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const Spec& s) { return s.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

std::string text_of(const Values& values, std::size_t spec) {
  const Spec& one = values.specs()[spec];
  const std::size_t first = values.first_column(spec);
  const std::int64_t value = values.at(first);
  if (one.kind == ValueKind::name) return std::string(one.names[static_cast<std::size_t>(value)]);
  if (one.kind == ValueKind::boolean) return value != 0 ? "true" : "false";
  if (one.kind == ValueKind::file) return file_of(value);
  std::string text = fmt::format("{}", value);
  for (std::size_t part = 1; part < one.columns(); ++part)
    text += fmt::format("x{}", values.at(first + part));
  return text;
}

std::string key_of(const Values& values) {
  std::string key;
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    const Spec& spec = values.specs()[i];
    const bool file = spec.kind == ValueKind::file;
    key += fmt::format("{}{} {}", key.empty() ? "" : " ", spec.name,
                       file ? key_of_file(values.at(values.first_column(i))) : text_of(values, i));
  }
  return key;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"", 1},
                                                                         {"B", 1},
                                                                         {"KiB", std::int64_t{1} << 10},
                                                                         {"MiB", std::int64_t{1} << 20},
                                                                         {"GiB", std::int64_t{1} << 30}};
  constexpr std::size_t kMostDigits = 15;
  std::size_t digits = 0;
  std::int64_t amount = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < kMostDigits) {
    amount = amount * 10 + (text[digits] - '0');
    ++digits;
  }
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const auto& [name, scale] : kUnits) {
    if (digits == 0 || unit != name) continue;
    if (amount > (std::int64_t{1} << 62) / scale) return std::nullopt;
    return amount * scale;
  }
  return std::nullopt;
}

}  // namespace tritax

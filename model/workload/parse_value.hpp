// Parses one value of a table of specs (values.hpp) from the text of a command-line option or a keyword
// argument in Python: "8192", "256x256x64", "fp16", "on", "64MiB". Each function throws a UserError that
// begins with `place` (an option, a key), repeats the text and says what is allowed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload/values.hpp"

namespace tritax {

// An integer in [lowest, highest]; `allowed` describes the allowed values if they are not just the range.
std::int64_t parse_integer(const std::string& text, const std::string& place, std::int64_t lowest,
                           std::int64_t highest, const std::string& allowed = "");

// A shape with one number per part of the spec, each in the range and a multiple of the step: "256x256x64".
std::vector<std::int64_t> parse_shape(const std::string& text, const std::string& place, const Spec& spec);

// Index of `word` in `names`, which the message lists, the nearest first.
std::size_t parse_name(const std::string& word, const std::string& place,
                       std::span<const std::string_view> names);

// The names of a boolean, indexed by its value.
std::span<const std::string_view> switch_names();

// The values of the columns of a spec.
std::vector<std::int64_t> parse_value(const std::string& text, const std::string& place, const Spec& spec);

}  // namespace tritax

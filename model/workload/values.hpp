// Named, typed, bounded numbers: the fields of a problem and the knobs of a pattern are rows of a table.
//
// A workload describes its problem (M, N, K, dtype, gpus …) and what its patterns may vary (tile, CU split …)
// by tables of `Spec`. Scenario files, command line, CSV, JSON, keys, sensitivities and documentation loop
// over these tables; the workload alone reads the numbers into a struct of its own.
//
// A spec has one column, or one for each part of a shape: the spec "tile" with parts m, n and k is written
// 256x256x64 in one piece and has the columns tile_m, tile_n and tile_k. Every value is a 64-bit integer: a
// name is its place in `names`, a boolean 0 or 1, a size of data its bytes, a file the number of its path
// (file_values.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

enum class ValueKind : std::uint8_t { integer, name, boolean, bytes, file };

// A value of a spec beside which another one is worth a sentence of `advise`.
struct WhatIf {
  std::int64_t when = 0;      // the run has this value …
  std::int64_t instead = 0;   // … and is simulated once more with this one
  std::string_view sentence;  // with {} for the time that it then takes
};

struct Spec {
  std::string_view name;  // key in files and JSON: "comm_tile"
  std::string_view help;  // what it means, without a full stop
  ValueKind kind = ValueKind::integer;
  // Of what a user may give; the usual value may lie outside and then means "not given".
  std::int64_t low = 1;
  std::int64_t high = 1;
  std::array<std::int64_t, 3> usual{};           // where nobody gives one; of the parts of a shape
  bool required = false;                         // it has no usual value
  std::span<const std::string_view> names = {};  // of ValueKind::name
  std::size_t varied_names = 0;                  // sensitivities try so many of them; 0: all
  std::array<std::string_view, 3> parts = {};    // of a shape; empty: one number
  std::int64_t step = 1;                         // parts of a shape are multiples of it
  std::string_view option = {};                  // on the command line; empty: "--comm-tile"
  std::string_view allowed = {};                 // for messages, where that is not just the range
  bool counts_gpus = false;                      // usual on the command line: all GPUs of the machine
  bool seeds = false;                            // it begins a draw: another value is as good
  bool varies_by_doubling = false;               // sensitivities halve and double it
  bool of_every_run = false;  // a knob that all patterns have, whatever their tables say: how a run is timed
  std::optional<std::int64_t> unrecorded = std::nullopt;  // of measurements that do not say it
  std::string_view shown = {};                            // in descriptions: "{} gemm CUs"; empty: left out
  std::optional<std::int64_t> not_shown = std::nullopt;   // the value that goes without saying
  std::optional<WhatIf> what_if = std::nullopt;

  std::size_t columns() const;
  std::string column(std::size_t part) const;  // "comm_tile_m"
  std::string option_name() const;             // "--comm-tile"
};

// The numbers of a table of specs, and which of them somebody gave.
class Values {
 public:
  Values() = default;
  // Everything at its usual value, nothing given. The table must outlive the values.
  explicit Values(std::span<const Spec> specs);

  std::span<const Spec> specs() const { return specs_; }
  std::size_t columns() const { return numbers_.size(); }

  // Whether there is such a column ("tile_m", "waves").
  bool has(std::string_view column) const { return find(column).has_value(); }
  bool given(std::string_view column) const;
  std::int64_t operator[](std::string_view column) const;  // asserts that there is such a column
  std::int64_t get_or(std::string_view column, std::int64_t fallback) const;
  std::optional<std::int64_t> if_given(std::string_view column) const;

  void give(std::string_view column, std::int64_t value);    // as somebody's wish
  void assume(std::string_view column, std::int64_t value);  // as a default

  // By place in the order of the columns.
  std::int64_t at(std::size_t column) const { return numbers_[column]; }
  bool given_at(std::size_t column) const { return given_[column]; }
  void give_at(std::size_t column, std::int64_t value);
  std::size_t first_column(std::size_t spec) const;

  // These with all that `other` was given in its place.
  Values with(const Values& other) const;

  // Numbers alone: who gave them does not matter.
  friend bool operator==(const Values& a, const Values& b) { return a.numbers_ == b.numbers_; }

 private:
  std::optional<std::size_t> find(std::string_view column) const;

  std::span<const Spec> specs_;
  std::vector<std::int64_t> numbers_;
  std::vector<bool> given_;
};

// The spec of that name; null if there is none.
const Spec* find_spec(std::span<const Spec> specs, std::string_view name);

// One value as text: "256x256x64", "fp16", "true", "8".
std::string text_of(const Values& values, std::size_t spec);

// "m 8192 n 4608 …": equal text, equal values, and equal content of files.
std::string key_of(const Values& values);

// Bytes of "64 MiB", "4096" or "1 GiB"; nothing for what is no size.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace tritax

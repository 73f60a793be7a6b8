// Named, typed, bounded numbers for the fields of a problem and the knobs of a pattern; each is a row of a
// table.
//
// A workload describes its problem (M, N, K, dtype, gpus …) and the knobs of its patterns (tile, CU split …)
// by tables of `Spec`. Scenario files, command line, CSV, JSON, keys, sensitivities and documentation loop
// over these tables; only the workload itself reads the numbers into its own struct.
//
// A spec has one column, or one column per part of a shape: the spec "tile" with parts m, n and k is written
// 256x256x64 and has the columns tile_m, tile_n and tile_k. Every value is a 64-bit integer: the index of a
// name in `names`, 0 or 1 for a boolean, the bytes of a data size, the number of a file's path
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

// A value of a spec for which `advise` comments on an alternative value.
struct WhatIf {
  std::int64_t when = 0;      // the run has this value …
  std::int64_t instead = 0;   // … and is simulated once more with this one
  std::string_view sentence;  // with {} for the time of that run
};

struct Spec {
  std::string_view name;  // key in files and JSON: "comm_tile"
  std::string_view help;  // meaning, without a full stop
  ValueKind kind = ValueKind::integer;
  // Range of given values; a usual value outside the range means "not given".
  std::int64_t low = 1;
  std::int64_t high = 1;
  std::array<std::int64_t, 3> usual{};           // value if none is given; per part of a shape
  bool required = false;                         // no usual value
  std::span<const std::string_view> names = {};  // of ValueKind::name
  std::size_t varied_names = 0;                  // number of names that sensitivities try; 0: all
  std::array<std::string_view, 3> parts = {};    // of a shape; empty: one number
  std::int64_t step = 1;                         // parts of a shape are multiples of it
  std::string_view option = {};                  // on the command line; empty: "--comm-tile"
  std::string_view allowed = {};                 // for messages, if it is not just the range
  bool counts_gpus = false;                      // default on the command line: all GPUs of the machine
  bool seeds = false;                            // a seed of a random draw: any value is equally good
  bool varies_by_doubling = false;               // sensitivities halve and double it
  bool of_every_run = false;  // a knob of all patterns, also without a row in their lists: how a run is timed
  std::optional<std::int64_t> value_if_column_missing = std::nullopt;  // value for measurements without it
  std::string_view recorded_as = {};  // its column in measurements from before it had its name
  std::string_view shown = {};        // in descriptions: "{} gemm CUs"; empty: left out
  std::optional<std::int64_t> not_shown = std::nullopt;  // descriptions leave out this value
  std::optional<WhatIf> what_if = std::nullopt;

  std::size_t columns() const;
  std::string column(std::size_t part) const;  // "comm_tile_m"
  std::string option_name() const;             // "--comm-tile"
};

// The usual spelling of a name on the command line: "--comm-tile" of "comm_tile".
std::string option_name(std::string_view name);

// The numbers of a table of specs, with a flag per number: given or default.
class Values {
 public:
  Values() = default;
  // All numbers at their usual values, none given. The table must outlive the values.
  explicit Values(std::span<const Spec> specs);

  std::span<const Spec> specs() const { return specs_; }
  std::size_t columns() const { return numbers_.size(); }

  // Whether there is such a column ("tile_m", "waves").
  bool has(std::string_view column) const { return find(column).has_value(); }
  bool given(std::string_view column) const;
  std::int64_t operator[](std::string_view column) const;  // asserts that the column exists
  std::int64_t get_or(std::string_view column, std::int64_t fallback) const;
  std::optional<std::int64_t> if_given(std::string_view column) const;

  void give(std::string_view column, std::int64_t value);    // as given by a user
  void assume(std::string_view column, std::int64_t value);  // as a default

  // By index of the column.
  std::int64_t at(std::size_t column) const { return numbers_[column]; }
  bool given_at(std::size_t column) const { return given_[column]; }
  void give_at(std::size_t column, std::int64_t value);
  std::size_t first_column(std::size_t spec) const;

  // These values, replaced by the given values of `other`.
  Values with(const Values& other) const;

  // Compares numbers only, not whether they were given.
  friend bool operator==(const Values& a, const Values& b) { return a.numbers_ == b.numbers_; }

 private:
  std::optional<std::size_t> find(std::string_view column) const;

  std::span<const Spec> specs_;
  std::vector<std::int64_t> numbers_;
  std::vector<bool> given_;
};

// The spec of that name; null if there is none.
const Spec* find_spec(std::span<const Spec> specs, std::string_view name);

// The value of a spec as text: "256x256x64", "fp16", "true", "8".
std::string text_of(const Values& values, std::size_t spec);

// "m 8192 n 4608 …": equal text means equal values and equal contents of files.
std::string key_of(const Values& values);

// Bytes of "64 MiB", "4096" or "1 GiB"; nothing if the text is not a size.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace tritax

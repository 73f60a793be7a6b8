// Values of one key of a sweep. Internal: include it from .cpp files only, since it pulls in toml++.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "model/core/toml.hpp"

namespace tritax {

// One key, by its full name ("set.fabric.link"), and its value in the file.
struct SweepKey {
  std::string name;
  const toml::node* node = nullptr;
  std::string place;  // "file:line: set.fabric.link: "
};

// The keys of a table in the order of the file, with tables inside it resolved into dotted names.
// `passed_over`: keys of the table itself to leave out.
std::vector<SweepKey> sweep_keys(const toml::table& table, const std::string& origin,
                                 const std::vector<std::string>& passed_over);

// A single value: a number, text, true or false. Throws UserError.
nlohmann::json one_sweep_value(const SweepKey& key);

// All values of a list or range; a single value gives one. Throws UserError.
//
//   [1, 2, 4]
//   { from = 64, to = 512, step = 64 }
//   { from = 64, to = 4096, factor = 2 }
//   { from = 1, to = 100, count = 5 }               evenly; log = true: evenly in the logarithm
//
// If `from` and `to` are whole, all values are whole, and multiples of `multiple_of`; repeated values appear
// once. `unit` makes texts of them: "32GB/s".
std::vector<nlohmann::json> sweep_values(const SweepKey& key);

// The value at `share` in [0, 1) of a list or of { from, to, log, multiple_of, unit }. Throws UserError.
nlohmann::json sampled_sweep_value(const SweepKey& key, double share);

// In [0, 1), from the 53 upper bits of a random number.
double uniform_share(std::mt19937_64& random);

// `count` shares, one in each of `count` equal parts of [0, 1), in random order: a column of a Latin
// hypercube (McKay, Beckman, Conover 1979).
std::vector<double> latin_shares(std::size_t count, std::mt19937_64& random);

}  // namespace tritax

// The points that a sweep asks, from a TOML file. Format: docs/sweep.md.
//
// A point is a JSON object as `tritax evaluate` reads it, with a question ("ask"). The file has the common
// part of all points, and the axes along which they differ. Axes multiply; the first axis of the file varies
// slowest. [product] has an axis for every key, [zip] has one axis along which all its keys vary together,
// [random] and [latin_hypercube] each have one axis with the given number of samples.
//
//   ask = "simulate"
//   [point]
//   machine = "mi300x-8"
//   problem = { n = 4608, k = 36864 }
//   [product]
//   problem.m = { from = 1024, to = 8192, factor = 2 }
//   set.fabric.link = ["32GB/s", "64GB/s"]
//
// are 4 × 2 points. Points are numbered from 0 and created on demand, so a sweep of millions takes no memory.
// Equal files give equal points on every machine: the random numbers are those of std::mt19937_64, which the
// standard fixes, and no distribution of the library is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

// Questions about a point; in the order of kSweepQuestionNames.
enum class SweepQuestion : std::uint8_t { simulate, advise, layer, closed_form };
inline constexpr std::array<std::string_view, 4> kSweepQuestionNames{"simulate", "advise", "layer",
                                                                     "closed-form"};

// Whether an answer is a search, which uses all cores itself.
constexpr bool searches(SweepQuestion question) {
  return question == SweepQuestion::advise || question == SweepQuestion::layer;
}

// A larger sweep is a mistake.
inline constexpr std::size_t kMostSweepPoints = 20'000'000;

// Keys that vary together: row i has one value per key.
struct SweepAxis {
  std::vector<std::string> keys;  // "pattern", "problem.m", "set.fabric.link"
  std::vector<std::vector<nlohmann::json>> rows;
};

struct SweepPlan {
  std::string name;       // "name" of the file, else the file name without its ending
  nlohmann::json common;  // common part of all points, including "ask"
  std::vector<SweepAxis> axes;

  SweepQuestion question() const;
  std::size_t count() const;
  // `number` is below count().
  nlohmann::json point(std::size_t number) const;
};

// Throws UserError "file:line: …": syntax, unknown keys (with the nearest key) of the file, of points,
// fields, knobs and machine parameters, axes without values or of unequal length, too many points. Values
// that the workload or machine refuses are found when their point is asked.
SweepPlan read_sweep(const std::string& path);
SweepPlan parse_sweep(std::string_view toml, const std::string& origin, const std::string& name);

}  // namespace tritax

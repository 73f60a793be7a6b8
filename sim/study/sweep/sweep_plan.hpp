// What a sweep asks: the points of a TOML file. Format: docs/sweep.md.
//
// A point is a JSON object as `tritax evaluate` reads them, with what is asked of it ("ask"). The file says
// what all points have in common and along which axes they differ. Axes multiply, the first of the file
// varies slowest: [product] has an axis for every key, [zip] one along which all its keys go side by side,
// [random] and [latin_hypercube] one of as many samples as they say.
//
//   ask = "simulate"
//   [point]
//   machine = "mi300x-8"
//   problem = { n = 4608, k = 36864 }
//   [product]
//   problem.m = { from = 1024, to = 8192, factor = 2 }
//   set.fabric.link = ["32GB/s", "64GB/s"]
//
// are 4 × 2 points. Points are numbered from 0 and made when they are asked for, so that a sweep of millions
// takes no memory. Equal files give equal points on every machine: the random numbers are those of
// std::mt19937_64, which the standard fixes, and no distribution of the library is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

// What may be asked of a point; in the order of kSweepQuestionNames.
enum class SweepQuestion : std::uint8_t { simulate, advise, layer, closed_form };
inline constexpr std::array<std::string_view, 4> kSweepQuestionNames{"simulate", "advise", "layer",
                                                                     "closed-form"};

// Whether an answer is a search, which uses all cores itself.
constexpr bool searches(SweepQuestion question) {
  return question == SweepQuestion::advise || question == SweepQuestion::layer;
}

// More are a mistake.
inline constexpr std::size_t kMostSweepPoints = 20'000'000;

// Keys that vary together: row i has a value for each of them.
struct SweepAxis {
  std::vector<std::string> keys;  // "pattern", "problem.m", "set.fabric.link"
  std::vector<std::vector<nlohmann::json>> rows;
};

struct SweepPlan {
  std::string name;       // "name" of the file, else the file's without its ending
  nlohmann::json common;  // what all points have, "ask" among it
  std::vector<SweepAxis> axes;

  SweepQuestion question() const;
  std::size_t count() const;
  // Below count().
  nlohmann::json point(std::size_t number) const;
};

// Throws UserError "file:line: …": syntax, unknown keys (the nearest offered) of the file, of points, fields,
// knobs and machine parameters, axes without values or of unequal length, too many points. Values that the
// workload or machine refuses are found when their point is asked.
SweepPlan read_sweep(const std::string& path);
SweepPlan parse_sweep(std::string_view toml, const std::string& origin, const std::string& name);

}  // namespace tritax

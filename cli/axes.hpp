// Input of the command line: a problem, knobs and a machine with changes. Each may have several values.
//
//   tritax advise -M 64,512,8192 -N 4608 -K 36864 --machine mi300x-8 --gpus 2,4,8
//                 --set fabric.link=32GB/s,64GB/s
//
// gives a table of 18 rows. An option with several values is an axis; axes multiply, in the order of
// AxisKind: the first varies slowest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/workload/workload.hpp"

namespace CLI {
class App;
}

namespace tritax::cli {

struct Asked;

enum class AxisKind : std::uint8_t { field, machine, change, pattern, knob };

// One option with several values.
struct Axis {
  struct Value {
    std::string text;  // as given: "8192", "32GB/s"
    std::function<void(Asked&)> give;
  };
  AxisKind kind = AxisKind::field;
  std::string name;  // "M", "gpus", "fabric.link"
  std::vector<Value> values = {};
};

struct Asked {
  std::string machine;                        // name or file; replaces the machine of a scenario
  std::vector<ParameterChange> changes;       // --set and --scale
  std::string pattern;                        // replaces the pattern of a scenario
  Problem problem;                            // without a file
  std::optional<std::int64_t> message_bytes;  // of a collective, instead of its rows and cols
  Values pins;                                // knobs; replace the knobs of a scenario
  std::vector<Axis> axes;
  // Place of this point on the axes, by axis name: set by `points_of`.
  std::vector<std::pair<std::string, std::string>> at;
};

// Inserts an axis in the order of AxisKind.
void add_axis(Asked& asked, Axis axis);

// The parts of "a,b,c". Throws UserError that begins with `flag` for an empty part and for a repeated part.
std::vector<std::string> parts_of(const std::string& text, const std::string& flag);

// Limit of points: a longer table is not readable.
inline constexpr std::size_t kMostPoints = 10'000;

// All combinations of the values of all axes, each without axes; `asked` itself if it has no axis. Throws
// UserError for more than kMostPoints.
template <typename Options>
std::vector<Options> points_of(const Options& asked);

// Throws UserError if there is an axis: the command answers one question at a time.
void require_no_axes(const Asked& asked, const std::string& command);

// --machine, --set and --scale. `several`: each may have several values.
void add_machine_options(CLI::App& app, Asked& asked, bool several);

// --set and --scale alone.
void add_change_options(CLI::App& app, Asked& asked, bool several);

// --pattern.
void add_pattern_option(CLI::App& app, Asked& asked);

// "M 64, gpus 8", for headings and messages; "" off all axes.
std::string describe_point(const Asked& asked);

// Throws UserError as points_of does.
std::size_t count_points(const Asked& asked);

template <typename Options>
std::vector<Options> points_of(const Options& asked) {
  const std::size_t count = count_points(asked);
  std::vector<Options> points;
  for (std::size_t i = 0; i < count; ++i) {
    Options& point = points.emplace_back(asked);
    point.axes.clear();
    std::size_t block = count;
    for (const Axis& axis : asked.axes) {
      block /= axis.values.size();
      const Axis::Value& value = axis.values[i / block % axis.values.size()];
      value.give(point);
      point.at.emplace_back(axis.name, value.text);
    }
  }
  return points;
}

}  // namespace tritax::cli

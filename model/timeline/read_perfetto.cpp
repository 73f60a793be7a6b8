// Measured traces, read back to stand beside a simulation.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/core/error.hpp"
#include "model/core/json_nesting.hpp"
#include "model/core/read_file.hpp"
#include "model/timeline/perfetto.hpp"

namespace tritax {

namespace {

using nlohmann::json;

constexpr int kMaxRanks = 1024;
constexpr std::size_t kMaxDepth = 16;  // a timeline needs 5

class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& origin) : origin_(origin) {
    const std::size_t deep = find_json_deeper_than(text, kMaxDepth);
    if (deep != std::string_view::npos) {
      refuse(fmt::format("line {} is nested more than {} levels deep",
                         1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(deep), '\n'),
                         kMaxDepth));
    }
    root_ = json::parse(text, nullptr, false);
    if (root_.is_discarded() || !root_.is_object()) refuse("is not a JSON object");
  }

  MeasuredTrace read() {
    MeasuredTrace trace;
    trace.origin = origin_;
    const json& about = member(root_, "otherData", "the file");
    trace.schedule = text(about, "schedule", "otherData");
    trace.ranks = static_cast<int>(number(about, "ranks", "otherData", 1, kMaxRanks));
    trace.operations = static_cast<std::int64_t>(number(about, "operations", "otherData", 0, 1e12));
    const json& events = member(root_, "traceEvents", "the file");
    if (!events.is_array()) refuse("traceEvents is not a list");
    for (std::size_t i = 0; i < events.size(); ++i) {
      read_event(events[i], fmt::format("traceEvents[{}]", i), trace);
    }
    if (trace.events.empty()) refuse("holds no operation");
    return trace;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(fmt::format("{}: {}; give a timeline of 'tritax measure --timeline'", origin_, what));
  }

  const json& member(const json& parent, const char* key, const std::string& where) const {
    if (!parent.is_object() || !parent.contains(key)) refuse(fmt::format("{} has no \"{}\"", where, key));
    return parent.at(key);
  }

  double number(const json& parent, const char* key, const std::string& where, double lowest,
                double highest) const {
    const json& value = member(parent, key, where);
    if (!value.is_number()) refuse(fmt::format("{}: {} is not a number", where, key));
    const auto found = value.get<double>();
    if (!(found >= lowest && found <= highest)) {
      refuse(
          fmt::format("{}: {} = {} is not allowed; allowed: {} to {}", where, key, found, lowest, highest));
    }
    return found;
  }

  std::string text(const json& parent, const char* key, const std::string& where) const {
    const json& value = member(parent, key, where);
    if (!value.is_string()) refuse(fmt::format("{}: {} is not a text", where, key));
    return value.get<std::string>();
  }

  // As it stands between the quotes of a JSON file.
  static std::string escaped(const std::string& words) {
    const std::string quoted = json(words).dump(-1, ' ', false, json::error_handler_t::replace);
    return quoted.substr(1, quoted.size() - 2);
  }

  void read_event(const json& event, const std::string& where, MeasuredTrace& trace) const {
    const std::string phase = text(event, "ph", where);
    if (phase != "X" && phase != "M") return;  // nothing else is written by measurements
    const int rank = static_cast<int>(number(event, "pid", where, 0, trace.ranks - 1));
    const int track = static_cast<int>(number(event, "tid", where, 0, 1e9));
    const std::string name = text(event, "name", where);
    if (phase == "M") {
      if (name != "thread_name") return;
      trace.tracks[{rank, track}] = escaped(text(member(event, "args", where), "name", where));
      return;
    }
    constexpr double kLongest = 1e12;  // us
    const double begin_ns = 1e3 * number(event, "ts", where, 0, kLongest);
    const double duration_ns = 1e3 * number(event, "dur", where, 0, kLongest);
    const json& arguments = member(event, "args", where);
    if (!arguments.is_object()) refuse(fmt::format("{}: args is not an object", where));
    const std::string object = arguments.dump(-1, ' ', false, json::error_handler_t::replace);
    trace.events.push_back({rank, track, escaped(name), escaped(text(event, "cat", where)), begin_ns,
                            begin_ns + duration_ns, object.substr(1, object.size() - 2)});
  }

  const std::string& origin_;
  json root_;
};

}  // namespace

MeasuredTrace parse_measured_trace(std::string_view text, const std::string& origin) {
  return TraceReader(text, origin).read();
}

MeasuredTrace read_measured_trace(const std::string& path) {
  constexpr std::size_t kLargestFileBytes = std::size_t{2} << 30;  // some million operations
  return parse_measured_trace(read_file(path, "a timeline of 'tritax measure --timeline'", kLargestFileBytes),
                              path);
}

}  // namespace tritax

// Answers of `tritax evaluate --stdin`: one candidate per line, for search programs.
//
//   {"id": 7, "problem": {"m": 8192, "n": 4608, "k": 36864}, "pattern": "producer-consumer",
//    "knobs": {"tile": "256x256x64", "comm_cus": 48}}
//   {"id":7,"time_us":1234.5,"bound_us":1100.2,"operations":9216,"critical_path":{"compute_us":…}}
//   {"id":7,"invalid":"knobs.tile: 7 is out of range; …"}
//
// The answer to any line is one line, of one of these two forms. Equal lines have equal answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax::cli {

// Defaults of lines.
struct LineDefaults {
  const Workload* workload = nullptr;
  std::string machine;                   // name or file; "": every line names one
  std::vector<ParameterChange> changes;  // of every machine
  std::uint64_t seed = 1;
  std::optional<std::int64_t> max_operations;  // of one candidate; cli/operation_limit.hpp
};

class LineEvaluator {
 public:
  // Throws UserError when the machine of the defaults cannot be read.
  explicit LineEvaluator(LineDefaults defaults);

  // The answer, without a newline.
  std::string answer(std::string_view line);

 private:
  const Machine& machine_of(const nlohmann::json& candidate);
  Schedule schedule_of(const nlohmann::json& candidate, const Machine& machine) const;
  nlohmann::ordered_json evaluate(const nlohmann::json& candidate);

  LineDefaults defaults_;
  std::map<std::string, Machine> machines_;  // named by lines
};

// The scenario of "workload", "problem", "pattern" and "knobs" of a line; `usual` where the line names no
// workload. Throws UserError.
Scenario scenario_of_line(const nlohmann::json& candidate, const Workload& usual, const Machine& machine);

// The answer to a schedule: "time_us", "bound_us", "operations", "critical_path". Throws UserError for more
// operations than `max_operations`, or than the usual limit without it, and all errors of `simulate`.
nlohmann::ordered_json time_of(const Schedule& schedule, const Machine& machine,
                               const SimulationOptions& options,
                               const std::optional<std::int64_t>& max_operations);

// The line of LineEvaluator::answer for an invalid candidate.
std::string invalid_line(const std::string& reason);

// A schedule of 10,000 operations is one or two MB.
inline constexpr std::size_t kLongestLine = std::size_t{64} << 20;

enum class LineRead { read, too_long, end };

// The next line without its end, with any bytes. A line longer than `longest` is skipped, and none of its
// bytes is kept. The last line may lack its newline.
LineRead read_line(std::istream& in, std::size_t longest, std::string& line);

}  // namespace tritax::cli

// Problems with the times of several options each, to train decision trees: from a table of measurements, or
// from simulations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/choices.hpp"

namespace tritax {

struct TimedProblem {
  std::vector<double> features;          // known features, then gathered features
  std::vector<double> time_ns;           // by option; kNever: the option cannot run
  double gather_ns = 0;                  // time of the pass that finds the gathered features
  std::size_t group = 0;                 // problems of one group are never split between training and test
  std::optional<double> baseline_ns;     // time of other code
  std::optional<std::size_t> heuristic;  // option chosen by another rule

  double best_ns() const;
};

struct TimedProblems {
  std::string workload;  // "" for a table
  std::string machine;   // "" for a table
  std::vector<std::string> options;
  std::vector<std::string> known, gathered;  // names of features
  std::vector<TimedProblem> rows;
  std::size_t groups = 0;
  std::size_t left_out = 0;  // rows without any time

  std::vector<std::string> features() const;  // known, then gathered
};

// The meaning of the columns of a table. Times are columns that end in _ns, _us, _ms or _s; the name of an
// option is the column's name without that ending. An empty time or 0 means that the option cannot run.
struct TimesColumns {
  std::vector<std::string> times;
  std::vector<std::string> known, gathered;  // features (model/select/decision_tree.hpp) of columns
  std::string gather_time;  // a column of times, or a time: "12us"; "" without gathered features
  std::string group;        // a column; "": every row is a group
  std::string heuristic;    // a column with names of options; "": none
  std::string baseline;     // a column of times; "": none
};

// "12us" in ns; nothing if the text does not begin with a digit. Throws UserError for a number without a
// unit.
std::optional<double> written_time(const std::string& text);
// Throws UserError for gathered features without a time, or a time without gathered features.
void require_gather_time(const TimesColumns& columns);

// Throws UserError with file:line, column and value for a missing column or a value that is no number, and
// for fewer than two options or rows.
TimedProblems read_timed_problems(const std::string& path, const TimesColumns& columns);

// Problems of a table of choices; its numbers give the names of features, with _ for blanks. An empty `known`
// means all of them.
TimedProblems timed_problems(const ChoiceTable& table, const std::vector<std::string>& known);

// By row: the fold of its group. The groups form `folds` parts of about equal size, at random from `seed`.
// Throws UserError if there are fewer groups.
std::vector<std::size_t> folds_of(const TimedProblems& problems, std::size_t folds, std::uint64_t seed);

}  // namespace tritax

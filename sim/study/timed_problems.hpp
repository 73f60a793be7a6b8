// Problems with the times of several options each: what a decision tree learns from. From a table of
// somebody's measurements, or from what was simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/choices.hpp"

namespace tritax {

struct TimedProblem {
  std::vector<double> features;          // known ones, then gathered ones
  std::vector<double> time_ns;           // by option; kNever: it cannot
  double gather_ns = 0;                  // of the pass that finds the gathered ones
  std::size_t group = 0;                 // problems of one group are never on both sides of a test
  std::optional<double> baseline_ns;     // of somebody else's code
  std::optional<std::size_t> heuristic;  // the option that somebody else's rule chose

  double best_ns() const;
};

struct TimedProblems {
  std::string workload;  // "" of a table
  std::string machine;   // …
  std::vector<std::string> options;
  std::vector<std::string> known, gathered;  // names of features
  std::vector<TimedProblem> rows;
  std::size_t groups = 0;
  std::size_t left_out = 0;  // rows without the time of any option

  std::vector<std::string> features() const;  // all
};

// Which columns of a table are what. Times are columns that end in _ns, _us, _ms or _s, and options are
// called as they are without that; an empty time or 0 is that of an option that cannot.
struct TimesColumns {
  std::vector<std::string> times;
  std::vector<std::string> known, gathered;  // features (model/select/decision_tree.hpp) of columns
  std::string gather_time;                   // a column as above, or a time: "12us"; "" without gathered ones
  std::string group;                         // a column; "": every row is a group
  std::string heuristic;                     // a column with names of options; "": none
  std::string baseline;                      // a column of times; "": none
};

// "12us" in ns; nothing for what does not begin with a digit. Throws UserError for a number without a unit.
std::optional<double> written_time(const std::string& text);
// Throws UserError when features are gathered in no time, or nothing in some.
void require_gather_time(const TimesColumns& columns);

// Throws UserError with file:line, column and value for what is not there or no number, and for fewer than
// two options or rows.
TimedProblems read_timed_problems(const std::string& path, const TimesColumns& columns);

// Problems of a table of choices; its numbers are the names that features may have, with _ for blanks.
// `known` empty: all of them.
TimedProblems timed_problems(const ChoiceTable& table, const std::vector<std::string>& known);

// The parts of every group in one of `folds` parts of about equal size, by chance of `seed`; of each row.
// Throws UserError if there are fewer groups.
std::vector<std::size_t> folds_of(const TimedProblems& problems, std::size_t folds, std::uint64_t seed);

}  // namespace tritax

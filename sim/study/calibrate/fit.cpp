#include "sim/study/calibrate/fit.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>

#include "model/machine/parameters.hpp"
#include "sim/study/calibrate/least_squares.hpp"
#include "sim/study/calibrate/microbench_model.hpp"
#include "sim/study/calibrate/watch.hpp"

namespace tritax {

namespace {

// A row depends on an unknown if 10 % more of it changes the row's time by 0.1 %.
constexpr double kFeels = 0.01;

// The fitted number in place of a parameter's value, and back.
double fitted_of(const Unknown& unknown, double value) {
  return unknown.refines ? value / (1 - value) : value;
}

double value_of(const Unknown& unknown, double fitted) {
  return unknown.refines ? fitted / (1 + fitted) : fitted;
}

struct Fit {
  const std::vector<Observation>& rows;
  const std::vector<Schedule>& schedules;  // of the rows
  const Machine& known;                    // with the values of the unknowns so far
  Machine machine;                         // the simulated machine, except for the unknowns
  std::vector<Unknown> unknowns;           // unknowns that are still fitted
  std::vector<std::size_t> places;         // their indices in the group
  std::vector<double> weights;             // of the rows

  void set(Machine& target, const std::vector<double>& values) const {
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      const double value = value_of(unknowns[i], values[i]);
      for (const std::string& key : unknowns[i].keys) set_parameter_value(target, key, value);
    }
  }

  // Fixes an unknown at its value in `from`.
  void fix(std::size_t i, const Machine& from) {
    for (const std::string& key : unknowns[i].keys) {
      set_parameter_value(machine, key, parameter_value(from, key));
    }
    unknowns.erase(unknowns.begin() + static_cast<std::ptrdiff_t>(i));
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // Logarithms of simulated / measured time, times the weights; one column per point.
  Eigen::MatrixXd errors_at(const std::vector<std::vector<double>>& points) const {
    Eigen::MatrixXd errors(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(points.size()));
    std::vector<Machine> machines(points.size(), machine);
    for (std::size_t p = 0; p < points.size(); ++p) set(machines[p], points[p]);
    tbb::parallel_for(std::size_t{0}, rows.size() * points.size(), [&](std::size_t task) {
      const std::size_t r = task / points.size();
      const std::size_t p = task % points.size();
      const double simulated = simulated_time_us(schedules[r], rows[r], machines[p]);
      errors(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(p)) =
          weights[r] * std::log(simulated / rows[r].time_us);
    });
    return errors;
  }

  double start(std::size_t i) const {
    const double value = parameter_value(machine, unknowns[i].keys.front());
    return fitted_of(unknowns[i], value > 0 ? value : unknowns[i].start);
  }

  std::vector<double> starts() const {
    std::vector<double> values;
    for (std::size_t i = 0; i < unknowns.size(); ++i) values.push_back(start(i));
    return values;
  }

  // Rows of one group of microbenchmarks count by how well the model explains them: at first all rows count
  // equally, then each by the deviation of its group, so that badly explained rows do not spoil well
  // explained rows (feasible generalised least squares).
  LeastSquaresSolution solve() {
    weights.assign(rows.size(), 1);
    const LeastSquaresSolution first = solve_from(starts());
    std::map<std::string_view, std::vector<double>> errors;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      errors[rows[r].row->group].push_back(first.residuals[static_cast<Eigen::Index>(r)]);
    }
    if (errors.size() == 1) return first;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      weights[r] =
          kMeasurementError / std::max(kMeasurementError, root_mean_square(errors[rows[r].row->group]));
    }
    return solve_from(first.values);
  }

  LeastSquaresSolution solve_from(const std::vector<double>& start_values) const {
    constexpr double kAlmostNothing = 1e-6;
    LeastSquaresProblem problem;
    problem.start = start_values;
    for (const Unknown& unknown : unknowns) {
      const Bounds& bounds = find_parameter_spec(unknown.keys.front())->bounds;
      problem.low.push_back(std::max({kAlmostNothing, bounds.low, bounds.above_zero}));
      problem.high.push_back(fitted_of(unknown, bounds.high));
    }
    problem.residuals = [this](const auto& points) { return errors_at(points); };
    return solve_least_squares(problem);
  }
};

// The rows are explained best without this time: its logarithm diverges to where no row depends on it.
bool vanishes(const Fit& fit, double value, std::size_t i) {
  constexpr double kVanishing = 0.01;
  const ParameterSpec& spec = *find_parameter_spec(fit.unknowns[i].keys.front());
  const bool may = (spec.dimension == Dimension::time || spec.dimension == Dimension::cycles) &&
                   spec.bounds.low == 0 && spec.bounds.low_allowed;
  return may && value < kVanishing * fit.start(i);
}

// For an unknown that no row feels at the solution: the nearest value towards the machine's value at which
// the rows feel it. Nothing if they never do; then the machine's value may stay.
std::optional<double> bound_of(const Fit& fit, const LeastSquaresSolution& solution, std::size_t i) {
  constexpr double kWorse = 1.01;
  constexpr int kHalvings = 12;
  const auto fits = [&](double logarithm) {
    std::vector<double> values = solution.values;
    values[i] = std::exp(logarithm);
    return fit.errors_at({values}).squaredNorm() <= kWorse * solution.residuals.squaredNorm();
  };
  const double had = parameter_value(fit.known, fit.unknowns[i].keys.front());
  if (had <= 0 || fits(std::log(had))) return std::nullopt;
  double inside = std::log(solution.values[i]);
  double outside = std::log(had);
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (inside + outside) / 2;
    (fits(middle) ? inside : outside) = middle;
  }
  return std::exp(inside);
}

// For a poorly determined share that refines: the machine's value contradicts the rows, and 0 explains them
// better.
bool better_without(const Fit& fit, const LeastSquaresSolution& solution, std::size_t i) {
  constexpr double kErrors = 1 / kLargestRefiningError;  // standard errors beyond which the rows contradict
  const auto squares_with = [&](double value) {
    Machine with = fit.known;
    for (const std::string& key : fit.unknowns[i].keys) set_parameter_value(with, key, value);
    Fit others = fit;
    others.fix(i, with);
    std::vector<double> start = solution.values;
    start.erase(start.begin() + static_cast<std::ptrdiff_t>(i));
    return start.empty() ? others.errors_at({start}).squaredNorm()
                         : others.solve_from(start).residuals.squaredNorm();
  };
  const double had = parameter_value(fit.known, fit.unknowns[i].keys.front());
  if (had <= 0) return false;
  const double squares = solution.residuals.squaredNorm();
  const auto freedom = static_cast<double>(std::max<std::size_t>(1, fit.rows.size() - fit.unknowns.size()));
  const double variance = std::max(kMeasurementError * kMeasurementError, squares / freedom);
  const double with_had = squares_with(had);
  return with_had > squares + kErrors * kErrors * variance && squares_with(0) < with_had;
}

FittedUnknown describe(const Fit& fit, const LeastSquaresSolution& solution, std::size_t i) {
  FittedUnknown found;
  found.unknown = fit.unknowns[i];
  for (std::size_t r = 0; r < fit.rows.size(); ++r) {
    const auto row = static_cast<Eigen::Index>(r);
    if (std::abs(solution.jacobian(row, static_cast<Eigen::Index>(i))) < kFeels * fit.weights[r]) continue;
    found.rows.push_back(fit.rows[r].number);
    found.row_errors.push_back(solution.residuals[row] / fit.weights[r]);
  }
  found.standard_error = found.rows.empty() ? std::numeric_limits<double>::infinity()
                                            : solution.standard_errors(kMeasurementError)[i];
  return found;
}

bool is_poor(const FittedUnknown& found) {
  const bool roughly = found.unknown.refines || found.unknown.rough;
  return found.standard_error > (roughly ? kLargestRefiningError : kLargestStandardError);
}

// The unknown to give up first, if any is poorly determined.
std::optional<std::size_t> least_known(const std::vector<FittedUnknown>& found, const Fit& fit) {
  const auto rank = [&](std::size_t i) {
    const FittedUnknown& it = found[fit.places[i]];
    return std::tuple(it.unknown.refines, it.standard_error, it.rows.empty());
  };
  bool any_is_poor = false;
  std::size_t least = 0;
  for (std::size_t i = 0; i < fit.unknowns.size(); ++i) {
    any_is_poor |= is_poor(found[fit.places[i]]);
    if (rank(i) > rank(least)) least = i;
  }
  return any_is_poor ? std::optional(least) : std::nullopt;
}

// Sets the value of an unknown that is given up: nothing, the bound from the rows, or its old value.
void settle_poor(const Fit& fit, const LeastSquaresSolution& solution, std::size_t i,
                 FittedUnknown& dropped) {
  if (vanishes(fit, solution.values[i], i)) {
    dropped.value = 0;
    dropped.unknown.remark = "the rows fit best without it";
  } else if (dropped.unknown.refines) {
    if (!better_without(fit, solution, i)) return;
    dropped.value = 0;
    dropped.unknown.remark = "the rows fit better without it than with the old value";
  } else if (dropped.rows.empty()) {
    dropped.value = bound_of(fit, solution, i);
    if (dropped.value) dropped.unknown.remark = "a bound: with the old value, rows would take longer";
  }
}

}  // namespace

double root_mean_square(const std::vector<double>& errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return errors.empty() ? 0 : std::sqrt(squares / static_cast<double>(errors.size()));
}

double simulated_time_us(const Schedule& schedule, const Observation& row, const Machine& machine) {
  if (row.watch != nullptr) row.watch->look();
  return simulated_time_us(schedule, *row.bench, *row.row, machine);
}

std::vector<FittedUnknown> fit_group(const FitGroup& group, const std::vector<Observation>& table,
                                     Machine& machine) {
  std::vector<Observation> rows;
  std::copy_if(table.begin(), table.end(), std::back_inserter(rows),
               [&](const Observation& observation) { return group.uses(*observation.row, machine); });
  std::vector<Schedule> schedules(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(),
                    [&](std::size_t r) { schedules[r] = rows[r].bench->schedule(); });
  std::vector<FittedUnknown> found(group.unknowns.size());
  Fit fit{rows, schedules, machine, machine, {}, {}, {}};
  for (std::size_t i = 0; i < group.unknowns.size(); ++i) {
    found[i].unknown = group.unknowns[i];
    found[i].standard_error = std::numeric_limits<double>::infinity();
    const std::string& needs = group.unknowns[i].needs;
    const bool seen = needs.empty() || std::any_of(rows.begin(), rows.end(), [&](const Observation& row) {
                        return row.row->group == needs;
                      });
    if (!seen) continue;
    fit.places.push_back(i);
    fit.unknowns.push_back(group.unknowns[i]);
  }
  if (group.prepare) group.prepare(fit.machine, rows);
  for (std::size_t i = fit.unknowns.size(); i-- > 0;) {
    if (rows.size() < fit.unknowns.size() && fit.unknowns[i].refines) fit.fix(i, machine);
  }

  while (!fit.unknowns.empty() && rows.size() >= fit.unknowns.size()) {
    const LeastSquaresSolution solution = fit.solve();
    std::optional<std::size_t> vanishing;
    for (std::size_t i = 0; i < fit.unknowns.size(); ++i) {
      found[fit.places[i]] = describe(fit, solution, i);
      if (!vanishing && vanishes(fit, solution.values[i], i)) vanishing = i;
    }
    const std::optional<std::size_t> out = vanishing ? vanishing : least_known(found, fit);
    if (!out) {
      fit.set(machine, solution.values);
      for (std::size_t i = 0; i < fit.unknowns.size(); ++i) {
        found[fit.places[i]].value = value_of(fit.unknowns[i], solution.values[i]);
      }
      break;
    }
    FittedUnknown& dropped = found[fit.places[*out]];
    settle_poor(fit, solution, *out, dropped);
    for (const std::string& key : dropped.unknown.keys) {
      if (dropped.value) set_parameter_value(machine, key, *dropped.value);
    }
    fit.fix(*out, machine);
  }
  return found;
}

}  // namespace tritax

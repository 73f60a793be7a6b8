#include "model/cost/grid_model.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <vector>

#include "model/core/error.hpp"
#include "model/core/quantile.hpp"

namespace tritax {

namespace {

constexpr Eigen::Index kConstants = 4;

// Rows are divided by the run's time, so that errors are relative; columns are scaled to one size for the
// rank.
struct GridSystem {
  Eigen::MatrixXd terms;
  Eigen::VectorXd times;
  Eigen::VectorXd scale;
};

GridSystem system_of(std::span<const GridRun> runs) {
  GridSystem system;
  const auto rows = static_cast<Eigen::Index>(runs.size());
  system.terms.resize(rows, kConstants);
  system.times = Eigen::VectorXd::Ones(rows);
  Eigen::Index row = 0;
  for (const GridRun& run : runs) {
    const std::int64_t peers = GridModel::peers_of(run.tiles, run.iterations, run.grid);
    const std::int64_t iterations = GridModel::iterations_of(run.tiles, run.iterations, run.grid);
    system.terms.row(row++) << 1 / run.time_ns, (peers > 1 ? 1 : 0) / run.time_ns,
        static_cast<double>(iterations) / run.time_ns, static_cast<double>(peers - 1) / run.time_ns;
  }
  system.scale = system.terms.colwise().norm();
  for (Eigen::Index column = 0; column < kConstants; ++column) {
    if (system.scale[column] == 0) system.scale[column] = 1;
    system.terms.col(column) /= system.scale[column];
  }
  return system;
}

}  // namespace

std::int64_t GridModel::iterations_of(std::int64_t tiles, std::int64_t iterations, std::int64_t grid) {
  return (tiles * iterations + grid - 1) / grid;
}

std::int64_t GridModel::peers_of(std::int64_t tiles, std::int64_t iterations, std::int64_t grid) {
  const std::int64_t each = iterations_of(tiles, iterations, grid);
  return (iterations + each - 1) / each;
}

double GridModel::time_ns(std::int64_t tiles, std::int64_t iterations, std::int64_t grid) const {
  const auto peers = static_cast<double>(peers_of(tiles, iterations, grid));
  return a + (peers > 1 ? b : 0) + c * static_cast<double>(iterations_of(tiles, iterations, grid)) +
         d * (peers - 1);
}

std::int64_t best_grid(const GridModel& model, std::int64_t tiles, std::int64_t iterations,
                       std::int64_t most) {
  std::int64_t best = 1;
  double least = model.time_ns(tiles, iterations, 1);
  for (std::int64_t grid = 2; grid <= most; ++grid) {
    const double time = model.time_ns(tiles, iterations, grid);
    if (time < least) {
      least = time;
      best = grid;
    }
  }
  return best;
}

GridFit fit_grid_model(std::span<const GridRun> runs) {
  for (const GridRun& run : runs) {
    if (run.tiles > 0 && run.iterations > 0 && run.grid > 0 && std::isfinite(run.time_ns) && run.time_ns > 0)
      continue;
    throw UserError(
        fmt::format("grid model: a run of {} tiles with {} iterations on {} workgroups in {} ns; all must "
                    "be positive",
                    run.tiles, run.iterations, run.grid, run.time_ns));
  }
  const GridSystem system = system_of(runs);
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> solver;
  solver.setThreshold(1e-6);
  if (runs.size() >= kConstants) solver.compute(system.terms);
  if (runs.size() < kConstants || solver.rank() < kConstants) {
    throw UserError(fmt::format(
        "grid model: {} runs do not decide its four constants; give runs of one tile and dtype with and "
        "without peers, with at least two numbers of peers and of iterations",
        runs.size()));
  }
  const Eigen::VectorXd solved = solver.solve(system.times).cwiseQuotient(system.scale);
  GridFit fit;
  fit.model = {solved[0], solved[1], solved[2], solved[3]};
  std::vector<double> errors;
  for (const GridRun& run : runs) {
    const double predicted = fit.model.time_ns(run.tiles, run.iterations, run.grid);
    errors.push_back(std::abs(predicted / run.time_ns - 1));
  }
  fit.worst_error = *std::max_element(errors.begin(), errors.end());
  fit.median_error = quantile(errors, 0.5);
  return fit;
}

}  // namespace tritax

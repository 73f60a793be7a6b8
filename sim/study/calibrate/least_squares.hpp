// Damped Gauss-Newton (Levenberg 1944, Marquardt 1963) for positive unknowns that span orders of magnitude:
// it works on their logarithms, with a Jacobian by differences. Deterministic.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

namespace tritax {

struct LeastSquaresProblem {
  std::vector<double> start;  // positive
  std::vector<double> low;    // bounds, positive
  std::vector<double> high;
  // Residuals, one column per point of unknowns. All points come at once, so that they can be evaluated on
  // all cores.
  std::function<Eigen::MatrixXd(const std::vector<std::vector<double>>& points)> residuals;
};

struct LeastSquaresSolution {
  std::vector<double> values;
  Eigen::VectorXd residuals;
  Eigen::MatrixXd jacobian;  // of the residuals by the logarithms of the unknowns

  // Relative standard error of every unknown, from the covariance s² (JᵀJ)⁻¹. Infinite for an unknown that no
  // residual depends on, or a millionth as much as on another. s is at least `least_residual`, the accuracy
  // of one measurement.
  std::vector<double> standard_errors(double least_residual) const;
};

// Needs at least one unknown, and at least as many residuals as unknowns.
LeastSquaresSolution solve_least_squares(const LeastSquaresProblem& problem);

}  // namespace tritax

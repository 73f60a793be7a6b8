#include "sim/study/calibrate/least_squares.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

namespace tritax {

namespace {

constexpr double kDifference = 0.005;  // step of the differences, in logarithms
constexpr double kLargestStep = 0.7;   // of one iteration: a factor of two
constexpr double kSmallestGain = 1e-5;
constexpr double kSmallestMove = 1e-4;
constexpr int kIterations = 30;
constexpr int kDampings = 10;

using Point = std::vector<double>;

Point exponentials(const Eigen::VectorXd& x) {
  Point point(static_cast<std::size_t>(x.size()));
  for (Eigen::Index i = 0; i < x.size(); ++i) point[static_cast<std::size_t>(i)] = std::exp(x[i]);
  return point;
}

Eigen::VectorXd logarithms(const Point& point) {
  Eigen::VectorXd x(static_cast<Eigen::Index>(point.size()));
  for (Eigen::Index i = 0; i < x.size(); ++i) x[i] = std::log(point[static_cast<std::size_t>(i)]);
  return x;
}

Eigen::MatrixXd jacobian_at(const LeastSquaresProblem& problem, const Eigen::VectorXd& x,
                            const Eigen::VectorXd& residuals) {
  std::vector<Point> points;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    Eigen::VectorXd moved = x;
    moved[i] += kDifference;
    points.push_back(exponentials(moved));
  }
  return (problem.residuals(points).colwise() - residuals) / kDifference;
}

// An unknown that no residual depends on here does not move.
Eigen::VectorXd damped_step(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& residuals,
                            double damping) {
  constexpr double kNothing = 1e-12;
  Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
  for (Eigen::Index i = 0; i < normal.rows(); ++i)
    normal(i, i) = std::max(normal(i, i) * (1 + damping), kNothing);
  const Eigen::VectorXd gradient = jacobian.transpose() * residuals;
  return (-normal.ldlt().solve(gradient)).cwiseMax(-kLargestStep).cwiseMin(kLargestStep);
}

}  // namespace

LeastSquaresSolution solve_least_squares(const LeastSquaresProblem& problem) {
  const Eigen::VectorXd low = logarithms(problem.low);
  const Eigen::VectorXd high = logarithms(problem.high);
  Eigen::VectorXd x = logarithms(problem.start).cwiseMax(low).cwiseMin(high);
  Eigen::VectorXd residuals = problem.residuals({exponentials(x)}).col(0);
  Eigen::MatrixXd jacobian;
  double damping = 1e-3;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    jacobian = jacobian_at(problem, x, residuals);
    const double cost = residuals.squaredNorm();
    double gain = 0;
    double moved = 0;
    for (int attempt = 0; attempt < kDampings && gain == 0; ++attempt) {
      const Eigen::VectorXd next =
          (x + damped_step(jacobian, residuals, damping)).cwiseMax(low).cwiseMin(high);
      if ((next - x).cwiseAbs().maxCoeff() < kSmallestMove) break;
      const Eigen::VectorXd there = problem.residuals({exponentials(next)}).col(0);
      if (there.squaredNorm() >= cost) {
        damping *= 10;
        continue;
      }
      gain = cost - there.squaredNorm();
      moved = (next - x).cwiseAbs().maxCoeff();
      x = next;
      residuals = there;
      damping = std::max(damping / 10, 1e-9);
    }
    if (gain <= kSmallestGain * cost || moved < kSmallestMove) break;
  }
  return {exponentials(x), residuals, jacobian};
}

std::vector<double> LeastSquaresSolution::standard_errors(double least_residual) const {
  const Eigen::Index unknowns = jacobian.cols();
  const Eigen::Index freedom = residuals.size() - unknowns;
  const double variance = std::max(least_residual * least_residual,
                                   freedom > 0 ? residuals.squaredNorm() / static_cast<double>(freedom) : 0);
  std::vector<double> errors(static_cast<std::size_t>(unknowns), std::numeric_limits<double>::infinity());
  // Unknowns that almost no residual depends on are left out: the full matrix would count as singular.
  constexpr double kNotFelt = 1e-6;  // relative to the column with the largest effect
  const double most = jacobian.colwise().norm().maxCoeff();
  std::vector<Eigen::Index> felt;
  for (Eigen::Index i = 0; i < unknowns; ++i) {
    if (jacobian.col(i).norm() > kNotFelt * most) felt.push_back(i);
  }
  if (felt.empty()) return errors;
  Eigen::MatrixXd part(jacobian.rows(), static_cast<Eigen::Index>(felt.size()));
  for (std::size_t i = 0; i < felt.size(); ++i)
    part.col(static_cast<Eigen::Index>(i)) = jacobian.col(felt[i]);
  const Eigen::MatrixXd normal = part.transpose() * part;
  const auto factors = normal.fullPivHouseholderQr();
  if (!factors.isInvertible()) return errors;
  const Eigen::MatrixXd covariance = variance * factors.inverse();
  for (std::size_t i = 0; i < felt.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double own = covariance(at, at);
    if (std::isfinite(own)) errors[static_cast<std::size_t>(felt[i])] = std::sqrt(std::max(0.0, own));
  }
  return errors;
}

}  // namespace tritax

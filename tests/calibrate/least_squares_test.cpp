#include "sim/study/calibrate/least_squares.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tritax {
namespace {

// time = a + b · x, measured at some x.
LeastSquaresProblem line(double a, double b, std::vector<double> start) {
  LeastSquaresProblem problem;
  problem.start = std::move(start);
  problem.low.assign(problem.start.size(), 1e-6);
  problem.high.assign(problem.start.size(), 1e9);
  problem.residuals = [=](const std::vector<std::vector<double>>& points) {
    constexpr int kRows = 6;
    Eigen::MatrixXd residuals(kRows, static_cast<Eigen::Index>(points.size()));
    for (std::size_t p = 0; p < points.size(); ++p) {
      for (int r = 0; r < kRows; ++r) {
        const double x = std::pow(2, r);
        residuals(r, static_cast<Eigen::Index>(p)) =
            std::log((points[p][0] + points[p][1] * x) / (a + b * x));
      }
    }
    return residuals;
  };
  return problem;
}

TEST(LeastSquares, FindsValuesFarFromWhereItStarts) {
  for (const auto& [a, b] : {std::pair{1.0, 1.0}, std::pair{1000.0, 30.0}, std::pair{2.0, 500.0}}) {
    const LeastSquaresSolution solution = solve_least_squares(line(a, b, {40, 40}));
    EXPECT_NEAR(solution.values[0], a, 0.01 * a);
    EXPECT_NEAR(solution.values[1], b, 0.01 * b);
    EXPECT_LT(solution.residuals.norm(), 0.01);
  }
}

TEST(LeastSquares, AnUnknownThatNothingDependsOnStaysAndIsTold) {
  const LeastSquaresSolution solution = solve_least_squares(line(10, 10, {40, 40, 7}));
  EXPECT_EQ(solution.values[2], std::exp(std::log(7.0)));
  const std::vector<double> errors = solution.standard_errors(0.005);
  EXPECT_LT(errors[0], 0.05);
  EXPECT_LT(errors[1], 0.05);
  EXPECT_EQ(errors[2], std::numeric_limits<double>::infinity());
}

TEST(LeastSquares, AnUnknownThatNextToNothingDependsOnLeavesTheOthersTheirErrors) {
  constexpr double kFaint = 1e-9;
  LeastSquaresProblem problem = line(10, 10, {40, 40, 7});
  const auto without = problem.residuals;
  problem.residuals = [=](const std::vector<std::vector<double>>& points) {
    Eigen::MatrixXd residuals = without(points);
    for (std::size_t p = 0; p < points.size(); ++p) {
      residuals.col(static_cast<Eigen::Index>(p)).array() += kFaint * std::log(points[p][2]);
    }
    return residuals;
  };
  const std::vector<double> errors = solve_least_squares(problem).standard_errors(0.005);
  EXPECT_LT(errors[0], 0.05);
  EXPECT_LT(errors[1], 0.05);
  EXPECT_EQ(errors[2], std::numeric_limits<double>::infinity());
}

TEST(LeastSquares, StaysWithinBounds) {
  LeastSquaresProblem problem = line(10, 10, {5, 5});
  problem.high[1] = 8;
  const LeastSquaresSolution solution = solve_least_squares(problem);
  EXPECT_LE(solution.values[1], 8 * (1 + 1e-12));
}

TEST(LeastSquares, StandardErrorsGrowWithTheResiduals) {
  const LeastSquaresSolution solution = solve_least_squares(line(10, 10, {40, 40}));
  EXPECT_NEAR(solution.standard_errors(0.1)[0], 10 * solution.standard_errors(0.01)[0], 1e-3);
}

}  // namespace
}  // namespace tritax

#include "sim/functional_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tritax {

Eigen::MatrixXd attention_partial(const Eigen::MatrixXd& q, const Eigen::MatrixXd& k,
                                  const Eigen::MatrixXd& v, std::optional<VisibleKeys> visible) {
  const Eigen::MatrixXd scores = q * k.transpose() / std::sqrt(static_cast<double>(q.cols()));
  Eigen::MatrixXd partial = Eigen::MatrixXd::Zero(q.rows(), v.cols() + 1);
  for (Eigen::Index row = 0; row < q.rows(); ++row) {
    Eigen::Index keys = k.rows();
    if (visible) keys = std::clamp<Eigen::Index>(visible->first + row / visible->group, 0, k.rows());
    double& log_sum = partial(row, v.cols());
    log_sum = -std::numeric_limits<double>::infinity();
    if (keys == 0) continue;
    const auto seen = scores.row(row).head(keys);
    const double most = seen.maxCoeff();
    const Eigen::RowVectorXd weights = (seen.array() - most).exp().matrix();
    partial.row(row).head(v.cols()) = weights * v.topRows(keys) / weights.sum();
    log_sum = most + std::log(weights.sum());
  }
  return partial;
}

Eigen::MatrixXd merged_partials(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const Eigen::Index last = a.cols() - 1;
  Eigen::MatrixXd merged = a;
  for (Eigen::Index row = 0; row < a.rows(); ++row) {
    const double most = std::max(a(row, last), b(row, last));
    if (!std::isfinite(most)) continue;  // neither has seen a key
    const double of_a = std::exp(a(row, last) - most), of_b = std::exp(b(row, last) - most);
    merged.row(row) = (of_a * a.row(row) + of_b * b.row(row)) / (of_a + of_b);
    merged(row, last) = most + std::log(of_a + of_b);
  }
  return merged;
}

}  // namespace tritax

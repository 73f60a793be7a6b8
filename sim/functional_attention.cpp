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

AttentionGradients attention_gradients(const Eigen::MatrixXd& q, const Eigen::MatrixXd& kv,
                                       const Eigen::MatrixXd& d_out, const Eigen::MatrixXd& statistics,
                                       std::optional<std::int64_t> visible) {
  const Eigen::Index d = q.cols();
  const auto k = kv.leftCols(d), v = kv.rightCols(d);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const Eigen::ArrayXXd scores = (scale * (q * k.transpose())).array();
  Eigen::MatrixXd weights = (scores.colwise() - statistics.col(0).array()).exp().matrix();
  if (visible) {
    for (Eigen::Index row = 0; row < q.rows(); ++row) {
      const auto seen = std::clamp<Eigen::Index>(*visible + row, 0, k.rows());
      weights.row(row).tail(k.rows() - seen).setZero();
    }
  }
  const Eigen::ArrayXXd of_weights = (d_out * v.transpose()).array();
  const Eigen::MatrixXd of_scores =
      (weights.array() * (of_weights.colwise() - statistics.col(1).array())).matrix();
  AttentionGradients gradients;
  gradients.q = scale * (of_scores * k);
  gradients.kv.resize(kv.rows(), kv.cols());
  gradients.kv << scale * (of_scores.transpose() * q), weights.transpose() * d_out;
  return gradients;
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

// Attention in numbers, as functional execution and its reference compute it: partials and how they merge
// (model/schedule/schedule.hpp). A partial of d columns is rows × (d + 1), the last column its log-sum-exps.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>

namespace tritax {

// Row i sees the first `first` + i div `group` of the given keys; no key if that is below 1.
struct VisibleKeys {
  std::int64_t first = 0;
  std::int64_t group = 1;
};

// Results and log-sum-exps of softmax(q·kᵀ/√d)·v; without `visible` every row sees all keys. A row that sees
// no key is 0 with log-sum-exp -infinity.
Eigen::MatrixXd attention_partial(const Eigen::MatrixXd& q, const Eigen::MatrixXd& k,
                                  const Eigen::MatrixXd& v, std::optional<VisibleKeys> visible);

// Gradients of queries, and of keys and values side by side, for gradients `d_out` of the results: what
// attend_backward adds (model/schedule/schedule.hpp). `kv`: keys beside values; `statistics`: log-sum-exps
// and row products of the queries. With `visible` query i sees the first visible + i keys.
struct AttentionGradients {
  Eigen::MatrixXd q, kv;
};
AttentionGradients attention_gradients(const Eigen::MatrixXd& q, const Eigen::MatrixXd& kv,
                                       const Eigen::MatrixXd& d_out, const Eigen::MatrixXd& statistics,
                                       std::optional<std::int64_t> visible);

// The partial that attention to the keys of both partials at once gives.
Eigen::MatrixXd merged_partials(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);

}  // namespace tritax

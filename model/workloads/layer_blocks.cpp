#include "model/workloads/layer_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/parts/expert_routing.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {

namespace {

// Builds a problem from single fields.
class BlockProblem {
 public:
  BlockProblem(BlockRole block, const std::string& where)
      : where_(where), problem_(problem_of(find_workload(block))) {}

  BlockProblem& give(std::string_view column, std::int64_t value) {
    for (const Spec& spec : problem_.workload->fields) {
      for (std::size_t part = 0; part < spec.columns(); ++part) {
        if (spec.column(part) == column) require_in_range(spec, column, value);
      }
    }
    problem_.values.give(column, value);
    return *this;
  }

  LayerBlock finish() {
    complete_problem(problem_, where_);
    const std::string_view usual = problem_.workload->baseline;
    return {std::move(problem_), usual};
  }

 private:
  void require_in_range(const Spec& spec, std::string_view column, std::int64_t value) const {
    if (spec.kind != ValueKind::integer || (value >= spec.low && value <= spec.high)) return;
    throw UserError(fmt::format("{}: {} = {} of {} is out of range; it must be {} to {}", where_, column,
                                value, problem_.workload->name, spec.low, spec.high));
  }

  const std::string& where_;
  Problem problem_;
};

BlockProblem heads_of(BlockRole role, const AttentionSizes& sizes, const std::string& where) {
  BlockProblem block(role, where);
  block.give("q_heads", sizes.heads)
      .give("kv_heads", sizes.kv_heads)
      .give("head_dim", sizes.head_dim)
      .give("dtype", static_cast<std::int64_t>(sizes.dtype));
  return block;
}

LayerBlock collective_block(BlockRole role, std::int64_t rows, std::int64_t columns, DType dtype, int gpus,
                            const std::string& where) {
  return BlockProblem(role, where)
      .give("rows", rows)
      .give("cols", columns)
      .give("dtype", static_cast<std::int64_t>(dtype))
      .give("gpus", gpus)
      .finish();
}

}  // namespace

LayerBlock prompt_attention(const AttentionSizes& sizes, const std::string& where) {
  return heads_of(BlockRole::prompt_attention, sizes, where)
      .give("batch", sizes.sequences)
      .give("context", sizes.context)
      .give("causal", 1)
      .finish();
}

LayerBlock cached_attention(const AttentionSizes& sizes, const std::string& where) {
  return heads_of(BlockRole::cached_attention, sizes, where)
      .give("sequences_count", sizes.sequences)
      .give("sequences_query", 1)
      .give("sequences_context", sizes.context)
      .finish();
}

LayerBlock routed_experts(const ExpertSizes& sizes, const std::string& where) {
  return BlockProblem(BlockRole::routed_experts, where)
      .give("tokens", sizes.tokens)
      .give("hidden", sizes.hidden)
      .give("ffn", sizes.intermediate)
      .give("experts", sizes.experts)
      .give("top_k", sizes.experts_per_token)
      .give("dtype", static_cast<std::int64_t>(sizes.dtype))
      .give("gpus", sizes.gpus)
      .finish();
}

LayerBlock summed_rows(std::int64_t rows, std::int64_t columns, DType dtype, int gpus,
                       const std::string& where) {
  return collective_block(BlockRole::summed_rows, rows, columns, dtype, gpus, where);
}

LayerBlock gathered_rows(std::int64_t rows, std::int64_t columns, DType dtype, int gpus,
                         const std::string& where) {
  return collective_block(BlockRole::gathered_rows, rows, columns, dtype, gpus, where);
}

std::int64_t experts_in_use(const LayerBlock& routed) {
  const Routes routes(routing_of(routed.problem, false));
  std::int64_t most = 0;
  for (int rank = 0; rank < routes.ranks(); ++rank) {
    std::int64_t used = 0;
    for (int target = 0; target < routes.targets(); ++target) {
      if (routes.owner(target) == rank && routes.target_rows(target) > 0) ++used;
    }
    most = std::max(most, used);
  }
  return most;
}

}  // namespace tritax

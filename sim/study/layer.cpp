#include "sim/study/layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/assessment.hpp"
#include "sim/study/why.hpp"

namespace tritax {

namespace {

// Builds the list of steps of a deployment.
class Walk {
 public:
  Walk(const LanguageModel& model, const Deployment& deployment, const std::string& where)
      : model_(model), deployment_(deployment), where_(where) {}

  Layers layers() {
    const std::int64_t with_experts = model_.layers - model_.dense_layers;
    const bool both = model_.dense_layers > 0 && with_experts > 0;
    if (model_.dense_layers > 0) add_kind(both ? "dense layer" : "layer", model_.dense_layers, false);
    if (with_experts > 0) add_kind(both ? "expert layer" : "layer", with_experts, true);
    layers_.left_out = {"attention",   "norms",         "rotary embeddings",
                        "activations", "residual sums", "embedding and logits"};
    if (with_experts > 0) {
      layers_.left_out.push_back("the router");
      layers_.left_out.push_back(fmt::format("the {} of {} routed experts per token and their communication",
                                             model_.experts_per_token, model_.experts));
    }
    return std::move(layers_);
  }

 private:
  void add_kind(std::string_view name, std::int64_t count, bool experts) {
    kind_ = {name, count, {}};
    if (model_.latent) {
      add_latent_attention(*model_.latent);
    } else {
      add_grouped_attention();
    }
    if (!experts) {
      const std::int64_t part = part_of(model_.intermediate, "columns of the feed-forward part");
      by_columns("gate-up", 2 * part, model_.hidden);
      by_rows("down", part);
    } else if (model_.shared_experts > 0) {
      const std::int64_t part =
          part_of(model_.shared_experts * model_.expert_intermediate, "columns of the shared experts");
      by_columns("shared-gate-up", 2 * part, model_.hidden);
      by_rows("shared-down", part);
    }
    layers_.kinds.push_back(std::move(kind_));
  }

  void add_grouped_attention() {
    const auto& [key_value_heads, head_dim] = model_.grouped;
    const std::int64_t heads = part_of(model_.heads, "attention heads");
    const std::int64_t gpus = deployment_.gpus;
    if (key_value_heads % gpus != 0 && gpus % key_value_heads != 0) {
      throw UserError(
          fmt::format("{}: {} GPUs can neither share the {} key-value heads of {} nor hold each "
                      "equally often",
                      where_, gpus, key_value_heads, model_.name));
    }
    const std::int64_t own = std::max<std::int64_t>(1, key_value_heads / gpus);
    by_columns("qkv", (heads + 2 * own) * head_dim, model_.hidden);
    by_rows("attention-out", heads * head_dim);
  }

  void add_latent_attention(const LatentAttention& latent) {
    const std::int64_t heads = part_of(model_.heads, "attention heads");
    // All columns are on every GPU; if rows are split, each GPU has its own rows.
    const std::int64_t rows = deployment_.sequence_parallel
                                  ? (deployment_.tokens + deployment_.gpus - 1) / deployment_.gpus
                                  : deployment_.tokens;
    add({"q-kv-a", Projection::columns, rows, latent.query_rank + latent.key_value_rank + latent.rotary_dim,
         model_.hidden});
    by_columns("q-b", heads * (latent.plain_dim + latent.rotary_dim), latent.query_rank);
    if (deployment_.phase == Phase::prefill) {
      by_columns("kv-b", heads * (latent.plain_dim + latent.value_dim), latent.key_value_rank);
    }
    by_rows("attention-out", heads * latent.value_dim);
  }

  // The share of one GPU.
  std::int64_t part_of(std::int64_t all, std::string_view what) const {
    if (all % deployment_.gpus == 0) return all / deployment_.gpus;
    std::vector<std::int64_t> allowed;
    for (std::int64_t gpus = 2; gpus <= std::min<std::int64_t>(all, 64); ++gpus) {
      if (all % gpus == 0 && model_.heads % gpus == 0) allowed.push_back(gpus);
    }
    throw UserError(fmt::format("{}: {} does not divide the {} {} of {}; give one of {}", where_,
                                deployment_.gpus, all, what, model_.name, fmt::join(allowed, ", ")));
  }

  void by_columns(std::string_view name, std::int64_t columns, std::int64_t depth) {
    add({name, deployment_.sequence_parallel ? Projection::columns_gathered : Projection::columns,
         deployment_.tokens, columns, depth});
  }
  void by_rows(std::string_view name, std::int64_t depth) {
    add({name, deployment_.sequence_parallel ? Projection::rows_scattered : Projection::rows_reduced,
         deployment_.tokens, model_.hidden, depth});
  }

  void add(Step step) {
    auto& steps = layers_.steps;
    const auto same =
        std::find_if(steps.begin(), steps.end(), [&](const Step& one) { return one.name == step.name; });
    kind_.steps.push_back(static_cast<std::size_t>(same - steps.begin()));
    if (same == steps.end()) steps.push_back(step);
    steps[kind_.steps.back()].layers += kind_.count;
  }

  const LanguageModel& model_;
  const Deployment& deployment_;
  const std::string& where_;
  Layers layers_;
  LayerKind kind_;
};

void give(Problem& problem, std::string_view field, std::int64_t value, const std::string& where) {
  const Spec* spec = find_spec(problem.workload->fields, field);
  TRITAX_ASSERT(spec != nullptr, "a workload that serves a projection has fields for its size");
  if (value > spec->high) {
    throw UserError(fmt::format("{}: {} = {} of {} is out of range; it must be at most {}", where, field,
                                value, problem.workload->name, spec->high));
  }
  problem.values.give(field, value);
}

void add_account(TimeAccount& sum, const TimeAccount& one, double times) {
  sum.compute_ns += times * one.compute_ns;
  sum.memory_ns += times * one.memory_ns;
  sum.wire_ns += times * one.wire_ns;
  sum.launch_ns += times * one.launch_ns;
  sum.bulk_synchronous_ns += times * one.bulk_synchronous_ns;
  sum.locality_ns += times * one.locality_ns;
  sum.contention_ns += times * one.contention_ns;
  sum.harness_ns += times * one.harness_ns;
}

void add_sum(LayerSum& sum, const LayerSum& one, double times) {
  sum.libraries_ns += times * one.libraries_ns;
  sum.best_ns += times * one.best_ns;
  sum.chosen_ns += times * one.chosen_ns;
  add_account(sum.account, one.account, times);
}

}  // namespace

Layers layers_of(const LanguageModel& model, const Deployment& deployment, const std::string& where) {
  return Walk(model, deployment, where).layers();
}

Problem problem_of(const Step& step, const Deployment& deployment, DType dtype, const std::string& where) {
  const Workload* workload = find_workload(step.projection);
  TRITAX_ASSERT(workload != nullptr, "every projection has a workload");
  const ProjectionFields& fields = workload->projection;
  Problem problem = problem_of(*workload);
  give(problem, fields.rows, step.rows, where);
  give(problem, fields.columns, step.columns, where);
  give(problem, fields.depth, step.depth * (fields.depth_of_all ? deployment.gpus : 1), where);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  if (problem.values.has("gpus")) problem.values.give("gpus", deployment.gpus);
  complete_problem(problem, where);
  return problem;
}

Values pins_of(Phase phase, const Problem& problem, const Machine& machine) {
  return in_mode(Values(problem.workload->knobs),
                 phase == Phase::decode ? LaunchMode::graph : LaunchMode::stream, machine);
}

StepAnswer judge(Problem problem, Advice found, const Machine& machine,
                 const std::vector<ComparedSet>& compared) {
  StepAnswer answer;
  answer.problem = std::move(problem);
  answer.advice = std::move(found);
  const auto& candidates = answer.advice.candidates;
  const Candidate* libraries = rivals_of(candidates, *answer.problem.workload).there;
  if (libraries == nullptr) {
    throw UserError(fmt::format("{} of the libraries cannot be predicted: {}", answer.problem.workload->title,
                                fmt::join(answer.advice.left_out, "; ")));
  }
  answer.libraries_ns = libraries->time_ns;
  const Assessment assessment = assess(answer.problem, machine, candidates, compared);
  answer.trust = assessment.trust;
  answer.band = assessment.band;
  answer.best_band = assessment.bands.front();
  answer.verdict = verdict_of(answer.problem, candidates, assessment).verdict;
  return answer;
}

LayerSum sum_of(const LayerKind& kind, const std::vector<StepAnswer>& answers) {
  LayerSum sum;
  for (const std::size_t step : kind.steps) {
    const StepAnswer& answer = answers[step];
    sum.libraries_ns += answer.libraries_ns;
    sum.best_ns += answer.best().time_ns;
    sum.chosen_ns += answer.chosen_ns();
    add_account(sum.account, answer.best().taxes.account, 1);
  }
  return sum;
}

LayerSum sum_of(const Layers& layers, const std::vector<StepAnswer>& answers) {
  LayerSum sum;
  for (const LayerKind& kind : layers.kinds) {
    add_sum(sum, sum_of(kind, answers), static_cast<double>(kind.count));
  }
  return sum;
}

}  // namespace tritax

// Layers of language models: sizes of every product, refusals, sums.
#include "sim/study/layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "model/core/error.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "qkv columns 16x1280x8192 80" of every step.
std::vector<std::string> texts_of(const Layers& layers) {
  std::vector<std::string> texts;
  for (const Step& step : layers.steps) {
    constexpr std::array<std::string_view, 5> kNames{"", "columns", "gathered", "reduced", "scattered"};
    texts.push_back(std::string(step.name) + ' ' +
                    std::string(kNames[static_cast<std::size_t>(step.projection)]) + ' ' +
                    std::to_string(step.rows) + 'x' + std::to_string(step.columns) + 'x' +
                    std::to_string(step.depth) + ' ' + std::to_string(step.layers));
  }
  return texts;
}

Layers layers_on(const std::string& model, Deployment deployment) {
  return layers_of(find_model(model), deployment, "--tp");
}

std::string refusal_of(const std::string& text) {
  try {
    parse_model(text, "mine", "mine.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Layer, LlamaOn8GpusHasItsPublishedSizesSplitEightWays) {
  EXPECT_THAT(texts_of(layers_on("llama-3-70b", {8, Phase::decode, 16, false})),
              ElementsAre("qkv columns 16x1280x8192 80", "attention-out reduced 16x8192x1024 80",
                          "gate-up columns 16x7168x8192 80", "down reduced 16x8192x3584 80"));
}

TEST(Layer, SequenceParallelismGathersBeforeAndScattersBehind) {
  EXPECT_THAT(texts_of(layers_on("llama-3-8b", {4, Phase::prefill, 4096, true})),
              ElementsAre("qkv gathered 4096x1536x4096 32", "attention-out scattered 4096x4096x1024 32",
                          "gate-up gathered 4096x7168x4096 32", "down scattered 4096x4096x3584 32"));
}

TEST(Layer, FewerKeyValueHeadsThanGpusAreThereOnEach) {
  // 64 / 8 queries, one key and one value of 4.
  EXPECT_THAT(texts_of(layers_on("qwen3-235b-a22b", {8, Phase::decode, 1, false})),
              ElementsAre("qkv columns 1x1280x4096 94", "attention-out reduced 1x4096x1024 94"));
}

TEST(Layer, LatentAttentionMultipliesDownOnEveryGpuAndUpByHeads) {
  EXPECT_THAT(texts_of(layers_on("deepseek-v3", {8, Phase::prefill, 100, false})),
              ElementsAre("q-kv-a columns 100x2112x7168 61", "q-b columns 100x3072x1536 61",
                          "kv-b columns 100x4096x512 61", "attention-out reduced 100x7168x2048 61",
                          "gate-up columns 100x4608x7168 3", "down reduced 100x7168x2304 3",
                          "shared-gate-up columns 100x512x7168 58", "shared-down reduced 100x7168x256 58"));
  const Layers decode = layers_on("deepseek-v3", {8, Phase::decode, 100, true});
  EXPECT_EQ(texts_of(decode)[0], "q-kv-a columns 13x2112x7168 61");  // its own rows
  EXPECT_EQ(texts_of(decode)[2], "attention-out scattered 100x7168x2048 61");
  ASSERT_EQ(decode.kinds.size(), 2U);
  EXPECT_EQ(decode.kinds[0].count + decode.kinds[1].count, 61);
  EXPECT_THAT(decode.left_out.back(), HasSubstr("8 of 256 routed experts"));
}

TEST(Layer, ProblemsHaveTheSizesInTheFieldsOfTheirWorkload) {
  const Deployment deployment{8, Phase::decode, 16, false};
  const Layers layers = layers_on("llama-3-70b", deployment);
  const Problem qkv = problem_of(layers.steps[0], deployment, DType::bf16, "--batch");
  EXPECT_EQ(qkv["m"], 16);
  EXPECT_EQ(qkv["n"], 1280);
  EXPECT_EQ(qkv["k"], 8192);
  const Problem down = problem_of(layers.steps[3], deployment, DType::bf16, "--batch");
  EXPECT_EQ(down["n"], 8192);
  EXPECT_EQ(down["k"], 28672);  // of all GPUs together
  EXPECT_EQ(down.gpus(), 8);
}

TEST(Layer, EveryShippedModelSplitsOver8GpusAndSaysItsSource) {
  EXPECT_THAT(shipped_models(), ElementsAre("deepseek-v3", "llama-3-405b", "llama-3-70b", "llama-3-8b",
                                            "mixtral-8x7b", "qwen3-235b-a22b", "qwen3-32b"));
  for (const std::string& name : shipped_models()) {
    const LanguageModel model = find_model(name);
    EXPECT_THAT(model.source, HasSubstr("config.json")) << name;
    for (const bool sequence_parallel : {false, true}) {
      for (const Phase phase : {Phase::decode, Phase::prefill}) {
        const Deployment deployment{8, phase, 64, sequence_parallel};
        const Layers layers = layers_of(model, deployment, "--tp");
        for (const Step& step : layers.steps) problem_of(step, deployment, model.dtype, name);
        std::int64_t count = 0;
        for (const LayerKind& kind : layers.kinds) count += kind.count;
        EXPECT_EQ(count, model.layers) << name;
      }
    }
  }
}

TEST(Layer, EveryProjectionIsServedAndItsFieldsExist) {
  for (const Projection projection : {Projection::columns, Projection::columns_gathered,
                                      Projection::rows_reduced, Projection::rows_scattered}) {
    const Workload* workload = find_workload(projection);
    ASSERT_NE(workload, nullptr);
    EXPECT_NE(baseline_of(*workload), nullptr) << workload->name;
    const ProjectionFields& fields = workload->projection;
    for (const std::string_view field :
         {fields.rows, fields.columns, fields.depth, std::string_view("dtype")}) {
      EXPECT_NE(find_spec(workload->fields, field), nullptr) << workload->name << ' ' << field;
    }
  }
}

TEST(Layer, RefusesGpusThatDoNotDivideAModel) {
  const auto refusal = [](const std::string& model, int gpus) -> std::string {
    try {
      layers_on(model, {gpus, Phase::decode, 1, false});
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal("llama-3-70b", 6),
            "--tp: 6 does not divide the 64 attention heads of llama-3-70b; give one of 2, 4, 8, 16, 32, 64");
  EXPECT_THAT(refusal("llama-3-8b", 3), HasSubstr("3 does not divide the 32 attention heads"));
}

TEST(Layer, RefusesModelsThatAreIncompleteOrWrong) {
  const std::string good =
      "hidden_size = 64\nnum_hidden_layers = 2\nnum_attention_heads = 4\nnum_key_value_heads = 2\n"
      "head_dim = 16\nintermediate_size = 128\n";
  EXPECT_EQ(refusal_of(good), "none");
  EXPECT_EQ(refusal_of("hidden_size = 64\n"), "mine.toml:1: this model has no 'num_hidden_layers'");
  EXPECT_THAT(refusal_of(good + "num_expert = 3\n"), HasSubstr("mine.toml:7: "));
  EXPECT_THAT(refusal_of(good + "num_experts = 3\nnum_experts_per_tok = 4\n"),
              HasSubstr("mine.toml:8: num_experts_per_tok = 4 is not allowed; it must be between 1 and 3"));
  EXPECT_THAT(refusal_of("hidden_size = 64\nnum_hidden_layers = 2\nnum_attention_heads = 4\n"
                         "num_key_value_heads = 3\nhead_dim = 16\nintermediate_size = 1\n"),
              HasSubstr("mine.toml:4: num_key_value_heads = 3 does not divide num_attention_heads = 4"));
}

// Two patterns, the baseline first.
const std::array<Pattern, 2> kTwoPatterns{
    {{.name = "libraries", .summary = ""}, {.name = "own", .summary = ""}}};

Workload workload_of_two() {
  Workload workload;
  workload.name = "test";
  workload.patterns = kTwoPatterns;
  workload.baseline = "libraries";
  return workload;
}

// Comparisons of the test's workload that give such a band to times of milliseconds.
std::vector<ComparedSet> compared_within(double off) {
  std::vector<ComparedSet> sets;
  for (const Compared of : {Compared::own, Compared::own_over_library}) {
    sets.push_back(
        {.set = "a", .gpu = "", .workload = "test", .of = of, .count = 9, .off = {off}, .ranges = {}});
  }
  return sets;
}

StepAnswer answer_of(const Workload& workload, double libraries_ms, double own_ms, double band) {
  const double libraries_ns = 1e6 * libraries_ms, own_ns = 1e6 * own_ms;
  Advice advice;
  advice.candidates.resize(2);
  const std::size_t own = own_ns < libraries_ns ? 0 : 1;
  advice.candidates[own].pattern = &kTwoPatterns[1];
  advice.candidates[own].time_ns = own_ns;
  advice.candidates[own].taxes.account.launch_ns = own_ns;
  advice.candidates[1 - own].pattern = &kTwoPatterns[0];
  advice.candidates[1 - own].time_ns = libraries_ns;
  advice.candidates[1 - own].taxes.account.wire_ns = libraries_ns;
  return judge({&workload, {}}, std::move(advice), Machine(), compared_within(band));
}

TEST(Layer, FusingPaysOnlyAheadOfTheLibrariesByMoreThanTheBand) {
  const Workload workload = workload_of_two();
  EXPECT_EQ(answer_of(workload, 100, 80, 0.1).verdict, Verdict::pays);
  EXPECT_EQ(answer_of(workload, 100, 95, 0.1).verdict, Verdict::tie);
  EXPECT_EQ(answer_of(workload, 100, 120, 0.1).verdict, Verdict::leave_it);
  EXPECT_EQ(answer_of(workload, 100, 95, 0.1).chosen_ns(), 100e6);
}

// What is fastest may be another library than the baseline: nothing to fuse, and what fusing has to beat.
TEST(Layer, FusingHasToBeatTheFastestOfTheLibraries) {
  const std::array<Pattern, 3> patterns{
      {{.name = "libraries", .summary = "", .vendor = true},
       {.name = "libraries-beside-each-other", .summary = "", .vendor = true},
       {.name = "own", .summary = ""}}};
  Workload workload = workload_of_two();
  workload.patterns = patterns;
  const auto judged_at = [&](double own_ms) {
    Advice advice;
    for (const auto& [pattern, time_ms] : {std::pair{1, 60.0}, {2, own_ms}, {0, 100.0}}) {
      Candidate& one = advice.candidates.emplace_back();
      one.pattern = &patterns[static_cast<std::size_t>(pattern)];
      one.time_ns = 1e6 * time_ms;
    }
    std::sort(advice.candidates.begin(), advice.candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.time_ns < b.time_ns; });
    return judge({&workload, {}}, std::move(advice), Machine(), compared_within(0.1));
  };
  EXPECT_EQ(judged_at(80).verdict, Verdict::leave_it);
  EXPECT_EQ(judged_at(80).libraries_ns, 60e6);
  EXPECT_EQ(judged_at(80).chosen_ns(), 60e6);
  EXPECT_EQ(judged_at(57).verdict, Verdict::tie);
  EXPECT_EQ(judged_at(40).verdict, Verdict::pays);
}

TEST(Layer, SumsOfStepsAddUpToTheModel) {
  const Workload workload = workload_of_two();
  const std::vector<StepAnswer> answers{answer_of(workload, 100, 80, 0.1), answer_of(workload, 50, 49, 0.1),
                                        answer_of(workload, 10, 20, 0.1)};
  Layers layers;
  layers.kinds = {{"a", 3, {0, 1}}, {"b", 5, {0, 2}}};
  const LayerSum a = sum_of(layers.kinds[0], answers);
  EXPECT_EQ(a.libraries_ns, 150e6);
  EXPECT_EQ(a.best_ns, 129e6);
  EXPECT_EQ(a.chosen_ns, 130e6);
  EXPECT_EQ(a.account.sum_ns(), a.best_ns);
  const LayerSum model = sum_of(layers, answers);
  EXPECT_EQ(model.libraries_ns, (3 * 150 + 5 * 110) * 1e6);
  EXPECT_EQ(model.chosen_ns, (3 * 130 + 5 * 90) * 1e6);
  EXPECT_EQ(model.account.launch_ns, (3 * 129 + 5 * 80) * 1e6);
  EXPECT_EQ(model.account.wire_ns, 50e6);
}

}  // namespace
}  // namespace tritax

// Whole models: sizes, memory, refusals, and times that are the sums of their parts.
#include "sim/study/model_time.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "model/core/error.hpp"
#include "model/workloads/layer_blocks.hpp"

namespace tritax {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTinyDense =
    "hidden_size = 256\nnum_hidden_layers = 3\nvocab_size = 1000\nnum_attention_heads = 4\n"
    "num_key_value_heads = 2\nhead_dim = 32\nintermediate_size = 256\n";
constexpr const char* kTinyExperts =
    "hidden_size = 256\nnum_hidden_layers = 2\nvocab_size = 1000\nnum_attention_heads = 4\n"
    "num_key_value_heads = 2\nhead_dim = 32\nnum_experts = 4\nnum_experts_per_tok = 2\n"
    "moe_intermediate_size = 64\nn_shared_experts = 1\n";

ModelQuestion question_on(const std::string& model, std::vector<ModelPoint> points) {
  ModelQuestion question;
  question.model = parse_model(model, "tiny", "tiny.toml");
  question.machine = find_machine("h200-4");
  question.points = std::move(points);
  question.decode_selector = &find_selector("defaults", "test");
  return question;
}

ModelAnswer answer_on(const std::string& model, const ModelPoint& point) {
  return answer_model(question_on(model, {point})).points.front();
}

double nodes_of(const PhaseAnswer& phase) {
  double sum = 0;
  for (std::size_t i = 0; i < phase.blocks.size(); ++i) {
    const BlockRun& run = *phase.blocks[i].usual;
    sum += static_cast<double>(phase.pass.blocks[i].times) *
           (run.gpu_ns() * phase.pass.blocks[i].share + run.graph_gaps_ns);
  }
  return sum * static_cast<double>(phase.pass.passes);
}

TEST(ModelTime, ATokenTakesWhatItsBlocksTakeAndOneLaunch) {
  const ModelAnswer answer = answer_on(kTinyDense, {8, 256, {2, 1}});
  const HostCosts& host = find_machine("h200-4").host;
  const double launch_ns = host.graph_launch_call_ns + host.launch_latency_ns + host.synchronize_ns;
  EXPECT_NEAR(answer.decode->time_ns(), nodes_of(*answer.decode) + launch_ns,
              1e-6 * answer.decode->time_ns());
  double layers = 0;
  for (const PassBlock& block : answer.decode->pass.blocks) {
    if (block.name == "attention") layers += static_cast<double>(block.times);
  }
  EXPECT_EQ(layers, 3);
}

TEST(ModelTime, OneGpuCommunicatesNothing) {
  for (const char* model : {kTinyDense, kTinyExperts}) {
    const ModelAnswer answer = answer_on(model, {4, 128, {1, 1}});
    for (const PhaseAnswer* phase : {&*answer.decode, &*answer.prefill}) {
      EXPECT_EQ(phase->account().wire_ns, 0);
      EXPECT_EQ(phase->fused.wire_ns, 0);
      for (const PassBlock& block : phase->pass.blocks)
        EXPECT_TRUE(!block.problem || block.problem->gpus() == 1);
    }
  }
}

TEST(ModelTime, LongerContextsAndMoreSequencesTakeLonger) {
  const ModelAnswers answers = answer_model(question_on(
      kTinyDense, {{4, 128, {2, 1}}, {4, 2048, {2, 1}}, {4, 16384, {2, 1}}, {16, 16384, {2, 1}}}));
  for (std::size_t i = 1; i < answers.points.size(); ++i) {
    EXPECT_GT(answers.points[i].decode->time_ns(), answers.points[i - 1].decode->time_ns()) << i;
    EXPECT_GT(answers.points[i].prefill->time_ns(), answers.points[i - 1].prefill->time_ns()) << i;
  }
}

TEST(ModelTime, NothingBeatsTheRooflineAndFusingNeverCosts) {
  const ModelAnswers dense =
      answer_model(question_on(kTinyDense, {{1, 128, {1, 1}}, {8, 2048, {2, 1}}, {32, 512, {4, 1}}}));
  const ModelAnswers experts =
      answer_model(question_on(kTinyExperts, {{8, 128, {1, 4}}, {8, 512, {2, 4}}, {8, 128, {4, 1}}}));
  for (const ModelAnswers* answers : {&dense, &experts}) {
    for (const ModelAnswer& answer : answers->points) {
      ASSERT_EQ(answer.refusal, "");
      for (const PhaseAnswer* phase : {&*answer.decode, &*answer.prefill}) {
        EXPECT_GT(phase->least_ns, 0);
        for (const double ns : {phase->usual[0].sum_ns(), phase->usual[1].sum_ns(), phase->fused.sum_ns()})
          EXPECT_GE(ns, phase->least_ns);
        for (const BlockAnswer& block : phase->blocks)
          EXPECT_TRUE(block.verdict != Verdict::pays || block.change < 0);
      }
      EXPECT_LE(answer.decode->fused.sum_ns(), answer.decode->time_ns() * (1 + 1e-9));
    }
  }
}

// The published numbers of parameters, in billions.
TEST(ModelTime, WeightsAreThePublishedParameters) {
  const std::vector<std::pair<std::string, double>> published{
      {"llama-3-8b", 8.03},       {"llama-3-70b", 70.6},  {"llama-3-405b", 405.9}, {"qwen3-32b", 32.8},
      {"qwen3-235b-a22b", 235.1}, {"mixtral-8x7b", 46.7}, {"deepseek-v3", 671}};
  const Gpu gpu = find_machine("mi300x-8").gpu;
  for (const auto& [name, billions] : published) {
    const LanguageModel model = find_model(name);
    const double bytes = memory_of(model, {1, 1}, 1, 1, DType::bf16, gpu).weight_bytes;
    EXPECT_NEAR(bytes / 2 / 1e9 / billions, 1, 0.005) << name;
  }
}

TEST(ModelTime, TheCacheOfLatentAttentionIsOneVectorATokenOnEveryGpu) {
  const LanguageModel model = find_model("deepseek-v3");
  const Gpu gpu = find_machine("mi300x-8").gpu;
  const double one = memory_of(model, {8, 8}, 1, 1000, DType::bf16, gpu).cache_bytes;
  EXPECT_EQ(one, 61.0 * 1000 * (512 + 64) * 2);
  EXPECT_EQ(memory_of(model, {1, 8}, 8, 1000, DType::fp8, gpu).cache_bytes, one);
}

TEST(ModelTime, PromptsGoInEqualPasses) {
  const LanguageModel model = parse_model(kTinyDense, "tiny", "tiny.toml");
  const ModelPass whole = prefill_pass(model, {2, 1}, 6, 1000, 4096, DType::bf16);
  EXPECT_EQ(whole.passes, 2);
  EXPECT_EQ(whole.sequences, 3);
  EXPECT_EQ(whole.tokens, 3000);
  const ModelPass chunked = prefill_pass(model, {2, 1}, 2, 10000, 4096, DType::bf16);
  EXPECT_EQ(chunked.passes, 2 * 3);
  EXPECT_EQ(chunked.tokens, 3334);
  const auto attention = std::find_if(chunked.blocks.begin(), chunked.blocks.end(),
                                      [](const PassBlock& block) { return block.name == "attention"; });
  EXPECT_DOUBLE_EQ(attention->share, 1.0 / 3);
}

std::string refusal_at(const ModelPoint& point) {
  ModelQuestion question = question_on(kTinyDense, {point});
  question.model = find_model("llama-3-8b");
  try {
    answer_model(question);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(ModelTime, RefusesWhatCannotBeWithItsBytes) {
  EXPECT_THAT(refusal_at({1, 128, {1, 4}}), StartsWith("ep: llama-3-8b has no experts; give 1"));
  EXPECT_THAT(refusal_at({1, 128, {3, 1}}), StartsWith("tp: 3 does not divide"));
  ModelQuestion question = question_on(kTinyExperts, {{4, 128, {4, 2}}, {2, 128, {2, 4}}, {4, 128, {2, 4}}});
  const ModelAnswers answers = answer_model(question);
  ASSERT_EQ(answers.points.size(), 3U);
  EXPECT_THAT(answers.points[0].refusal, StartsWith("ep: 2 GPUs share the experts and 4 every product"));
  EXPECT_THAT(answers.points[1].refusal, StartsWith("batch: 2 sequences leave some of the 4 GPUs"));
  EXPECT_EQ(answers.points[2].refusal, "");
  question.machine.gpu.hbm_bytes = 1e6;
  question.points = {{4, 128, {2, 4}}};
  try {
    answer_model(question);
    ADD_FAILURE() << "it does not fit";
  } catch (const UserError& error) {
    const double over = answers.points[2].memory->bytes() - 1e6;
    EXPECT_THAT(error.what(),
                HasSubstr("(" + std::to_string(static_cast<std::int64_t>(over + 0.5)) + " bytes over)"));
  }
}

RC_GTEST_PROP(ModelTime, AStreamIsAsSlowAsTheSlowerOfHostAndGpu, ()) {
  Machine machine;
  HostCosts& host = machine.host;
  host.launch_latency_ns = *rc::gen::inRange(0, 5000);
  host.synchronize_ns = *rc::gen::inRange(0, 5000);
  ModelPass pass;
  std::vector<BlockRun> runs(*rc::gen::inRange<std::size_t>(1, 6));
  std::vector<const BlockRun*> chosen;
  pass.sections.push_back({*rc::gen::inRange<std::int64_t>(1, 20), {}});
  double gpu_ns = 0, gaps_ns = 0, calls_ns = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].account.memory_ns = *rc::gen::inRange(1, 20000);
    runs[i].gaps_ns = *rc::gen::inRange(0, 2000);
    runs[i].graph_gaps_ns = runs[i].gaps_ns / 2;
    runs[i].calls_ns = *rc::gen::inRange(1, 20000);
    pass.blocks.push_back({});
    pass.blocks.back().times = pass.sections[0].repeats;
    pass.sections[0].blocks.push_back(i);
    chosen.push_back(&runs[i]);
    gpu_ns += runs[i].account.memory_ns;
    gaps_ns += runs[i].gaps_ns;
    calls_ns += runs[i].calls_ns;
  }
  const auto repeats = static_cast<double>(pass.sections[0].repeats);
  const TimeAccount account = account_of(pass, chosen, LaunchForm::stream, machine);
  const double ns = account.sum_ns();
  RC_ASSERT(ns >= std::max(repeats * (gpu_ns + gaps_ns), repeats * calls_ns));
  RC_ASSERT(ns <=
            repeats * (gpu_ns + gaps_ns + calls_ns) + host.launch_latency_ns + host.synchronize_ns + 1e-6);
  RC_ASSERT(std::abs(account.memory_ns - repeats * gpu_ns) < 1e-6 * ns);
  const TimeAccount graph = account_of(pass, chosen, LaunchForm::graph, machine);
  RC_ASSERT(std::abs(graph.launch_ns - repeats * gaps_ns / 2 - host.launch_latency_ns - host.synchronize_ns) <
            1e-6 * ns);
}

// What a host does for a collective counts among its calls alone.
TEST(ModelTime, NoCallOfAHostIsInTheTimeOfGpus) {
  Machine machine = find_machine("h200-4");
  const Problem problem = summed_rows(16, 4096, DType::bf16, 4, "test").problem;
  BlockOptions options;
  options.selector = &find_selector("defaults", "test");
  const BlockRun before = runs_of(problem, machine, options).of("library");
  machine.library.collective_call_ns *= 10;
  const BlockRun after = runs_of(problem, machine, options).of("library");
  EXPECT_NEAR(after.gpu_ns(), before.gpu_ns(), 1e-9 * before.gpu_ns());
  EXPECT_NEAR(after.calls_ns - before.calls_ns, 0.9 * machine.library.collective_call_ns, 1e-6);
}

}  // namespace
}  // namespace tritax

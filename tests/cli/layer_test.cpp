// tritax layer: its table and sums, user files, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kTiny =
    "hidden_size = 256\nnum_hidden_layers = 3\nnum_attention_heads = 4\nnum_key_value_heads = 2\n"
    "head_dim = 32\nintermediate_size = 256\n";

TEST(Layer, SumsOfAUsersModelAddUp) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("tiny.toml", kTiny);
  const Outcome outcome = run_tritax("layer --model " + path + " --tp 2 --batch 8 --machine h200-4 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["model"], "tiny");
  ASSERT_EQ(result["steps"].size(), 4U);
  double libraries = 0;
  double chosen = 0;
  for (const json& step : result["steps"]) {
    libraries += step["libraries_us"].get<double>();
    chosen += step["chosen_us"].get<double>();
    EXPECT_LE(step["time_us"].get<double>(), step["libraries_us"].get<double>());
  }
  ASSERT_EQ(result["sums"].size(), 2U);
  EXPECT_NEAR(result["sums"][0]["libraries_us"].get<double>(), libraries, 1e-6);
  EXPECT_NEAR(result["sums"][1]["libraries_us"].get<double>(), 3 * libraries, 1e-6);
  EXPECT_NEAR(result["sums"][1]["chosen_us"].get<double>(), 3 * chosen, 1e-6);
}

TEST(Layer, SaysWhereFusingPaysAndWhatIsNotModelled) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("tiny.toml", kTiny);
  const Outcome outcome = run_tritax("layer --model " + path +
                                     " --tp 2 --phase prefill --batch 1 --sequence 64 --dtype fp16 "
                                     "--sequence-parallel --machine h200-4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("tiny, prefill of 64 tokens in fp16, tensor-parallel and sequence-parallel over "
                        "2 GPUs of h200-4"));
  EXPECT_THAT(outcome.out, HasSubstr("64x128x256"));  // (4 + 2·2)·32 / 2 columns
  EXPECT_THAT(outcome.out, HasSubstr("Not modelled: attention,"));
}

TEST(Layer, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& arguments) {
    const Outcome outcome = run_tritax("layer " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    return outcome.err;
  };
  const std::string llama = "--model llama-3-70b --machine mi300x-8 ";
  EXPECT_THAT(refusal("--machine mi300x-8"), HasSubstr("--model: missing; give one of deepseek-v3, "));
  EXPECT_THAT(refusal("--model llama-3-7b --machine mi300x-8"),
              HasSubstr("--model: unknown model \"llama-3-7b\", did you mean \"llama-3-70b\"?"));
  EXPECT_THAT(refusal("--model llama-3-70b"), HasSubstr("--machine: missing"));
  EXPECT_THAT(refusal(llama + "--tp 6"), HasSubstr("--tp: 6 does not divide the 64 attention heads"));
  EXPECT_THAT(refusal(llama + "--tp 16"),
              HasSubstr("--tp: 16 is more than the machine 'mi300x-8' has; give 2 to 8"));
  EXPECT_THAT(refusal(llama + "--phase training"), HasSubstr("--phase: unknown name 'training'"));
  EXPECT_THAT(refusal(llama + "--sequence 5"), HasSubstr("--sequence: decode has one token per sequence"));
  EXPECT_THAT(refusal(llama + "--phase prefill --batch 1024"), HasSubstr("4194304 tokens are out of range"));
  EXPECT_THAT(refusal(llama + "--dtype fp12"), HasSubstr("--dtype: unknown name 'fp12'"));
  EXPECT_THAT(refusal(llama + "--batch 4 --sequence-parallel"), HasSubstr("--batch: "));
}

}  // namespace
}  // namespace tritax::test

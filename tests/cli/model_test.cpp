// tritax model: tables, ranges, refused rows, pictures, bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using testing::HasSubstr;

constexpr const char* kSmallModel =
    "hidden_size = 256\nnum_hidden_layers = 3\nvocab_size = 1000\nnum_attention_heads = 4\n"
    "num_key_value_heads = 2\nhead_dim = 32\nintermediate_size = 256\n";

TEST(ModelCommand, TellsEveryRowItsTimesOrWhyThereAreNone) {
  const ScratchDirectory scratch;
  const std::string arguments =
      "model --model " + scratch.write("small.toml", kSmallModel) +
      " --machine h200-4 --batch 2:4:x2 --context 128 --tp 2 --ep 1,2 --pass-tokens 64 --selector defaults"
      " --plot " +
      scratch.path("tpot.svg");
  const Outcome outcome = run_tritax(arguments + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result["schema"], "tritax.model/1");
  ASSERT_EQ(result["points"].size(), 4U);
  EXPECT_EQ(result["points"][1]["refused"], "--ep: small has no experts; give 1");
  EXPECT_FALSE(result["points"][1].contains("weight_bytes"));  // nobody knows
  const auto& point = result["points"][0];
  const auto& decode = point["decode"];
  EXPECT_NEAR(point["tpot_ms"].get<double>(), decode["time_us"].get<double>() / 1e3, 1e-9);
  double share = 0;
  for (const auto& block : decode["blocks"]) share += block["share"].get<double>();
  for (const auto& block : point["prefill"]["blocks"]) {
    double sum = 0;
    for (const auto& [part, time_us] : block["account"].items()) sum += time_us.get<double>();
    EXPECT_LE(sum, block["time_us"].get<double>() * (1 + 1e-9)) << block["block"];  // which has gaps besides
  }
  EXPECT_GT(share, 0.3);
  EXPECT_LT(share, 1);  // the launch of the graph is no block's
  EXPECT_THAT(read_file(scratch.path("tpot.svg")), HasSubstr("batch 4, context 128, TP 2"));
  const std::string text = run_tritax(arguments).out;
  EXPECT_THAT(text, HasSubstr("small in bf16 on h200-4: prefill and decode"));
  EXPECT_THAT(text, HasSubstr("Not modelled: "));
}

TEST(ModelCommand, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& arguments) {
    const Outcome outcome = run_tritax("model " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    return outcome.err;
  };
  const std::string llama = "--model llama-3-70b --machine h200-4 ";
  EXPECT_THAT(refusal("--machine h200-4"), HasSubstr("--model: missing; give one of deepseek-v3, "));
  EXPECT_THAT(refusal("--model llama-3-70b"), HasSubstr("--machine: missing"));
  EXPECT_THAT(refusal(llama + "--tp 8"),
              HasSubstr("--tp: 8 is more than the machine 'h200-4' has; give 1 to 4"));
  EXPECT_THAT(refusal(llama + "--batch 1:1000:+1 --context 1:1000:+1"),
              HasSubstr("1000000 combinations are too many; give up to 10000"));
  EXPECT_THAT(refusal(llama + "--batch 1:8"),
              HasSubstr("--batch: '1:8' is not a range; give FIRST:LAST:xFACTOR"));
  EXPECT_THAT(refusal(llama + "--batch 8:1:x2"), HasSubstr("the first value must not be above the last"));
  EXPECT_THAT(refusal(llama + "--context none"), HasSubstr("--context"));
  EXPECT_THAT(refusal(llama + "--tp 1"), HasSubstr("does not fit: 141.1 GB of weights and"));
  EXPECT_THAT(refusal(llama + "--plot tpot.png"), HasSubstr("--plot"));
}

}  // namespace
}  // namespace tritax::test

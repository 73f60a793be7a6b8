#include "model/parts/sequence_attention.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kLongestSequence = std::int64_t{1} << 24;
constexpr std::int64_t kMostColumnsOfSequence = std::int64_t{1} << 20;

}  // namespace

SequenceAttention sequence_attention_of(const Problem& problem) {
  return {problem["context"],  problem["q_heads"],     problem["kv_heads"],
          problem["head_dim"], problem["causal"] != 0, static_cast<DType>(problem["dtype"]),
          problem.gpus()};
}

Spec sequence_field() {
  return {.name = "context",
          .help = "tokens of the sequence, which all GPUs share",
          .high = kLongestSequence,
          .required = true,
          .varies_by_doubling = true};
}

void complete_sequence(Problem& problem, const FieldPlace& place) {
  complete_kv_heads(problem, place);
  if (problem["context"] < problem.gpus()) {
    throw UserError(fmt::format("{}: context = {} is less than a token for each of {} GPUs", place("context"),
                                problem["context"], problem.gpus()));
  }
  if (problem["q_heads"] * problem["head_dim"] > kMostColumnsOfSequence) {
    throw UserError(fmt::format("{}: q_heads = {} times head_dim = {} are more than {} columns",
                                place("q_heads"), problem["q_heads"], problem["head_dim"],
                                kMostColumnsOfSequence));
  }
}

Work sequence_work(const Problem& problem) {
  return {.flops = attention_flops(problem["q_heads"], problem["head_dim"], problem["context"],
                                   problem["causal"] != 0)};
}

std::string sequence_text(const Problem& problem) {
  return fmt::format("{} tokens, {}/{} heads of {} {}{}", problem["context"], problem["q_heads"],
                     problem["kv_heads"], problem["head_dim"], name_of(static_cast<DType>(problem["dtype"])),
                     problem["causal"] != 0 ? ", causal" : "");
}

}  // namespace tritax

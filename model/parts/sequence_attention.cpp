#include "model/parts/sequence_attention.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kLongestSequence = std::int64_t{1} << 24;
constexpr std::int64_t kMostColumnsOfSequence = std::int64_t{1} << 20;
constexpr std::int64_t kMostSequences = 4096;

std::int64_t sequences_of(const Problem& problem) { return problem.values.get_or("batch", 1); }

}  // namespace

SequenceAttention sequence_attention_of(const Problem& problem) {
  const std::int64_t sequences = sequences_of(problem);
  return {problem["context"],  sequences * problem["q_heads"], sequences * problem["kv_heads"],
          problem["head_dim"], problem["causal"] != 0,         static_cast<DType>(problem["dtype"]),
          problem.gpus()};
}

Spec sequence_field() {
  return {.name = "context",
          .help = "tokens of the sequence over all GPUs",
          .high = kLongestSequence,
          .required = true,
          .varies_by_doubling = true};
}

Spec sequences_field() {
  return {.name = "batch", .help = "sequences of that length", .high = kMostSequences, .usual = {1}};
}

void complete_sequence(Problem& problem, const FieldPlace& place) {
  complete_kv_heads(problem, place);
  if (problem["context"] < problem.gpus()) {
    throw UserError(fmt::format("{}: context = {} is less than a token for each of {} GPUs", place("context"),
                                problem["context"], problem.gpus()));
  }
  const std::int64_t sequences = sequences_of(problem);
  if (sequences * problem["q_heads"] * problem["head_dim"] > kMostColumnsOfSequence) {
    throw UserError(fmt::format("{}: {}q_heads = {} times head_dim = {} are more than {} columns",
                                place("q_heads"),
                                sequences > 1 ? fmt::format("batch = {} times ", sequences) : "",
                                problem["q_heads"], problem["head_dim"], kMostColumnsOfSequence));
  }
}

Work sequence_work(const Problem& problem) {
  return {.flops = attention_flops(sequences_of(problem) * problem["q_heads"], problem["head_dim"],
                                   problem["context"], problem["causal"] != 0)};
}

std::string sequence_text(const Problem& problem) {
  const std::int64_t sequences = sequences_of(problem);
  return fmt::format("{}{} tokens, {}/{} heads of {} {}{}",
                     sequences > 1 ? fmt::format("{}x", sequences) : "", problem["context"],
                     problem["q_heads"], problem["kv_heads"], problem["head_dim"],
                     name_of(static_cast<DType>(problem["dtype"])), problem["causal"] != 0 ? ", causal" : "");
}

}  // namespace tritax

#include "model/parts/attention_problem.hpp"

#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"
#include "model/parts/fields.hpp"
#include "model/workload/launching.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxBatch = 4096;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 29;  // of a buffer, with room for a tile

}  // namespace

AttentionProblem attention_problem_of(const Problem& problem) {
  return {problem["batch"],
          problem["q_heads"],
          problem["kv_heads"],
          problem["context"],
          problem["head_dim"],
          problem["causal"] != 0,
          static_cast<DType>(problem["dtype"])};
}

std::span<const Spec> attention_fields() {
  static const std::array<Spec, 7> fields{{
      {.name = "context",
       .help = "queries, and keys, of a batch",
       .high = kMaxSize,
       .required = true,
       .varies_by_doubling = true},
      {.name = "batch", .help = "sequences of that length", .high = kMaxBatch, .usual = {1}},
      q_heads_field(32),
      kv_heads_field(),
      head_dim_field(),
      causal_field(),
      dtype_field(DType::fp16, "element type of Q, K, V and O"),
  }};
  return fields;
}

void complete_attention(Problem& problem, const FieldPlace& place, std::int64_t most_heads) {
  complete_kv_heads(problem, place);
  const std::int64_t heads = problem["q_heads"];
  if (problem["batch"] * heads > most_heads) {
    throw UserError(fmt::format("{}: batch = {} times q_heads = {} are more than {} heads in all; give fewer",
                                place("batch"), problem["batch"], heads, most_heads));
  }
  if (problem["batch"] * problem["context"] > kMaxRows) {
    throw UserError(fmt::format("{}: batch = {} times context = {} are more than {} rows; give fewer",
                                place("context"), problem["batch"], problem["context"], kMaxRows));
  }
}

std::string attention_text(const Problem& problem) {
  return fmt::format("{}x{}/{} heads of {} {}, {} tokens{}", problem["batch"], problem["q_heads"],
                     problem["kv_heads"], problem["head_dim"], name_of(static_cast<DType>(problem["dtype"])),
                     problem["context"], problem["causal"] != 0 ? ", causal" : "");
}

std::optional<LibraryCall> library_call_of_attention(const CsvRow& line, const Workload& workload) {
  if (!is_of_program(line, workload, true)) return std::nullopt;
  if (kProgramForms[line.choice("form", kProgramForms)] != "library") return std::nullopt;
  if (kProgramLaunches[line.choice("launch", kProgramLaunches)] != "graph") return std::nullopt;
  LibraryCall call;
  call.form = LibraryForm::kernel;
  call.problem = problem_of_row(line, workload);
  call.pattern = "library";
  call.knobs = Values(workload.knobs);
  call.time_column = "device_us";
  return call;
}

Rect head_rect(const AttentionProblem& problem, std::int64_t batch, std::int64_t head, std::int64_t row,
               std::int64_t rows, std::int64_t cols) {
  return {static_cast<std::int32_t>(batch * problem.context + row), static_cast<std::int32_t>(head * cols),
          static_cast<std::int32_t>(rows), static_cast<std::int32_t>(cols)};
}

}  // namespace tritax

#include "model/workload/library_call.hpp"

namespace tritax {

bool is_of_program(const CsvRow& line, const Workload& workload, bool named_in_table) {
  if (is_of_call(line) || line.has("workload") != named_in_table) return false;
  return !named_in_table || line.text("workload") == workload.name;
}

std::optional<LibraryForm> form_of_call(const CsvRow& line, std::string_view call) {
  const bool graph = kProgramLaunches[line.choice("launch", kProgramLaunches)] == "graph";
  const std::size_t state = line.choice("operands", kCallOperands);
  const std::string_view what = kCalls[line.choice("what", kCalls)];
  if (what != call || graph != (kCallOperands[state] == "loop")) return std::nullopt;
  return what == "gemm" ? static_cast<LibraryForm>(state) : LibraryForm::all_gather;
}

void give_product(const CsvRow& line, Values& values) {
  for (const char* side : {"m", "n", "k"}) {
    const Spec& spec = *find_spec(values.specs(), side);
    values.give(side, line.integer(side, spec.low, spec.high));
  }
  values.give("dtype",
              static_cast<std::int64_t>(line.choice("dtype", find_spec(values.specs(), "dtype")->names)));
}

}  // namespace tritax

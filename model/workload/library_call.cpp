#include "model/workload/library_call.hpp"

#include "model/workload/file_values.hpp"

namespace tritax {

bool is_of_program(const CsvRow& line, const Workload& workload, bool named_in_table) {
  if (is_of_call(line) || line.has("workload") != named_in_table) return false;
  return !named_in_table || is_called(workload, line.text("workload"));
}

std::optional<LibraryForm> form_of_call(const CsvRow& line, std::string_view call) {
  const bool graph = kProgramLaunches[line.choice("launch", kProgramLaunches)] == "graph";
  const std::size_t state = line.choice("operands", kCallOperands);
  const std::string_view what = kCalls[line.choice("what", kCalls)];
  if (what != call || graph != (kCallOperands[state] == "loop")) return std::nullopt;
  return what == "gemm" ? static_cast<LibraryForm>(state) : LibraryForm::all_gather;
}

std::optional<std::string_view> form_of_program(const CsvRow& line, const Workload& workload) {
  if (!is_of_program(line, workload, true)) return std::nullopt;
  const std::string_view form = kProgramForms[line.choice("form", kProgramForms)];
  const bool graph = kProgramLaunches[line.choice("launch", kProgramLaunches)] == "graph";
  if (graph) return std::nullopt;
  return form;
}

namespace {

// A field as programs and scripts write it; nothing for a value that means "left out".
std::optional<std::int64_t> field_of_row(const CsvRow& line, const Spec& field) {
  constexpr std::array<std::string_view, 2> kPythonWords{"False", "True"};
  if (!field.required && !line.has(field.name)) return std::nullopt;  // the table is older than the field
  switch (field.kind) {
    case ValueKind::name:
      return static_cast<std::int64_t>(line.choice(field.name, field.names));
    case ValueKind::boolean:
      return static_cast<std::int64_t>(line.choice(field.name, kPythonWords));
    case ValueKind::file: {
      const std::string path(line.field(field.name));
      return path.empty() ? std::nullopt : std::optional(number_of_file(path));
    }
    case ValueKind::integer:
    case ValueKind::bytes:
      break;
  }
  const bool may_be_left_out = !field.required && field.usual.front() < field.low;
  const std::int64_t value =
      line.integer(field.name, may_be_left_out ? field.usual.front() : field.low, field.high);
  return may_be_left_out && value == field.usual.front() ? std::nullopt : std::optional(value);
}

}  // namespace

Problem problem_of_row(const CsvRow& line, const Workload& workload) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    const std::optional<std::int64_t> value = field_of_row(line, field);
    if (value) problem.values.give(field.name, *value);
  }
  return problem;
}

LibraryCall run_of_program(const CsvRow& line, const Workload& workload, std::string_view pattern) {
  for (const Spec& field : workload.fields) {
    if (field.kind == ValueKind::file && !line.field(field.name).empty()) {
      line.refuse(field.name, "nothing: no script reads files");
    }
  }
  LibraryCall call;
  call.form = LibraryForm::program;
  call.time_column = "wall_us";
  call.problem = problem_of_row(line, workload);
  call.pattern = pattern;
  call.knobs = Values(workload.knobs);
  call.knobs.give("host_barriers", 0);
  return call;
}

std::optional<LibraryCall> library_program(const CsvRow& line, const Workload& workload) {
  if (form_of_program(line, workload) != "library") return std::nullopt;
  return run_of_program(line, workload, "library");
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

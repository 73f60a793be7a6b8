// Reads rows of measured times of a vendor's libraries, which the scripts of backend_hip/baselines measure
// through PyTorch.
//
// Each workload knows its own rows (Workload::library_call), so a new script or baseline changes only the
// folder of its workload.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/core/csv.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

enum class LibraryForm : std::uint8_t {
  gemm_cold,   // kernels of a GEMM after the caches were flushed
  gemm_warm,   // the same directly after an equal GEMM
  gemm_loop,   // time per call of many consecutive calls
  all_gather,  // kernel of an all-gather
  stepwise,    // the whole program, with a host synchronisation between product and collective
  program,     // the whole program in streams
  kernel       // a kernel between two events of its stream, after the caches were flushed
};
inline constexpr std::array<std::string_view, 7> kLibraryFormNames{
    "gemm cold", "gemm warm", "gemm loop", "all-gather", "stepwise", "program", "kernel"};

// Values in the tables of the scripts: library_microbench.py writes a row per call (column "what"), the other
// scripts a row per program ("form").
inline constexpr std::array<std::string_view, 5> kProgramForms{"gemm", "gathered", "library", "stepwise",
                                                               "streams"};
inline constexpr std::array<std::string_view, 2> kProgramLaunches{"eager", "graph"};
inline constexpr std::array<std::string_view, 2> kCalls{"gemm", "all_gather"};
inline constexpr std::array<std::string_view, 3> kCallOperands{"cold", "warm", "loop"};

struct LibraryCall {
  LibraryForm form = LibraryForm::gemm_cold;
  Problem problem;
  Values knobs;
  std::string_view pattern;
  std::string_view time_column;  // in us
  bool between_events = false;   // time between events of the stream; else sum of kernel times
};

// Whether a row is of library_microbench.py, or of the program of a workload. Tables name the workload in the
// column "workload", except tables of the first workload.
inline bool is_of_call(const CsvRow& line) { return line.has("what"); }
bool is_of_program(const CsvRow& line, const Workload& workload, bool named_in_table);

// The form of a row of library_microbench.py that has a counterpart: a GEMM with operands in that state. Its
// times do not depend on the launch, except in a loop. Throws UserError for unknown names.
std::optional<LibraryForm> form_of_call(const CsvRow& line, std::string_view call);

// The form of a row of the workload's program, called eagerly and timed by the host; nothing for other rows.
std::optional<std::string_view> form_of_program(const CsvRow& line, const Workload& workload);

// The call of such a row with the form "library": a run of the pattern of that name, without host barriers.
// Fields of the workload are columns; columns of optional fields may be missing.
std::optional<LibraryCall> library_program(const CsvRow& line, const Workload& workload);
// The same for a row of any form, as a run of `pattern`.
LibraryCall run_of_program(const CsvRow& line, const Workload& workload, std::string_view pattern);

// The problem of a row with the fields of the workload as columns; columns of optional fields may be missing.
Problem problem_of_row(const CsvRow& line, const Workload& workload);

// Gives the fields m, n, k and dtype of a row to the values of a problem.
void give_product(const CsvRow& line, Values& values);

}  // namespace tritax

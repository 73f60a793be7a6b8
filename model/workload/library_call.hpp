// Rows of what a vendor's libraries take, as the scripts of backend_hip/baselines measure it through PyTorch.
//
// Each workload knows its own rows (Workload::library_call), so that a new script or a new baseline needs
// nothing but the folder of its workload.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/core/csv.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

enum class LibraryForm : std::uint8_t {
  gemm_cold,   // kernels of a GEMM after the caches were flushed
  gemm_warm,   // the same right after an equal one
  gemm_loop,   // time per call of many in a row
  all_gather,  // kernel of an all-gather
  stepwise,    // the whole program, with a host synchronisation between product and collective
  program,     // the whole program, all of it in streams
  kernel       // a kernel between two events of its stream, after the caches were flushed
};
inline constexpr std::array<std::string_view, 7> kLibraryFormNames{
    "gemm cold", "gemm warm", "gemm loop", "all-gather", "stepwise", "program", "kernel"};

// What the scripts write: library_microbench.py a row a call (column "what"), the others a row a program
// ("form").
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
  bool between_events = false;   // on the stream, else the sum of the kernels' own times
};

// Whether a row is one of library_microbench.py, or of the program of a workload: tables name it in the
// column "workload"; those of the first workload of all do not.
inline bool is_of_call(const CsvRow& line) { return line.has("what"); }
bool is_of_program(const CsvRow& line, const Workload& workload, bool named_in_table);

// Of a row of library_microbench.py that has a counterpart: the form of a GEMM with operands in that state.
// Its times are the same for all launches, but for those of a loop. Throws UserError for unknown names.
std::optional<LibraryForm> form_of_call(const CsvRow& line, std::string_view call);

// The form of a row of the workload's program called eagerly, on the host's clock; nothing for all other
// rows.
std::optional<std::string_view> form_of_program(const CsvRow& line, const Workload& workload);

// Such a row of the form "library": a run of the pattern of that name, without host barriers. Fields of the
// workload are columns; one that may be left out need not be there.
std::optional<LibraryCall> library_program(const CsvRow& line, const Workload& workload);
// … of some form, as a run of `pattern`.
LibraryCall run_of_program(const CsvRow& line, const Workload& workload, std::string_view pattern);

// The problem of a row that has the fields of the workload as columns; those that may be left out need not be
// there.
Problem problem_of_row(const CsvRow& line, const Workload& workload);

// The fields m, n, k and dtype of a row, given to a problem that has them.
void give_product(const CsvRow& line, Values& values);

}  // namespace tritax

// `tritax validate --library`: the library baseline against the times of a vendor's libraries.
//
// Scripts measure through PyTorch (backend_hip/baselines); each workload knows which of their rows it
// predicts (Workload::library_call). gemm_all_scatter.py measures whole programs; of its forms, `gemm` (as a
// graph: the product alone, between two events of its stream) and `stepwise` (with a host synchronisation
// behind the product, as the library pattern has it, on the host's clock) have a counterpart here.
// library_microbench.py measures single GEMMs and all-gathers, on the kernel clock, and GEMMs back to back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/workload/library_call.hpp"
#include "sim/study/validate.hpp"

namespace tritax {

struct LibraryRow {
  LibraryForm form = LibraryForm::gemm_cold;
  Scenario scenario;  // without a machine
  double measured_ns = 0;
  bool between_events = false;  // on the stream; else the sum of the kernels' own times
  std::string where;            // "file:line"
};

struct LibraryFile {
  std::string origin;
  std::vector<std::string> remarks;  // the "# " lines
  std::vector<LibraryRow> rows;      // rows with a counterpart, at least one
};

// Reads the files of the scripts; rows without a counterpart are left out. Throws UserError with file:line,
// column, value and the allowed values.
LibraryFile parse_library(std::string_view csv, const std::string& origin);
LibraryFile read_library(const std::string& path);

struct LibraryResidual {
  LibraryRow row;
  double predicted_ns = 0;

  // predicted / measured - 1.
  double error() const { return predicted_ns / row.measured_ns - 1; }
};

// Simulates every row on `machine`, in parallel; rows come out in their order, without cancelled rows. Throws
// UserError, with the row's place, for rows that the machine refuses.
std::vector<LibraryResidual> validate_library(const std::vector<LibraryFile>& files, const Machine& machine,
                                              const ValidateOptions& options = {});

// Errors of the rows of one form; all zero without rows.
ErrorSummary summarise_library(const std::vector<LibraryResidual>& rows, LibraryForm form);

}  // namespace tritax

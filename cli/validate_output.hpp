// Output of `tritax validate`, for people and as CSV, JSON and a page.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/parity_plot.hpp"
#include "cli/table.hpp"
#include "model/machine/changes.hpp"
#include "sim/study/validate.hpp"

namespace tritax::cli {

// The machines of rows by name, as the user changed them.
using ValidatedMachines = std::map<std::string, Machine>;
ValidatedMachines machines_of(const std::vector<ValidatedRow>& rows,
                              const std::vector<ParameterChange>& changes);

// All tables for people; only the rows with the largest errors unless `all_rows`.
void print_validated(const std::vector<ValidatedRow>& rows, bool all_rows, MeasuredClock clock,
                     const Outputs& outputs);

// One line per row, with fields and knobs of all workloads.
Table validated_csv(const std::vector<ValidatedRow>& rows, const ValidatedMachines& machines);

// `tritax.validate/1`, without the key of an interruption.
nlohmann::ordered_json validated_json(const std::vector<ValidatedRow>& rows, MeasuredClock clock,
                                      const ValidatedMachines& machines);

ParityPlot parity_plot(const std::vector<ValidatedRow>& rows, MeasuredClock clock);

// `result`: from validated_json().
Page validated_page(const std::vector<ValidatedRow>& rows, MeasuredClock clock, nlohmann::ordered_json result,
                    const ValidatedMachines& machines);

}  // namespace tritax::cli

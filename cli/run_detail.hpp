// One run in full, as JSON: the account of its time, its sensitivities, and its timeline.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/run_input.hpp"
#include "sim/study/explain.hpp"

namespace tritax::cli {

// "id", "machine", "time_us", "sentences", "critical_path", "taxes", "overlap", "caches", "with_effect",
// "without_effect", "not_variable".
nlohmann::ordered_json explanation_json(const RunInput& run_input, const Explanation& explanation);

// The same for a run of `run_input` that this function simulates, with "title", "links", "tile_operations",
// and "timeline" (model/timeline/columns.hpp). Throws the UserErrors of `simulate`. The result of a run that
// options.stop ends is incomplete.
nlohmann::ordered_json run_detail_json(const RunInput& run_input, const SimulationOptions& options,
                                       Inputs inputs);

}  // namespace tritax::cli

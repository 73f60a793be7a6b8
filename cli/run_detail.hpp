// One run in full, as JSON: where its time goes, what it depends on, and what happened when.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/subject.hpp"
#include "sim/study/explain.hpp"

namespace tritax::cli {

// "id", "machine", "time_us", "sentences", "critical_path", "taxes", "overlap", "caches", "with_effect",
// "without_effect", "not_variable".
nlohmann::ordered_json explanation_json(const Subject& subject, const Explanation& explanation);

// The same of a run of `subject`, made here, with "title", "links", "tile_operations", and "timeline"
// (model/timeline/columns.hpp). Throws UserError as `simulate` does; what options.stop ends is worth nothing.
nlohmann::ordered_json run_detail_json(const Subject& subject, const SimulationOptions& options,
                                       Inputs inputs);

}  // namespace tritax::cli

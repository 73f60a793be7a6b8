// How far a prediction can be trusted, in the forms that commands print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/table.hpp"
#include "sim/study/advise.hpp"
#include "sim/study/judged.hpp"
#include "sim/study/standing.hpp"

namespace tritax::cli {

// Sentences for people: ties and the band that makes them, doubts, cautions.
std::vector<std::string> sentences_of(const Judged& judgement, const std::vector<Candidate>& candidates);

// {"residual", "source", "cautions"}; a residual that is not known is null.
nlohmann::ordered_json json_of(const Standing& standing);

// The same and "band", likewise.
nlohmann::ordered_json json_of(const Judged& judgement);

// {"seeds", "times_us", "relative"}; null if not known.
nlohmann::ordered_json json_of(const Spread& spread);

// "seeds 1 to 5 give 226.0 to 265.1 us"
std::string text_of(const Spread& spread);

// Residual and ranges of what was compared, one line a machine and workload: what [[compared]] of a machine
// file says.
Table compared_table(const std::vector<MachineComparisons>& sets);
nlohmann::ordered_json json_of(const std::vector<MachineComparisons>& sets);

}  // namespace tritax::cli

// Confidence in a prediction, in the forms that commands print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/table.hpp"
#include "sim/study/advise.hpp"
#include "sim/study/assessment.hpp"
#include "sim/study/trust.hpp"

namespace tritax::cli {

// Sentences for people: ties and their band, doubts, cautions.
std::vector<std::string> sentences_of(const Assessment& assessment, const std::vector<Candidate>& candidates);

// {"band", "ratio_band", "source", "cautions"}: bands of the time of the best, and of its ratio to the rival;
// null where unknown.
nlohmann::ordered_json json_of(const Trust& trust, double ratio_band, double best_band);
nlohmann::ordered_json json_of(const Assessment& assessment);

// {"seeds", "times_us", "relative"}; null if not known.
nlohmann::ordered_json json_of(const Spread& spread);

// "seeds 1 to 5 give 226.0 to 265.1 us"
std::string text_of(const Spread& spread);

// Columns of scenarios/compared.csv without `blind`.
Table compared_table(const std::vector<ComparedSet>& sets);
nlohmann::ordered_json json_of(const std::vector<ComparedSet>& sets);

}  // namespace tritax::cli

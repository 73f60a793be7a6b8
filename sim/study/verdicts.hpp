// A score of verdicts: for two ways of doing the same work, timed by the same people, does the program name
// the faster one?
//
// A question names two published numbers, or one published speedup, or holds two scenarios and their
// published times (docs/scenarios.md, [[verdict]]). The first way has to be built or chosen, the second way
// exists already: "it pays" says that the first way is faster.
//
//   ratio     time of the second way / time of the first; above 1 the first is faster
//   tie       the published or the predicted times differ by at most kTieDifference of the shorter one
//   right     no tie, and both name the same way; else wrong
//   cost      extra time of the way that is predicted to be faster, by the published times
//
// Example: published 120 and 100 us, predicted 80 and 100: ratio 0.83 published, 1.25 predicted. The verdict
// is wrong, costs 20 %, and says that it pays where the first way loses by more than 10 %.
//
// Nothing is ever fitted to a score, and every miss is printed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/fields.hpp"
#include "sim/study/reproduce.hpp"

namespace tritax {

inline constexpr double kTieDifference = 0.03;    // of the shorter time, published or predicted
inline constexpr double kClearDifference = 0.10;  // larger published differences should not be missed

struct VerdictQuestion {
  std::string id;
  std::string family;               // what is compared: questions of one family are summed together
  std::vector<std::string> rows;    // ids of entries: one that compares, or the first and the second way
  std::vector<PublishedEntry> own;  // entries that the question itself holds; empty if `rows` names others
  std::vector<std::string> names;   // names of the two ways for the reader
  std::string source;               // empty: source of the rows
  std::string notes;
  std::string where;  // "file:line" of the question
};

// The contents of files of published numbers.
struct PublishedNumbers {
  std::vector<PublishedEntry> entries;
  std::vector<VerdictQuestion> verdicts;
};

// Throws UserError with file, line, key, value and the allowed values.
std::vector<VerdictQuestion> parse_verdicts(std::string_view toml, const std::string& origin);

// The contents of the files; without files, the numbers that come with Tritax. Throws UserError for questions
// that name a missing number, or two numbers that cannot be compared.
PublishedNumbers published_numbers(const std::vector<std::string>& paths);
PublishedNumbers parse_published_numbers(std::string_view toml, const std::string& origin);

// Keeps the entries of a group and no verdicts; for the group "verdicts", all verdicts and the entries that
// they name. `option` is the option in front of the user's group.
inline constexpr std::string_view kVerdictGroup = "verdicts";
void keep_group(PublishedNumbers& numbers, const std::string& group, const std::string& option);

// The numbers that a call asks for: one group, or all of the files. Without files and without a group, the
// shipped numbers come without verdicts, because many verdicts need simulations that no other number needs.
PublishedNumbers wanted_numbers(const std::vector<std::string>& paths,
                                const std::optional<std::string>& group, const std::string& option);

enum class VerdictOutcome : std::uint8_t { right, tie, wrong, failed };
inline constexpr std::array<std::string_view, 4> kVerdictOutcomeNames{"right", "tie", "wrong", "failed"};

struct JudgedQuestion {
  std::string id;
  std::string family;
  std::string first;  // names of the two ways
  std::string second;
  std::string unit;  // of the four numbers below: times, or rates that are high if times are short
  std::optional<double> published_first;  // empty if only the ratio was published
  std::optional<double> published_second;
  std::optional<double> predicted_first;
  std::optional<double> predicted_second;
  double published_ratio = 1;
  std::optional<double> predicted_ratio;  // empty if a simulation failed
  VerdictOutcome outcome = VerdictOutcome::failed;
  double cost = 0;
  bool says_it_pays = false;    // the first way is predicted to be faster, by more than a tie
  bool pays_but_loses = false;  // says_it_pays, and the first way takes longer by more than kClearDifference
  bool calibration = false;     // one of the numbers helped to set a parameter or to choose knobs
  std::string source;
  std::string notes;
  std::string failure;
};

// Lead of the faster of two ways: 0.25 for a ratio of 1.25 or of 0.8.
double lead_of(double ratio);

// Compares the two ratios. Sets outcome, cost, says_it_pays and pays_but_loses; without a prediction the
// outcome is `failed`.
void judge(JudgedQuestion& verdict);

// One verdict per question, in the order of the questions. A question whose rows are missing (an interrupted
// run) is left out.
std::vector<JudgedQuestion> verdicts_of(const std::vector<VerdictQuestion>& questions,
                                        const std::vector<ReproducedRow>& rows);

struct Reproduced {
  std::vector<ReproducedRow> rows;               // of the entries
  std::vector<ReproducedRow> rows_of_questions;  // of the entries that questions hold themselves
  std::vector<JudgedQuestion> verdicts;
};
Reproduced reproduce(const PublishedNumbers& numbers, const ReproduceOptions& options = {});

// Score of one family, or of all questions.
struct Score {
  std::string family;
  std::size_t questions = 0;
  std::size_t right = 0;
  std::size_t tie = 0;
  std::size_t wrong = 0;
  std::size_t failed = 0;
  std::size_t clear = 0;        // questions whose published times differ by more than kClearDifference
  std::size_t clear_right = 0;  // of the clear questions
  // Of the clear questions; a predicted tie counts here, although it misses the published difference.
  std::size_t clear_right_or_tie = 0;
  std::size_t says_it_pays = 0;
  std::size_t pays_but_loses = 0;
  double mean_cost = 0;  // over all questions with a prediction
  double worst_cost = 0;
};
Score score_of(const std::string& family, const std::vector<JudgedQuestion>& verdicts);
std::vector<Score> scores_by_family(const std::vector<JudgedQuestion>& verdicts);

// The score in sentences, a line each.
std::string sentences_of(const Score& score);

// How text, CSV, JSON and Python show a verdict and a score.
const Fields<JudgedQuestion>& verdict_fields();
const Fields<Score>& score_fields();

}  // namespace tritax

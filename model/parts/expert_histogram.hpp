// Tokens per expert, or per group, from a file: a router's recorded choices in place of a random draw.
//
//   CSV     whole numbers between commas; lines that begin with # are comments
//   JSON    [3, 0, 2], or [[3, 0, 2], [1, 1, 3]]; the bracket at the beginning tells JSON from CSV
//
// One line, or one number per line, counts the tokens of all GPUs together. Several lines, each with as many
// numbers, are one GPU each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tritax {

struct ExpertHistogram {
  std::string origin;                             // path of the file
  std::vector<std::vector<std::int64_t>> counts;  // one row for all GPUs, or one row per GPU; by expert
  std::vector<std::string> places;                // where each row stands: "file:line", or "file: [row]"

  std::int64_t experts() const { return static_cast<std::int64_t>(counts.front().size()); }
  // Tokens of all GPUs together, by expert.
  std::vector<std::int64_t> totals() const;
};

// Throws UserError "path:line: …" for a text that is no such table, or that counts no token.
ExpertHistogram parse_expert_histogram(const std::string& text, const std::string& origin);

// Histogram of a file that is a value of a problem (model/workload/file_values.hpp); null for 0, which means
// no file. Keeps the last few histograms. Any thread may call it.
std::shared_ptr<const ExpertHistogram> expert_histogram_of(std::int64_t file);

// Splits `whole` in the ratio of the weights, into whole numbers that add up to `whole`. The remainder after
// rounding down goes to the parts with the largest fractions; among equal fractions the first part wins. The
// weights themselves where they add up to `whole`. At least one weight is not 0.
std::vector<std::int64_t> apportioned(const std::vector<std::int64_t>& weights, std::int64_t whole);

}  // namespace tritax

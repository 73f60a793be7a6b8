// How many tokens each expert, or each group, gets, from a file: what a router did, instead of a draw.
//
//   CSV     whole numbers between commas; lines that begin with # are comments
//   JSON    [3, 0, 2], or [[3, 0, 2], [1, 1, 3]]; told from CSV by the bracket that it begins with
//
// One line, or one number a line, counts the tokens of all GPUs together; several lines of as many numbers
// are a GPU each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tritax {

struct ExpertHistogram {
  std::string origin;                             // path of the file
  std::vector<std::vector<std::int64_t>> counts;  // of all GPUs in one row, or a row a GPU; by expert
  std::vector<std::string> places;                // of the rows: "file:line", or "file: [row]"

  std::int64_t experts() const { return static_cast<std::int64_t>(counts.front().size()); }
  // Of all GPUs together, by expert.
  std::vector<std::int64_t> totals() const;
};

// Throws UserError "path:line: …" for what is no such table, or has no token at all.
ExpertHistogram parse_expert_histogram(const std::string& text, const std::string& origin);

// Of a file that is a value of a problem (model/workload/file_values.hpp); null of 0, which is none. The last
// few that were asked for are kept. Any thread may call it.
std::shared_ptr<const ExpertHistogram> expert_histogram_of(std::int64_t file);

// Parts of `whole` in the ratio of the weights, whole numbers that add up to it: what is left over after
// rounding down goes to the largest remainders, the first of equal ones first. The weights themselves where
// they add up to `whole`. Not all weights are 0.
std::vector<std::int64_t> apportioned(const std::vector<std::int64_t>& weights, std::int64_t whole);

}  // namespace tritax

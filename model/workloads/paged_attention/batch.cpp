#include "model/workloads/paged_attention/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostSequences = 4096;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;  // of the batch
constexpr std::int64_t kMostKeys = std::int64_t{1} << 29;    // with room for the rest of a page each

struct BatchGroup {
  std::int64_t count = 0, queries = 0, keys = 0;
};

BatchGroup group_of_batch(const Problem& problem, std::string_view name) {
  const auto part = [&](const char* of) { return problem[fmt::format("{}_{}", name, of)]; };
  return {part("count"), part("query"), part("context")};
}

// Of a length, with u in [0, 1).
std::int64_t shortened(std::int64_t length, std::int64_t percent, double u) {
  return length -
         static_cast<std::int64_t>(u * static_cast<double>(percent) / 100 * static_cast<double>(length));
}

}  // namespace

std::vector<PagedSequence> sequences_of(const Problem& problem) {
  std::vector<PagedSequence> sequences;
  std::mt19937_64 random(static_cast<std::uint64_t>(problem["draw"]));
  const std::int64_t percent = problem["ragged"];
  for (const std::string_view name : kBatchGroups) {
    const BatchGroup group = group_of_batch(problem, name);
    for (std::int64_t i = 0; i < group.count; ++i) {
      const double u = static_cast<double>(random() >> 11) / 9007199254740992.0;  // 2^53
      PagedSequence sequence{group.queries, group.keys};
      if (sequence.history() > 0) {
        sequence.keys = sequence.queries + shortened(sequence.history(), percent, u);
      } else {
        sequence.keys = sequence.queries = std::max<std::int64_t>(1, shortened(group.queries, percent, u));
      }
      sequences.push_back(sequence);
    }
  }
  return sequences;
}

void check_batch(const Problem& problem, const FieldPlace& place) {
  BatchGroup all;
  for (const std::string_view name : kBatchGroups) {
    const BatchGroup group = group_of_batch(problem, name);
    const bool given = group.count > 0 || group.queries > 0 || group.keys > 0;
    if (!given && name != kBatchGroups.front()) continue;
    if (group.count < 1 || group.queries < 1 || group.keys < group.queries) {
      throw UserError(
          fmt::format("{}: {} = {}x{}x{}; give sequences, new tokens of each, and keys of each, "
                      "which are those tokens and what was before them: for example 16x1x4096",
                      place(name), name, group.count, group.queries, group.keys));
    }
    all.count += group.count;
    all.queries += group.count * group.queries;
    all.keys += group.count * group.keys;
  }
  if (all.count <= kMostSequences && all.queries <= kMostTokens && all.keys <= kMostKeys) return;
  throw UserError(fmt::format(
      "{}: {} sequences with {} new tokens and {} keys; at most {}, {} and {} are "
      "allowed in all",
      place(kBatchGroups.front()), all.count, all.queries, all.keys, kMostSequences, kMostTokens, kMostKeys));
}

std::string batch_text(const Problem& problem) {
  std::string text;
  for (const std::string_view name : kBatchGroups) {
    const BatchGroup group = group_of_batch(problem, name);
    if (group.count == 0) continue;
    text += fmt::format("{}{} of {}/{}", text.empty() ? "" : " + ", group.count, group.queries, group.keys);
  }
  return text;
}

}  // namespace tritax

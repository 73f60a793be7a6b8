#include "model/workloads/paged_attention/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/core/memo.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostSequences = 4096;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;  // of the batch
constexpr std::int64_t kMostKeys = std::int64_t{1} << 29;    // with room for the rest of a page per sequence

struct BatchGroup {
  std::int64_t count = 0, queries = 0, keys = 0;
};

BatchGroup group_of_batch(const Problem& problem, std::string_view name) {
  const auto part = [&](const char* of) { return problem[fmt::format("{}_{}", name, of)]; };
  return {part("count"), part("query"), part("context")};
}

void require_batch_size(const BatchGroup& all, const std::string& where) {
  if (all.count <= kMostSequences && all.queries <= kMostTokens && all.keys <= kMostKeys) return;
  throw UserError(
      fmt::format("{}: {} sequences with {} new tokens and {} keys; at most {}, {} and {} are "
                  "allowed in all",
                  where, all.count, all.queries, all.keys, kMostSequences, kMostTokens, kMostKeys));
}

std::vector<PagedSequence> read_lengths(const std::string& path) {
  constexpr std::string_view kWriter = "a list of sequences";
  std::vector<PagedSequence> sequences;
  BatchGroup all;
  read_csv(read_csv_file(path, kWriter), path, "query,context", kWriter, [&](const CsvRow& row) {
    const std::int64_t count = row.has("count") ? row.integer("count", 1, kMostSequences) : 1;
    const std::int64_t queries = row.integer("query", 1, kMostTokens);
    const std::int64_t keys = row.integer("context", queries, kMostKeys);
    all.count += count;
    all.queries += count * queries;
    all.keys += count * keys;
    require_batch_size(all, row.where());
    sequences.insert(sequences.end(), static_cast<std::size_t>(count), PagedSequence{queries, keys});
  });
  return sequences;
}

// Each file is read once, because problems of searches ask for the same list many times.
std::shared_ptr<const std::vector<PagedSequence>> lengths_of_file(std::int64_t number) {
  constexpr std::size_t kMostLists = 16;
  static Memo<std::int64_t, std::vector<PagedSequence>> lists(kMostLists);
  return lists.get(number, [number] { return read_lengths(file_of(number)); });
}

// Sets the fields that a file determines. A saved scenario repeats the values of the file.
void complete_from_lengths(Problem& problem, const FieldPlace& place) {
  const std::vector<PagedSequence>& sequences = *lengths_of_file(problem["lengths"]);
  BatchGroup most{static_cast<std::int64_t>(sequences.size()), 0, 0};
  for (const PagedSequence& sequence : sequences) {
    most.queries = std::max(most.queries, sequence.queries);
    most.keys = std::max(most.keys, sequence.keys);
  }
  const auto is = [&](const std::string& column, std::string_view field, std::int64_t value) {
    if (problem.values.given(column) && problem[column] != value) {
      throw UserError(
          fmt::format("{}: {} is {} beside a list of sequences, with which it is {}; leave it out",
                      place(field), column, problem[column], value));
    }
    problem.values.assume(column, value);
  };
  is("sequences_count", "sequences", most.count);
  is("sequences_query", "sequences", most.queries);
  is("sequences_context", "sequences", most.keys);
  for (const std::string_view group : kBatchGroups) {
    if (group == kBatchGroups.front()) continue;
    for (const char* part : {"count", "query", "context"}) is(fmt::format("{}_{}", group, part), group, 0);
  }
  is("ragged", "ragged", 0);
}

// Shortens a length by a random share, with u in [0, 1).
std::int64_t shortened(std::int64_t length, std::int64_t percent, double u) {
  return length -
         static_cast<std::int64_t>(u * static_cast<double>(percent) / 100 * static_cast<double>(length));
}

}  // namespace

std::vector<PagedSequence> sequences_of(const Problem& problem) {
  if (problem["lengths"] > 0) return *lengths_of_file(problem["lengths"]);
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

void complete_batch(Problem& problem, const FieldPlace& place) {
  if (problem["lengths"] > 0) return complete_from_lengths(problem, place);
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
  require_batch_size(all, place(kBatchGroups.front()));
}

std::string batch_text(const Problem& problem) {
  if (problem["lengths"] > 0) {
    return fmt::format("{} of up to {}/{} ({})", problem["sequences_count"], problem["sequences_query"],
                       problem["sequences_context"], file_of(problem["lengths"]));
  }
  std::string text;
  for (const std::string_view name : kBatchGroups) {
    const BatchGroup group = group_of_batch(problem, name);
    if (group.count == 0) continue;
    text += fmt::format("{}{} of {}/{}", text.empty() ? "" : " + ", group.count, group.queries, group.keys);
  }
  return text;
}

}  // namespace tritax

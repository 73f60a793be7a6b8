// Laws of load balancing: every atom and every row has exactly one owner, and shares are even.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/parts/load_balance.hpp"
#include "model/parts/tile_set.hpp"

namespace tritax {
namespace {

SparseMatrix any_tile_set() {
  if (*rc::gen::inRange(0, 2) == 0) {
    const auto lengths =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::weightedOneOf<std::int64_t>(
            {{3, rc::gen::inRange<std::int64_t>(0, 4)}, {1, rc::gen::inRange<std::int64_t>(0, 200)}})));
    return tile_set_of_lengths("any", lengths);
  }
  TileSetQuestion question;
  question.kind = static_cast<TileSetKind>(*rc::gen::inRange(0, 4));
  question.rows = *rc::gen::inRange(1, 300);
  question.cols = *rc::gen::inRange(1, 300);
  question.mean_length = *rc::gen::inRange(1, 40);
  question.width = *rc::gen::inRange(1, 50);
  question.exponent = 1 + *rc::gen::inRange(10, 300) / 100.0;
  question.seed = *rc::gen::arbitrary<std::uint32_t>();
  return generate_tile_set(question);
}

// A whole row has one owner; parts of a row follow each other without a gap.
void expect_once(const SparseMatrix& matrix, const std::vector<WorkRange>& ranges) {
  std::vector<int> atoms(static_cast<std::size_t>(matrix.nonzeros()), 0);
  std::vector<int> whole(static_cast<std::size_t>(matrix.rows), 0), parts = whole;
  for (const WorkRange& range : ranges) {
    for (std::int32_t i = 0; i < range.rows; ++i) {
      const std::int32_t row = range.row + i;
      const bool shared = (i == 0 && shares_first_row(matrix, range)) ||
                          (i == range.rows - 1 && shares_last_row(matrix, range));
      ++(shared ? parts : whole)[static_cast<std::size_t>(row)];
      const std::int32_t begin = std::max(matrix.begin(row), range.k_begin);
      const std::int32_t end = std::min(matrix.end(row), range.k_end);
      for (std::int32_t atom = begin; atom < end; ++atom) ++atoms[static_cast<std::size_t>(atom)];
      if (shared) RC_ASSERT(begin < end);
    }
    if (range.rows == 0) RC_ASSERT(range.k_begin == range.k_end);
  }
  RC_ASSERT(std::all_of(atoms.begin(), atoms.end(), [](int times) { return times == 1; }));
  for (std::size_t row = 0; row < whole.size(); ++row) {
    RC_ASSERT(whole[row] == (parts[row] > 0 ? 0 : 1));
    RC_ASSERT(parts[row] != 1);
  }
}

RC_GTEST_PROP(LoadBalance, GivesEveryAtomAndEveryRowToSomebodyExactlyOnce, ()) {
  const SparseMatrix matrix = any_tile_set();
  expect_once(matrix, mapped_rows(matrix, *rc::gen::inRange(1, 70)));
  expect_once(matrix, merge_path(matrix, *rc::gen::inRange(1, 400)));
  expect_once(matrix, work_oriented(matrix, *rc::gen::inRange(1, 400)));
}

RC_GTEST_PROP(LoadBalance, GivesNobodyMoreThanItsShareAndOneByWorkOrMergePath, ()) {
  const SparseMatrix matrix = any_tile_set();
  const double steps = static_cast<double>(matrix.rows) + matrix.nonzeros();
  const std::int32_t items = *rc::gen::inRange(1, 400);
  for (const WorkRange& range : merge_path(matrix, items)) RC_ASSERT(range.items() <= items + 1);
  const std::int32_t workgroups = *rc::gen::inRange(1, 400);
  const double share = steps / workgroups;
  for (const WorkRange& range : work_oriented(matrix, workgroups)) {
    RC_ASSERT(static_cast<double>(range.items()) <= std::ceil(share) + 1);
  }
}

RC_GTEST_PROP(LoadBalance, PutsEveryRowIntoOneBucketByItsLength, ()) {
  const SparseMatrix matrix = any_tile_set();
  const std::int32_t small = *rc::gen::inRange(0, 20);
  const std::int32_t large = small + *rc::gen::inRange(0, 40);
  const Buckets buckets = buckets_of(matrix, {small, large});
  std::vector<std::int32_t> sorted = buckets.order;
  std::sort(sorted.begin(), sorted.end());
  RC_ASSERT(sorted.size() == static_cast<std::size_t>(matrix.rows));
  for (std::int32_t row = 0; row < matrix.rows; ++row)
    RC_ASSERT(sorted[static_cast<std::size_t>(row)] == row);
  for (std::size_t bucket = 0; bucket < 3; ++bucket) {
    for (std::int32_t i = buckets.begin[bucket]; i < buckets.begin[bucket + 1]; ++i) {
      const std::int32_t length = matrix.length(buckets.order[static_cast<std::size_t>(i)]);
      RC_ASSERT(bucket == 0 || length > (bucket == 1 ? small : large));
      RC_ASSERT(bucket == 2 || length <= (bucket == 0 ? small : large));
    }
  }
}

// Row ends and atoms merged one by one.
TEST(MergePath, LiesWhereAWalkComesTo) {
  const std::vector<std::int64_t> lengths{2, 0, 5, 1, 0};
  const SparseMatrix matrix = tile_set_of_lengths("walk", lengths);
  std::int32_t row = 0, atom = 0;
  for (std::int64_t step = 0; step <= 13; ++step) {
    EXPECT_EQ(merge_path_row(matrix, step), row) << step;
    EXPECT_EQ(step - row, atom) << step;
    if (row < matrix.rows && atom == matrix.end(row)) {
      ++row;
    } else {
      ++atom;
    }
  }
  EXPECT_LE(merge_path_probes(matrix, 6).size(), 3u);
}

RC_GTEST_PROP(TileSet, IsAMatrixWithSortedColumnsOfItsOwnSeed, ()) {
  const SparseMatrix matrix = any_tile_set();
  RC_ASSERT(fault_of(matrix).empty());
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    for (std::int32_t k = matrix.begin(row) + 1; k < matrix.end(row); ++k) {
      RC_ASSERT(matrix.columns[static_cast<std::size_t>(k) - 1] <
                matrix.columns[static_cast<std::size_t>(k)]);
    }
  }
}

// Within four standard errors of the mean of 20,000 rows; a power law of exponent 3 has a variance of which
// most lies in few rows, so within a tenth.
TEST(TileSet, HasTheMeanLengthThatWasAskedFor) {
  for (const auto kind :
       {TileSetKind::uniform, TileSetKind::power_law, TileSetKind::banded, TileSetKind::block}) {
    const TileSetQuestion question{kind, 20000, 20000, 24, 3, 64, 7};
    EXPECT_NEAR(facts_of(generate_tile_set(question)).mean_length, 24, kind == TileSetKind::block ? 24 : 2.4)
        << kTileSetKindNames[static_cast<std::size_t>(kind)];
  }
}

TEST(TileSet, HasLongRowsByAPowerLawAndNoneInABand) {
  const TileSetFacts power =
      facts_of(generate_tile_set({TileSetKind::power_law, 20000, 20000, 8, 2.1, 1, 1}));
  EXPECT_GT(power.longest, 100 * power.mean_length);
  const TileSetFacts band = facts_of(generate_tile_set({TileSetKind::banded, 20000, 20000, 8, 2.1, 32, 1}));
  EXPECT_EQ(band.longest, 8);
  EXPECT_EQ(band.deviation, 0);
}

}  // namespace
}  // namespace tritax

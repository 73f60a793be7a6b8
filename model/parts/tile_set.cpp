#include "model/parts/tile_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// Uniform random numbers in [0, 1), equal on every platform (distributions of the standard library are not).
class TileSetRandom {
 public:
  explicit TileSetRandom(std::uint64_t seed) : bits_(seed) {}
  double unit() { return static_cast<double>(bits_() >> 11) * 0x1.0p-53; }
  std::int32_t below(std::int32_t count) {
    return std::min(count - 1, static_cast<std::int32_t>(unit() * count));
  }
  // Sum of two uniforms around a mean, cheaper than a true binomial. The variance is a sixth of the mean's
  // square, or the variance of a Poisson where that is less.
  std::int32_t around(double mean) {
    const double reach = std::min(mean, std::sqrt(6 * mean));
    return static_cast<std::int32_t>(mean + (unit() + unit() - 1) * reach + unit());
  }

 private:
  std::mt19937_64 bits_;
};

// Adds `count` columns of [begin, end), in order and none twice.
void add_columns(TileSetRandom& random, std::int32_t begin, std::int32_t end, std::int32_t count,
                 std::vector<std::int32_t>& columns) {
  const std::int32_t places = end - begin;
  count = std::min(count, places);
  const auto first = columns.size();
  if (count > places / 4) {  // each place in turn, with the probability that is left
    std::int32_t left = count;
    for (std::int32_t place = 0; place < places && left > 0; ++place) {
      if (random.unit() * (places - place) >= left) continue;
      columns.push_back(begin + place);
      --left;
    }
    return;
  }
  const auto by_place = [&] { return columns.begin() + static_cast<std::ptrdiff_t>(first); };
  while (columns.size() < first + static_cast<std::size_t>(count)) {
    while (columns.size() < first + static_cast<std::size_t>(count)) {
      columns.push_back(begin + random.below(places));
    }
    std::sort(by_place(), columns.end());
    columns.erase(std::unique(by_place(), columns.end()), columns.end());
  }
}

// A Pareto length of at least `least`, cut off at `most`.
std::int32_t pareto_length(TileSetRandom& random, double least, double exponent, std::int32_t most) {
  const double length = least * std::pow(1 - random.unit(), -1 / (exponent - 1));
  // Rounded up or down at random, so that the mean is kept.
  const double whole = std::floor(std::min(length, static_cast<double>(most)));
  return std::min(most, static_cast<std::int32_t>(whole + (random.unit() < length - whole ? 1 : 0)));
}

// The least length for which lengths cut off at `most` have this mean: E min(X, most) of a Pareto grows with
// the least length, so bisection finds it.
double pareto_least(double mean, double exponent, double most) {
  const double a = exponent - 1;
  const auto mean_of = [&](double least) {
    if (std::abs(a - 1) < 1e-9) return least * (1 + std::log(most / least));
    return least * (a - std::pow(least / most, a - 1)) / (a - 1);
  };
  double low = 1e-6, high = most;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (mean_of(middle) < mean ? low : high) = middle;
  }
  return low;
}

void add_block_row(TileSetRandom& random, const TileSetQuestion& question, std::int32_t blocks_of_row,
                   std::int32_t height, SparseMatrix& matrix) {
  const std::int32_t across = (question.cols + question.width - 1) / question.width;
  std::vector<std::int32_t> blocks;
  add_columns(random, 0, across, blocks_of_row, blocks);
  for (std::int32_t i = 0; i < height; ++i) {
    for (const std::int32_t block : blocks) {
      const std::int32_t end = std::min(question.cols, (block + 1) * question.width);
      for (std::int32_t column = block * question.width; column < end; ++column)
        matrix.columns.push_back(column);
    }
    matrix.offsets.push_back(static_cast<std::int32_t>(matrix.columns.size()));
  }
}

}  // namespace

SparseMatrix generate_tile_set(const TileSetQuestion& question) {
  TRITAX_ASSERT(question.rows >= 1 && question.cols >= 1 && question.width >= 1 && question.exponent > 1,
                "a tile set has rows, columns, a width and an exponent above 1");
  TileSetRandom random(question.seed);
  SparseMatrix matrix{std::string(kTileSetKindNames[static_cast<std::size_t>(question.kind)]),
                      question.rows,
                      question.cols,
                      {0},
                      {}};
  matrix.offsets.reserve(static_cast<std::size_t>(question.rows) + 1);
  matrix.columns.reserve(static_cast<std::size_t>(question.mean_length * question.rows * 1.1) + 16);
  const bool pareto = question.kind == TileSetKind::power_law;
  const double least = pareto ? pareto_least(question.mean_length, question.exponent, question.cols) : 0;
  const auto row_end = [&] { matrix.offsets.push_back(static_cast<std::int32_t>(matrix.columns.size())); };
  for (std::int32_t row = 0; row < question.rows;) {
    switch (question.kind) {
      case TileSetKind::uniform:
        add_columns(random, 0, question.cols, random.around(question.mean_length), matrix.columns);
        break;
      case TileSetKind::power_law:
        add_columns(random, 0, question.cols, pareto_length(random, least, question.exponent, question.cols),
                    matrix.columns);
        break;
      case TileSetKind::banded: {
        const auto middle = static_cast<std::int32_t>(std::int64_t{row} * question.cols / question.rows);
        const std::int32_t begin =
            std::clamp(middle - question.width / 2, 0, std::max(0, question.cols - question.width));
        add_columns(random, begin, std::min(question.cols, begin + question.width),
                    static_cast<std::int32_t>(std::lround(question.mean_length)), matrix.columns);
        break;
      }
      case TileSetKind::block: {
        const std::int32_t height = std::min(question.width, question.rows - row);
        add_block_row(random, question, random.around(question.mean_length / question.width), height, matrix);
        row += height;
        continue;
      }
    }
    row_end();
    ++row;
  }
  return matrix;
}

SparseMatrix tile_set_of_lengths(std::string name, std::span<const std::int64_t> lengths) {
  SparseMatrix matrix{std::move(name), static_cast<std::int32_t>(lengths.size()), 1, {0}, {}};
  std::int64_t atoms = 0;
  for (const std::int64_t length : lengths) {
    TRITAX_ASSERT(length >= 0 && (atoms += length) <= kMostNonzeros, "tiles have no more atoms than fit");
    matrix.offsets.push_back(static_cast<std::int32_t>(atoms));
  }
  matrix.cols = std::max(1, static_cast<std::int32_t>(atoms));
  for (std::int32_t atom = 0; atom < static_cast<std::int32_t>(atoms); ++atom) matrix.columns.push_back(atom);
  return matrix;
}

TileSetFacts facts_of(const SparseMatrix& matrix) {
  TileSetFacts facts{matrix.rows, matrix.cols, matrix.nonzeros()};
  facts.mean_length = static_cast<double>(facts.nonzeros) / matrix.rows;
  double squares = 0;
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    const std::int32_t length = matrix.length(row);
    facts.longest = std::max(facts.longest, length);
    facts.empty_rows += length == 0;
    squares += (length - facts.mean_length) * (length - facts.mean_length);
  }
  facts.deviation = std::sqrt(squares / matrix.rows);
  return facts;
}

SparseMatrix with_rows_in_order(const SparseMatrix& matrix, std::span<const std::int32_t> order) {
  SparseMatrix sorted{matrix.name, static_cast<std::int32_t>(order.size()), matrix.cols, {0}, {}};
  sorted.columns.reserve(matrix.columns.size());
  for (const std::int32_t row : order) {
    sorted.columns.insert(sorted.columns.end(), matrix.columns.begin() + matrix.begin(row),
                          matrix.columns.begin() + matrix.end(row));
    sorted.offsets.push_back(static_cast<std::int32_t>(sorted.columns.size()));
  }
  return sorted;
}

}  // namespace tritax

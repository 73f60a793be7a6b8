#include "model/core/error.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "model/core/printable.hpp"

namespace tritax {

UserError::UserError(const std::string& message) : std::runtime_error(presentable(message)) {}

void assertion_failed(const char* condition, const char* message, const char* file, int line) {
  std::fprintf(stderr, "tritax: internal error at %s:%d: %s (%s). Please report this.\n", file, line, message,
               condition);
  std::abort();
}

namespace {

// Lower case of ASCII letters, independent of the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

int edit_distance(const std::string& a, const std::string& b) {
  // Three rows of the table of distances between prefixes of `a` and `b`: the current row and the two rows
  // before.
  std::vector<int> row(b.size() + 1);
  std::vector<int> before(b.size() + 1);
  std::vector<int> earlier(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    earlier.swap(before);
    before.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto equal = [&](std::size_t x, std::size_t y) { return lower(a[x - 1]) == lower(b[y - 1]); };
      row[j] = std::min({before[j - 1] + (equal(i, j) ? 0 : 1), before[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && equal(i, j - 1) && equal(i - 1, j)) row[j] = std::min(row[j], earlier[j - 2] + 1);
    }
  }
  return row[b.size()];
}

int most_slips(const std::string& word) {
  constexpr int kLettersASlip = 4;
  return (static_cast<int>(word.size()) + kLettersASlip - 1) / kLettersASlip;
}

bool begins(const std::string& word, const std::string& name) {
  constexpr std::size_t kFewestLetters = 3;
  return word.size() >= kFewestLetters && name.starts_with(word);
}

}  // namespace tritax

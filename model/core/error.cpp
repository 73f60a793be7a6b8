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

// Of ASCII letters, whatever the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace tritax

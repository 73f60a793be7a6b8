// Defines the two kinds of errors of Tritax.
//
// `UserError` is everything that a user can cause: a file, a flag, a shape, a machine, a damaged result. The
// message names the place (file:line, key or flag), the offending value and what is allowed. Programs print
// the message and exit with code 2. Text that the message repeats from a file or a command line is safe for a
// terminal: control characters are escaped, long values are cut (core/printable.hpp).
//
// `TRITAX_ASSERT` is everything that only a defect of Tritax can cause. The condition is checked in every
// build type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace tritax {

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message);
};

// Prints the failed condition and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* message, const char* file, int line);

// Returns the entry of `known` whose spelling is nearest to `word`, or "" when no entry is close. Close means
// at most one slip per four letters (a wrong, missing or additional letter, or two swapped letters), or that
// `word` is the beginning of the entry. Used for "did you mean …?" in messages about unknown keys and names.
template <typename Names>
std::string nearest_name(const std::string& word, const Names& known);

// Number of slips between two words (optimal string alignment: Levenshtein distance plus swapped neighbours).
// Upper and lower case are equal.
int edit_distance(const std::string& a, const std::string& b);

// Largest number of slips with which another spelling still counts as close to `word`.
int most_slips(const std::string& word);

// Whether `word`, of at least three letters, begins `name`.
bool begins(const std::string& word, const std::string& name);

template <typename Names>
std::string nearest_name(const std::string& word, const Names& known) {
  constexpr std::size_t kLongestName = 100;  // longer words are no typing errors; their distance takes long
  std::string best;
  if (word.size() > kLongestName) return best;
  int best_distance = most_slips(word) + 1;
  for (const auto& name : known) {
    const std::string candidate(name);
    int distance = edit_distance(word, candidate);
    if (begins(word, candidate)) distance = std::min(distance, most_slips(word));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tritax

// __builtin_FILE instead of __FILE__: the preprocessor does not expand __builtin_FILE, so a compiler cache
// also serves clones of the repository in other folders.
#define TRITAX_ASSERT(condition, message)                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      ::tritax::assertion_failed(#condition, message, __builtin_FILE(), __LINE__); \
    }                                                                              \
  } while (false)

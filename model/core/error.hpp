// Errors of Tritax, in two kinds.
//
// `UserError` is everything that a user can cause: a file, a flag, a shape, a machine, a damaged result. It
// carries one message that names the place (file:line, key or flag), the offending value and what is allowed.
// Programs print it and exit with code 2. What it repeats of a file or a command line is made fit for a
// terminal: control characters are escaped, long values are cut (core/printable.hpp).
//
// `TRITAX_ASSERT` is everything that only a defect of Tritax can cause. It is checked in every build type.
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

// Returns the entry of `known` that is spelt most like `word`, or "" when none is close: one slip in four
// letters (a wrong, missing, additional letter, or two in each other's place), or all of the beginning. Used
// for "did you mean …?" in messages about unknown keys and names.
template <typename Names>
std::string nearest_name(const std::string& word, const Names& known);

// How many slips lie between two words (optimal string alignment: Levenshtein's, and neighbours that changed
// places), upper and lower case being equal.
int edit_distance(const std::string& a, const std::string& b);

// How many make another word of one.
int most_slips(const std::string& word);

// Whether `word`, of at least three letters, begins `name`.
bool begins(const std::string& word, const std::string& name);

template <typename Names>
std::string nearest_name(const std::string& word, const Names& known) {
  constexpr std::size_t kLongestName = 100;  // nothing longer is a typing error; distances of it take long
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

// __builtin_FILE and not __FILE__: the preprocessor leaves it alone, so a compiler cache serves clones of the
// repository in other folders.
#define TRITAX_ASSERT(condition, message)                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      ::tritax::assertion_failed(#condition, message, __builtin_FILE(), __LINE__); \
    }                                                                              \
  } while (false)

// Which of many players has the smallest key: a winner tree (Knuth, The Art of Computer Programming, vol. 3,
// §5.4.1) over the keys alone. A match has eight keys, so it is one cache line, and its minimum needs no
// branch; a heap would wait for mispredicted branches, because keys go up and down at random. The winners of
// up to 16 matches meet in the final. Keys change more often than the winner is asked for; winner() searches
// from the top. The smaller player wins a tie.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tritax {

class Tournament {
 public:
  static constexpr double kOut = std::numeric_limits<double>::infinity();  // key of an idle player

  // Adds the player with the next number, from 0; it does not play yet.
  void add_player() {
    std::size_t below = ++players_;
    for (std::vector<Match>& level : levels_) {
      below = (below + kMatch - 1) / kMatch;
      level.resize(below);
    }
    if (below > kFinal) add_level();
  }

  void set(std::int32_t player, double key) {
    auto at = static_cast<std::size_t>(player);
    for (std::vector<Match>& level : levels_) {
      Match& match = level[at / kMatch];
      double& entry = match.keys[at % kMatch];
      if (entry == key) return;  // nothing above sees a difference
      entry = key;
      key = match.smallest();
      at /= kMatch;
    }
    if (final_[at] == key) return;
    final_[at] = key;
    std::array<double, kFinal / 4> least{};
    for (std::size_t i = 0; i < kFinal / 4; ++i) {
      least[i] = std::min(std::min(final_[i], final_[i + 4]), std::min(final_[i + 8], final_[i + 12]));
    }
    smallest_ = std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  }

  double key(std::int32_t player) const {
    const auto at = static_cast<std::size_t>(player);
    return levels_.front()[at / kMatch].keys[at % kMatch];
  }
  double smallest() const { return smallest_; }

  struct Winner {
    std::int32_t player = 0;
    bool tied = false;  // another player has a key up to `up_to`
  };
  // Tied if another player has a key up to `up_to`, which is at least the smallest key.
  Winner winner(double up_to) const {
    bool tied = false;
    const auto first = [&](const double* keys, std::size_t count) {
      unsigned found = up_to_key(keys, count, up_to);
      if ((found & (found - 1)) != 0) {
        tied = true;
        found = up_to_key(keys, count, smallest_);
      }
      return static_cast<std::size_t>(std::countr_zero(found));
    };
    std::size_t at = first(final_.data(), kFinal);
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      at = at * kMatch + first((*level)[at].keys, kMatch);
    }
    return {static_cast<std::int32_t>(at), tied};
  }
  Winner winner() const { return winner(smallest_); }

 private:
  static constexpr std::size_t kMatch = 8;
  static constexpr std::size_t kFinal = 16;  // one level less for the 500 to 1,000 classes of 8 GPUs

  static constexpr std::array<double, kFinal> all_out() {
    std::array<double, kFinal> keys{};
    keys.fill(kOut);
    return keys;
  }

  struct alignas(64) Match {
    double keys[kMatch] = {kOut, kOut, kOut, kOut, kOut, kOut, kOut, kOut};

    double smallest() const {
      const double a = std::min(std::min(keys[0], keys[1]), std::min(keys[2], keys[3]));
      const double b = std::min(std::min(keys[4], keys[5]), std::min(keys[6], keys[7]));
      return std::min(a, b);
    }
  };

  // One bit per entry that is not larger than `key`; `count` is even.
  static unsigned up_to_key(const double* keys, std::size_t count, double key) {
    unsigned found = 0;
#if defined(__SSE2__)
    const __m128d limit = _mm_set1_pd(key);
    for (std::size_t i = 0; i < count; i += 2) {
      found |= static_cast<unsigned>(_mm_movemask_pd(_mm_cmple_pd(_mm_loadu_pd(keys + i), limit))) << i;
    }
#else
    for (std::size_t i = 0; i < count; ++i) found |= static_cast<unsigned>(keys[i] <= key) << i;
#endif
    return found;
  }

  // The final is full: adds one level below it.
  void add_level() {
    std::vector<Match> level((levels_.back().size() + kMatch - 1) / kMatch);
    for (std::size_t i = 0; i < levels_.back().size(); ++i) {
      level[i / kMatch].keys[i % kMatch] = levels_.back()[i].smallest();
    }
    final_.fill(kOut);
    for (std::size_t i = 0; i < level.size(); ++i) final_[i] = level[i].smallest();
    levels_.push_back(std::move(level));
  }

  std::size_t players_ = 0;
  double smallest_ = kOut;
  std::vector<std::vector<Match>> levels_{1};
  std::array<double, kFinal> final_ = all_out();
};

}  // namespace tritax

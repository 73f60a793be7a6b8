// Which of many players has the smallest key: a winner tree (Knuth, The Art of Computer Programming, vol. 3,
// §5.4.1) over the keys alone, eight to a match, so that a match is one cache line and a minimum without a
// branch: keys that go up and down at random make a heap wait for its mispredicted branches. Who has won is
// asked more rarely than keys change, and found from the top. Ties go to the smaller player.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tritax {

class Tournament {
 public:
  static constexpr double kOut = std::numeric_limits<double>::infinity();  // key of those who do not play

  // Adds the player with the next number, from 0; it does not play yet.
  void add_player() {
    if (players_ == levels_.front().size() * kMatch) grow();
    ++players_;
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
    smallest_ = key;
  }

  double key(std::int32_t player) const {
    const auto at = static_cast<std::size_t>(player);
    return levels_.front()[at / kMatch].keys[at % kMatch];
  }
  double smallest() const { return smallest_; }

  struct Winner {
    std::int32_t player = 0;
    bool tied = false;  // another player has the same key
  };
  Winner winner() const {
    std::size_t at = 0;
    bool tied = false;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      const unsigned equal = (*level)[at].equal(smallest_);
      tied |= (equal & (equal - 1)) != 0;
      at = at * kMatch + static_cast<std::size_t>(std::countr_zero(equal));
    }
    return {static_cast<std::int32_t>(at), tied};
  }

 private:
  static constexpr std::size_t kMatch = 8;

  struct alignas(64) Match {
    double keys[kMatch] = {kOut, kOut, kOut, kOut, kOut, kOut, kOut, kOut};

    double smallest() const {
      const double a = std::min(std::min(keys[0], keys[1]), std::min(keys[2], keys[3]));
      const double b = std::min(std::min(keys[4], keys[5]), std::min(keys[6], keys[7]));
      return std::min(a, b);
    }
    // One bit for each entry that is `key`.
    unsigned equal(double key) const {
      const auto bits = std::bit_cast<std::uint64_t>(key);
      unsigned equal = 0;
      for (std::size_t i = 0; i < kMatch; ++i) {
        equal |= static_cast<unsigned>(std::bit_cast<std::uint64_t>(keys[i]) == bits) << i;
      }
      return equal;
    }
  };

  // Eight times as many players: one level more on top, of which all the present ones are the first match.
  void grow() {
    for (std::vector<Match>& level : levels_) level.resize(level.size() * kMatch);
    levels_.emplace_back(1);
    levels_.back().front().keys[0] = smallest_;
  }

  std::size_t players_ = 0;
  double smallest_ = kOut;
  std::vector<std::vector<Match>> levels_ = {std::vector<Match>(kMatch), std::vector<Match>(1)};
};

}  // namespace tritax

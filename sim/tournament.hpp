// Which of many players has the smallest key: a winner tree (Knuth, The Art of Computer Programming, vol. 3,
// §5.4.1), four to a match. Changing one key costs at most log4(players) matches without a branch: keys that
// go up and down at random make a heap wait for its mispredicted branches, and in a match of four only the
// last comparison waits for the match below. Ties go to the smaller player.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tritax {

class Tournament {
 public:
  static constexpr double kOut = std::numeric_limits<double>::infinity();  // key of those who do not play

  // Adds the player with the next number, from 0; it does not play yet.
  void add_player() {
    if (players_ == leaves_) grow();
    nodes_[leaves_ + players_] = {std::bit_cast<std::uint64_t>(kOut), players_};
    ++players_;
  }

  // `key` is not negative, so that its bits are ordered as its values are.
  void set(std::int32_t player, double key) {
    std::size_t at = leaves_ + static_cast<std::size_t>(player);
    Entry best{std::bit_cast<std::uint64_t>(key), static_cast<std::uint64_t>(player)};
    nodes_[at] = best;
    while (at > 1) {
      // The others of the match, from any of them on.
      const std::size_t match = at & ~std::size_t{3};
      const Entry pair = better_of(nodes_[match | ((at + 1) & 3)], nodes_[match | ((at + 2) & 3)]);
      best = better_of(better_of(pair, nodes_[match | ((at + 3) & 3)]), best);
      at /= 4;
      // Nothing above has seen the difference.
      if (((nodes_[at].key ^ best.key) | (nodes_[at].player ^ best.player)) == 0) return;
      nodes_[at] = best;
    }
  }

  double key(std::int32_t player) const {
    return std::bit_cast<double>(nodes_[leaves_ + static_cast<std::size_t>(player)].key);
  }
  double smallest() const { return std::bit_cast<double>(nodes_[1].key); }
  std::int32_t winner() const { return static_cast<std::int32_t>(nodes_[1].player); }

 private:
  struct Entry {
    std::uint64_t key = std::bit_cast<std::uint64_t>(kOut);
    std::uint64_t player = ~std::uint64_t{0};
  };

  static Entry better_of(const Entry& a, const Entry& b) {
    const bool first = (a.key < b.key) | ((a.key == b.key) & (a.player < b.player));
    const std::uint64_t mask = std::uint64_t{0} - first;  // a conditional would become a branch
    return {b.key ^ ((a.key ^ b.key) & mask), b.player ^ ((a.player ^ b.player) & mask)};
  }

  void grow() {
    std::vector<Entry> nodes(8 * leaves_);
    for (std::size_t i = 0; i < leaves_; ++i) nodes[4 * leaves_ + i] = nodes_[leaves_ + i];
    leaves_ *= 4;
    nodes_ = std::move(nodes);
    // Level by level upwards: a level is as long as the number of its first node.
    for (std::size_t level = leaves_ / 4; level > 0; level /= 4) {
      for (std::size_t at = level; at < 2 * level; ++at) {
        const Entry first = better_of(nodes_[4 * at], nodes_[4 * at + 1]);
        nodes_[at] = better_of(first, better_of(nodes_[4 * at + 2], nodes_[4 * at + 3]));
      }
    }
  }

  std::size_t players_ = 0;
  std::size_t leaves_ = 64;  // a power of four; nodes_[leaves_ + player] is the leaf of a player
  std::vector<Entry> nodes_ = std::vector<Entry>(2 * leaves_);
};

}  // namespace tritax

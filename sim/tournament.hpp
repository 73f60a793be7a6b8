// Which of many players has the smallest key: a winner tree (Knuth, The Art of Computer Programming, vol. 3,
// §5.4.1). Changing one key costs at most log2(players) comparisons, none of which is a branch: keys that go
// up and down at random make a heap wait for its mispredicted branches. Ties go to the smaller player.
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
      best = better_of(nodes_[at ^ 1], best);
      at /= 2;
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
    std::vector<Entry> nodes(4 * leaves_);
    for (std::size_t i = 0; i < leaves_; ++i) nodes[2 * leaves_ + i] = nodes_[leaves_ + i];
    leaves_ *= 2;
    nodes_ = std::move(nodes);
    for (std::size_t at = leaves_ - 1; at > 0; --at)
      nodes_[at] = better_of(nodes_[2 * at], nodes_[2 * at + 1]);
  }

  std::size_t players_ = 0;
  std::size_t leaves_ = 64;  // a power of two; nodes_[leaves_ + player] is the leaf of a player
  std::vector<Entry> nodes_ = std::vector<Entry>(2 * leaves_);
};

}  // namespace tritax

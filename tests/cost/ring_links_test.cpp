// How many links rings of a collective library can use: by exhaustive search on few GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "model/cost/collective_cost.hpp"

namespace tritax {
namespace {

using Arcs = unsigned long long;  // a bit for each ordered pair

// All rings through `ranks` GPUs, as sets of links.
std::vector<Arcs> rings(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::vector<Arcs> all;
  do {
    Arcs arcs = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      arcs |= Arcs{1} << (order[i] * ranks + order[(i + 1) % order.size()]);
    }
    all.push_back(arcs);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return all;
}

// The most of `all`, from the one at `from` on, that share no link with `used` or each other.
int most_disjoint(const std::vector<Arcs>& all, std::size_t from, Arcs used, int ranks) {
  int most = 0;
  for (std::size_t i = from; i < all.size() && most < ranks - 1; ++i) {
    if ((all[i] & used) == 0) most = std::max(most, 1 + most_disjoint(all, i + 1, used | all[i], ranks));
  }
  return most;
}

TEST(RingLinks, AreAsManyAsThereAreRingsThatShareNoLink) {
  for (const int ranks : {2, 3, 4, 5, 6}) {
    EXPECT_EQ(ring_links(ranks), most_disjoint(rings(ranks), 0, 0, ranks)) << ranks;
  }
}

TEST(RingLinks, AreAllLinksOfEight) { EXPECT_EQ(ring_links(8), 7); }

}  // namespace
}  // namespace tritax

// The winner tree against a linear search.
#include "sim/tournament.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace tritax {
namespace {

TEST(Tournament, HasNoWinnerUntilSomebodyPlays) {
  Tournament tournament;
  EXPECT_EQ(tournament.smallest(), Tournament::kOut);
  tournament.add_player();
  EXPECT_EQ(tournament.smallest(), Tournament::kOut);
  tournament.set(0, 0.0);
  EXPECT_EQ(tournament.smallest(), 0.0);
  EXPECT_EQ(tournament.winner().player, 0);
}

TEST(Tournament, GivesTiesToTheSmallerPlayer) {
  Tournament tournament;
  for (int player = 0; player < 5; ++player) tournament.add_player();
  tournament.set(3, 7.0);
  tournament.set(1, 7.0);
  tournament.set(4, 7.0);
  EXPECT_EQ(tournament.winner().player, 1);
  tournament.set(1, Tournament::kOut);
  EXPECT_EQ(tournament.winner().player, 3);
}

TEST(Tournament, TakesMinusZeroForZero) {
  Tournament tournament;
  for (int player = 0; player < 20; ++player) tournament.add_player();
  tournament.set(19, -0.0);
  EXPECT_EQ(tournament.winner().player, 19);
  tournament.set(3, 0.0);
  EXPECT_EQ(tournament.winner().player, 3);
  EXPECT_TRUE(tournament.winner().tied);
}

RC_GTEST_PROP(TournamentLaw, TheWinnerHasTheSmallestKey, ()) {
  Tournament tournament;
  std::vector<double> keys;
  const int steps = *rc::gen::inRange(1, 600);
  for (int step = 0; step < steps; ++step) {
    if (keys.empty() || *rc::gen::inRange(0, 3) == 0) {
      tournament.add_player();
      keys.push_back(Tournament::kOut);
    }
    const int player = *rc::gen::inRange(0, static_cast<int>(keys.size()));
    const double key = *rc::gen::inRange(0, 5) == 0 ? Tournament::kOut : *rc::gen::inRange(0, 40) / 4.0;
    keys[static_cast<std::size_t>(player)] = key;
    tournament.set(player, key);
    RC_ASSERT(tournament.key(player) == key);
    const auto least = std::min_element(keys.begin(), keys.end());
    RC_ASSERT(tournament.smallest() == *least);
    if (*least == Tournament::kOut) continue;
    RC_ASSERT(tournament.winner().player == least - keys.begin());
    RC_ASSERT(tournament.winner().tied == (std::count(keys.begin(), keys.end(), *least) > 1));
    const double up_to = *least + *rc::gen::inRange(0, 3) / 4.0;
    const auto tied = std::count_if(keys.begin(), keys.end(), [&](double other) { return other <= up_to; });
    RC_ASSERT(tournament.winner(up_to).player == least - keys.begin());
    RC_ASSERT(tournament.winner(up_to).tied == (tied > 1));
  }
}

}  // namespace
}  // namespace tritax

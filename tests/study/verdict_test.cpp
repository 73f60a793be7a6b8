#include "sim/study/verdict.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/study/trust.hpp"

namespace tritax {
namespace {

TEST(Verdict, FollowsTheExampleOfItsHeader) {
  Contest contest{.own_ns = 80, .there_ns = 100, .band = 0.05};
  EXPECT_EQ(verdict_on(contest), Verdict::pays);
  contest.band = 0.3;
  EXPECT_EQ(verdict_on(contest), Verdict::tie);
  EXPECT_EQ(verdict_on({.own_ns = 80, .there_ns = 70, .band = 0.05, .searched = false}), Verdict::unknown);
  EXPECT_EQ(verdict_on({.own_ns = 80, .there_ns = 70, .band = 0.05}), Verdict::leave_it);
}

Contest any_contest() {
  Contest contest;
  contest.own_ns = *rc::gen::inRange(1, 1000);
  contest.there_ns = *rc::gen::inRange(1, 1000);
  contest.band = *rc::gen::inRange(0, 60) / 100.0;
  contest.compared = *rc::gen::arbitrary<bool>();
  contest.own_doubted = *rc::gen::arbitrary<bool>();
  contest.library_doubted = *rc::gen::arbitrary<bool>();
  contest.searched = *rc::gen::arbitrary<bool>();
  return contest;
}

RC_GTEST_PROP(VerdictLaw, PaysOnlyBesideCertainTimesFurtherApartThanTheBand, ()) {
  const Contest contest = any_contest();
  const Verdict verdict = verdict_on(contest);
  RC_ASSERT(verdict != Verdict::alone);
  if (verdict == Verdict::pays) {
    RC_ASSERT(contest.compared && contest.band > 0 && !contest.own_doubted && !contest.library_doubted);
    RC_ASSERT(contest.own_ns < contest.there_ns);
    RC_ASSERT(!is_tie(contest.own_ns, contest.there_ns, contest.band));
  }
  if (verdict == Verdict::leave_it) RC_ASSERT(contest.searched && contest.own_ns >= contest.there_ns);
}

// What is known less is claimed less: neither to build nor to leave it becomes certain.
RC_GTEST_PROP(VerdictLaw, LosesCertaintyWithDoubtAndNeverTurns, ()) {
  const Contest sure = any_contest();
  Contest less = sure;
  (*rc::gen::arbitrary<bool>() ? less.library_doubted : less.own_doubted) = true;
  less.searched = less.searched && *rc::gen::arbitrary<bool>();
  const Verdict before = verdict_on(sure), after = verdict_on(less);
  RC_ASSERT(after != Verdict::pays || before == Verdict::pays);
  RC_ASSERT(after != Verdict::leave_it || before == Verdict::leave_it);
  if (before == Verdict::unknown) RC_ASSERT(after == Verdict::unknown);
}

}  // namespace
}  // namespace tritax

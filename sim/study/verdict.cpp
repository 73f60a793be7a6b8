#include "sim/study/verdict.hpp"

#include "sim/study/trust.hpp"

namespace tritax {

Verdict verdict_on(const Contest& contest) {
  if (contest.library_doubted) return Verdict::unknown;
  const bool ahead = contest.own_ns < contest.there_ns;
  const bool tie = is_tie(contest.own_ns, contest.there_ns, contest.band);
  if (ahead && !tie) {
    const bool sure = contest.band > 0 && contest.compared && !contest.own_doubted;
    return sure ? Verdict::pays : Verdict::may_pay;
  }
  if (!contest.searched) return Verdict::unknown;
  return tie ? Verdict::tie : Verdict::leave_it;
}

}  // namespace tritax

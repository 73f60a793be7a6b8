#include "sim/study/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/study/trust.hpp"

namespace tritax {

namespace {

constexpr double kWorthSaying = 0.005;  // of the winner's time; smaller differences are noise to a reader

struct Part {
  double TimeAccount::*time;
  std::string_view name;  // "": the workload names it
};
constexpr std::array<Part, 8> kParts{{{&TimeAccount::compute_ns, ""},
                                      {&TimeAccount::memory_ns, "local memory traffic"},
                                      {&TimeAccount::wire_ns, "waiting for the links"},
                                      {&TimeAccount::launch_ns, "launch tax"},
                                      {&TimeAccount::bulk_synchronous_ns, "bulk-synchronous tax"},
                                      {&TimeAccount::locality_ns, "locality tax"},
                                      {&TimeAccount::contention_ns, "contention"},
                                      {&TimeAccount::harness_ns, "harness"}}};

std::string time_text(double ns) {
  return ns >= 1e6 ? fmt::format("{:.3f} ms", ns / 1e6) : fmt::format("{:.1f} us", ns / 1e3);
}

std::string count_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "50 % of", or "12 times" if a percentage would be hard to read.
std::string share_text(double share) {
  constexpr double most_in_percent = 5;
  return share > most_in_percent ? fmt::format("{:.0f} times", share) : percent(share) + " of";
}

// "288 tiles of 256x64", "2 tiles of 32x32 in 16 parts of K"
std::string tiles_text(const Rounds& rounds) {
  std::string text =
      fmt::format("{} of {}x{}", count_text(rounds.tiles, "tile"), rounds.tile_m, rounds.tile_n);
  if (rounds.parts > 1) text += fmt::format(" in {} parts of K", rounds.parts);
  return text;
}

bool splits_units(const Candidate& candidate) { return candidate.pattern->roles != Roles::in_turn; }

// "send" or "fetch", whichever moves more bytes of a GPU.
std::string_view what_moves(const Rounds& rounds) {
  return rounds.fetched_bytes > rounds.sent_bytes ? "fetch" : "send";
}

// Compute units reserved for sending or fetching, including units with nothing to send.
std::int32_t sending_units(const Candidate& candidate) {
  return std::max(static_cast<std::int32_t>(candidate.knobs.get_or("comm_cus", 0)), candidate.rounds.senders);
}

// Cost for the winner of compute units that only send, in rounds of its tiles.
std::string own_split_text(const Candidate& winner) {
  const std::int64_t all_units = winner.rounds.workers + sending_units(winner);
  const std::int64_t with_all = (winner.rounds.products() + all_units - 1) / all_units;
  const std::int64_t extra = winner.rounds.rounds - with_all;
  if (extra <= 0)
    return fmt::format("; the {} units that only {} cost no round", sending_units(winner),
                       what_moves(winner.rounds));
  return fmt::format(", {} more than on all {}", extra, all_units);
}

// The nearest rival whose compute units would take more rounds for the winner's tiles; "" if there is none.
std::string rival_rounds_text(const Rounds& own, std::span<const Candidate> rivals) {
  for (const Candidate& rival : rivals) {
    const Rounds& theirs = rival.rounds;
    if (theirs.workers == 0) continue;
    const std::int64_t there = (own.products() + theirs.workers - 1) / theirs.workers;
    if (there <= own.rounds) continue;
    std::string text = fmt::format("; the tiles would take {} on {} units", there, theirs.workers);
    if (splits_units(rival)) {
      text += fmt::format(" beside {} that only {}", sending_units(rival), what_moves(theirs));
    }
    text += fmt::format(" in {}", rival.pattern->name);
    const bool same_tiles =
        theirs.tile_m == own.tile_m && theirs.tile_n == own.tile_n && theirs.parts == own.parts;
    if (same_tiles) return text;
    return text + fmt::format(", which does best with {} in {}", tiles_text(theirs),
                              count_text(theirs.rounds, "round"));
  }
  return {};
}

// Gain of a winner that splits K, against the nearest rival that does not.
std::string split_sentence(const Candidate& winner, std::span<const Candidate> rivals) {
  const Rounds& own = winner.rounds;
  Rounds whole = own;
  whole.parts = 1;
  whole.rounds = (own.tiles + own.workers - 1) / own.workers;
  std::string text = fmt::format(
      "{} splits K: unsplit, the {} per GPU would take {} on {} compute units ({} of slots filled); in {} "
      "parts of K they are {} matmuls, each {} times shorter, and take {} ({} filled)",
      winner.pattern->name, tiles_text(whole), count_text(whole.rounds, "round"), own.workers,
      percent(whole.fill()), own.parts, own.products(), own.parts, count_text(own.rounds, "round"),
      percent(own.fill()));
  for (const Candidate& rival : rivals) {
    const Rounds& theirs = rival.rounds;
    if (theirs.tiles == 0 || theirs.parts > 1) continue;
    text += fmt::format("; {} computes {} unsplit in {} on {}", rival.pattern->name, tiles_text(theirs),
                        count_text(theirs.rounds, "round"), theirs.workers);
    break;
  }
  return text + ".";
}

// How the winner's tiles fill the compute units, and how they would fill the compute units of its rivals.
std::string wave_sentence(const Candidate& winner, std::span<const Candidate> rivals) {
  const Rounds& own = winner.rounds;
  if (own.parts > 1) return split_sentence(winner, rivals);
  std::string text = fmt::format("The {} per GPU in {} {} {} on {} compute units ({} of slots filled)",
                                 tiles_text(own), winner.pattern->name, own.tiles == 1 ? "takes" : "take",
                                 count_text(own.rounds, "round"), own.workers, percent(own.fill()));
  if (splits_units(winner) && winner.rounds.senders > 0) text += own_split_text(winner);
  return text + rival_rounds_text(own, rivals) + ".";
}

// Parts of the critical path in which `other` takes longer than `one`, the largest first.
using Differences = std::vector<std::pair<double, std::string_view>>;
Differences differences(const Candidate& one, const Candidate& other, const Workload& workload) {
  Differences more;
  for (const Part& part : kParts) {
    more.push_back({other.taxes.account.*part.time - one.taxes.account.*part.time,
                    part.name.empty() ? workload.computing.time : part.name});
  }
  std::stable_sort(more.begin(), more.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return more;
}

// The first two parts of a range that are worth saying: "3.1 us of contention and 2.0 us of launch tax".
template <typename Iterator>
std::string listed(Iterator begin, Iterator end, double worth_saying_ns) {
  std::string text;
  int count = 0;
  for (auto part = begin; part != end && count < 2; ++part, ++count) {
    if (std::abs(part->first) < worth_saying_ns) break;
    text +=
        fmt::format("{}{} of {}", count > 0 ? " and " : "", time_text(std::abs(part->first)), part->second);
  }
  return text;
}

std::string difference_sentence(const Candidate& winner, const Candidate& other, const Workload& workload) {
  const Differences saved = differences(winner, other, workload);
  const double worth_saying = kWorthSaying * winner.time_ns;
  const auto gains_end =
      std::find_if(saved.begin(), saved.end(), [](const auto& part) { return part.first <= 0; });
  const auto losses_end =
      std::find_if(saved.rbegin(), saved.rend(), [](const auto& part) { return part.first >= 0; });
  const std::string gains = listed(saved.begin(), gains_end, worth_saying);
  const std::string losses = listed(saved.rbegin(), losses_end, worth_saying);
  const double ahead = other.time_ns - winner.time_ns;
  std::string text = fmt::format("It is {} ({}) faster than {}", time_text(ahead),
                                 fmt::format("{:.1f} %", 100 * ahead / other.time_ns), other.pattern->name);
  if (!gains.empty()) text += fmt::format(": on the critical path it saves {}", gains);
  if (!losses.empty())
    text += fmt::format("{} {}", gains.empty() ? ": on the critical path it adds" : ", but adds", losses);
  return text + ".";
}

// The costs that no schedule with these tiles could avoid, and the share of the sending that is not hidden.
std::string limit_sentence(const Candidate& winner, const Problem& problem) {
  const TimeBound& bound = winner.bound;
  const bool computes = winner.rounds.tiles > 0;
  std::string text = fmt::format("Of its {},", time_text(winner.time_ns));
  const std::string_view computing = problem.workload->computing.all;
  if (computes) text += fmt::format(" {} needs at least {}", computing, time_text(bound.computing_ns()));
  if (problem.gpus() == 1 && !computes) {
    text += fmt::format(" memory traffic needs at least {}", time_text(bound.memory_ns));
  }
  if (problem.gpus() == 1) return text + ".";
  const double exposed = winner.taxes.account.wire_ns;
  const bool fetches = what_moves(winner.rounds) == "fetch";
  text +=
      fmt::format("{} the {:.1f} MB that each GPU {} need at least {} of link time", computes ? " and" : "",
                  std::max(winner.rounds.fetched_bytes, winner.rounds.sent_bytes) / 1e6,
                  fetches ? "fetches" : "sends", time_text(bound.wire_ns));
  if (computes) text += fmt::format(" ({} {})", share_text(bound.wire_ns / bound.computing_ns()), computing);
  text += fmt::format("; {} of {} is exposed", time_text(exposed), fetches ? "fetching" : "sending");
  if (exposed < bound.wire_ns && computes) {
    text += fmt::format(", {} is hidden", percent(1 - exposed / bound.wire_ns));
  }
  return text + ".";
}

// The largest of the three taxes that the winner still pays, along its critical path as in the table.
std::string tax_sentence(const Candidate& winner) {
  const TimeAccount& account = winner.taxes.account;
  const std::array<std::pair<double, std::string_view>, 3> paid{
      {{account.launch_ns, "launch"},
       {account.bulk_synchronous_ns, "bulk-synchronous"},
       {account.locality_ns, "locality"}}};
  const auto largest = std::max_element(paid.begin(), paid.end(),
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
  if (largest->first < kWorthSaying * winner.time_ns) {
    return fmt::format("Each of the three taxes takes at most {} of its critical path.",
                       time_text(largest->first));
  }
  std::string text =
      fmt::format("The largest tax on its critical path is the {} tax, {} ({})", largest->second,
                  time_text(largest->first), percent(largest->first / winner.time_ns));
  if (account.harness_ns > 0) {
    text += fmt::format("; the host barriers around the measured region take {} and are not a tax",
                        time_text(account.harness_ns));
  }
  return text + ".";
}

// "fused takes 80.0 us, library 100.0 us (1.25 times)"
std::string ahead_text(const Candidate& own, const Candidate& there) {
  return fmt::format("{} takes {}, {} {} ({:.2f} times)", own.pattern->name, time_text(own.time_ns),
                     there.pattern->name, time_text(there.time_ns), there.time_ns / own.time_ns);
}

std::string behind_text(const Candidate& own, const Candidate& there, bool chosen) {
  return fmt::format("{} takes {}, {}{} {}", there.pattern->name, time_text(there.time_ns), own.pattern->name,
                     chosen ? "" : ", the best of the other patterns,", time_text(own.time_ns));
}

std::string interval_text(double band) {
  return band > 0 ? fmt::format("the prediction band of the ratio is {:.0f} %", 100 * band)
                  : std::string("the prediction band is unknown");
}

// Parts in which the own pattern takes longer; "" if none is worth saying.
std::string more_text(const Candidate& own, const Candidate& there, const Workload& workload) {
  const Differences more = differences(there, own, workload);
  const auto end = std::find_if(more.begin(), more.end(), [](const auto& part) { return part.first <= 0; });
  const std::string reason = listed(more.begin(), end, kWorthSaying * own.time_ns);
  return reason.empty() ? reason
                        : fmt::format("; {} adds {} on its critical path", own.pattern->name, reason);
}

// Why the own pattern only may pay.
std::string why_may(const Candidate& own, const Contest& contest) {
  if (!contest.compared) return "Nothing comparable was measured.";
  if (contest.own_doubted) return fmt::format("The time of {} is uncertain.", own.pattern->name);
  return "The prediction band is unknown.";
}

std::string why_unknown(const Candidate& there, const Contest& contest) {
  if (contest.library_doubted) {
    return fmt::format("The time of {} is uncertain: measure it", there.pattern->name);
  }
  return "The knobs of own patterns were not searched";
}

}  // namespace

std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const Problem& problem) {
  if (candidates.empty()) return {};
  const Candidate& winner = candidates.front();
  std::vector<std::string> sentences;
  if (winner.rounds.tiles > 0) sentences.push_back(wave_sentence(winner, candidates.subspan(1)));
  if (candidates.size() > 1)
    sentences.push_back(difference_sentence(winner, candidates[1], *problem.workload));
  for (const OtherTime& other : winner.others) {
    if (other.time_ns < (1 + kWorthSaying) * winner.time_ns) continue;
    sentences.push_back(fmt::format(fmt::runtime(other.sentence), time_text(other.time_ns)));
  }
  sentences.push_back(limit_sentence(winner, problem));
  sentences.push_back(tax_sentence(winner));
  return sentences;
}

Rivals rivals_of(std::span<const Candidate> candidates, const Workload& workload) {
  Rivals rivals;
  for (const Candidate& one : candidates) {
    const Candidate*& first = is_there(*one.pattern, workload) ? rivals.there : rivals.own;
    if (first == nullptr) first = &one;
  }
  return rivals;
}

std::string verdict_sentence(const Rivals& rivals, const Workload& workload, const Contest& contest) {
  if (rivals.own == nullptr || rivals.there == nullptr) return {};
  const Candidate &own = *rivals.own, &there = *rivals.there;
  const std::string times =
      own.time_ns < there.time_ns ? ahead_text(own, there) : behind_text(own, there, rivals.chosen);
  switch (verdict_on(contest)) {
    case Verdict::pays:
      return fmt::format("It pays: {}; {}.", times, interval_text(contest.band));
    case Verdict::may_pay:
      return fmt::format("It may pay: {}. {}", times, why_may(own, contest));
    case Verdict::tie:
      return fmt::format("It is a tie: {}; {}{}.{}", times, interval_text(contest.band),
                         more_text(own, there, workload),
                         there.pattern->vendor ? fmt::format(" Leave it to {}.", there.pattern->name) : "");
    case Verdict::unknown:
      return fmt::format("Unknown: {}. {}.", times, why_unknown(there, contest));
    case Verdict::leave_it:
    case Verdict::alone:
      break;
  }
  const std::string begin = there.pattern->vendor ? fmt::format("Leave it to {}", there.pattern->name)
                                                  : std::string("It does not pay");
  return fmt::format("{}: {}{}.", begin, times, more_text(own, there, workload));
}

}  // namespace tritax

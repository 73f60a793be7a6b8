#include "sim/study/choices.hpp"

#include <algorithm>
#include <chrono>

#include "model/core/error.hpp"
#include "model/core/same_time.hpp"
#include "model/select/sieve_lookup.hpp"

namespace tritax {

namespace {

constexpr std::uint64_t kHeldOut = 10;  // one of so many

std::vector<SieveExample> examples_of(const ChoiceTable& table, std::span<const std::size_t> problems,
                                      double tolerance) {
  std::vector<SieveExample> examples;
  for (const std::size_t problem : problems) {
    const std::vector<double>& times = table.time_ns[problem];
    const double most_ns = same_time_until(times[table.best(problem)]) * (1 + tolerance);
    SieveExample& example = examples.emplace_back();
    example.numbers = table.problems[problem];
    // Without tolerance only the best option is suitable: equal options count once.
    if (tolerance == 0) example.suitable = std::uint32_t{1} << table.best(problem);
    for (std::size_t option = 0; option < times.size() && tolerance > 0; ++option) {
      if (times[option] <= most_ns) example.suitable |= std::uint32_t{1} << option;
    }
  }
  return examples;
}

std::size_t fastest_of(const std::vector<double>& times, std::uint32_t left) {
  std::size_t fastest = times.size();
  for (std::size_t option = 0; option < times.size(); ++option) {
    if ((left >> option & 1) == 0) continue;
    if (fastest == times.size() || later(times[fastest], times[option])) fastest = option;
  }
  return fastest;
}

// Mean over all problems, repeated until the time is measurable.
double lookup_time_ns(const BloomSieve& sieve, const ChoiceTable& table,
                      std::span<const std::size_t> problems) {
  using Clock = std::chrono::steady_clock;
  if (problems.empty()) return 0;
  std::uint32_t seen = 0;
  std::size_t count = 0;
  const Clock::time_point begin = Clock::now();
  std::chrono::duration<double, std::nano> taken{};
  while (count == 0 || taken < std::chrono::milliseconds(2)) {
    for (const std::size_t problem : problems) seen |= sieve.candidates(table.problems[problem]);
    count += problems.size();
    taken = Clock::now() - begin;
  }
  TRITAX_ASSERT(seen != 0, "a sieve that leaves nothing");
  return taken.count() / static_cast<double>(count);
}

}  // namespace

std::size_t ChoiceTable::best(std::size_t problem) const {
  return fastest_of(time_ns[problem], static_cast<std::uint32_t>((std::uint64_t{1} << options.size()) - 1));
}

PickScore score_picks(const ChoiceTable& table, std::span<const std::size_t> problems,
                      std::span<const std::size_t> picks) {
  PickScore score;
  score.problems = problems.size();
  double sum = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::vector<double>& times = table.time_ns[problems[i]];
    const double ratio = times[picks[i]] / times[table.best(problems[i])];
    score.within_5 += ratio <= 1.05;
    score.within_10 += ratio <= 1.10;
    score.within_20 += ratio <= 1.20;
    sum += ratio;
    score.worst_ratio = std::max(score.worst_ratio, ratio);
    score.best_gain = std::max(score.best_gain, 1 - times[picks[i]] / times.front());
  }
  if (problems.empty()) return score;
  const auto count = static_cast<double>(problems.size());
  for (double* share : {&score.within_5, &score.within_10, &score.within_20}) *share /= count;
  score.mean_ratio = sum / count;
  return score;
}

std::pair<std::vector<std::size_t>, std::vector<std::size_t>> divided(std::size_t problems) {
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < problems; ++i) {
    (tritax_sieve::mixed(i + 1) % kHeldOut == 0 ? parts.second : parts.first).push_back(i);
  }
  return parts;
}

TunedSieve tune_sieve(const ChoiceTable& table, const SieveDesign& design, double tolerance) {
  const auto [training, held_out] = divided(table.problems.size());
  TunedSieve tuned{BloomSieve(table.options, table.numbers, design, examples_of(table, training, tolerance)),
                   {}};
  SieveScore& score = tuned.score;
  score.trained = training.size();
  score.held_out = held_out.size();
  std::size_t unsuitable = 0, gone = 0, left_over = 0;
  std::vector<std::size_t> fastest, first;
  for (const std::size_t problem : held_out) {
    const std::vector<double>& times = table.time_ns[problem];
    const std::size_t best = table.best(problem);
    const double most_ns = same_time_until(times[best]) * (1 + tolerance);
    const std::uint32_t left = tuned.sieve.candidates(table.problems[problem]);
    bool suitable_left = false;
    for (std::size_t option = 0; option < times.size(); ++option) {
      const bool stays = (left >> option & 1) != 0;
      left_over += stays;
      suitable_left = suitable_left || (stays && times[option] <= most_ns);
      unsuitable += times[option] > most_ns;
      gone += times[option] > most_ns && !stays;
    }
    score.false_negatives += !suitable_left;
    score.best_lost += (left >> best & 1) == 0;
    score.unknown += !tuned.sieve.knows(table.problems[problem]);
    fastest.push_back(fastest_of(times, left));
    first.push_back(0);
    while ((left >> first.back() & 1) == 0) ++first.back();
  }
  if (!held_out.empty()) {
    score.unknown /= static_cast<double>(held_out.size());
    score.left = static_cast<double>(left_over) / static_cast<double>(held_out.size());
  }
  if (unsuitable > 0) {
    score.eliminated = static_cast<double>(gone) / static_cast<double>(unsuitable);
    score.false_positives = 1 - score.eliminated;
  }
  score.fastest = score_picks(table, held_out, fastest);
  score.first = score_picks(table, held_out, first);
  score.lookup_ns = lookup_time_ns(tuned.sieve, table, held_out);
  return tuned;
}

}  // namespace tritax

#include "cli/standing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report.hpp"

namespace tritax::cli {

using nlohmann::ordered_json;

std::vector<std::string> sentences_of(const Judged& judgement, const std::vector<Candidate>& candidates) {
  std::vector<std::string> sentences;
  const Standing& standing = judgement.standing;
  const auto tied = std::count(judgement.tied_with.begin(), judgement.tied_with.end(), 1);
  if (standing.residual > 0) {
    const std::string band =
        fmt::format("two of three predictions are within {:.1f} %", 100 * judgement.band);
    sentences.push_back(tied > 1
                            ? fmt::format("The first {} are a tie: {}, and these differ by less.", tied, band)
                            : fmt::format("The first is ahead by more than the model is off: {}.", band));
  } else {
    sentences.emplace_back(
        "How far predictions for this machine are off is not known, so nothing is called a tie.");
  }
  for (const Candidate& candidate : candidates) {
    if (!candidate.spread.worth_saying()) continue;
    sentences.push_back(fmt::format("The time of {} depends on who gets what share of a full link: {}.",
                                    candidate.pattern->name, text_of(candidate.spread)));
  }
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>>
      doubted;  // notes and their patterns
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (judgement.doubts[i] == nullptr) continue;
    const std::string_view note = judgement.doubts[i]->note;
    auto same =
        std::find_if(doubted.begin(), doubted.end(), [&](const auto& one) { return one.first == note; });
    if (same == doubted.end()) same = doubted.insert(same, {note, {}});
    same->second.push_back(candidates[i].pattern->name);
  }
  for (const auto& [note, patterns] : doubted) {
    const bool one = patterns.size() == 1;
    sentences.push_back(fmt::format("The {} of {} {} uncertain, and so are speedups over {}: {}",
                                    one ? "time" : "times", fmt::join(patterns, ", "), one ? "is" : "are",
                                    one ? "it" : "them", note));
  }
  sentences.insert(sentences.end(), standing.cautions.begin(), standing.cautions.end());
  return sentences;
}

ordered_json json_of(const Standing& standing) {
  return {{"residual", standing.residual > 0 ? ordered_json(standing.residual) : ordered_json()},
          {"source", standing.source},
          {"cautions", standing.cautions}};
}

ordered_json json_of(const Judged& judgement) {
  ordered_json json = json_of(judgement.standing);
  json["band"] = judgement.band > 0 ? ordered_json(judgement.band) : ordered_json();
  return json;
}

ordered_json json_of(const Spread& spread) {
  if (!spread.known()) return nullptr;
  ordered_json seeds = ordered_json::array();
  ordered_json times = ordered_json::array();
  for (std::size_t i = 0; i < spread.times_ns.size(); ++i) {
    seeds.push_back(spread.first_seed + i);
    times.push_back(us(spread.times_ns[i]));
  }
  return {{"seeds", std::move(seeds)}, {"times_us", std::move(times)}, {"relative", spread.relative()}};
}

std::string text_of(const Spread& spread) {
  return fmt::format("seeds {} to {} give {:.1f} to {:.1f} us", spread.first_seed, spread.last_seed(),
                     us(spread.low_ns()), us(spread.high_ns()));
}

Table compared_table(const std::vector<MachineComparisons>& sets) {
  Table table{{{"machine", "machine"},
               {"workload", "workload"},
               {"count", "compared"},
               {"residual_percent", "two of three within", "%"},
               {"ranges", "problems"}},
              {}};
  for (const MachineComparisons& one : sets) {
    std::vector<std::string> ranges;
    for (const FieldRange& range : one.set.ranges) {
      ranges.push_back(range.names.empty() ? fmt::format("{} {}-{}", range.field, range.low, range.high)
                                           : fmt::format("{} {}", range.field, fmt::join(range.names, "|")));
    }
    table.add({one.machine, one.set.workload, one.set.count, 100 * one.set.residual,
               fmt::format("{}", fmt::join(ranges, ", "))});
  }
  return table;
}

ordered_json json_of(const std::vector<MachineComparisons>& sets) {
  ordered_json list = ordered_json::array();
  for (const MachineComparisons& one : sets) {
    ordered_json json{{"machine", one.machine},
                      {"workload", one.set.workload},
                      {"count", one.set.count},
                      {"residual", one.set.residual}};
    for (const FieldRange& range : one.set.ranges) {
      json[range.field] =
          range.names.empty() ? ordered_json{range.low, range.high} : ordered_json(range.names);
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace tritax::cli

#include "cli/trust.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report.hpp"
#include "model/core/quantile.hpp"

namespace tritax::cli {

using nlohmann::ordered_json;

std::vector<std::string> sentences_of(const Assessment& assessment,
                                      const std::vector<Candidate>& candidates) {
  std::vector<std::string> sentences;
  const Trust& trust = assessment.trust;
  const auto tied = std::count(assessment.tied_with.begin(), assessment.tied_with.end(), 1);
  const double band = assessment.bands.empty() ? 0 : assessment.bands.front();
  if (band > 0) {
    const std::string within = fmt::format("the prediction band of {:.0f} %", 100 * band);
    sentences.push_back(
        tied > 1 ? fmt::format("The first {} are a tie: they differ by less than {}.", tied, within)
                 : fmt::format("The first leads by more than {}.", within));
  } else if (tied > 1) {  // bands of ratios to a library
    sentences.push_back(
        fmt::format("The first {} are a tie: they differ by less than the band of such ratios.", tied));
  } else if (assessment.band > 0) {
    sentences.emplace_back(
        "The band of own patterns is unknown, but the band of their ratio to the library is known. Only ties "
        "with the library are marked.");
  } else if (!assessment.bands.empty()) {
    sentences.emplace_back("The prediction band is unknown, so no ties are marked.");
  }
  for (const Candidate& candidate : candidates) {
    if (!candidate.spread.worth_saying()) continue;
    sentences.push_back(fmt::format("The time of {} depends on random shares of full links: {}.",
                                    candidate.pattern->name, text_of(candidate.spread)));
  }
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>>
      doubted;  // notes and their patterns
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (assessment.doubts[i] == nullptr) continue;
    const std::string_view note = assessment.doubts[i]->note;
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
  sentences.insert(sentences.end(), trust.cautions.begin(), trust.cautions.end());
  return sentences;
}

ordered_json json_of(const Trust& trust, double ratio_band, double best_band) {
  const auto known = [](double band) { return band > 0 ? ordered_json(band) : ordered_json(); };
  return {{"band", known(best_band)},
          {"ratio_band", known(ratio_band)},
          {"source", trust.source},
          {"cautions", trust.cautions}};
}

ordered_json json_of(const Assessment& assessment) {
  return json_of(assessment.trust, assessment.band, assessment.bands.empty() ? 0 : assessment.bands.front());
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

Table compared_table(const std::vector<ComparedSet>& sets) {
  Table table{{{"set", "set"},
               {"gpu", "GPU"},
               {"workload", "workload"},
               {"of", "of"},
               {"count", "compared"},
               {"nine_of_ten_percent", "nine of ten within", "%"},
               {"problems", "problems"}},
              {}};
  for (const ComparedSet& one : sets) {
    table.add({one.set, one.gpu, one.workload, std::string(name_of(one.of)), one.count,
               100 * quantile(one.off, kHeld), problems_text(one.ranges)});
  }
  return table;
}

ordered_json json_of(const std::vector<ComparedSet>& sets) {
  ordered_json list = ordered_json::array();
  for (const ComparedSet& one : sets) {
    list.push_back({{"set", one.set},
                    {"gpu", one.gpu},
                    {"workload", one.workload},
                    {"of", name_of(one.of)},
                    {"count", one.count},
                    {"off", one.off},
                    {"problems", problems_text(one.ranges)}});
  }
  return list;
}

}  // namespace tritax::cli

#include "sim/study/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/machine/topology.hpp"
#include "model/select/bounds.hpp"
#include "sim/timeline.hpp"

namespace tritax {

namespace {

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

// "The run takes 812.3 us: 71 % useful compute, 12 % bulk-synchronous tax, 9 % useful wire."
std::string describe_parts(const SimulationResult& result) {
  const TimeAccount& account = result.account;
  std::array<std::pair<double, std::string_view>, 8> parts{
      {{account.compute_ns, "useful compute"},
       {account.memory_ns, "useful memory traffic"},
       {account.wire_ns, "useful wire time"},
       {account.launch_ns, "launch tax"},
       {account.bulk_synchronous_ns, "bulk-synchronous tax"},
       {account.locality_ns, "locality tax"},
       {account.contention_ns, "contention"},
       {account.harness_ns, "harness"}}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> words;
  for (const auto& [ns, name] : parts) {
    if (percent(ns, result.makespan_ns) >= 0.5) {
      words.push_back(fmt::format("{:.0f} % {}", percent(ns, result.makespan_ns), name));
    }
  }
  return fmt::format("The run takes {:.1f} us: {}.", result.makespan_ns / 1000, fmt::join(words, ", "));
}

std::string describe_rounds(const Schedule& schedule, const Machine& machine) {
  const Rounds rounds = gemm_rounds(schedule, machine);
  if (rounds.tiles == 0) {
    return "";
  }
  const bool one = rounds.products() == 1;
  return fmt::format("{} tile{} per GPU{} on {} workgroups take{} {} round{} of {:.1f} us, {:.0f} % filled.",
                     rounds.tiles, rounds.tiles == 1 ? "" : "s",
                     rounds.parts == 1 ? "" : fmt::format(", each in {} parts of K,", rounds.parts),
                     rounds.workers, one ? "s" : "", rounds.rounds, rounds.rounds == 1 ? "" : "s",
                     rounds.tile_ns / 1000, 100 * rounds.fill());
}

std::string describe_links(const Schedule& schedule, const Machine& machine, const SimulationResult& result) {
  const Topology topology = build_topology(machine, schedule.ranks);
  const auto busiest = std::max_element(result.link_bytes.begin(), result.link_bytes.end());
  if (busiest == result.link_bytes.end() || *busiest <= 0) {
    return "";
  }
  const TopologyEdge& edge = topology.edges[static_cast<std::size_t>(busiest - result.link_bytes.begin())];
  return fmt::format("The busiest link, {}, carries {:.1f} MB: {:.0f} % of its raw rate over the run.",
                     edge.name, *busiest / 1e6, percent(*busiest / result.makespan_ns, edge.raw_gb_per_s));
}

// Time that the run saves without one tax; negative if it takes longer.
struct Saving {
  std::string_view change;
  double ns;
};

std::array<Saving, 3> savings_of(const Taxes& taxes) {
  return {{{"free launches", taxes.launch_ns},
           {"tile dependences instead of barriers", taxes.bulk_synchronous_ns},
           {"intermediates on chip", taxes.locality_ns}}};
}

constexpr double kShownNs = 50;  // less shows as 0.0 us

// "GPUs compute for 81.2 us and communicate for 60.1, 55 % of that beside products; 9.9 us they do neither"
std::string describe_overlaps(const std::vector<Overlap>& overlaps) {
  Overlap sum;
  for (const Overlap& one : overlaps) {
    sum.computing_ns += one.computing_ns;
    sum.communicating_ns += one.communicating_ns;
    sum.both_ns += one.both_ns;
    sum.idle_ns += one.idle_ns;
  }
  if (sum.communicating_ns <= 0 || sum.computing_ns <= 0) return "";
  const double scale = 1e-3 / static_cast<double>(overlaps.size());
  return fmt::format(
      "On average a GPU computes for {:.1f} us and communicates for {:.1f} us. {:.0f} % of its communication "
      "is "
      "hidden behind compute. It does neither for {:.1f} us.",
      sum.computing_ns * scale, sum.communicating_ns * scale, 100 * sum.hidden(), sum.idle_ns * scale);
}

std::string describe_strongest(const std::vector<Sensitivity>& inputs) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, inputs.size()); ++i) {
    words.push_back(fmt::format("{} ({:+.1f} %)", inputs[i].input, 100 * inputs[i].effect));
  }
  return words.empty() ? "No input changes the time."
                       : fmt::format("The time depends most on {}.", fmt::join(words, ", "));
}

}  // namespace

std::string describe_taxes(const Taxes& taxes) {
  const double saved_ns = taxes.makespan_ns - taxes.all_removed_ns;
  std::string text =
      fmt::format("Without the three taxes it would take {:.1f} us, {:.0f} % {}", taxes.all_removed_ns / 1000,
                  std::abs(percent(saved_ns, taxes.makespan_ns)), saved_ns < 0 ? "more" : "less");
  std::vector<std::string> words;
  for (const auto& [change, ns] : savings_of(taxes)) {
    if (ns >= kShownNs) words.push_back(fmt::format("{} {:.1f} us", change, ns / 1000));
  }
  if (!words.empty()) text += fmt::format("; savings one at a time: {}", fmt::join(words, ", "));
  if (std::abs(taxes.remainder_ns) >= kShownNs) {
    text += fmt::format("; together they save {:.1f} us {} than the sum", std::abs(taxes.remainder_ns) / 1000,
                        taxes.remainder_ns < 0 ? "less" : "more");
  }
  return text + ".";
}

std::string describe_longer(const Taxes& taxes) {
  std::vector<std::string> words;
  for (const auto& [change, ns] : savings_of(taxes)) {
    if (ns <= -kShownNs)
      words.push_back(fmt::format("with {} it takes {:.1f} us longer", change, -ns / 1000));
  }
  if (words.empty()) return "";
  words.front().front() = 'W';
  return fmt::format(
      "{}: earlier starts meet other traffic, and full links may serve their requesters in a worse order.",
      fmt::join(words, ", "));
}

Explanation explain(const Schedule& schedule, const Machine& machine, const Rebuild* rebuild,
                    const SimulationOptions& options, const ProgressCall& progress, Inputs inputs) {
  Explanation explanation;
  TimelineRecorder recorder(schedule);
  SimulationOptions recorded = options;
  recorded.observer = &recorder;
  recorded.link_counters = true;
  explanation.result = simulate(schedule, machine, recorded);
  explanation.timeline = recorder.take();
  explanation.overlaps = overlaps_of(explanation.timeline, schedule, explanation.result.makespan_ns);
  CounterfactualMakespans makespans;
  simulate_in_order(schedule, machine, options, makespans);
  simulate_by_dependences(schedule, machine, options, makespans);
  explanation.taxes = taxes_of(explanation.result, makespans);
  std::vector<Sensitivity> all;
  if (inputs == Inputs::varied) {
    all = sensitivities(schedule, machine, rebuild, explanation.result.makespan_ns, options, progress);
  }
  for (Sensitivity& input : all) {
    std::vector<Sensitivity>& list = !input.could_run    ? explanation.not_variable
                                     : input.effect != 0 ? explanation.with_effect
                                                         : explanation.without_effect;
    list.push_back(std::move(input));
  }
  for (std::string sentence :
       {describe_parts(explanation.result), describe_rounds(schedule, machine),
        describe_links(schedule, machine, explanation.result), describe_overlaps(explanation.overlaps),
        describe_taxes(explanation.taxes), describe_longer(explanation.taxes),
        inputs == Inputs::varied ? describe_strongest(explanation.with_effect) : std::string()}) {
    if (!sentence.empty()) {
      explanation.sentences.push_back(std::move(sentence));
    }
  }
  return explanation;
}

}  // namespace tritax

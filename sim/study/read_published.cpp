#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "model/core/error.hpp"
#include "model/scenario/read_scenario.hpp"
#include "model/scenario/toml_reader.hpp"
#include "sim/study/reproduce.hpp"
#include "sim/study/shipped_published.hpp"

namespace tritax {

namespace {

using Chain = std::vector<const toml::table*>;

bool compares(Metric metric) { return metric == Metric::speedup || metric == Metric::time_difference; }

// The one scenario of a chain of tables.
Scenario one_scenario(const Chain& chain, const std::string& origin) {
  std::vector<Scenario> scenarios = scenarios_from_tables(chain, origin);
  if (scenarios.size() != 1) {
    throw UserError(fmt::format("{}: an entry compares one pattern; write `pattern = \"…\"`, not a list",
                                scenarios.front().where));
  }
  return std::move(scenarios.front());
}

Chain with_front(const toml::table* front, const Chain& chain) {
  Chain longer{front};
  longer.insert(longer.end(), chain.begin(), chain.end());
  return longer;
}

// One chain per variant; without variants, the chain of the scenario.
std::vector<Chain> variant_chains(TomlReader& reader, const Chain& scenario) {
  const toml::node* node = reader.find("variants");
  if (node == nullptr) return {scenario};
  const toml::array* list = node->as_array();
  std::vector<Chain> chains;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const toml::table* table = list->get(i)->as_table();
    if (table == nullptr) break;
    chains.push_back(with_front(table, scenario));
  }
  if (list == nullptr || chains.empty() || chains.size() != list->size()) {
    throw UserError(
        fmt::format("{}: variants must be a list of tables, each with the keys of the scenario that it "
                    "changes",
                    reader.where(*node)));
  }
  return chains;
}

void read_scenarios_of(TomlReader& reader, const std::string& origin, PublishedEntry& entry) {
  const Chain scenario = reader.tables("scenario");
  const Chain reference = reader.tables("reference");
  if (scenario.empty()) throw UserError(fmt::format("{}: this entry has no 'scenario'", entry.where));
  const bool may_refer = compares(entry.metric) || entry.metric == Metric::best_speedup;
  if (reference.empty() ? compares(entry.metric) : !may_refer) {
    throw UserError(
        fmt::format("{}: metric \"{}\" {}", entry.where, kMetricNames[static_cast<std::size_t>(entry.metric)],
                    reference.empty() ? "needs a 'reference', a table of what differs from the scenario"
                                      : "compares nothing, so 'reference' has no meaning here"));
  }
  for (const Chain& chain : variant_chains(reader, scenario)) {
    entry.scenarios.push_back(one_scenario(chain, origin));
    if (!reference.empty())
      entry.references.push_back(one_scenario(with_front(reference.front(), chain), origin));
  }
}

void read_values(TomlReader& reader, PublishedEntry& entry) {
  entry.value = reader.number("value");
  entry.low = reader.number("value_low");
  entry.high = reader.number("value_high");
  if (!entry.value && !entry.low && !entry.high) {
    throw UserError(fmt::format("{}: this entry has no 'value', 'value_low' or 'value_high'", entry.where));
  }
  for (const auto& number : {entry.value, entry.low, entry.high}) {
    if (number && *number <= 0) {
      throw UserError(
          fmt::format("{}: published value {} is not allowed; it must be above 0", entry.where, *number));
    }
  }
  if (entry.low && entry.high && *entry.low > *entry.high) {
    throw UserError(
        fmt::format("{}: value_low = {} is above value_high = {}", entry.where, *entry.low, *entry.high));
  }
  if (entry.value &&
      (*entry.value < entry.low.value_or(*entry.value) || *entry.value > entry.high.value_or(*entry.value))) {
    throw UserError(
        fmt::format("{}: value = {} lies outside value_low and value_high", entry.where, *entry.value));
  }
}

// Whether a metric applies to a scenario.
void check_metric(const PublishedEntry& entry, const Scenario& scenario) {
  const Workload& workload = *scenario.problem.workload;
  const Work work = work_of(scenario.problem);
  const auto refuse = [&](std::string_view why) {
    throw UserError(fmt::format("{}: metric \"{}\" does not fit this scenario: {}", entry.where,
                                kMetricNames[static_cast<std::size_t>(entry.metric)], why));
  };
  const bool bandwidth = entry.metric == Metric::bandwidth || entry.metric == Metric::link_bandwidth;
  if (bandwidth && work.bytes_per_gpu == 0) refuse("bandwidths are those of workloads that only move data");
  if (entry.metric == Metric::throughput && work.flops == 0) refuse("it computes nothing");
  const bool parts = entry.metric == Metric::gemm_time || entry.metric == Metric::comm_time;
  if (parts && !workload.computes_and_sends) refuse("it has no GEMM and communication kernels to tell apart");
  if (parts && (entry.clock == Clock::host || entry.clock == Clock::kernel)) {
    refuse("the time of some kernels is read on clock \"busy-stream\" or \"idle-stream\"");
  }
  if (entry.metric == Metric::best_speedup) {
    if (workload.baseline.empty() || workload.patterns.size() < 2)
      refuse("it has no patterns to choose from");
    if (!scenario.pattern.empty()) refuse("it tries all patterns, so the scenario names none");
  } else if (scenario.pattern.empty()) {
    throw UserError(fmt::format("{}: the scenario of this entry has no 'pattern'", entry.where));
  }
}

// Whether `chosen` names knobs of the workload.
void check_chosen(const PublishedEntry& entry) {
  const Workload& workload = *entry.scenarios.front().problem.workload;
  std::istringstream names(entry.chosen);
  for (std::string name; names >> name;) {
    if (find_spec(workload.knobs, name) != nullptr) continue;
    throw UserError(fmt::format(
        "{}: chosen: {} has no knob '{}'; give those of the scenario that were chosen with the published "
        "number known, for example \"tile pipeline\"",
        entry.where, workload.name, name));
  }
}

PublishedEntry read_entry(Chain chain, const std::string& origin) {
  TomlReader reader(std::move(chain), origin, "entry");
  PublishedEntry entry;
  entry.where = reader.where();
  entry.id = reader.text("id");
  entry.group = reader.text("group");
  entry.source = reader.text("source");
  if (entry.source.empty())
    throw UserError(entry.where + ": source is empty; say who measured it, and where");
  entry.confidence = reader.text_or("confidence", "");
  entry.chosen = reader.text_or("chosen", "");
  entry.notes = reader.text_or("notes", "");
  entry.metric = static_cast<Metric>(reader.choice("metric", kMetricNames));
  entry.unit = reader.text("unit");
  entry.unit_scale = scale_of_unit(entry.metric, entry.unit, reader.where("unit"));
  const bool aggregates = reader.has("aggregate");
  entry.aggregate = static_cast<Aggregate>(reader.choice("aggregate", kAggregateNames, 0));
  read_values(reader, entry);
  read_scenarios_of(reader, origin, entry);
  if (aggregates && entry.scenarios.size() == 1) {
    throw UserError(fmt::format(
        "{}: aggregate: there is one scenario, and nothing to put together; give 'variants', or leave it out",
        reader.where("aggregate")));
  }
  const auto usual = static_cast<int>(usual_clock(entry.scenarios.front()));
  entry.clock = static_cast<Clock>(reader.choice("clock", kClockNames, usual));
  reader.finish();
  check_chosen(entry);
  for (const Scenario& scenario : entry.scenarios) check_metric(entry, scenario);
  for (const Scenario& scenario : entry.references) check_metric(entry, scenario);
  return entry;
}

}  // namespace

std::vector<PublishedEntry> parse_published(std::string_view toml, const std::string& origin) {
  const toml::table root = parse_toml(toml, origin);
  TomlReader file({&root}, origin, "file of published numbers");
  const Chain defaults = file.tables("defaults");
  const toml::node* list = file.find("entry");
  const bool has_verdicts = file.has("verdict");  // parse_verdicts reads them
  file.find("verdict_defaults");
  file.finish();
  if (list == nullptr && has_verdicts) return {};
  const toml::array* tables = list == nullptr ? nullptr : list->as_array();
  if (tables == nullptr || tables->empty()) {
    throw UserError(fmt::format(
        "{}: a file of published numbers holds at least one [[entry]] or [[verdict]] table", origin));
  }
  std::vector<PublishedEntry> entries;
  for (const toml::node& node : *tables) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      throw UserError(fmt::format("{}: entry must be written as [[entry]]", file.where(node)));
    entries.push_back(read_entry(with_front(table, defaults), origin));
  }
  return entries;
}

std::vector<PublishedEntry> shipped_published() {
  std::vector<PublishedEntry> entries;
  for (const auto& [stem, text] : embedded::published_files()) {
    for (PublishedEntry& entry : parse_published(text, fmt::format("scenarios/published/{}.toml", stem))) {
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace tritax

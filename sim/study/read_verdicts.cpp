#include <fmt/format.h>

#include <map>
#include <set>

#include "model/core/error.hpp"
#include "model/scenario/read_scenario.hpp"
#include "model/scenario/toml_reader.hpp"
#include "sim/study/shipped_published.hpp"
#include "sim/study/verdicts.hpp"

namespace tritax {

namespace {

using Chain = std::vector<const toml::table*>;

std::string_view metric_name(Metric metric) { return kMetricNames[static_cast<std::size_t>(metric)]; }

bool is_comparison(Metric metric) { return metric == Metric::speedup || metric == Metric::best_speedup; }

bool is_time_or_rate(Metric metric) {
  return metric == Metric::time || metric == Metric::gemm_time || metric == Metric::comm_time ||
         metric == Metric::time_difference || metric == Metric::throughput || metric == Metric::bandwidth ||
         metric == Metric::link_bandwidth;
}

// The two tables of `ways`: each has the differences from the scenario.
std::vector<const toml::table*> ways_of(TomlReader& reader) {
  const toml::node* node = reader.find("ways");
  std::vector<const toml::table*> ways;
  const toml::array* list = node == nullptr ? nullptr : node->as_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) ways.push_back(list->get(i)->as_table());
  if (ways.size() != 2 || ways[0] == nullptr || ways[1] == nullptr) {
    throw UserError(
        fmt::format("{}: ways must be a list of two tables, the first and the second way, each with the keys "
                    "of the scenario that it changes",
                    reader.where("ways")));
  }
  return ways;
}

Scenario scenario_of(const toml::table* way, const Chain& common, const std::string& origin) {
  Chain chain{way};
  chain.insert(chain.end(), common.begin(), common.end());
  std::vector<Scenario> scenarios = scenarios_from_tables(chain, origin);
  if (scenarios.size() != 1 || scenarios.front().pattern.empty()) {
    throw UserError(fmt::format("{}: a way has one pattern; write `pattern = \"…\"` in ways or scenario",
                                scenarios.front().where));
  }
  return std::move(scenarios.front());
}

// Published times of the two ways, in `unit`.
std::vector<double> times_of(TomlReader& reader) {
  const toml::node& node = *reader.find("times");
  const toml::array* list = node.as_array();
  std::vector<double> times;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    times.push_back(list->get(i)->value<double>().value_or(0));
  }
  if (times.size() != 2 || !(times[0] > 0) || !(times[1] > 0)) {
    throw UserError(fmt::format(
        "{}: times must be two numbers above 0, the published times of the first and the second way",
        reader.where("times")));
  }
  return times;
}

double ratio_of(TomlReader& reader) {
  const double ratio = *reader.number("ratio");
  if (ratio > 0) return ratio;
  throw UserError(
      fmt::format("{}: ratio = {} is not allowed; it is the time of the second way by that of the "
                  "first, above 0",
                  reader.where("ratio"), ratio));
}

PublishedEntry own_entry(const VerdictQuestion& question, std::string_view suffix, Scenario scenario) {
  PublishedEntry entry;
  entry.id = question.id + std::string(suffix);
  entry.group = kVerdictGroup;
  entry.scenarios.push_back(std::move(scenario));
  entry.source = question.source;
  entry.notes = question.notes;
  entry.where = question.where;
  return entry;
}

void read_own(TomlReader& reader, const std::string& origin, VerdictQuestion& question) {
  const std::vector<const toml::table*> ways = ways_of(reader);
  const Chain common = reader.tables("scenario");
  Scenario first = scenario_of(ways[0], common, origin);
  Scenario second = scenario_of(ways[1], common, origin);
  const auto usual = static_cast<int>(usual_clock(first));
  const auto clock = static_cast<Clock>(reader.choice("clock", kClockNames, usual));
  if (reader.has("times") == reader.has("ratio")) {
    throw UserError(
        fmt::format("{}: a verdict with `ways` has either `times` (of the first and the second "
                    "way) or `ratio` (second by first)",
                    question.where));
  }
  if (reader.has("ratio")) {
    PublishedEntry entry = own_entry(question, "", std::move(first));
    entry.references.push_back(std::move(second));
    entry.metric = Metric::speedup;
    entry.unit = "x";
    entry.value = ratio_of(reader);
    question.own.push_back(std::move(entry));
  } else {
    const std::vector<double> times = times_of(reader);
    question.own.push_back(own_entry(question, "/1", std::move(first)));
    question.own.push_back(own_entry(question, "/2", std::move(second)));
    const std::string unit = reader.text("unit");
    for (std::size_t i = 0; i < 2; ++i) {
      question.own[i].unit = unit;
      question.own[i].unit_scale = scale_of_unit(Metric::time, unit, reader.where("unit"));
      question.own[i].value = times[i];
    }
  }
  for (PublishedEntry& entry : question.own) {
    entry.clock = clock;
    question.rows.push_back(entry.id);
  }
}

VerdictQuestion read_question(const Chain& chain, const std::string& origin) {
  TomlReader reader(chain, origin, "verdict");
  VerdictQuestion question;
  question.where = reader.where();
  question.id = reader.text("id");
  question.family = reader.text("family");
  question.notes = reader.text_or("notes", "");
  if (reader.has("names")) question.names = reader.texts("names");
  if (!question.names.empty() && question.names.size() != 2) {
    throw UserError(fmt::format("{}: names must be two texts, those of the first and the second way",
                                reader.where("names")));
  }
  if (reader.has("rows")) {
    question.rows = reader.texts("rows");
    question.source = reader.text_or("source", "");
    if (question.rows.size() > 2) {
      throw UserError(fmt::format("{}: rows has {} ids; it names one number that compares, or two",
                                  reader.where("rows"), question.rows.size()));
    }
  } else {
    question.source = reader.text("source");
    read_own(reader, origin, question);
  }
  reader.finish();
  return question;
}

using EntriesById = std::map<std::string, const PublishedEntry*>;

std::vector<const PublishedEntry*> named_entries(const VerdictQuestion& question, const EntriesById& by_id) {
  std::vector<const PublishedEntry*> named;
  for (const PublishedEntry& entry : question.own) named.push_back(&entry);
  if (!named.empty()) return named;
  for (const std::string& id : question.rows) {
    const auto found = by_id.find(id);
    if (found == by_id.end()) {
      throw UserError(
          fmt::format("{}: rows: no [[entry]] of the files given has the id \"{}\"", question.where, id));
    }
    named.push_back(found->second);
  }
  return named;
}

void check_rows(const VerdictQuestion& question, const std::vector<const PublishedEntry*>& named) {
  const PublishedEntry& first = *named.front();
  if (named.size() == 1) {
    if (is_comparison(first.metric)) return;
    throw UserError(
        fmt::format("{}: rows: \"{}\" has the metric {}; one number alone must be a speedup or a "
                    "best-speedup, else name two",
                    question.where, first.id, metric_name(first.metric)));
  }
  const PublishedEntry& second = *named.back();
  if (&first == &second) {
    throw UserError(
        fmt::format("{}: rows: \"{}\" twice; name the rows of two ways", question.where, first.id));
  }
  // Times of one call and of a further call are times alike.
  const auto kind = [](Metric metric) { return metric == Metric::time_difference ? Metric::time : metric; };
  if (kind(first.metric) != kind(second.metric) || first.unit != second.unit ||
      !is_time_or_rate(first.metric)) {
    throw UserError(
        fmt::format("{}: rows: \"{}\" is a {} in {}, \"{}\" a {} in {}; both must be times or rates of "
                    "the same metric and unit",
                    question.where, first.id, metric_name(first.metric), first.unit, second.id,
                    metric_name(second.metric), second.unit));
  }
}

std::vector<std::string> way_names(const std::vector<const PublishedEntry*>& named) {
  const PublishedEntry& first = *named.front();
  const Scenario& scenario = first.scenarios.front();
  if (first.metric == Metric::best_speedup) {
    return {"best pattern", std::string(scenario.problem.workload->baseline)};
  }
  const Scenario& other = named.size() == 1 ? first.references.front() : named.back()->scenarios.front();
  if (scenario.pattern != other.pattern || named.size() == 1) return {scenario.pattern, other.pattern};
  return {first.id, named.back()->id};
}

void resolve_names(PublishedNumbers& numbers) {
  EntriesById by_id;
  for (const PublishedEntry& entry : numbers.entries) by_id.emplace(entry.id, &entry);
  std::map<std::string, std::string> places;
  for (VerdictQuestion& question : numbers.verdicts) {
    const auto [place, fresh] = places.emplace(question.id, question.where);
    if (!fresh) {
      throw UserError(fmt::format("{}: id \"{}\" is already used at {}; ids must differ", question.where,
                                  question.id, place->second));
    }
    const std::vector<const PublishedEntry*> named = named_entries(question, by_id);
    check_rows(question, named);
    if (question.names.empty()) question.names = way_names(named);
  }
}

void add_file(PublishedNumbers& numbers, std::string_view toml, const std::string& origin) {
  for (PublishedEntry& entry : parse_published(toml, origin)) numbers.entries.push_back(std::move(entry));
  for (VerdictQuestion& one : parse_verdicts(toml, origin)) numbers.verdicts.push_back(std::move(one));
}

}  // namespace

std::vector<VerdictQuestion> parse_verdicts(std::string_view toml, const std::string& origin) {
  const toml::table root = parse_toml(toml, origin);
  TomlReader file({&root}, origin, "file of published numbers");
  const Chain defaults = file.tables("verdict_defaults");
  const toml::node* list = file.find("verdict");
  std::vector<VerdictQuestion> questions;
  if (list == nullptr) return questions;
  const toml::array* tables = list->as_array();
  if (tables == nullptr)
    throw UserError(fmt::format("{}: verdict must be written as [[verdict]]", file.where(*list)));
  for (const toml::node& node : *tables) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      throw UserError(fmt::format("{}: verdict must be written as [[verdict]]", file.where(node)));
    Chain chain{table};
    chain.insert(chain.end(), defaults.begin(), defaults.end());
    questions.push_back(read_question(chain, origin));
  }
  return questions;
}

PublishedNumbers parse_published_numbers(std::string_view toml, const std::string& origin) {
  PublishedNumbers numbers;
  add_file(numbers, toml, origin);
  resolve_names(numbers);
  return numbers;
}

PublishedNumbers published_numbers(const std::vector<std::string>& paths) {
  PublishedNumbers numbers;
  for (const std::string& path : paths) add_file(numbers, read_text_file(path), path);
  if (paths.empty()) {
    for (const auto& [stem, text] : embedded::published_files()) {
      add_file(numbers, text, fmt::format("scenarios/published/{}.toml", stem));
    }
  }
  resolve_names(numbers);
  return numbers;
}

}  // namespace tritax

// tritax taxonomy: the taxes of every pattern of a workload, at one size or along a sweep, and the values
// where the best pattern changes.
#include "sim/study/taxonomy.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/best.hpp"
#include "cli/commands.hpp"
#include "cli/fields.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/questions.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/svg.hpp"
#include "cli/sweep_plot.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/select/selector.hpp"
#include "sim/study/ranked.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct TaxonomyArguments : RunInputOptions {
  OutputOptions output;
  std::optional<std::string> sweep;
  std::string plot;
  std::optional<int> threads;
  std::optional<std::int64_t> seed;
  const Selector* selector = &selectors().front();
};

// The answer at one value of the sweep, or the single answer without a sweep.
struct Point {
  const Question* question = nullptr;
  Advice advice;
  Assessment assessment;
  std::string refusal;  // why there is no answer

  SweepPoint as_sweep_point(const Spec* swept) const {
    SweepPoint point{std::nullopt, &advice.candidates, &assessment.trust};
    if (swept != nullptr) point.value = static_cast<double>(question->problem[swept->name]);
    return point;
  }
};

struct Sweep {
  std::string name;             // of the axis; "" without a sweep
  const Spec* field = nullptr;  // swept field, if it is a number
  std::vector<Point> points;

  std::vector<Crossover> crossovers() const {
    std::vector<SweepPoint> sweep;
    for (const Point& point : points) sweep.push_back(point.as_sweep_point(field));
    return crossovers_of(sweep);
  }
  std::string at(const Point& point) const {
    return point.question->at.empty() ? "" : point.question->at.front().second;
  }
};

// Rows are patterns, columns are taxes.
Fields<Ranked> pattern_fields(const Workload& workload) {
  Fields<Ranked> fields = taxonomy_fields();
  for (Field<Ranked>& field : fields) {
    if (field.name == "speedup" && !workload.baseline.empty()) {
      field.title = fmt::format("vs {}", workload.baseline);
    }
  }
  return fields;
}

Table pattern_table(const Point& point) {
  return table_of(pattern_fields(*point.question->problem.workload),
                  ranked(point.advice.candidates, point.assessment), shown::kText);
}

// Rows are values of the sweep; columns are the best pattern, its taxes, and the runner-up.
Table best_table(const Sweep& sweep) {
  const Workload& workload = *sweep.points.front().question->problem.workload;
  std::vector<Best> bests;
  for (const Point& point : sweep.points) {
    bests.push_back({&point.advice.candidates, point.assessment, point.refusal.empty()});
  }
  const auto times = pick(pattern_fields(workload), {"time", "useful", "launch", "bulk_synchronous",
                                                     "locality", "contention", "harness", "speedup"});
  Table table =
      table_of(best_fields(times, [](const Best& best) -> std::string { return best.is_tie() ? "tie" : ""; }),
               bests, shown::kText);
  table.columns.insert(table.columns.begin(), {sweep.name, sweep.name});
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    table.rows[i].insert(table.rows[i].begin(), sweep.at(sweep.points[i]));
  }
  return table;
}

std::string mark_of(const Crossover& change) {
  if (change.tie_before && change.tie_after) return "tie on both sides";
  if (change.tie_before) return "tie before";
  return change.tie_after ? "tie behind" : "";
}

Table crossover_table(const Sweep& sweep, const std::vector<Crossover>& changes) {
  Table table{{{"after", "above " + sweep.name},
               {"until", "up to"},
               {"at", "equal at", "", 0},
               {"from", "best before"},
               {"to", "best behind"},
               {"mark", "mark"}},
              {}};
  for (const Crossover& change : changes) {
    table.add({sweep.at(sweep.points[change.before]), sweep.at(sweep.points[change.after]),
               change.at ? Cell{*change.at} : Cell{}, std::string(change.from->name),
               std::string(change.to->name), mark_of(change)});
  }
  return table;
}

// "8 GPUs of mi300x-8" at a point.
std::string place_of(const Point& point) {
  const int gpus = point.question->problem.gpus();
  return fmt::format("{} GPU{} of {}", gpus, gpus == 1 ? "" : "s", point.question->machine.title());
}

std::string size_of(const Point& point) {
  return point.question->problem.workload->size_text(point.question->problem);
}

std::string heading_of(const Sweep& sweep) {
  const Point& first = sweep.points.front();
  const Point& last = sweep.points.back();
  std::string heading(first.question->problem.workload->title);
  heading += size_of(first) == size_of(last) ? ' ' + size_of(first)
                                             : fmt::format(" {} to {}", size_of(first), size_of(last));
  heading += " on " + place_of(first);
  if (place_of(first) != place_of(last)) heading += " to " + place_of(last);
  return heading;
}

void print_crossovers(const Sweep& sweep, const Outputs& outputs) {
  const std::vector<Crossover> changes = sweep.crossovers();
  if (changes.empty()) {
    outputs.print(wrapped("The best pattern does not change."));
    return;
  }
  outputs.print(
      wrapped(fmt::format("The best pattern changes {} time{}; times between two values of the sweep are "
                          "interpolated as powers of {}:",
                          changes.size(), changes.size() == 1 ? "" : "s", sweep.name)));
  outputs.print("\n");
  outputs.print(crossover_table(sweep, changes));
  outputs.print("\n");
  const Point& first = sweep.points[changes.front().before];
  const double band = first.assessment.bands.front();
  if (band <= 0) return;
  outputs.print(wrapped(fmt::format(
      "Tie: there the two patterns differ by less than the prediction band of {:.0f} %.", 100 * band)));
}

// The cautions of all points, each once.
void print_cautions(const Sweep& sweep, const Outputs& outputs) {
  std::vector<std::string> cautions;
  for (const Point& point : sweep.points) {
    for (const std::string& caution : point.assessment.trust.cautions) {
      if (std::find(cautions.begin(), cautions.end(), caution) == cautions.end()) cautions.push_back(caution);
    }
  }
  for (const std::string& caution : cautions) outputs.print(wrapped(caution));
}

void print_sweep(const Sweep& sweep, const Outputs& outputs) {
  outputs.print(styled(heading_of(sweep), Style::bold) + "\n\n");
  if (!sweep.name.empty()) {
    outputs.print(best_table(sweep));
    outputs.print("\n");
    print_crossovers(sweep, outputs);
    print_cautions(sweep, outputs);
    for (const Point& point : sweep.points) {
      if (!point.refusal.empty()) outputs.print(wrapped("No answer: " + point.refusal));
    }
    outputs.print(styled("--csv and --json have all patterns at every value.", Style::faint) + '\n');
    return;
  }
  const Point& point = sweep.points.front();
  const Answered answered = verdict_of(point.question->problem, point.advice.candidates, point.assessment);
  if (!answered.sentence.empty()) outputs.print(wrapped(answered.sentence) + "\n");
  outputs.print(pattern_table(point));
  outputs.print("\n");
  for (const std::string& sentence : sentences_of(point.assessment, point.advice.candidates)) {
    outputs.print(wrapped(sentence));
  }
  for (const std::string& reason : point.advice.left_out) outputs.print(wrapped("Left out: " + reason));
  if (const std::string held = pins_text(point.question->pins); !held.empty()) {
    outputs.print(wrapped(fmt::format("Held fixed: {}.", held)));
  }
}

Record record_of(const Point& point, const Candidate* candidate, const TaxonomyArguments& options) {
  Record record;
  record.machine = &point.question->machine;
  record.problem = &point.question->problem;
  record.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  if (candidate != nullptr) {
    record.pattern = candidate->pattern;
    record.knobs = &candidate->knobs;
  }
  return record;
}

Table csv_table(const Sweep& sweep, const TaxonomyArguments& options) {
  RecordTable records;
  for (const Point& point : sweep.points) {
    const std::vector<Ranked> rows = ranked(point.advice.candidates, point.assessment);
    for (const Ranked& one : rows) {
      records.add(table_of<Ranked>(taxonomy_fields(), {one}, shown::kCsv),
                  record_of(point, one.candidate, options));
    }
    if (rows.empty()) {
      records.add(table_of(taxonomy_fields(), rows, shown::kCsv), record_of(point, nullptr, options));
    }
  }
  return records.table();
}

ordered_json sweep_json(const Sweep& sweep, const TaxonomyArguments& options, bool interrupted) {
  ordered_json points = ordered_json::array();
  for (const Point& point : sweep.points) {
    ordered_json patterns = ordered_json::array();
    for (const Ranked& one : ranked(point.advice.candidates, point.assessment)) {
      patterns.push_back(json_of(taxonomy_fields(), one));
      add_record(patterns.back(), record_of(point, one.candidate, options));
    }
    ordered_json json{{"workload", json_of(point.question->problem)}, {"patterns", std::move(patterns)}};
    if (!sweep.name.empty()) json["at"] = sweep.at(point);
    json["left_out"] = point.advice.left_out;
    json["standing"] = json_of(point.assessment);
    put_fields(json, answered_fields(),
               verdict_of(point.question->problem, point.advice.candidates, point.assessment));
    if (!point.refusal.empty()) json["refusal"] = point.refusal;
    points.push_back(std::move(json));
  }
  ordered_json changes = ordered_json::array();
  for (const Crossover& change : sweep.crossovers()) {
    changes.push_back({{"above", sweep.at(sweep.points[change.before])},
                       {"up_to", sweep.at(sweep.points[change.after])},
                       {"equal_at", json_of(change.at)},
                       {"from", change.from->name},
                       {"to", change.to->name},
                       {"tie_before", change.tie_before},
                       {"tie_behind", change.tie_after}});
  }
  return {{"schema", "tritax.taxonomy/1"},
          {"version", version()},
          {"selector", options.selector->name},
          {"sweep", sweep.name.empty() ? ordered_json() : ordered_json(sweep.name)},
          {"points", std::move(points)},
          {"crossovers", std::move(changes)},
          {"interrupted", interrupted}};
}

// Known errors of the times of a sweep.
std::string doubt_text(const Sweep& sweep) {
  double least = 0, most = 0;
  bool all = true;
  for (const Point& point : sweep.points) {
    for (const double band : point.assessment.bands) {
      all = all && band > 0;
      most = std::max(most, band);
      if (band > 0) least = least > 0 ? std::min(least, band) : band;
    }
  }
  if (most <= 0) return "nothing comparable was measured";
  const std::string within = fmt::format("prediction band {:.0f} to {:.0f} %", 100 * least, 100 * most);
  return all ? within : within + ", where known";
}

SweepPlot plot_of(const Sweep& sweep) {
  const Workload& workload = *sweep.points.front().question->problem.workload;
  SweepPlot plot;
  plot.title = heading_of(sweep);
  plot.subtitle = "best knobs of every pattern; " + doubt_text(sweep);
  plot.x_label = fmt::format("{} ({})", sweep.name, sweep.field->help);
  plot.y_label = "predicted time (us)";
  for (const Pattern& pattern : workload.patterns) {
    SweepLine line{std::string(pattern.name), {}};
    for (const Point& point : sweep.points) {
      for (const Candidate& one : point.advice.candidates) {
        if (one.pattern != &pattern) continue;
        line.points.emplace_back(static_cast<double>(point.question->problem[sweep.field->name]),
                                 us(one.time_ns));
      }
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  for (const Crossover& change : sweep.crossovers()) {
    if (change.at) plot.crossovers.push_back(*change.at);
  }
  return plot;
}

// The questions of the options: one, or one per value of the only option with several.
std::vector<Question> questions_on(TaxonomyArguments asked, Sweep& sweep) {
  if (asked.sweep) add_sweep(asked, *asked.sweep);
  if (asked.axes.size() > 1) {
    throw UserError(fmt::format("{} and {}: both have several values; a taxonomy sweeps only one",
                                asked.axes[0].name, asked.axes[1].name));
  }
  if (!asked.axes.empty()) {
    const Axis& axis = asked.axes.front();
    sweep.name = axis.name;
    const Spec* field =
        axis.kind == AxisKind::field ? find_field(*asked.problem.workload, axis.name) : nullptr;
    const bool number =
        field != nullptr && (field->kind == ValueKind::integer || field->kind == ValueKind::bytes);
    if (number && field->columns() == 1) sweep.field = field;
  }
  if (!asked.plot.empty() && sweep.field == nullptr) {
    throw UserError("--plot: it draws times over a number; give --sweep, or a field several values");
  }
  return questions_of(asked);
}

// Returns true if all questions could be answered.
bool answer(const std::vector<Question>& questions, const TaxonomyArguments& options,
            const InterruptibleWork& work, Sweep& sweep) {
  AdviseOptions search_options;
  search_options.threads = options.threads.value_or(0);
  search_options.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  search_options.counterfactual = false;
  search_options.selector = options.selector;
  search_options.stop = &work.flag();
  bool all = true;
  for (const Question& question : questions) {
    Point& point = sweep.points.emplace_back(Point{&question, {}, {}, ""});
    if (work.interrupted()) continue;
    try {
      point.advice = search(question, search_options,
                            fmt::format("value {} of {}, candidates", sweep.points.size(), questions.size()));
    } catch (const UserError& error) {
      if (sweep.name.empty()) throw;
      point.refusal = error.what();
      all = false;
    }
    if (point.advice.interrupted)
      point.advice.candidates.clear();  // the best so far need not be the best of all
    point.assessment = assess(question.problem, question.machine, point.advice.candidates);
  }
  return all;
}

int run(const TaxonomyArguments& options) {
  Outputs outputs(options.output);
  std::optional<OutputFile> plot;
  if (!options.plot.empty()) {
    require_svg(options.plot);
    plot.emplace(options.plot, "--plot");
  }
  Sweep sweep;
  const std::vector<Question> questions = questions_on(options, sweep);
  const InterruptibleWork work;
  const bool all = answer(questions, options, work, sweep);
  const bool interrupted = work.interrupted();
  if (interrupted) tell("tritax: interrupted; values that are missing were not searched in full\n");
  print_sweep(sweep, outputs);
  outputs.csv(csv_table(sweep, options), !interrupted);
  outputs.json(sweep_json(sweep, options, interrupted));
  if (plot && interrupted) {
    tell(fmt::format("tritax: --plot: '{}' is not written, since points are missing\n", options.plot));
  } else if (plot) {
    plot->commit(to_svg(plot_of(sweep)));
  }
  if (interrupted) return interrupted_exit_code();
  return all ? 0 : kUserErrorExitCode;
}

}  // namespace

Run add_taxonomy(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<TaxonomyArguments>();
  CLI::App& command = *program.add_subcommand(
      "taxonomy", "Show the taxes of every pattern, and where the best pattern changes");
  options->command = &command;
  add_problem_options(command, workload, *options);
  command
      .add_option("--sweep", options->sweep,
                  "Values of a field: M=1:16384:x2 doubles it, M=64:512:+64 adds 64 each time")
      ->type_name("FIELD=RANGE");
  add_machine_options(command, *options, true);
  add_sustained_option(command, options->sustained);
  add_knob_options(command, workload, *options);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  add_selector_option(command, options->selector, "search");
  add_output_options(command, options->output);
  command.add_option("--plot", options->plot, "Draw the times of all patterns over the sweep")
      ->type_name("FILE.svg")
      ->group(kOutputGroup);
  command.footer(
      "Every pattern has its best knobs, as 'advise' finds them. Knobs that are given stay fixed. The\n"
      "columns of the critical path sum to the time: useful is products, memory and links; the taxes are\n"
      "launch, bulk-sync and locality. Several values of one option, or --sweep, give the best pattern of\n"
      "each value and where it changes.\n\n"
      "Examples:\n"
      "  tritax taxonomy -M 8192 -N 4608 -K 36864 --machine mi300x-8\n"
      "  tritax taxonomy --sweep M=1:16384:x2 -N 4608 -K 36864 --machine mi300x-8 --plot sweep.svg\n"
      "  tritax taxonomy -M 64 -N 4608 -K 36864 --machine mi300x-8 --scale fabric.link=0.25,0.5,1,2\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli

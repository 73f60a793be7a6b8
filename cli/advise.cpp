// tritax advise: which overlap pattern to build, with which knobs, and why.
#include "sim/study/advise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/answers.hpp"
#include "cli/bars_plot.hpp"
#include "cli/commands.hpp"
#include "cli/fields.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/questions.hpp"
#include "cli/record.hpp"
#include "cli/repeat_run.hpp"
#include "cli/report.hpp"
#include "cli/run_detail.hpp"
#include "cli/run_input.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/scenario/write_scenario.hpp"
#include "model/select/selector.hpp"
#include "model/workload/kernel_class.hpp"
#include "sim/study/ranked.hpp"
#include "sim/study/why.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct AdviseArguments : RunInputOptions {
  OutputOptions output;
  PageOptions page;
  std::optional<int> threads;
  std::optional<std::int64_t> seed;
  const Selector* selector = &selectors().front();
  bool commands = false;
  std::optional<std::string> save_scenario;
};

ordered_json forms_json(const Advice& advice) {
  ordered_json forms = ordered_json::array();
  for (const RankedLibraryForm& one : library_forms(advice.candidates))
    forms.push_back(json_of(library_form_fields(), one));
  return forms;
}

// Knobs of the run: null where the pattern does not use a knob; the chosen value where the pattern chooses
// it.
ordered_json knobs_json(const Question& question, const Candidate& candidate) {
  const Pattern& pattern = *candidate.pattern;
  ordered_json json = json_of(candidate.knobs);
  for (const Spec& knob : candidate.knobs.specs()) {
    if (!knob.of_every_run && !pattern.uses(knob.name)) json[std::string(knob.name)] = nullptr;
  }
  if (pattern.own_choice == nullptr) return json;
  const Values own = pattern.own_choice(question.problem, question.machine);
  for (std::size_t i = 0; i < own.specs().size(); ++i) {
    if (own.given_at(own.first_column(i))) json[std::string(own.specs()[i].name)] = json_of(own, i);
  }
  return json;
}

Scenario scenario_of(const Question& question, const Candidate& candidate) {
  return scenario_of_run(question.problem, *candidate.pattern, candidate.knobs, question.machine_name,
                         question.machine);
}

// Options of the command beside those of the scenario.
std::string other_options(const AdviseArguments& options, const Question& question) {
  std::string text;
  for (const ParameterChange& change : question.changes) text += change.as_option();
  if (options.sustained) text += " --sustained";
  if (options.seed) text += fmt::format(" --seed {}", *options.seed);
  return text;
}

// Adds, behind the fields, the command and the knobs one by one.
ordered_json candidate_json(const Question& question, const Ranked& ranked,
                            const std::string& other_options) {
  const Candidate& candidate = *ranked.candidate;
  ordered_json json = json_of(candidate_fields(), ranked);
  json["knobs"] = knobs_json(question, candidate);
  json["spread"] = json_of(candidate.spread);
  json["command"] = command_of_run(scenario_of(question, candidate), other_options);
  return json;
}

// `candidate` null: a record of the question alone.
Record record_of(const Question& question, const Candidate* candidate, const AdviseArguments& options) {
  Record record;
  record.machine = &question.machine;
  record.problem = &question.problem;
  record.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  if (candidate != nullptr) {
    record.pattern = candidate->pattern;
    record.knobs = &candidate->knobs;
  }
  return record;
}

// Patterns that the selector has not tried.
std::vector<std::string> skipped_patterns(const Question& question, const Advice& advice) {
  std::vector<std::string> skipped;
  for (const Pattern& pattern : question.problem.workload->patterns) {
    const std::string name(pattern.name);
    const bool tried = std::any_of(advice.candidates.begin(), advice.candidates.end(),
                                   [&](const Candidate& one) { return one.pattern->name == name; });
    const bool left_out = std::any_of(advice.left_out.begin(), advice.left_out.end(),
                                      [&](const std::string& text) { return text.starts_with(name + ": "); });
    if (!tried && !left_out) skipped.push_back(name);
  }
  return skipped;
}

ordered_json advice_json(const Question& question, const Advice& advice, const AdviseArguments& options) {
  const Assessment assessment = assess(question.problem, question.machine, advice.candidates);
  ordered_json candidates = ordered_json::array();
  for (const Ranked& one : ranked(advice.candidates, assessment)) {
    ordered_json json = candidate_json(question, one, other_options(options, question));
    add_record(json, record_of(question, one.candidate, options));
    candidates.push_back(std::move(json));
  }
  ordered_json json{{"schema", "tritax.advise/1"},       {"workload", json_of(question.problem)},
                    {"machine", question.machine.name},  {"selector", options.selector->name},
                    {"evaluated", advice.evaluated},     {"candidates", std::move(candidates)},
                    {"explanation", advice.explanation}, {"left_out", advice.left_out},
                    {"pruned", advice.pruned},           {"given_up", advice.given_up},
                    {"interrupted", advice.interrupted}};
  json["standing"] = json_of(assessment);
  put_fields(json, answered_fields(), verdict_of(question.problem, advice.candidates, assessment));
  json["library_forms"] = forms_json(advice);
  ordered_json classes = ordered_json::array();
  for (const ClassVerdict& one : class_verdicts(question.problem, advice.candidates, assessment))
    classes.push_back(json_of(class_verdict_fields(), one));
  json["kernel_classes"] = std::move(classes);
  if (options.selector->why) {
    json["choice"] = options.selector->why(question.problem);
    json["not_simulated"] = skipped_patterns(question, advice);
  }
  add_record(json, record_of(question, nullptr, options));
  return json;
}

// "GEMM + all-scatter 8192x4608x36864 on 8 GPUs of MI300X"
std::string heading_of(const Question& question) {
  const Workload& workload = *question.problem.workload;
  const int gpus = question.problem.gpus();
  return fmt::format("{} {} on {} GPU{} of {}", workload.title, workload.size_text(question.problem), gpus,
                     gpus == 1 ? "" : "s", question.machine.title());
}

// "library in other forms: eager 861.3 us, graph 850.1 us."
void add_forms(std::vector<std::string>& sentences, const Advice& advice) {
  for (const Candidate& candidate : advice.candidates) {
    std::vector<std::string> times;
    for (const FormTime& one : candidate.forms) {
      times.push_back(fmt::format("{} {:.1f} us", one.form, us(one.time_ns)));
    }
    if (times.empty()) continue;
    sentences.push_back(
        fmt::format("{} in other forms: {}.", candidate.pattern->name, fmt::join(times, ", ")));
  }
}

// "Own kernels are taken to be as Triton compiles them." And the effect of the same knobs in other classes.
std::string class_sentence(const Question& question, const Advice& advice, const Assessment& assessment) {
  const Candidate* own = rivals_of(advice.candidates, *question.problem.workload).own;
  if (own == nullptr || !own->knobs.has(kKernelsKnob)) return {};
  constexpr std::array<const char*, 3> kAre{"run by Tritax's executor", "compiled by Triton",
                                            "of vendor quality"};
  const auto place = [](KernelClass kernels) { return static_cast<std::size_t>(kernels); };
  std::string text = fmt::format("The model assumes own kernels {}.",
                                 kAre[place(kernel_class_of(*own->pattern, own->knobs))]);
  std::vector<std::string> others;
  for (const ClassVerdict& one : class_verdicts(question.problem, advice.candidates, assessment)) {
    others.push_back(fmt::format("{} takes {:.1f} us with kernels {} ({})", one.pattern->name,
                                 us(one.time.time_ns), kAre[place(one.time.kernels)], name_of(one.verdict)));
  }
  if (others.empty()) return text;
  return text + fmt::format(" With the knobs below, {}. --kernels searches for such kernels.",
                            fmt::join(others, ", and "));
}

// "Measured calls correct the times of similar library calls: cublas-h200-bf16, nccl-h200. NCCL uses
// multicast (NVLS)."
std::string library_sentence(const Question& question, const Advice& advice) {
  const Pattern* library = baseline_of(*question.problem.workload);
  if (library == nullptr || !library->vendor) return {};
  const auto found = std::find_if(advice.candidates.begin(), advice.candidates.end(),
                                  [&](const Candidate& one) { return one.pattern == library; });
  if (found == advice.candidates.end()) return {};
  const Machine& machine = question.machine;
  const Schedule schedule = build_schedule(*library, question.problem, machine, found->knobs);
  const std::vector<std::string> names = tables_used(machine, schedule);
  std::string text =
      names.empty()
          ? std::string(
                "Library times come from the model alone: no similar library call was measured on this "
                "machine.")
          : fmt::format("Measured calls correct the times of similar library calls: {}.",
                        fmt::join(names, ", "));
  const bool calls_nccl =
      std::any_of(schedule.kernels.begin(), schedule.kernels.end(), [](const Kernel& kernel) {
        return is_collective(kernel.library.routine) && !is_custom(kernel.library.routine);
      });
  if (machine.fabric.multicast && calls_nccl) text += " NCCL uses multicast (NVLS).";
  return text;
}

// The sentences below the table.
std::vector<std::string> said_below(const Question& question, const Advice& advice,
                                    const Assessment& assessment, const AdviseArguments& options) {
  std::vector<std::string> sentences = sentences_of(assessment, advice.candidates);
  add_forms(sentences, advice);
  if (std::string library = library_sentence(question, advice); !library.empty())
    sentences.push_back(std::move(library));
  if (const std::string held = pins_text(question.pins); !held.empty()) {
    sentences.push_back(fmt::format("Held fixed: {}.", held));
  }
  sentences.insert(sentences.end(), advice.explanation.begin(), advice.explanation.end());
  for (const std::string& reason : advice.left_out) sentences.push_back("Left out: " + reason);
  if (options.selector->why) {
    sentences.push_back(options.selector->why(question.problem));
    const std::vector<std::string> skipped = skipped_patterns(question, advice);
    if (!skipped.empty()) sentences.push_back(fmt::format("Not simulated: {}.", fmt::join(skipped, ", ")));
  }
  return sentences;
}

void print_advice(const Question& question, const Advice& advice, const AdviseArguments& options,
                  const Outputs& outputs) {
  outputs.print(styled(heading_of(question), Style::bold) + "\n\n");
  const Assessment assessment = assess(question.problem, question.machine, advice.candidates);
  const std::string verdict = verdict_of(question.problem, advice.candidates, assessment).sentence;
  if (!verdict.empty()) {
    outputs.print(wrapped(verdict));
    outputs.print(wrapped(class_sentence(question, advice, assessment)) + "\n");
  }
  outputs.print(table_of(candidate_fields(), ranked(advice.candidates, assessment), shown::kText));
  outputs.print("\n");
  for (const std::string& sentence : said_below(question, advice, assessment, options)) {
    outputs.print(wrapped(sentence));
  }
  if (options.commands) outputs.print("\n");
  for (const Candidate& candidate : advice.candidates) {
    outputs.print(command_of_run(scenario_of(question, candidate), other_options(options, question)) + '\n');
    if (!options.commands) break;  // only the winner's
  }
  if (options.commands) outputs.print("\n");
  outputs.print(
      styled(
          fmt::format("{} candidates simulated, {} of them stopped early; {} ruled out by their lower bound.",
                      advice.evaluated, advice.given_up, advice.pruned),
          Style::faint) +
      '\n');
}

std::string scenarios_text(const Question& question, const Advice& advice) {
  std::string text = "# Found by `tritax advise`, fastest first.\n";
  for (const Candidate& candidate : advice.candidates) {
    Scenario scenario = scenario_of(question, candidate);
    scenario.title = fmt::format("predicted {:.1f} us", us(candidate.time_ns));
    text += '\n' + write_scenario(scenario);
  }
  return text;
}

AdviseOptions search_options(const AdviseArguments& options, const InterruptibleWork& work) {
  AdviseOptions search_options;
  search_options.threads = options.threads.value_or(0);
  search_options.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  search_options.counterfactual = options.output.json || options.page.offered;  // only JSON and pages show it
  search_options.selector = options.selector;
  search_options.stop = &work.flag();
  return search_options;
}

// Adds the candidates, each as a complete record.
void add_records(RecordTable& table, const Question& question, const Advice& advice,
                 const AdviseArguments& options) {
  const Assessment assessment = assess(question.problem, question.machine, advice.candidates);
  const std::vector<Ranked> rows = ranked(advice.candidates, assessment);
  for (const Ranked& one : rows) {
    table.add(table_of<Ranked>(candidate_fields(), {one}, shown::kCsv),
              record_of(question, one.candidate, options));
  }
  if (rows.empty()) {
    table.add(table_of(candidate_fields(), rows, shown::kCsv), record_of(question, nullptr, options));
  }
}

Table record_table(const Question& question, const Advice& advice, const AdviseArguments& options) {
  RecordTable table;
  add_records(table, question, advice, options);
  return table.table();
}

std::string figure_of(const Question& question, const Advice& advice) {
  const Assessment assessment = assess(question.problem, question.machine, advice.candidates);
  BarsPlot plot;
  plot.title = heading_of(question);
  const bool known =
      std::any_of(assessment.bands.begin(), assessment.bands.end(), [](double band) { return band > 0; });
  plot.subtitle = known ? "whiskers span the prediction band; without one, nothing comparable was measured"
                        : "nothing comparable was measured";
  for (std::size_t i = 0; i < advice.candidates.size(); ++i) {
    const Candidate& candidate = advice.candidates[i];
    plot.bars.push_back({std::string(candidate.pattern->name), candidate.taxes.account, assessment.bands[i],
                         mark_of(assessment, i)});
  }
  return to_svg(plot);
}

// The ranking, and the winner's run in full.
Page page_of(const Question& question, const Advice& advice, const AdviseArguments& options,
             const InterruptibleWork& work) {
  Source source;
  source.scenario = scenario_of(question, advice.candidates.front());
  source.machine = question.machine_name;
  source.changes = question.changes;
  source.sustained = options.sustained;
  SimulationOptions simulation;
  simulation.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  simulation.stop = &work.flag();
  return {
      "advise",
      heading_of(question),
      advice_json(question, advice, options),
      said_below(question, advice, assess(question.problem, question.machine, advice.candidates), options),
      run_detail_json(load_run_input(source), simulation, options.page.inputs()),
      {question.machine},
      figure_of(question, advice)};
}

// Answers every question in turn, each on all cores; a question without an answer does not stop the others.
int answer_all(const std::vector<Question>& questions, const AdviseArguments& options, Outputs& outputs) {
  const InterruptibleWork work;
  std::vector<Answer> answers;
  ordered_json list = ordered_json::array();
  RecordTable records;
  bool refused = false;
  for (const Question& question : questions) {
    if (work.interrupted()) break;
    Answer& answer = answers.emplace_back(Answer{&question, {}, ""});
    try {
      answer.advice = search(question, search_options(options, work),
                             fmt::format("question {} of {}, candidates", answers.size(), questions.size()));
      add_records(records, question, answer.advice, options);
      list.push_back(advice_json(question, answer.advice, options));
    } catch (const UserError& error) {
      answer.refusal = error.what();
      refused = true;
      list.push_back(ordered_json{{"schema", "tritax.advise/1"}, {"refusal", answer.refusal}});
      add_record(list.back(), record_of(question, nullptr, options));
    }
  }
  const bool interrupted = work.interrupted();
  if (interrupted) {
    tell(fmt::format("tritax: interrupted; {} of {} questions were answered in full\n", answers.size() - 1,
                     questions.size()));
  }
  print_answers(answers, outputs);
  outputs.csv(records.table(), !interrupted);
  outputs.json({{"schema", "tritax.advise-table/1"},
                {"version", version()},
                {"questions", std::move(list)},
                {"interrupted", interrupted}});
  if (interrupted) return interrupted_exit_code();
  return refused ? kUserErrorExitCode : 0;
}

// Scenarios of a file have ids and machines, but no changes of machines.
void refuse_to_save(const std::vector<Question>& questions) {
  if (questions.size() > 1)
    throw UserError("--save-scenario: it writes the rows of one question, and several are given");
  if (questions.front().changes.empty()) return;
  throw UserError(
      fmt::format("--save-scenario: a scenario cannot hold changes of the machine; write the machine to a "
                  "file first: tritax machines show {}{} --toml",
                  questions.front().machine_name, questions.front().changes.front().as_option()));
}

int run(const AdviseArguments& options) {
  PageOutput page(options.page);
  Outputs outputs(options.output, page.taken_by());
  std::optional<OutputFile> scenario_file;
  if (options.save_scenario) {
    scenario_file.emplace(*options.save_scenario, "--save-scenario", OutputKind::scenario_file);
  }
  const std::vector<Question> questions = questions_of(options);
  if (options.save_scenario) refuse_to_save(questions);
  if (page.wanted() && questions.size() > 1) {
    throw UserError(fmt::format(
        "report: a page shows one question, and {} are given; choose one with --id, or give every option one "
        "value",
        questions.size()));
  }
  if (questions.size() > 1) return answer_all(questions, options, outputs);
  const Question& question = questions.front();
  const InterruptibleWork work;
  const Advice advice = search(question, search_options(options, work), "searching, candidates");
  if (advice.interrupted) {
    tell(fmt::format("tritax: interrupted; {}\n",
                     advice.candidates.empty() ? "nothing was found yet" : "this is the best so far"));
  }
  if (advice.candidates.empty()) {
    // A reader of standard output gets an answer with the interruption; an empty file would be worth less
    // than the file that it replaces.
    if (options.output.json == "-") outputs.json(advice_json(question, advice, options));
    if (options.output.csv == "-") outputs.csv(record_table(question, advice, options));
    return interrupted_exit_code();
  }
  print_advice(question, advice, options, outputs);
  outputs.csv(record_table(question, advice, options), !advice.interrupted);
  outputs.json(advice_json(question, advice, options));
  if (scenario_file) scenario_file->commit(scenarios_text(question, advice));
  page.write([&] { return page_of(question, advice, options, work); }, work, outputs);
  return work.interrupted() ? interrupted_exit_code() : 0;
}

}  // namespace

Run add_advise(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<AdviseArguments>();
  CLI::App& command =
      *program.add_subcommand("advise", "Rank the overlap patterns for a workload, each with its best knobs");
  options->command = &command;
  command.add_option("FILE", options->file, "Scenario file (TOML) with workloads, instead of sizes");
  command.add_option("--id", options->id, "Id of the scenario in FILE")->type_name("ID");
  add_problem_options(command, workload, *options);
  add_machine_options(command, *options, true);
  add_sustained_option(command, options->sustained);
  add_knob_options(command, workload, *options);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  add_selector_option(command, options->selector, "search");
  command.add_flag("--commands", options->commands, "Print the command that reproduces each row");
  add_output_options(command, options->output);
  add_page_options(command, options->page, PageShows::answers_and_run);
  command.add_option("--save-scenario", options->save_scenario, "Write the rows as scenarios (TOML)")
      ->type_name("FILE")
      ->group(kOutputGroup);
  command.footer(
      "The search tries all knobs of every pattern. Knobs that are given, here or in the scenario, stay\n"
      "fixed. Times cover kernels and host calls; --host-barriers adds the barriers of a harness. Taxes\n"
      "are those of the critical path. Several values of an option, and all scenarios of a file, make one\n"
      "table. Ctrl-C stops the search and prints the best result so far.\n\n"
      "Examples:\n"
      "  tritax advise --workload gemm-all-scatter -M 8192 -N 4608 -K 36864 --dtype fp16 --machine mi300x-8 "
      "--gpus 8\n"
      "  tritax advise -M 8192 -N 3584 -K 14336 --machine mi300x-8 --tile 256x256x64 --json -\n"
      "  tritax advise scenarios/llm.toml --id llama-3-70b/qkv/prefill --machine h200-8\n"
      "  tritax advise -M 64,512,8192 -N 4608 -K 36864 --machine mi300x-8 --gpus 2,4,8 --scale "
      "fabric.link=0.5\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli

// tritax advise: which overlap pattern to build, with which knobs, and why.
#include "sim/study/advise.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/again.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"
#include "cli/subject.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/scenario/write_scenario.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct AdviseArguments {
  OutputOptions output;
  std::string file;
  std::string id;
  std::string machine;
  Problem problem;
  Values pins;
  std::optional<int> threads;
  std::optional<std::int64_t> seed;
  bool sustained = false;
  bool commands = false;
  std::optional<std::string> save_scenario;
};

struct Question {
  Problem problem;
  Values pins;  // knobs of its workload
  Machine machine;
  std::string machine_name;  // or the path, as it was asked for
  std::string place;         // in front of messages; "" when the command line asks
};

// "tile 256x128x64, host_barriers true"; empty if everything is free.
std::string pins_text(const Values& pins) {
  std::string text;
  for (std::size_t i = 0; i < pins.specs().size(); ++i) {
    if (!pins.given_at(pins.first_column(i))) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", pins.specs()[i].name, text_of(pins, i));
  }
  return text;
}

bool same(const Question& a, const Question& b) {
  return a.machine.name == b.machine.name && a.problem == b.problem && pins_text(a.pins) == pins_text(b.pins);
}

// From the command line's sizes, or from a scenario of a file: its knobs are held unless the command line has
// others, its pattern does not matter here.
Question question_of(const AdviseArguments& options, const CLI::App& command) {
  if (options.file.empty()) {
    require_no_id(options.id);
    require_problem(options.problem, options.machine);
    const Machine machine = machine_of({std::nullopt, "", options.machine, options.sustained});
    return {problem_on(options.problem, machine), options.pins, machine, options.machine, ""};
  }
  SubjectOptions subject;
  subject.command = &command;
  subject.file = options.file;
  subject.id = options.id;
  subject.machine = options.machine;
  subject.sustained = options.sustained;
  std::optional<Question> question;
  for (const Source& source : sources_of(subject)) {
    if (!source.scenario) {
      throw UserError(fmt::format("'{}' is a schedule; there is nothing to choose", options.file));
    }
    const Problem& problem = source.scenario->problem;
    const Values pins =
        pins_of(*problem.workload, options.pins, fmt::format("scenario '{}'", source.scenario->id));
    Question next{problem, source.scenario->knobs.with(pins), machine_of(source), source.machine,
                  place_of(*source.scenario)};
    if (question && !same(*question, next)) {
      throw UserError(fmt::format(
          "--id: '{}' has scenarios of several problems, or with different knobs; choose one", options.file));
    }
    question = std::move(next);
  }
  return std::move(question.value());
}

Cell speedup_of(const Candidate& candidate) { return candidate.speedup ? Cell{*candidate.speedup} : Cell{}; }

bool has_harness(const Advice& advice) {
  return std::any_of(advice.candidates.begin(), advice.candidates.end(),
                     [](const Candidate& one) { return one.taxes.account.harness_ns > 0; });
}

Table candidate_table(const Advice& advice, bool with_harness = true) {
  Table table{{{"rank", "rank"},
               {"pattern", "pattern"},
               {"time_us", "time", "us"},
               {"speedup", "speedup", "", 2},
               {"launch_us", "launch", "us"},
               {"bulk_synchronous_us", "bulk-sync", "us"},
               {"locality_us", "locality", "us"}},
              {}};
  if (with_harness) table.columns.push_back({"harness_us", "harness", "us"});
  table.columns.push_back({"knobs", "knobs"});
  std::int64_t rank = 0;
  for (const Candidate& candidate : advice.candidates) {
    const TimeAccount& account = candidate.taxes.account;
    std::vector<Cell> row{++rank,
                          std::string(candidate.pattern->name),
                          us(candidate.time_ns),
                          speedup_of(candidate),
                          us(account.launch_ns),
                          us(account.bulk_synchronous_ns),
                          us(account.locality_ns)};
    if (with_harness) row.emplace_back(us(account.harness_ns));
    row.emplace_back(describe(*candidate.pattern, candidate.knobs));
    table.add(std::move(row));
  }
  return table;
}

// Those that ran: null where the pattern has no such knob, and what it chose where it chooses itself.
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
  return scenario_again(question.problem, *candidate.pattern, candidate.knobs, question.machine_name,
                        question.machine);
}

// What a command needs besides the scenario.
std::string other_options(const AdviseArguments& options) {
  std::string text = options.sustained ? " --sustained" : "";
  if (options.seed) text += fmt::format(" --seed {}", *options.seed);
  return text;
}

ordered_json candidate_json(const Question& question, const Candidate& candidate,
                            const std::string& other_options) {
  const TimeAccount& account = candidate.taxes.account;
  ordered_json json{{"pattern", candidate.pattern->name},
                    {"knobs", knobs_json(question, candidate)},
                    {"time_us", us(candidate.time_ns)},
                    {"speedup", nullptr},
                    {"taxes",
                     {{"launch_us", us(account.launch_ns)},
                      {"bulk_synchronous_us", us(account.bulk_synchronous_ns)},
                      {"locality_us", us(account.locality_ns)}}},
                    {"critical_path", json_of(account)},
                    {"counterfactual", json_of(candidate.taxes).at("counterfactual")},
                    {"kernels_us", us(candidate.result.kernels_ns)},
                    {"lower_bound_us", us(candidate.bound.total_ns)},
                    {"command", command_again(scenario_of(question, candidate), other_options)}};
  if (candidate.pattern->own_choice != nullptr) json["parts_of_k"] = candidate.rounds.parts;
  if (candidate.speedup) {
    json["speedup"] = *candidate.speedup;
  }
  return json;
}

ordered_json advice_json(const Question& question, const Advice& advice, const std::string& other_options) {
  ordered_json candidates = ordered_json::array();
  for (const Candidate& candidate : advice.candidates) {
    candidates.push_back(candidate_json(question, candidate, other_options));
  }
  return {{"schema", "tritax.advise/1"},         {"workload", json_of(question.problem)},
          {"machine", question.machine.name},    {"evaluated", advice.evaluated},
          {"candidates", std::move(candidates)}, {"explanation", advice.explanation},
          {"left_out", advice.left_out},         {"pruned", advice.pruned},
          {"given_up", advice.given_up},         {"interrupted", advice.interrupted}};
}

void print_advice(const Question& question, const Advice& advice, const AdviseArguments& options,
                  const Outputs& outputs) {
  const Workload& workload = *question.problem.workload;
  const int gpus = question.problem.gpus();
  outputs.print(
      styled(fmt::format("{} {} on {} GPU{} of {}", workload.title, workload.size_text(question.problem),
                         gpus, gpus == 1 ? "" : "s", question.machine.name),
             Style::bold) +
      "\n\n");
  outputs.print(candidate_table(advice, has_harness(advice)));
  outputs.print("\n");
  if (const std::string held = pins_text(question.pins); !held.empty()) {
    outputs.print(wrapped(fmt::format("Held fixed, as given: {}.", held)));
  }
  for (const std::string& sentence : advice.explanation) {
    outputs.print(wrapped(sentence));
  }
  for (const std::string& reason : advice.left_out) {
    outputs.print(wrapped("Left out: " + reason));
  }
  if (options.commands) outputs.print("\n");
  for (const Candidate& candidate : advice.candidates) {
    outputs.print(command_again(scenario_of(question, candidate), other_options(options)) + '\n');
    if (!options.commands) break;  // the winner's
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
  std::string text = "# As `tritax advise` found them, the fastest first.\n";
  for (const Candidate& candidate : advice.candidates) {
    Scenario scenario = scenario_of(question, candidate);
    scenario.title = fmt::format("predicted {:.1f} us", us(candidate.time_ns));
    text += '\n' + write_scenario(scenario);
  }
  return text;
}

Advice search(const Question& question, const AdviseArguments& options) {
  InterruptibleWork work;
  Progress progress("searching, candidates");
  AdviseOptions search_options;
  search_options.threads = options.threads.value_or(0);
  search_options.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  search_options.counterfactual = options.output.json.has_value();  // nothing else shows it
  search_options.pins = question.pins;
  search_options.stop = &work.flag();
  search_options.progress = [&progress](const AdviseProgress& state) {
    // How many candidates refinement will list is known when it has.
    progress.update(static_cast<std::size_t>(state.evaluated + state.pruned), 0);
  };
  return advise(question.problem, question.machine, search_options);
}

int run(const AdviseArguments& options, const CLI::App& command) {
  Outputs outputs(options.output);
  std::optional<OutputFile> scenario_file;
  if (options.save_scenario) {
    scenario_file.emplace(*options.save_scenario, "--save-scenario", OutputKind::scenario_file);
  }
  const Question question = question_of(options, command);
  const Advice advice = with_place(question.place, [&] { return search(question, options); });
  if (advice.interrupted) {
    tell(fmt::format("tritax: interrupted; {}\n",
                     advice.candidates.empty() ? "nothing was found yet" : "this is the best so far"));
  }
  if (advice.candidates.empty()) {
    // Whoever reads standard output gets an answer that says so; a file with nothing in it is worth less than
    // the one that it would replace.
    if (options.output.json == "-") outputs.json(advice_json(question, advice, other_options(options)));
    if (options.output.csv == "-") outputs.csv(candidate_table(advice));
    return kInterruptedExitCode;
  }
  print_advice(question, advice, options, outputs);
  outputs.csv(candidate_table(advice), !advice.interrupted);
  outputs.json(advice_json(question, advice, other_options(options)));
  if (scenario_file) scenario_file->commit(scenarios_text(question, advice));
  return advice.interrupted ? kInterruptedExitCode : 0;
}

}  // namespace

Run add_advise(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<AdviseArguments>();
  CLI::App& command =
      *program.add_subcommand("advise", "Rank the overlap patterns for a workload, best knobs of each");
  command.add_option("FILE", options->file,
                     "A scenario file (TOML) that holds the workload, instead of sizes");
  command.add_option("--id", options->id, "Which scenario of the file")->type_name("ID");
  add_problem_options(command, workload, options->problem);
  add_machine_option(command, options->machine);
  add_sustained_option(command, options->sustained);
  add_knob_options(command, workload, options->pins);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  command.add_flag("--commands", options->commands, "Print the command that makes each row again");
  add_output_options(command, options->output);
  command.add_option("--save-scenario", options->save_scenario, "Write the rows as scenarios (TOML)")
      ->type_name("FILE")
      ->group(kOutputGroup);
  command.footer(
      "Searches all knobs of every pattern; those that are given, here or in the scenario, are held fixed. "
      "Times are of\n"
      "kernels and host calls, without the barriers of a harness (--host-barriers adds them); taxes are "
      "those of "
      "the\n"
      "critical path. Ctrl-C stops the search and prints the best so far.\n\n"
      "Examples:\n"
      "  tritax advise --workload gemm-all-scatter -M 8192 -N 4608 -K 36864 --dtype fp16 --machine mi300x-8 "
      "--gpus 8\n"
      "  tritax advise -M 8192 -N 3584 -K 14336 --machine mi300x-8 --tile 256x256x64 --json -\n"
      "  tritax advise scenarios/llm.toml --id llama-3-70b/qkv/prefill --machine h200-8\n");
  return [options, &command] { return run(*options, command); };
}

}  // namespace tritax::cli

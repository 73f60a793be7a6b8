// tritax layer: the products of a language model's layer on several GPUs, each with its communication, and
// the steps where fusing both pays.
#include "sim/study/layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/bars_plot.hpp"
#include "cli/commands.hpp"
#include "cli/fields.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/questions.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "cli/trust.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/select/selector.hpp"
#include "sim/study/layer_fields.hpp"
#include "sim/study/ranked.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;
constexpr std::int32_t kMaxSplit = 1024;
constexpr std::int64_t kUsualBatch = 16;
constexpr std::int64_t kUsualSequence = 4096;

struct LayerArguments {
  OutputOptions output;
  PageOptions page;
  Asked asked;  // the machine and its changes
  bool sustained = false;
  std::string model;
  std::optional<std::int32_t> tp;
  std::string phase{kPhaseNames.front()};
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> sequence;
  std::string dtype;
  bool sequence_parallel = false;
  std::optional<int> threads;
  std::optional<std::int64_t> seed;
  const Selector* selector = nullptr;  // null: by the phase
};

// The questions, and the answers so far.
struct Study {
  LanguageModel model;
  DType dtype = DType::bf16;
  Deployment deployment;
  Machine machine;
  Layers layers;
  std::vector<Question> questions;  // one per step
  std::vector<StepAnswer> answers;  // one per step; all unless interrupted

  bool complete() const { return answers.size() == questions.size(); }
};

Machine machine_of(const LayerArguments& options) {
  if (options.asked.machine.empty()) throw UserError("--machine: missing; give --model and --machine");
  Source source;
  source.machine = options.asked.machine;
  source.changes = options.asked.changes;
  source.sustained = options.sustained;
  return machine_of(source);
}

Deployment deployment_of(const LayerArguments& options, const Machine& machine) {
  Deployment deployment;
  const std::int64_t most = machine.gpu_count();
  if (most < 2) {
    throw UserError(fmt::format("--machine: '{}' has 1 GPU; a layer is split over 2 or more", machine.name));
  }
  deployment.gpus = options.tp.value_or(static_cast<std::int32_t>(most));
  if (deployment.gpus > most) {
    throw UserError(fmt::format("--tp: {} is more than the machine '{}' has; give 2 to {}", deployment.gpus,
                                machine.name, most));
  }
  deployment.phase = static_cast<Phase>(parse_name(options.phase, "--phase", kPhaseNames));
  deployment.sequence_parallel = options.sequence_parallel;
  deployment.tokens = options.batch.value_or(kUsualBatch);
  if (deployment.phase == Phase::decode) {
    if (options.sequence) {
      throw UserError("--sequence: decode has one token per sequence; leave it out");
    }
    return deployment;
  }
  deployment.tokens *= options.sequence.value_or(kUsualSequence);
  if (deployment.tokens <= kMostTokens) return deployment;
  throw UserError(fmt::format("--batch --sequence: {} tokens are out of range; give up to {} together",
                              deployment.tokens, kMostTokens));
}

Study study_of(const LayerArguments& options) {
  if (options.model.empty()) {
    throw UserError(
        fmt::format("--model: missing; give one of {}, or a TOML file", fmt::join(shipped_models(), ", ")));
  }
  Study study;
  study.model = with_place("--model: ", [&] { return find_model(options.model); });
  study.machine = machine_of(options);
  study.deployment = deployment_of(options, study.machine);
  study.dtype = options.dtype.empty()
                    ? study.model.dtype
                    : static_cast<DType>(parse_name(options.dtype, "--dtype", kCommonDTypeNames));
  study.layers = layers_of(study.model, study.deployment, "--tp");
  const std::string place = study.deployment.phase == Phase::decode ? "--batch" : "--batch --sequence";
  for (const Step& step : study.layers.steps) {
    Question& question = study.questions.emplace_back();
    question.id = step.name;
    question.problem = problem_of(step, study.deployment, study.dtype, place);
    question.pins = pins_of(study.deployment.phase, question.problem, study.machine);
    question.machine = study.machine;
    question.machine_name = options.asked.machine;
    question.changes = options.asked.changes;
    question.place = fmt::format("{}: ", step.name);
  }
  return study;
}

// Selector by phase, because a search of the large products of prefill takes minutes.
const Selector& selector_of(const LayerArguments& options, Phase phase) {
  if (options.selector != nullptr) return *options.selector;
  return phase == Phase::decode ? selectors().front() : find_selector("bounds", "--selector");
}

void answer(Study& study, const LayerArguments& options, const InterruptibleWork& work) {
  AdviseOptions search_options;
  search_options.threads = options.threads.value_or(0);
  search_options.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  search_options.counterfactual = false;
  search_options.selector = &selector_of(options, study.deployment.phase);
  search_options.stop = &work.flag();
  for (const Question& question : study.questions) {
    Advice advice = search(question, search_options, fmt::format("{}, candidates", question.id));
    if (advice.interrupted) return;  // the best so far need not be the best of all
    study.answers.push_back(with_place(
        question.place, [&] { return judge(question.problem, std::move(advice), question.machine); }));
  }
}

std::vector<LayerStep> steps_of(const Study& study) {
  std::vector<LayerStep> steps;
  for (std::size_t i = 0; i < study.layers.steps.size(); ++i) {
    steps.push_back({&study.layers.steps[i], &study.questions[i].problem,
                     i < study.answers.size() ? &study.answers[i] : nullptr});
  }
  return steps;
}

std::vector<NamedLayerSum> sums_of(const Study& study) {
  std::vector<NamedLayerSum> sums;
  for (const LayerKind& kind : study.layers.kinds) {
    sums.push_back({fmt::format("one {}", kind.name), 1, sum_of(kind, study.answers)});
  }
  sums.push_back({"model", study.model.layers, sum_of(study.layers, study.answers)});
  return sums;
}

// "Fusing pays for down (two-shot, 1.16x)."
std::vector<std::string> sentences_of(const Study& study) {
  constexpr std::array<std::pair<Verdict, std::string_view>, 6> kTexts{{
      {Verdict::pays, "Fusing pays for {}."},
      {Verdict::may_pay, "Fusing may pay for {}."},
      {Verdict::tie, "Fusing is a tie for {}: leave it to the libraries."},
      {Verdict::leave_it, "Leave {} to the libraries."},
      {Verdict::unknown, "It is unknown whether fusing pays for {}."},
      {Verdict::alone, "No communication in {}: library products."},
  }};
  std::vector<std::string> sentences;
  for (const auto& [verdict, text] : kTexts) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < study.answers.size(); ++i) {
      const StepAnswer& answer = study.answers[i];
      if (answer.verdict != verdict) continue;
      const bool named = verdict == Verdict::pays || verdict == Verdict::may_pay || verdict == Verdict::tie;
      names.push_back(named ? fmt::format("{} ({}, {:.2f}x)", study.layers.steps[i].name,
                                          answer.best().pattern->name,
                                          answer.libraries_ns / answer.best().time_ns)
                            : std::string(study.layers.steps[i].name));
    }
    if (!names.empty()) {
      sentences.push_back(fmt::format(fmt::runtime(text), fmt::format("{}", fmt::join(names, ", "))));
    }
  }
  for (const StepAnswer& answer : study.answers) {
    if (answer.verdict == Verdict::alone) continue;
    for (const std::string& caution : answer.trust.cautions) {
      if (std::find(sentences.begin(), sentences.end(), caution) == sentences.end())
        sentences.push_back(caution);
    }
  }
  const bool unknown = std::any_of(study.answers.begin(), study.answers.end(), [](const StepAnswer& one) {
    return one.verdict != Verdict::alone && one.band <= 0;
  });
  if (unknown) sentences.emplace_back("The prediction band is unknown for some steps.");
  sentences.push_back(fmt::format("Not modelled: {}.", fmt::join(study.layers.left_out, ", ")));
  sentences.emplace_back(
      study.deployment.phase == Phase::decode
          ? "Each step is timed alone, as one graph. A graph of a whole layer has fewer launches."
          : "Each step is timed alone, in streams, from the first host call.");
  return sentences;
}

std::string heading_of(const Study& study) {
  const Deployment& deployment = study.deployment;
  return fmt::format("{}, {} of {} token{} in {}, tensor-parallel{} over {} GPUs of {}", study.model.name,
                     kPhaseNames[static_cast<std::size_t>(deployment.phase)], deployment.tokens,
                     deployment.tokens == 1 ? "" : "s", name_of(study.dtype),
                     deployment.sequence_parallel ? " and sequence-parallel" : "", deployment.gpus,
                     study.machine.title());
}

void print_study(const Study& study, const Outputs& outputs) {
  outputs.print(styled(heading_of(study), Style::bold) + "\n\n");
  outputs.print(table_of(layer_step_fields(), steps_of(study), shown::kText));
  outputs.print("\n");
  if (!study.complete()) return;
  outputs.print(table_of(layer_sum_fields(), sums_of(study), shown::kText));
  outputs.print("\n");
  for (const std::string& sentence : sentences_of(study)) outputs.print(wrapped(sentence));
}

Record record_of(const Study& study, std::size_t step, const LayerArguments& options) {
  Record record;
  record.machine = &study.machine;
  record.problem = &study.questions[step].problem;
  record.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  if (step < study.answers.size()) {
    record.pattern = study.answers[step].best().pattern;
    record.knobs = &study.answers[step].best().knobs;
  }
  return record;
}

Table csv_table(const Study& study, const LayerArguments& options) {
  RecordTable records;
  const std::vector<LayerStep> steps = steps_of(study);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    records.add(table_of<LayerStep>(layer_step_fields(), {steps[i]}, shown::kCsv),
                record_of(study, i, options));
  }
  return records.table();
}

// Adds, behind the fields, the times of all patterns.
ordered_json step_json(const LayerStep& step) {
  ordered_json json = json_of(layer_step_fields(), step);
  if (step.answer == nullptr) return json;
  const Fields<Ranked> fields = pick(candidate_fields(), {"pattern", "time"});
  ordered_json& patterns = json["patterns"] = ordered_json::array();
  for (const Candidate& one : step.answer->advice.candidates) {
    patterns.push_back(json_of(fields, Ranked{&one}));
  }
  json["standing"] = json_of(step.answer->trust, step.answer->band, step.answer->best_band);
  return json;
}

ordered_json study_json(const Study& study, const LayerArguments& options) {
  ordered_json steps = ordered_json::array();
  for (const LayerStep& step : steps_of(study)) {
    const std::size_t place = steps.size();
    steps.push_back(step_json(step));
    add_record(steps.back(), record_of(study, place, options));
  }
  ordered_json sums = ordered_json::array();
  if (study.complete()) {
    for (const NamedLayerSum& sum : sums_of(study)) sums.push_back(json_of(layer_sum_fields(), sum));
  }
  const Deployment& deployment = study.deployment;
  return {{"schema", "tritax.layer/1"},
          {"version", version()},
          {"model", study.model.name},
          {"source", study.model.source},
          {"machine", study.machine.name},
          {"phase", kPhaseNames[static_cast<std::size_t>(deployment.phase)]},
          {"tokens", deployment.tokens},
          {"dtype", name_of(study.dtype)},
          {"tp", deployment.gpus},
          {"sequence_parallel", deployment.sequence_parallel},
          {"selector", selector_of(options, deployment.phase).name},
          {"steps", std::move(steps)},
          {"sums", std::move(sums)},
          {"not_modelled", study.layers.left_out},
          {"interrupted", !study.complete()}};
}

// The best pattern of every step.
Page page_of(const Study& study, const LayerArguments& options) {
  BarsPlot plot;
  plot.title = heading_of(study);
  plot.subtitle =
      "best pattern of each step, time along the critical path; whiskers span the prediction band";
  for (std::size_t i = 0; i < study.answers.size(); ++i) {
    const StepAnswer& answer = study.answers[i];
    plot.bars.push_back({fmt::format("{}: {}", study.layers.steps[i].name, answer.best().pattern->name),
                         answer.best().taxes.account, answer.best_band,
                         std::string(name_of(answer.verdict))});
  }
  Page page;
  page.kind = "layer";
  page.title = heading_of(study);
  page.result = study_json(study, options);
  page.sentences = sentences_of(study);
  page.machines = {study.machine};
  page.figure = to_svg(plot);
  return page;
}

int run(const LayerArguments& options) {
  PageOutput page(options.page);
  Outputs outputs(options.output, page.taken_by());
  Study study = study_of(options);
  const InterruptibleWork work;
  answer(study, options, work);
  if (!study.complete()) {
    tell(fmt::format("tritax: interrupted; {} of {} steps were searched in full\n", study.answers.size(),
                     study.questions.size()));
  }
  print_study(study, outputs);
  outputs.csv(csv_table(study, options), study.complete());
  outputs.json(study_json(study, options));
  page.write([&] { return page_of(study, options); }, work, outputs);
  return study.complete() ? 0 : interrupted_exit_code();
}

void add_model_options(CLI::App& command, const std::shared_ptr<LayerArguments>& options) {
  command
      .add_option(
          "--model", options->model,
          fmt::format("Shipped language model ({}) or model file (TOML)", fmt::join(shipped_models(), ", ")))
      ->type_name("NAME|FILE");
  add_integer(command, "--tp", options->tp, "Tensor-parallel GPUs (default: all of the machine)", 2,
              kMaxSplit);
  command
      .add_option("--phase", options->phase, "decode (default): one token per sequence; prefill: all tokens")
      ->type_name("NAME");
  add_integer(command, "--batch", options->batch, "Sequences in flight (default: 16)", 1, kMostTokens);
  add_integer(command, "--sequence", options->sequence, "Tokens per sequence in prefill (default: 4096)", 1,
              kMostTokens);
  command
      .add_option("--dtype", options->dtype,
                  fmt::format("Element type of weights and activations: {} (default: the model's)",
                              fmt::join(kCommonDTypeNames, ", ")))
      ->type_name("NAME");
  command.add_flag(
      "--sequence-parallel", options->sequence_parallel,
      "Split rows between products: all-gather before and reduce-scatter after, instead of all-reduce");
}

}  // namespace

Run add_layer(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<LayerArguments>();
  CLI::App& command = *program.add_subcommand(
      "layer", "Find where fusing pays in a language model: every product of a layer with its communication");
  add_model_options(command, options);
  add_machine_options(command, options->asked, false);
  add_sustained_option(command, options->sustained);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  add_selector_option(command, options->selector, "search in decode, bounds in prefill");
  add_output_options(command, options->output);
  add_page_options(command, options->page, PageShows::answers);
  command.footer(
      "Products are per GPU: rows x columns x depth. 'libraries' is the vendor's GEMM and collective.\n"
      "Fusing pays where the best pattern beats them by more than the prediction band. The parts of a\n"
      "layer that are not modelled are listed below the table.\n\n"
      "Examples:\n"
      "  tritax layer --model llama-3-70b --machine mi300x-8\n"
      "  tritax layer --model llama-3-70b --tp 8 --phase prefill --batch 1 --sequence 4096 --machine "
      "mi300x-8\n"
      "  tritax layer --model deepseek-v3 --batch 64 --sequence-parallel --machine h200-8 --json -\n"
      "  tritax layer --model my-model.toml --tp 4 --machine h100-4\n");
  return [options] { return run(*options); };
}

}  // namespace tritax::cli

// tritax model: prefill and decode of a whole language model on a node, over batch, context, tensor and
// expert parallelism.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/bars_plot.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/model_output.hpp"
#include "cli/output.hpp"
#include "cli/questions.hpp"
#include "cli/record.hpp"
#include "cli/run_input.hpp"
#include "cli/svg.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/parts/fields.hpp"
#include "sim/study/model_time.hpp"

namespace tritax::cli {

namespace {

struct ModelArguments {
  OutputOptions output;
  Asked asked;  // the machine and its changes
  bool sustained = false;
  std::string model;
  std::string batch = "1,8,64";
  std::string context = "1024,8192";
  std::string tp;
  std::string ep;
  std::string dtype;
  std::optional<std::int64_t> pass_tokens;
  std::optional<std::int64_t> engine_us;
  std::optional<int> threads;
  std::optional<std::int64_t> seed;
  const Selector* selector = nullptr;  // null: by the phase
  bool blocks = false;
  std::string plot;
};

// "1:64:x2" or "64:512:+64", or one number.
std::vector<std::int64_t> counts_of_part(const std::string& part, const std::string& flag,
                                         std::int64_t highest) {
  const auto number = [&](const std::string& text) { return parse_integer(text, flag, 1, highest); };
  const std::size_t middle = part.find(':');
  if (middle == std::string::npos) return {number(part)};
  const std::size_t end = part.find(':', middle + 1);
  const char sign = end == std::string::npos || end + 2 >= part.size() ? ' ' : part[end + 1];
  if (sign != 'x' && sign != '+') {
    throw UserError(
        fmt::format("{}: '{}' is not a range; give FIRST:LAST:xFACTOR or FIRST:LAST:+STEP", flag, part));
  }
  const std::int64_t last = number(part.substr(middle + 1, end - middle - 1));
  const std::int64_t by = parse_integer(part.substr(end + 2), flag, sign == 'x' ? 2 : 1, highest);
  std::vector<std::int64_t> counts;
  for (std::int64_t at = number(part.substr(0, middle)); at <= last; at = sign == 'x' ? at * by : at + by) {
    counts.push_back(at);
    if (counts.size() > kMostModelPoints)
      throw UserError(fmt::format("{}: '{}' has too many values", flag, part));
  }
  if (counts.empty())
    throw UserError(fmt::format("{}: '{}': the first value must not be above the last", flag, part));
  return counts;
}

// "1,8,64" with ranges among them.
std::vector<std::int64_t> counts_of(const std::string& text, const std::string& flag, std::int64_t highest) {
  std::vector<std::int64_t> counts;
  for (const std::string& part : parts_of(text, flag)) {
    for (const std::int64_t count : counts_of_part(part, flag, highest)) {
      if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
    }
  }
  return counts;
}

std::vector<std::int64_t> gpus_asked(const std::string& text, const std::string& flag,
                                     const Machine& machine) {
  const std::int64_t most = machine.gpu_count();
  const std::vector<std::int64_t> counts = counts_of(text, flag, kMaxGpus);
  for (const std::int64_t count : counts) {
    if (count <= most) continue;
    throw UserError(fmt::format("{}: {} is more than the machine '{}' has; give 1 to {}", flag, count,
                                machine.name, most));
  }
  return counts;
}

// All combinations; the batch varies slowest. By default experts are shared by as many GPUs as products.
std::vector<ModelPoint> points_asked(const ModelArguments& options, const Machine& machine, bool experts) {
  const std::vector<std::int64_t> tps = options.tp.empty() ? std::vector<std::int64_t>{machine.gpu_count()}
                                                           : gpus_asked(options.tp, "--tp", machine);
  std::vector<std::int64_t> eps;
  if (!options.ep.empty()) eps = gpus_asked(options.ep, "--ep", machine);
  const std::vector<std::int64_t> batches = counts_of(options.batch, "--batch", kMostModelSequences);
  const std::vector<std::int64_t> contexts = counts_of(options.context, "--context", kMaxSize);
  const std::size_t count =
      batches.size() * contexts.size() * tps.size() * std::max<std::size_t>(eps.size(), 1);
  if (count > kMostModelPoints) {
    throw UserError(fmt::format("--batch --context --tp --ep: {} combinations are too many; give up to {}",
                                count, kMostModelPoints));
  }
  std::vector<ModelPoint> points;
  for (const std::int64_t batch : batches) {
    for (const std::int64_t context : contexts) {
      for (const std::int64_t tp : tps) {
        const std::vector<std::int64_t> usual{experts ? tp : 1};
        for (const std::int64_t ep : eps.empty() ? usual : eps) {
          points.push_back({batch, context, {static_cast<int>(tp), static_cast<int>(ep)}});
        }
      }
    }
  }
  return points;
}

ModelQuestion question_asked(const ModelArguments& options) {
  if (options.model.empty()) {
    throw UserError(
        fmt::format("--model: missing; give one of {}, or a TOML file", fmt::join(shipped_models(), ", ")));
  }
  if (options.asked.machine.empty()) throw UserError("--machine: missing; give --model and --machine");
  ModelQuestion question;
  question.model = with_place("--model: ", [&] { return find_model(options.model); });
  Source source;
  source.machine = options.asked.machine;
  source.changes = options.asked.changes;
  source.sustained = options.sustained;
  question.machine = machine_of(source);
  question.dtype = options.dtype.empty()
                       ? question.model.dtype
                       : static_cast<DType>(parse_name(options.dtype, "--dtype", kCommonDTypeNames));
  question.points = points_asked(options, question.machine, question.model.experts > 0);
  question.pass_tokens = options.pass_tokens.value_or(question.pass_tokens);
  question.engine_ns = 1e3 * static_cast<double>(options.engine_us.value_or(0));
  question.decode_selector = question.prefill_selector = options.selector;
  question.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
  question.threads = options.threads.value_or(0);
  question.place = option_name;
  return question;
}

std::string picture_of(const ModelQuestion& question, const ModelAnswers& answers) {
  BarsPlot plot;
  plot.title = model_heading(question);
  plot.subtitle = "time per output token with the libraries, as a graph, along the critical path";
  if (!answers.cautions.empty()) plot.subtitle += "; some blocks have no comparable measurement";
  for (const ModelAnswer& answer : answers.points) {
    if (!answer.decode) continue;
    const PhaseAnswer& decode = *answer.decode;
    plot.bars.push_back({point_text(answer.point), decode.account(), 0,
                         fmt::format("fused {:+.1f} %", 100 * decode.fused_change())});
  }
  return to_svg(plot);
}

void print_model(const ModelQuestion& question, const ModelAnswers& answers, bool blocks,
                 const Outputs& outputs) {
  outputs.print(styled(model_heading(question), Style::bold) + "\n\n");
  outputs.print(model_table(answers));
  const bool few = answers.points.size() == 1;
  for (const ModelAnswer& answer : answers.points) {
    if (!answer.prefill || !(blocks || few)) continue;
    for (const PhaseAnswer* phase : {&*answer.decode, &*answer.prefill}) {
      const bool decodes = phase == &*answer.decode;
      outputs.print("\n" +
                    styled(fmt::format("{}, {}", decodes ? "decode" : "prefill", point_text(answer.point)),
                           Style::bold) +
                    "\n");
      outputs.print(model_block_table(*phase));
    }
  }
  outputs.print("\n");
  for (const std::string& sentence : model_sentences(question, answers)) outputs.print(wrapped(sentence));
}

int run_model(const ModelArguments& options) {
  Outputs outputs(options.output);
  std::optional<OutputFile> plot;
  if (!options.plot.empty()) {
    require_svg(options.plot);
    plot.emplace(options.plot, "--plot");
  }
  ModelQuestion question = question_asked(options);
  const InterruptibleWork work;
  ModelAnswers answers;
  {
    Progress bar("blocks");
    question.stop = &work.flag();
    question.progress = [&](std::size_t done, std::size_t all) { bar.update(done, all); };
    answers = answer_model(question);
  }
  if (answers.interrupted) {
    tell(fmt::format("tritax: interrupted; {} of {} rows were answered\n", answers.points.size(),
                     question.points.size()));
  }
  print_model(question, answers, options.blocks, outputs);
  Record record;
  record.machine = &question.machine;
  record.seed = question.seed;
  outputs.csv(with_record(model_table(answers), record), !answers.interrupted);
  outputs.json(model_json(question, answers));
  if (plot && !answers.interrupted) plot->commit(picture_of(question, answers));
  return answers.interrupted ? interrupted_exit_code() : 0;
}

void add_counts(CLI::App& command, const char* flag, std::string& target, const std::string& help) {
  command.add_option(flag, target, help)->type_name("A,B,C");
}

}  // namespace

Run add_model(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<ModelArguments>();
  CLI::App& command = *program.add_subcommand(
      "model", "Time to first token and time per output token of a language model, and what fusing changes");
  command
      .add_option(
          "--model", options->model,
          fmt::format("Shipped language model ({}) or model file (TOML)", fmt::join(shipped_models(), ", ")))
      ->type_name("NAME|FILE");
  add_counts(command, "--batch", options->batch, "Sequences in flight over all GPUs (default: 1,8,64)");
  add_counts(command, "--context", options->context,
             "Tokens per prompt, and per sequence in decode (default: 1024,8192)");
  add_counts(command, "--tp", options->tp, "Tensor-parallel GPUs (default: all of the machine)");
  add_counts(command, "--ep", options->ep,
             "Expert-parallel GPUs: 1, or a multiple of --tp (default: as --tp)");
  command
      .add_option("--dtype", options->dtype,
                  fmt::format("Element type of weights and products: {} (default: the model's)",
                              fmt::join(kCommonDTypeNames, ", ")))
      ->type_name("NAME");
  add_integer(command, "--pass-tokens", options->pass_tokens,
              "Most tokens per prefill pass; longer prompts run in chunks (default: 8192)", 1, kMaxSize);
  add_integer(command, "--engine-us", options->engine_us,
              "Host time of a serving engine between two passes in us, while GPUs wait (default: 0)", 0,
              kMostEngineUs);
  command.add_flag("--blocks", options->blocks, "Show the blocks of every row, as for a single row");
  add_machine_options(command, options->asked, false);
  add_sustained_option(command, options->sustained);
  add_threads_option(command, options->threads);
  add_seed_option(command, options->seed);
  add_selector_option(command, options->selector, "bounds in decode, defaults in prefill");
  add_output_options(command, options->output);
  command.add_option("--plot", options->plot, "Draw where the time per output token goes, one bar per row")
      ->type_name("FILE.svg")
      ->group(kOutputGroup);
  command.footer(
      "Every block of a layer is simulated with all patterns of its workload. The results are for the\n"
      "libraries and for the fastest patterns. TPOT is for graph launches. TTFT ends when the last\n"
      "sequence of the batch has its first token, with kernels launched one by one. Ranges: 1:64:x2,\n"
      "1024:4096:+1024. docs/model.md says what is modelled.\n\n"
      "Examples:\n"
      "  tritax model --model llama-3-70b --machine mi300x-8\n"
      "  tritax model --model llama-3-70b --machine h200-8 --batch 16 --context 4096 --tp 8\n"
      "  tritax model --model deepseek-v3 --dtype fp8 --machine h200-8 --batch 64 --tp 1,8 --ep 8 --plot "
      "tpot.svg\n");
  return [options] { return run_model(*options); };
}

}  // namespace tritax::cli

#include "cli/model_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "cli/report.hpp"
#include "cli/version.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

double model_ms(double ns) { return ns / 1e6; }
double in_percent(double share) { return 100 * share; }

// The block with this verdict that gains most from fusing; null if no block has the verdict.
const BlockAnswer* most_gain(const PhaseAnswer& phase, Verdict verdict) {
  const BlockAnswer* most = nullptr;
  for (const BlockAnswer& block : phase.blocks) {
    if (block.verdict == verdict && (most == nullptr || block.change < most->change)) most = &block;
  }
  return most;
}

const std::string& name_of_block(const PhaseAnswer& phase, const BlockAnswer& block) {
  return phase.pass.blocks[static_cast<std::size_t>(&block - phase.blocks.data())].name;
}

std::string gain_text(const PhaseAnswer& phase) {
  for (const Verdict verdict : {Verdict::pays, Verdict::may_pay}) {
    const BlockAnswer* most = most_gain(phase, verdict);
    if (most == nullptr) continue;
    return fmt::format("{} by {} {:+.1f} %{}", name_of_block(phase, *most), most->best->pattern->name,
                       in_percent(most->change), verdict == Verdict::pays ? "" : " (may pay)");
  }
  return "nothing pays";
}

std::vector<Cell> model_row(const ModelAnswer& answer, std::size_t width) {
  const auto& [batch, context, deployment] = answer.point;
  std::vector<Cell> row{batch, context, std::int64_t{deployment.tp}, std::int64_t{deployment.ep}};
  if (!answer.prefill) {
    row.resize(width);
    if (answer.memory) row[width - 2] = answer.memory->bytes() / 1e9;
    row[width - 1] = answer.refusal;
    return row;
  }
  const PhaseAnswer& decode = *answer.decode;
  const TimeAccount& account = decode.account();
  const double time_ns = decode.time_ns();
  row.emplace_back(model_ms(answer.prefill->time_ns()));
  row.emplace_back(model_ms(time_ns));
  row.emplace_back(model_ms(decode.usual[static_cast<std::size_t>(LaunchForm::stream)].sum_ns()));
  row.emplace_back(answer.tokens_per_s());
  for (const double ns :
       {account.wire_ns, account.launch_ns, account.bulk_synchronous_ns, account.locality_ns}) {
    row.emplace_back(in_percent(ns / time_ns));
  }
  row.emplace_back(in_percent(decode.least_ns / time_ns));
  row.emplace_back(model_ms(decode.fused.sum_ns()));
  row.emplace_back(in_percent(decode.fused_change()));
  row.emplace_back(in_percent(answer.prefill->fused_change()));
  row.emplace_back(answer.memory->bytes() / 1e9);
  row.emplace_back(gain_text(decode));
  return row;
}

ordered_json block_json(const PhaseAnswer& phase, std::size_t index) {
  const PassBlock& block = phase.pass.blocks[index];
  const BlockAnswer& answer = phase.blocks[index];
  ordered_json json{{"block", block.name},
                    {"times", block.times},
                    {"time_us", us(answer.usual_ns)},
                    {"share", share_of_block(phase, index)},
                    {"account", json_of(account_of_block(phase, index))},
                    {"calls_us", us(answer.usual->calls_ns)}};
  if (!block.problem) {
    json["stream_bytes"] = block.stream_bytes;
    return json;
  }
  json["problem"] = json_of(*block.problem);
  json["pattern"] = answer.usual->pattern->name;
  json["best_pattern"] = answer.best->pattern->name;
  json["best_time_us"] = us(answer.best_ns);
  json["best_knobs"] = describe(*answer.best->pattern, answer.best->knobs);
  json["change_percent"] = in_percent(answer.change);
  json["verdict"] = name_of(answer.verdict);
  return json;
}

ordered_json phase_json(const PhaseAnswer& phase) {
  ordered_json blocks = ordered_json::array();
  for (std::size_t i = 0; i < phase.blocks.size(); ++i) blocks.push_back(block_json(phase, i));
  const TimeAccount& account = phase.account();
  return {{"time_us", us(phase.time_ns())},
          {"launched_as", kLaunchFormNames[static_cast<std::size_t>(phase.form)]},
          {"graph_us", us(phase.usual[0].sum_ns())},
          {"stream_us", us(phase.usual[1].sum_ns())},
          {"fused_us", us(phase.fused.sum_ns())},
          {"change_percent", in_percent(phase.fused_change())},
          {"roofline_us", us(phase.least_ns)},
          {"communication_share", account.wire_ns / phase.time_ns()},
          {"account", json_of(account)},
          {"passes", phase.pass.passes},
          {"sequences_of_a_replica", phase.pass.sequences},
          {"tokens_of_a_replica", phase.pass.tokens},
          {"blocks", std::move(blocks)}};
}

ordered_json point_json(const ModelAnswer& answer) {
  const auto& [batch, context, deployment] = answer.point;
  ordered_json json{{"batch", batch},
                    {"context", context},
                    {"tp", deployment.tp},
                    {"ep", deployment.ep},
                    {"gpus", deployment.gpus()}};
  if (answer.memory) {
    json["weight_bytes"] = answer.memory->weight_bytes;
    json["cache_bytes"] = answer.memory->cache_bytes;
    json["capacity_bytes"] = answer.memory->capacity_bytes;
  }
  if (!answer.prefill) {
    json["refused"] = answer.refusal;
    return json;
  }
  json["ttft_ms"] = model_ms(answer.prefill->time_ns());
  json["tpot_ms"] = model_ms(answer.decode->time_ns());
  json["tokens_per_s_per_gpu"] = answer.tokens_per_s();
  json["decode"] = phase_json(*answer.decode);
  json["prefill"] = phase_json(*answer.prefill);
  return json;
}

const Selector& selector_used(const Selector* asked, Phase phase) {
  return asked == nullptr ? usual_selector(phase) : *asked;
}

// "attention-out -1.2 to -3.4 % (two-shot, one-shot)" for every block where own kernels pay in some row.
std::vector<std::string> gains_of(const ModelAnswers& answers, bool decode) {
  struct Gain {
    double least = -std::numeric_limits<double>::infinity();
    double most = 0;
    std::vector<std::string_view> patterns;
  };
  std::map<std::string, Gain> gains;
  for (const ModelAnswer& answer : answers.points) {
    if (!answer.prefill) continue;
    const PhaseAnswer& phase = decode ? *answer.decode : *answer.prefill;
    for (const BlockAnswer& block : phase.blocks) {
      if (block.verdict != Verdict::pays) continue;
      Gain& gain = gains[name_of_block(phase, block)];
      gain.least = std::max(gain.least, in_percent(block.change));
      gain.most = std::min(gain.most, in_percent(block.change));
      const std::string_view name = block.best->pattern->name;
      if (std::find(gain.patterns.begin(), gain.patterns.end(), name) == gain.patterns.end())
        gain.patterns.push_back(name);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [block, gain] : gains) {
    const std::string least = fmt::format("{:.1f}", gain.least);
    const std::string most = fmt::format("{:.1f}", gain.most);
    const std::string range = least == most ? most : fmt::format("{} to {}", least, most);
    texts.push_back(fmt::format("{} {} % ({})", block, range, fmt::join(gain.patterns, ", ")));
  }
  return texts;
}

}  // namespace

double share_of_block(const PhaseAnswer& phase, std::size_t index) {
  const PassBlock& block = phase.pass.blocks[index];
  return phase.blocks[index].usual_ns * static_cast<double>(block.times * phase.pass.passes) /
         phase.time_ns();
}

std::string model_heading(const ModelQuestion& question) {
  return fmt::format("{} in {} on {}: prefill and decode", question.model.name, name_of(question.dtype),
                     question.machine.title());
}

std::string point_text(const ModelPoint& point) {
  const std::string text =
      fmt::format("batch {}, context {}, TP {}", point.batch, point.context, point.deployment.tp);
  return point.deployment.ep > 1 ? fmt::format("{}, EP {}", text, point.deployment.ep) : text;
}

Table model_table(const ModelAnswers& answers) {
  Table table{{{"batch", "batch"},
               {"context", "context"},
               {"tp", "TP"},
               {"ep", "EP"},
               {"ttft_ms", "TTFT", "ms"},
               {"tpot_ms", "TPOT", "ms", 2},
               {"tpot_stream_ms", "no graph", "ms", 2},
               {"tokens_per_s_per_gpu", "tokens/s per GPU", "", 0},
               {"communication_percent", "comm", "%"},
               {"launch_percent", "launch", "%"},
               {"bulk_synchronous_percent", "bulk-sync", "%"},
               {"locality_percent", "locality", "%"},
               {"roofline_percent", "roofline", "%"},
               {"fused_tpot_ms", "fused TPOT", "ms", 2},
               {"fused_tpot_percent", "change", "%"},
               {"fused_ttft_percent", "of TTFT", "%"},
               {"memory_gb", "memory", "GB"},
               {"note", "most by"}},
              {}};
  for (const ModelAnswer& answer : answers.points) table.add(model_row(answer, table.columns.size()));
  return table;
}

Table model_block_table(const PhaseAnswer& phase) {
  Table table{{{"block", "block"},
               {"times", "times"},
               {"workload", "workload"},
               {"pattern", "usual"},
               {"time_us", "time", "us"},
               {"share_percent", "share", "%"},
               {"wire_us", "comm", "us"},
               {"best_pattern", "best other"},
               {"best_time_us", "its time", "us"},
               {"change_percent", "change", "%", 2},
               {"verdict", "fuse?"}},
              {}};
  for (std::size_t i = 0; i < phase.blocks.size(); ++i) {
    const PassBlock& block = phase.pass.blocks[i];
    const BlockAnswer& answer = phase.blocks[i];
    std::vector<Cell> row{block.name, block.times * phase.pass.passes};
    row.emplace_back(block.problem ? std::string(block.problem->workload->name) : std::string("stream"));
    row.emplace_back(block.problem ? std::string(answer.usual->pattern->name) : std::string("-"));
    row.emplace_back(us(answer.usual_ns));
    row.emplace_back(in_percent(share_of_block(phase, i)));
    row.emplace_back(us(answer.usual->account.wire_ns * block.share));
    if (answer.best != answer.usual) {
      row.emplace_back(std::string(answer.best->pattern->name));
      row.emplace_back(us(answer.best_ns));
      row.emplace_back(in_percent(answer.change));
      row.emplace_back(std::string(name_of(answer.verdict)));
    }
    row.resize(table.columns.size());
    table.add(std::move(row));
  }
  return table;
}

std::vector<std::string> model_sentences(const ModelQuestion& question, const ModelAnswers& answers) {
  std::vector<std::string> sentences;
  for (const bool decode : {true, false}) {
    const std::vector<std::string> gains = gains_of(answers, decode);
    sentences.push_back(gains.empty()
                            ? fmt::format("Own kernels pay nowhere in {}.", decode ? "decode" : "prefill")
                            : fmt::format("Own kernels pay in {} for {}.", decode ? "decode" : "prefill",
                                          fmt::join(gains, ", ")));
  }
  sentences.push_back(fmt::format(
      "{} different problems were simulated. '{}' chose the knobs in decode, '{}' in prefill. --selector "
      "search tries more knobs and takes minutes.",
      answers.problems, selector_used(question.decode_selector, Phase::decode).name,
      selector_used(question.prefill_selector, Phase::prefill).name));
  if (question.model.latent) {
    sentences.emplace_back(
        "Latent attention in decode, norms, rotation, activations, embedding and sampling are not simulated: "
        "their times are bounds by memory or matrix cores.");
  } else {
    sentences.emplace_back(
        "Norms, rotation, activations, embedding and sampling are not simulated: their times are bounds by "
        "memory.");
  }
  for (const std::string& caution : answers.cautions) sentences.push_back(caution);
  sentences.push_back(
      fmt::format("Not modelled: {}.",
                  fmt::join(left_out_of(question.model, question.engine_ns > 0, question.place), ", ")));
  return sentences;
}

ordered_json model_json(const ModelQuestion& question, const ModelAnswers& answers) {
  ordered_json points = ordered_json::array();
  for (const ModelAnswer& answer : answers.points) points.push_back(point_json(answer));
  return {{"schema", "tritax.model/1"},
          {"version", version()},
          {"model", question.model.name},
          {"source", question.model.source},
          {"machine", question.machine.name},
          {"dtype", name_of(question.dtype)},
          {"pass_tokens", question.pass_tokens},
          {"engine_us", us(question.engine_ns)},
          {"seed", question.seed},
          {"decode_selector", selector_used(question.decode_selector, Phase::decode).name},
          {"prefill_selector", selector_used(question.prefill_selector, Phase::prefill).name},
          {"problems", answers.problems},
          {"points", std::move(points)},
          {"cautions", answers.cautions},
          {"not_modelled", left_out_of(question.model, question.engine_ns > 0, question.place)},
          {"interrupted", answers.interrupted}};
}

}  // namespace tritax::cli

#include "cli/sweep_point.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/evaluate_line.hpp"
#include "cli/fields.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"
#include "model/core/error.hpp"
#include "model/machine/changes.hpp"
#include "model/select/selector.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/layer.hpp"
#include "sim/study/layer_fields.hpp"
#include "sim/study/ranked.hpp"

namespace tritax::cli {

namespace {

constexpr std::array<std::string_view, 7> kOnlyOfLayers{
    "model", "tp", "phase", "batch", "sequence", "sequence_parallel", "dtype"};
constexpr std::array<std::string_view, 5> kOnlyOfProblems{"workload", "pattern", "problem", "knobs",
                                                          "max_operations"};

// Without a place in messages, because the reader of one point knows it: the key says it.
std::string point_text(const nlohmann::json& point, const char* key, const std::string& fallback) {
  if (!point.contains(key)) return fallback;
  if (!point.at(key).is_string())
    throw UserError(fmt::format("{}: {} is not a text", key, point.at(key).dump()));
  return point.at(key).get<std::string>();
}

std::optional<std::int64_t> point_number(const nlohmann::json& point, const char* key, std::int64_t low,
                                         std::int64_t high) {
  if (!point.contains(key)) return std::nullopt;
  const nlohmann::json& value = point.at(key);
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number >= low && number <= high) return number;
  }
  throw UserError(fmt::format("{}: {} is not allowed; give a whole number between {} and {}", key,
                              value.dump(), low, high));
}

bool point_truth(const nlohmann::json& point, const char* key) {
  if (!point.contains(key)) return false;
  if (!point.at(key).is_boolean()) throw UserError(fmt::format("{}: give true or false", key));
  return point.at(key).get<bool>();
}

std::uint64_t point_seed(const nlohmann::json& point) {
  constexpr std::int64_t kLargestSeed = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::uint64_t>(point_number(point, "seed", 0, kLargestSeed).value_or(1));
}

void add_changes_of(const nlohmann::json& point, const char* group, ChangeKind kind,
                    std::vector<ParameterChange>& changes) {
  if (!point.contains(group)) return;
  for (const auto& [key, value] : point.at(group).items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    changes.push_back(parse_change(kind, fmt::format("{}={}", key, text), GivenAs::argument));
  }
}

// A setting without an effect is an error, and would store the same answer under two keys.
template <typename Names>
void refuse_keys(const nlohmann::json& point, const Names& names, std::string_view question) {
  for (const std::string_view name : names) {
    if (point.contains(name))
      throw UserError(fmt::format("{}: it has no effect in '{}'; leave it out", name, question));
  }
}

nlohmann::ordered_json closed_form_of(const nlohmann::json& point, const Machine& machine) {
  const Scenario scenario = scenario_of_line(point, *workloads().front(), machine);
  const Workload& workload = *scenario.problem.workload;
  if (workload.bound_ns == nullptr) {
    throw UserError(fmt::format("workload: {} has no closed form; ask 'simulate' of it", workload.name));
  }
  const double bound_ns =
      least_time_ns(pattern_of(scenario), scenario.problem, machine, resolved_knobs(scenario, machine));
  // No positive lower bound is known, and 0 is no answer.
  if (bound_ns <= 0) {
    throw UserError(
        fmt::format("pattern: {} has no closed form; ask 'simulate' of it", pattern_of(scenario).name));
  }
  nlohmann::ordered_json answer{{"bound_us", us(bound_ns)}};
  const Work work = work_of(scenario.problem);
  answer["flops"] = work.flops;
  answer["bytes_per_gpu"] = work.bytes_per_gpu;
  return answer;
}

Deployment deployment_of_point(const nlohmann::json& point, const Machine& machine) {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;
  Deployment deployment;
  if (machine.gpu_count() < 2) throw UserError("machine: it has 1 GPU; a layer is split over 2 or more");
  deployment.gpus =
      static_cast<int>(point_number(point, "tp", 2, machine.gpu_count()).value_or(machine.gpu_count()));
  deployment.phase = static_cast<Phase>(
      parse_name(point_text(point, "phase", std::string(kPhaseNames.front())), "phase", kPhaseNames));
  deployment.sequence_parallel = point_truth(point, "sequence_parallel");
  deployment.tokens = point_number(point, "batch", 1, kMostTokens).value_or(16);
  const std::optional<std::int64_t> sequence = point_number(point, "sequence", 1, kMostTokens);
  if (deployment.phase == Phase::decode) {
    if (sequence) throw UserError("sequence: it has no effect in decode; leave it out");
    return deployment;
  }
  deployment.tokens *= sequence.value_or(4096);
  if (deployment.tokens > kMostTokens) {
    throw UserError(fmt::format("batch, sequence: {} tokens are out of range; give up to {} together",
                                deployment.tokens, kMostTokens));
  }
  return deployment;
}

AdviseOptions options_of_point(const nlohmann::json& point, const std::atomic<bool>& stop,
                               std::string_view usual_selector) {
  AdviseOptions options;
  options.seed = point_seed(point);
  options.counterfactual = false;
  options.selector = &find_selector(point_text(point, "selector", std::string(usual_selector)), "selector");
  options.stop = &stop;
  return options;
}

}  // namespace

std::shared_ptr<const Machine> PointAnswerer::named(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Machine>& machine = machines_[name];
  if (machine == nullptr) machine = std::make_shared<const Machine>(find_machine(name));
  return machine;
}

Machine PointAnswerer::machine_of(const nlohmann::json& point) {
  const std::string name = point_text(point, "machine", "");
  if (name.empty()) throw UserError("machine: missing; give one in [point] or on an axis");
  std::vector<ParameterChange> changes;
  add_changes_of(point, "set", ChangeKind::set, changes);
  add_changes_of(point, "scale", ChangeKind::scale, changes);
  Machine machine = changed(*named(name), changes);
  return point_truth(point, "sustained") ? sustained(std::move(machine)) : machine;
}

nlohmann::ordered_json PointAnswerer::advise_point(const nlohmann::json& point,
                                                   const Machine& machine) const {
  const Scenario scenario = scenario_of_line(point, *workloads().front(), machine);
  AdviseOptions options = options_of_point(point, stop_, selectors().front().name);
  options.pins = scenario.knobs;
  const Advice advice = advise(scenario.problem, machine, options);
  if (advice.interrupted) return nullptr;
  const Candidate& best = advice.candidates.front();
  const Fields<Ranked> fields = pick(candidate_fields(), {"pattern", "time"});
  nlohmann::ordered_json candidates = nlohmann::ordered_json::array();
  for (const Candidate& one : advice.candidates) {
    candidates.push_back(json_of(fields, Ranked{&one}));
    candidates.back()["knobs"] = json_of(one.knobs);
  }
  nlohmann::ordered_json answer =
      json_of(pick(candidate_fields(), {"pattern", "time", "speedup"}), Ranked{&best});
  answer["knobs"] = json_of(best.knobs);
  answer["critical_path"] = json_of(best.taxes.account);
  answer["candidates"] = std::move(candidates);
  return answer;
}

nlohmann::ordered_json PointAnswerer::layer_point(const nlohmann::json& point, const Machine& machine) const {
  const std::string name = point_text(point, "model", "");
  if (name.empty()) throw UserError("model: missing; give one in [point] or on an axis");
  const LanguageModel model = find_model(name);
  const Deployment deployment = deployment_of_point(point, machine);
  const std::string dtype_name = point_text(point, "dtype", std::string(name_of(model.dtype)));
  const auto dtype = static_cast<DType>(parse_name(dtype_name, "dtype", kCommonDTypeNames));
  const Layers layers = layers_of(model, deployment, "tp");
  // As in `tritax layer`: a search of the large products of prefill takes minutes.
  AdviseOptions options =
      options_of_point(point, stop_, deployment.phase == Phase::decode ? selectors().front().name : "bounds");
  std::vector<StepAnswer> answers;
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const Step& step : layers.steps) {
    const Problem problem = problem_of(step, deployment, dtype, "batch");
    options.pins = pins_of(deployment.phase, problem, machine);
    Advice advice = advise(problem, machine, options);
    if (advice.interrupted) return nullptr;
    answers.push_back(judge(problem, std::move(advice), machine));
    steps.push_back(json_of(layer_step_fields(), LayerStep{&step, &problem, &answers.back()}, shown::kSweep));
  }
  const NamedLayerSum sum{"model", model.layers, sum_of(layers, answers)};
  nlohmann::ordered_json answer = json_of(layer_sum_fields(), sum, shown::kSweep);
  answer["steps"] = std::move(steps);
  return answer;
}

nlohmann::ordered_json PointAnswerer::find_answer(const nlohmann::json& point) {
  const std::string question = point.at("ask").get<std::string>();
  const auto asked = static_cast<SweepQuestion>(parse_name(question, "ask", kSweepQuestionNames));
  if (!searches(asked)) refuse_keys(point, std::array<std::string_view, 1>{"selector"}, question);
  if (asked == SweepQuestion::layer) {
    refuse_keys(point, kOnlyOfProblems, question);
  } else {
    refuse_keys(point, kOnlyOfLayers, question);
  }
  const Machine machine = machine_of(point);
  switch (asked) {
    case SweepQuestion::advise:
      refuse_keys(point, std::array<std::string_view, 2>{"pattern", "max_operations"}, question);
      return advise_point(point, machine);
    case SweepQuestion::layer:
      return layer_point(point, machine);
    case SweepQuestion::closed_form:
      refuse_keys(point, std::array<std::string_view, 2>{"seed", "max_operations"}, question);
      return closed_form_of(point, machine);
    case SweepQuestion::simulate:
      break;
  }
  SimulationOptions options;
  options.seed = point_seed(point);
  options.stop = &stop_;
  const Scenario scenario = scenario_of_line(point, *workloads().front(), machine);
  nlohmann::ordered_json answer =
      time_of(build_scenario(scenario, machine), machine, options,
              point_number(point, "max_operations", 1, std::numeric_limits<std::int64_t>::max()));
  return stop_.load() ? nlohmann::ordered_json() : answer;
}

SweepAnswer PointAnswerer::answer(const nlohmann::json& point) {
  SweepAnswer found;
  try {
    const nlohmann::ordered_json answer = find_answer(point);
    if (!answer.is_null())
      found.answer = answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  } catch (const UserError& error) {
    found.error = error.what();
  } catch (const std::bad_alloc&) {
    found.error = "out of memory; give a smaller problem or larger tiles";
  }
  if (stop_.load() && found.answer.empty()) found.error.clear();
  return found;
}

}  // namespace tritax::cli

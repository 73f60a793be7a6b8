#include "sim/study/sensitivity.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "model/core/error.hpp"
#include "model/machine/parameters.hpp"

namespace tritax {

namespace {

constexpr double kStep = 0.1;

// Two runs of equal length may add their times in another order.
constexpr double kRounding = 1e-9;

// One simulation: a changed machine, or changed knobs on the same machine.
struct Task {
  std::size_t sensitivity = 0;
  std::size_t variation = 0;
  Machine machine;
  std::optional<Values> knobs;
};

struct Plan {
  std::vector<Sensitivity> inputs;
  std::vector<Task> tasks;

  // Starts the next input; `vary` adds its variations.
  void input(std::string name, std::string value) {
    inputs.emplace_back();
    inputs.back().input = std::move(name);
    inputs.back().value = std::move(value);
  }
  void vary(std::string value, Machine machine, std::optional<Values> knobs = std::nullopt) {
    inputs.back().variations.emplace_back().value = std::move(value);
    tasks.push_back(
        {inputs.size() - 1, inputs.back().variations.size() - 1, std::move(machine), std::move(knobs)});
  }
};

// Calls `visit` with a reference to the field of `machine` that `target` names. `rate` is the dtype of a
// MatrixRate.
template <typename Visit>
void with_field(Machine& machine, const ParameterTarget& target, DType rate, const Visit& visit) {
  std::visit(
      [&](auto member) {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, double Machine::*>) {
          visit(machine.*member);
        } else if constexpr (std::is_same_v<Member, double MatrixRate::*>) {
          visit(machine.gpu.matrix[static_cast<std::size_t>(rate)].*member);
        } else if constexpr (std::is_same_v<Member, double KernelCosts::*>) {
          visit(machine.interpreter.*member);
        } else if constexpr (std::is_same_v<Member, double HostCosts::*>) {
          visit(machine.host.*member);
        } else if constexpr (std::is_same_v<Member, int CopyEngines::*> ||
                             std::is_same_v<Member, double CopyEngines::*>) {
          visit(machine.copy_engine.*member);
        } else if constexpr (std::is_same_v<Member, int LibraryCosts::*> ||
                             std::is_same_v<Member, double LibraryCosts::*>) {
          visit(machine.library.*member);
        } else if constexpr (std::is_same_v<Member, int Fabric::*> ||
                             std::is_same_v<Member, double Fabric::*>) {
          visit(machine.fabric.*member);
        } else if constexpr (std::is_same_v<Member, int NodeNetwork::*> ||
                             std::is_same_v<Member, double NodeNetwork::*>) {
          visit(machine.network.*member);
        } else {
          visit(machine.gpu.*member);
        }
      },
      target);
}

std::string_view internal_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return " ns";
    case Dimension::data:
      return " B";
    case Dimension::rate:
      return " GB/s";
    case Dimension::clock:
      return " GHz";
    case Dimension::cycles:
      return " clk";
    case Dimension::bytes_per_clk:
      return " B/clk";
    case Dimension::flop_per_clk:
      return " flop/clk";
    case Dimension::power:
      return " W";
    case Dimension::energy_per_byte:
      return " pJ/B";
    case Dimension::count:
    case Dimension::share:
    case Dimension::boolean:
      break;
  }
  return "";
}

template <typename Field>
std::string text_of(Field value, Dimension dimension) {
  if constexpr (std::is_same_v<Field, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<Field, int>) {
    return fmt::format("{}", value);
  } else {
    return fmt::format("{:.6g}{}", value, internal_unit(dimension));
  }
}

// The other values of a field, inside the bounds of its parameter.
template <typename Field>
std::vector<Field> other_values(Field value, const ParameterSpec& spec) {
  if constexpr (std::is_same_v<Field, bool>) {
    return {!value};
  } else {
    std::vector<Field> values;
    for (const double factor : {1 - kStep, 1 + kStep}) {
      double other = static_cast<double>(value) * factor;
      if (std::is_same_v<Field, int> || spec.dimension == Dimension::count) {
        const double step = std::max(1.0, std::round(kStep * static_cast<double>(value)));
        other = static_cast<double>(value) + (factor < 1 ? -step : step);
      }
      other = std::min(other, spec.bounds.high);
      const bool above = spec.bounds.low_allowed ? other >= spec.bounds.low : other > spec.bounds.low;
      if (above && other != static_cast<double>(value)) {
        values.push_back(static_cast<Field>(other));
      }
    }
    return values;
  }
}

void plan_parameter(Plan& plan, const Machine& machine, const ParameterSpec& spec, const std::string& key,
                    DType rate) {
  Machine changed = machine;
  with_field(changed, spec.target, rate, [&](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    const Field value = field;
    if constexpr (!std::is_same_v<Field, bool>) {
      if (value == 0 && spec.presence != Presence::required) {
        return;  // the machine does not have the field
      }
    }
    plan.input(key, text_of(value, spec.dimension));
    for (const Field other : other_values(value, spec)) {
      field = other;
      plan.vary(text_of(other, spec.dimension), changed);
    }
    field = value;
  });
}

void plan_machine(Plan& plan, const Schedule& schedule, const Machine& machine) {
  std::set<DType> dtypes;
  for (const Buffer& buffer : schedule.buffers) {
    dtypes.insert(buffer.dtype);
  }
  for (const ParameterSpec& spec : parameter_specs()) {
    if (!std::holds_alternative<double MatrixRate::*>(spec.target)) {
      const std::string key =
          spec.table.empty() ? std::string(spec.name) : fmt::format("{}.{}", spec.table, spec.name);
      plan_parameter(plan, machine, spec, key, DType::fp16);
      continue;
    }
    for (const DType dtype : dtypes) {
      if (machine.gpu.rate(dtype).flop_per_clk_per_cu > 0) {
        plan_parameter(plan, machine, spec, fmt::format("{}.{}.{}", spec.table, name_of(dtype), spec.name),
                       dtype);
      }
    }
  }
}

// Plans the variations of one number: halved and doubled, or one step down and up.
void plan_number(Plan& plan, const Machine& machine, const Values& knobs, const Spec& spec,
                 std::size_t part) {
  const std::string column = spec.column(part);
  const std::int64_t value = knobs[column];
  if (value == 0) {
    return;  // the pattern decides
  }
  plan.input("knob " + column, fmt::format("{}", value));
  const std::int64_t step = std::max<std::int64_t>(1, std::llround(kStep * static_cast<double>(value)));
  for (const std::int64_t other : {spec.varies_by_doubling ? value / 2 : value - step,
                                   spec.varies_by_doubling ? value * 2 : value + step}) {
    if (other > 0) {
      Values changed = knobs;
      changed.give(column, other);
      plan.vary(fmt::format("{}", other), machine, changed);
    }
  }
}

void plan_name(Plan& plan, const Machine& machine, const Values& knobs, const Spec& spec,
               std::span<const std::string_view> names) {
  const auto present = static_cast<std::size_t>(knobs[spec.name]);
  plan.input(fmt::format("knob {}", spec.name), std::string(names[present]));
  const std::size_t varied = spec.varied_names > 0 ? spec.varied_names : names.size();
  for (std::size_t other = 0; other < varied; ++other) {
    if (other != present) {
      Values changed = knobs;
      changed.give(spec.name, static_cast<std::int64_t>(other));
      plan.vary(std::string(names[other]), machine, changed);
    }
  }
}

// Numbers first, then names.
void plan_knobs(Plan& plan, const Machine& machine, const Rebuild& rebuild) {
  static constexpr std::array<std::string_view, 2> kSwitch{"false", "true"};
  const auto is_number = [](const Spec& spec) {
    return spec.kind == ValueKind::integer || spec.kind == ValueKind::bytes;
  };
  for (const Spec& spec : rebuild.knobs.specs()) {
    if (!is_number(spec) || !rebuild.pattern->uses(spec.name)) continue;
    for (std::size_t part = 0; part < spec.columns(); ++part) {
      plan_number(plan, machine, rebuild.knobs, spec, part);
    }
  }
  for (const Spec& spec : rebuild.knobs.specs()) {
    if (is_number(spec) || !rebuild.pattern->uses(spec.name)) continue;
    plan_name(plan, machine, rebuild.knobs, spec, spec.kind == ValueKind::name ? spec.names : kSwitch);
  }
}

Variation run_task(Variation variation, const Task& task, const Schedule& schedule, const Rebuild* rebuild,
                   const SimulationOptions& options) {
  try {
    if (rebuild != nullptr) {
      const Schedule rebuilt = rebuild->build(task.machine, task.knobs.value_or(rebuild->knobs));
      variation.makespan_ns = simulate(rebuilt, task.machine, options).makespan_ns;
    } else {
      variation.makespan_ns = simulate(schedule, task.machine, options).makespan_ns;
    }
  } catch (const UserError& error) {
    variation.obstacle = error.what();
  }
  return variation;
}

void measure_effect(Sensitivity& input, double makespan_ns) {
  for (const Variation& variation : input.variations) {
    if (std::isnan(variation.makespan_ns)) {
      continue;
    }
    input.could_run = true;
    const double change = variation.makespan_ns / makespan_ns - 1;
    if (std::abs(change) > std::max(std::abs(input.effect), kRounding)) {
      input.effect = change;
    }
  }
}

}  // namespace

std::vector<Sensitivity> sensitivities(const Schedule& schedule, const Machine& machine,
                                       const Rebuild* rebuild, double makespan_ns,
                                       const SimulationOptions& options, const ProgressCall& progress) {
  Plan plan;
  plan_machine(plan, schedule, machine);
  if (rebuild != nullptr && rebuild->pattern != nullptr) {
    plan_knobs(plan, machine, *rebuild);
  }
  std::atomic<std::size_t> done{0};
  tbb::parallel_for(std::size_t{0}, plan.tasks.size(), [&](std::size_t i) {
    const Task& task = plan.tasks[i];
    Variation& variation = plan.inputs[task.sensitivity].variations[task.variation];
    variation = run_task(std::move(variation), task, schedule, rebuild, options);
    if (progress) {
      progress(++done, plan.tasks.size());
    }
  });
  for (Sensitivity& input : plan.inputs) {
    measure_effect(input, makespan_ns);
  }
  std::stable_sort(plan.inputs.begin(), plan.inputs.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.effect) > std::abs(b.effect);
  });
  return std::move(plan.inputs);
}

}  // namespace tritax

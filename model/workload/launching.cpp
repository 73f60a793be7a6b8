#include "model/workload/launching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/library_table.hpp"
#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostCallUs = 10000;

constexpr std::array<std::string_view, 2> kProcessesNames{"per-gpu", "one"};
// Values of the knob `form` by number: those of CallForm up to eager, then the one that the workload has
// beyond.
constexpr std::array<std::string_view, 3> kUsualForms{"stream", "graph", "eager"};
constexpr std::array<std::string_view, 4> kSliceForms{"stream", "graph", "eager", "eager-slices"};
constexpr std::array<std::string_view, 4> kCustomForms{"stream", "graph", "eager", "custom-graph"};

using Program = std::vector<HostOp>;

bool is_launch(const HostOp& op) {
  return op.kind == HostOpKind::launch || op.kind == HostOpKind::graph_launch || op.kind == HostOpKind::copy;
}

bool is_of_framework(const HostOp& op) { return op.is_work(kFrameworkSync) || op.is_work(kFrameworkGather); }

void without_gather(Program& program) {
  std::erase_if(program, [](const HostOp& op) { return op.is_work(kFrameworkGather); });
}

// The stream form of the header: work after a removed wait for a stream goes into that stream.
Program in_streams(const Program& program) {
  const auto last = std::find_if(program.rbegin(), program.rend(), is_launch);
  const auto behind_last = static_cast<std::size_t>(program.rend() - last);
  bool waits = false;
  for (std::size_t i = 0; i < behind_last; ++i) {
    waits = waits || program[i].kind == HostOpKind::stream_synchronize;
  }
  Program left;
  std::int32_t joined = -1;  // the stream of the last removed wait
  for (std::size_t i = 0; i < program.size(); ++i) {
    HostOp op = program[i];
    if (is_of_framework(op)) continue;
    if (op.kind == HostOpKind::stream_synchronize && i < behind_last) {
      joined = op.stream;
      continue;
    }
    // The last wait is for all streams.
    if (op.kind == HostOpKind::stream_synchronize && waits) continue;
    if (joined >= 0 && is_launch(op)) op.stream = joined;
    left.push_back(std::move(op));
  }
  return left;
}

// Puts the kernels between the harness and the last wait into one graph. False if there is other work than
// kernels.
bool to_graph(const Program& program, Program& with_graph, Graph& graph, std::int32_t id) {
  const auto first = std::find_if(program.begin(), program.end(), is_launch);
  const auto last = std::find_if(program.rbegin(), program.rend(), is_launch).base();
  if (first == program.end()) {
    with_graph = program;
    return true;
  }
  for (auto op = first; op != last; ++op) {
    if (op->kind == HostOpKind::host_work) continue;
    if (op->kind != HostOpKind::launch) return false;
    graph.push_back({op->kernel, op->stream});
  }
  std::copy_if(program.begin(), first, std::back_inserter(with_graph),
               [](const HostOp& op) { return op.kind != HostOpKind::host_work; });
  HostOp launch;
  launch.kind = HostOpKind::graph_launch;
  launch.graph = id;
  with_graph.push_back(launch);
  with_graph.insert(with_graph.end(), last, program.end());
  return true;
}

void give_form(Schedule& schedule, const Pattern& pattern, CallForm form) {
  if (form == CallForm::eager_slices) return;
  if (form == CallForm::custom_graph) form = CallForm::graph;  // the same form, of other kernels
  for (Program& program : schedule.host) {
    if (form == CallForm::eager) {
      without_gather(program);
      continue;
    }
    program = in_streams(program);
    if (form == CallForm::stream) continue;
    Program with_graph;
    Graph graph;
    const auto id = static_cast<std::int32_t>(schedule.graphs.size());
    if (!to_graph(program, with_graph, graph, id)) {
      throw UserError(fmt::format(
          "form: graph cannot hold pattern {}, whose host waits or orders streams by events; give stream",
          pattern.name));
    }
    program = std::move(with_graph);
    if (!graph.empty()) schedule.graphs.push_back(std::move(graph));
  }
}

void add_calls(Schedule& schedule, double call_ns) {
  for (Program& program : schedule.host) {
    Program longer;
    for (HostOp& op : program) {
      if (op.kind == HostOpKind::launch) {
        HostOp call;
        call.kind = HostOpKind::host_work;
        call.label = kKernelCall;
        call.duration_ns = call_ns;
        longer.push_back(std::move(call));
      }
      longer.push_back(std::move(op));
    }
    program = std::move(longer);
  }
}

}  // namespace

Spec form_knob(CallForm last) {
  const bool slices = last == CallForm::eager_slices;
  const bool custom = last == CallForm::custom_graph;
  Spec spec;
  spec.name = kFormKnob;
  spec.help = slices   ? "library calls: in one stream, as one graph, by a framework that waits between "
                         "calls (eager), or that also gathers into a list of slices (eager-slices)"
              : custom ? "library calls: in one stream, as one graph, by a framework with its waits (eager), "
                         "or as a graph with a serving engine's all-reduce (custom-graph)"
                       : "library calls: in one stream, as one graph, or by a framework with its waits "
                         "(eager)";
  spec.kind = ValueKind::name;
  spec.names = kUsualForms;
  if (slices) spec.names = kSliceForms;
  if (custom) spec.names = kCustomForms;
  spec.shown = "{}";
  spec.not_shown = static_cast<std::int64_t>(CallForm::stream);
  // Measurements call libraries like a framework.
  spec.value_if_column_missing = static_cast<std::int64_t>(slices ? CallForm::eager_slices : CallForm::eager);
  return spec;
}

Spec engine_knob() {
  Spec spec;
  spec.name = kEngineKnob;
  spec.help = "serving engine whose all-reduce custom-graph has: vLLM, SGLang or TensorRT-LLM";
  spec.kind = ValueKind::name;
  spec.names = kEngineNames;
  spec.shown = "all-reduce of {}";
  spec.not_shown = static_cast<std::int64_t>(Engine::vllm);
  return spec;
}

CallForm call_form_of(const Values& knobs) {
  const Spec& spec = *find_spec(knobs.specs(), kFormKnob);
  const auto value = static_cast<std::size_t>(knobs[kFormKnob]);
  if (spec.names[value] == kCustomForms.back()) return CallForm::custom_graph;
  return static_cast<CallForm>(value);
}

Spec processes_knob() {
  Spec spec;
  spec.name = kProcessesKnob;
  spec.help =
      "one process per GPU (per-gpu), as under torchrun and mpirun, or one process per node, whose launches "
      "take turns (one)";
  spec.kind = ValueKind::name;
  spec.names = kProcessesNames;
  spec.of_every_run = true;
  spec.shown = "{} process";
  spec.not_shown = 0;
  spec.value_if_column_missing = 1;  // tritax-gpu is one process
  return spec;
}

Spec call_knob() {
  Spec spec;
  spec.name = kCallKnob;
  spec.help = "extra host time per launch in us, for example for Triton from Python";
  spec.low = 0;
  spec.high = kMostCallUs;
  spec.shown = "{} us per call";
  spec.not_shown = 0;
  return spec;
}

LaunchMode launch_mode_of(const Problem& problem, const Values& pins) {
  if (pins.has(kFormKnob) && pins.given(kFormKnob)) {
    const CallForm form = call_form_of(pins);
    const bool graph = form == CallForm::graph || form == CallForm::custom_graph;
    return graph ? LaunchMode::graph : LaunchMode::stream;
  }
  if (pins.has(kLaunchKnob) && pins.given(kLaunchKnob)) return static_cast<LaunchMode>(pins[kLaunchKnob]);
  const Workload& workload = *problem.workload;
  std::int64_t rows = kMostGraphRows + 1;
  if (!workload.step_rows.empty()) rows = problem[workload.step_rows];
  if (workload.step_rows_of != nullptr) rows = workload.step_rows_of(problem);
  return rows <= kMostGraphRows ? LaunchMode::graph : LaunchMode::stream;
}

bool engine_is_measured(const Machine& machine, Engine engine) {
  const auto kind = static_cast<CollectiveKind>(static_cast<std::size_t>(CollectiveKind::vllm_all_reduce) +
                                                static_cast<std::size_t>(engine));
  return std::any_of(machine.collective_tables.begin(), machine.collective_tables.end(),
                     [&](const auto& table) { return table->knows(kind); });
}

Values in_mode(const Values& pins, LaunchMode mode, const Machine& machine) {
  Values all = pins;
  if (!pins.has(kFormKnob)) return all;
  const auto give = [&](std::string_view knob, std::int64_t value) {
    if (all.has(knob) && !all.given(knob)) all.give(knob, value);
  };
  const bool graph = mode == LaunchMode::graph;
  give(kLaunchKnob, static_cast<std::int64_t>(mode));
  const bool custom =
      graph && pins.has(kEngineKnob) && engine_is_measured(machine, static_cast<Engine>(pins[kEngineKnob]));
  const auto last = static_cast<std::int64_t>(kCustomForms.size() - 1);
  give(kFormKnob, custom ? last : static_cast<std::int64_t>(graph ? CallForm::graph : CallForm::stream));
  return all;
}

void launch_as(Schedule& schedule, const Pattern& pattern, const Values& knobs) {
  schedule.one_process = knobs.has(kProcessesKnob) && knobs[kProcessesKnob] == 1;
  if (pattern.uses(kFormKnob) && knobs.has(kFormKnob)) {
    give_form(schedule, pattern, call_form_of(knobs));
  }
  if (!pattern.calls_itself && pattern.uses(kCallKnob) && knobs.has(kCallKnob) && knobs[kCallKnob] > 0) {
    add_calls(schedule, 1e3 * static_cast<double>(knobs[kCallKnob]));
  }
}

}  // namespace tritax

#include "model/workload/workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "model/core/error.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"

namespace tritax {

bool Pattern::uses(std::string_view knob) const {
  if (knob == (vendor ? kFormKnob : kCallKnob)) return true;
  if (knob == kKernelsKnob && !vendor) return true;
  if (knob == kEngineKnob && vendor) return true;
  return std::find(knobs.begin(), knobs.end(), knob) != knobs.end();
}

Problem problem_of(const Workload& workload) { return {&workload, Values(workload.fields)}; }

std::string own_name(std::string_view field) { return std::string(field); }

void complete_problem(Problem& problem, const FieldPlace& place) {
  if (problem.workload->complete != nullptr) problem.workload->complete(problem, place);
}

void complete_problem(Problem& problem, const std::string& where) {
  complete_problem(problem, [&](std::string_view) { return where; });
}

Work work_of(const Problem& problem) {
  return problem.workload->work == nullptr ? Work{} : problem.workload->work(problem);
}

double message_bytes(const Problem& problem) {
  const Message message = problem.workload->message;
  if (message == Message::none) return 0;
  const double matrix = static_cast<double>(problem["rows"]) * static_cast<double>(problem["cols"]) *
                        bytes_of(static_cast<DType>(problem["dtype"]));
  return message == Message::matrix_a_gpu ? matrix * problem.gpus() : matrix;
}

void give_message(Problem& problem, std::int64_t bytes, const std::string& where) {
  const auto dtype = static_cast<DType>(problem["dtype"]);
  const std::int64_t gpus = problem.gpus();
  const bool of_each = problem.workload->message == Message::matrix_a_gpu;
  const std::int64_t step = static_cast<std::int64_t>(bytes_of(dtype)) * gpus;
  if (bytes < step || bytes % step != 0) {
    throw UserError(fmt::format("{}: {} bytes are not {} equal blocks of {} elements; give a multiple of {}",
                                where, bytes, gpus, name_of(dtype), step));
  }
  // Rows that divide evenly among GPUs, as wide as in the tables of collectives (scripts/make-library-table).
  const std::int64_t block = bytes / step;
  std::int64_t cols = 1024;
  while (block % cols != 0) cols /= 2;
  problem.values.give("rows", block / cols * (of_each ? 1 : gpus));
  problem.values.give("cols", cols);
}

Values resolved_knobs(const Problem& problem, const Machine& machine, const Values& given) {
  const Workload& workload = *problem.workload;
  const Values usual =
      workload.default_knobs == nullptr ? Values(workload.knobs) : workload.default_knobs(problem, machine);
  return usual.with(with_class(given, machine));
}

const Pattern& find_pattern(const Workload& workload, std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Pattern& pattern : workload.patterns) {
    if (pattern.name == name) return pattern;
    names.push_back(pattern.name);
  }
  const std::string nearest = nearest_name(std::string(name), names);
  throw UserError(fmt::format("{}: unknown pattern '{}'{}; the patterns are {}", where, name,
                              nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                              fmt::join(names, ", ")));
}

bool is_there(const Pattern& pattern, const Workload& workload) {
  return pattern.vendor || pattern.name == workload.baseline;
}

std::string_view untimed_of(const Workload& workload, const Pattern& pattern, const Values& knobs) {
  return workload.untimed != nullptr ? workload.untimed(pattern, knobs) : std::string_view();
}

const Pattern* baseline_of(const Workload& workload) {
  return workload.baseline.empty() ? nullptr : &find_pattern(workload, workload.baseline, "baseline");
}

namespace {

// Checks that all buffers fit in memory, including buffers that the pattern adds to the problem's matrices.
void check_buffers(const Pattern& pattern, const Schedule& schedule, const Gpu& gpu) {
  double bytes = 0;
  for (const Buffer& buffer : schedule.buffers) bytes += bytes_of(buffer, {0, 0, buffer.rows, buffer.cols});
  if (bytes <= gpu.hbm_bytes) return;
  throw UserError(fmt::format("workload: pattern {} needs {:.1f} GB on every GPU; {} has {:.1f} GB",
                              pattern.name, bytes / 1e9, gpu.name, gpu.hbm_bytes / 1e9));
}

}  // namespace

Schedule build_schedule(const Pattern& pattern, const Problem& problem, const Machine& machine,
                        const Values& knobs) {
  if (problem.gpus() > machine.gpu_count()) {
    throw UserError(fmt::format("gpus = {} is not allowed; machine {} has {}", problem.gpus(), machine.name,
                                machine.gpu_count()));
  }
  const KernelClass kernels = kernel_class_of(pattern, knobs);
  Schedule schedule = kernels == KernelClass::own
                          ? pattern.build(problem, machine, knobs)
                          : pattern.build(problem, machine_of_class(machine, kernels), knobs);
  check_buffers(pattern, schedule, machine.gpu);
  launch_as(schedule, pattern, knobs);
  write_as(schedule, kernels);
  return schedule;
}

double least_time_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& knobs) {
  const Workload& workload = *problem.workload;
  if (workload.bound_ns == nullptr) return 0;
  const KernelClass kernels = kernel_class_of(pattern, knobs);
  if (kernels == KernelClass::own) return workload.bound_ns(pattern, problem, machine, knobs);
  return workload.bound_ns(pattern, problem, machine_of_class(machine, kernels), knobs);
}

std::string describe(const Pattern& pattern, const Values& knobs) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < knobs.specs().size(); ++i) {
    const Spec& spec = knobs.specs()[i];
    if (spec.shown.empty() || !pattern.uses(spec.name)) continue;
    if (spec.not_shown && knobs.at(knobs.first_column(i)) == *spec.not_shown) continue;
    words.push_back(fmt::format(fmt::runtime(spec.shown), text_of(knobs, i)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace tritax

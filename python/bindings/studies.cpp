// Bindings of advise and explain.
#include <fmt/format.h>
#include <pybind11/stl.h>
#include <tbb/global_control.h>

#include <cmath>
#include <memory>

#include "model/core/error.hpp"
#include "model/select/selector.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/fields.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/runs.hpp"
#include "python/bindings/schedules.hpp"
#include "python/bindings/values.hpp"
#include "python/bindings/workloads.hpp"
#include "sim/study/advise.hpp"
#include "sim/study/assessment.hpp"
#include "sim/study/explain.hpp"
#include "sim/study/ranked.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

// An answer, with the machine and the problem that its doubts and candidates point to.
struct Answer {
  Problem problem;
  Machine machine;
  Advice advice;
  Assessment assessment;
};

struct RankedCandidate {
  std::shared_ptr<const Answer> answer;
  std::size_t place = 0;

  const Candidate* operator->() const { return &answer->advice.candidates[place]; }
  Ranked ranked() const { return {&answer->advice.candidates[place], &answer->assessment, place}; }
};

struct PythonAdvice {
  std::shared_ptr<const Answer> answer;

  RankedCandidate at(std::size_t place) const { return {answer, place}; }
  std::size_t size() const { return answer->advice.candidates.size(); }
};

PythonAdvice advise_python(const Problem& given, const Machine& machine, std::uint64_t seed, int threads,
                           const std::string& selector, bool taxes, const py::object& progress,
                           const py::kwargs& knobs) {
  auto answer = std::make_shared<Answer>();
  answer->problem = problem_on(given, machine);
  answer->machine = machine;
  AdviseOptions options;
  options.seed = seed;
  options.threads = threads_of(threads);
  options.counterfactual = taxes;
  options.selector = &find_selector(selector, "selector");
  options.pins = Values(answer->problem.workload->knobs);
  give_all(options.pins, knobs, std::string(answer->problem.workload->name));
  run_call(progress, [&](Call& call) {
    options.stop = &call.stop();
    options.progress = [&call](const AdviseProgress& state) {
      call.report(static_cast<std::uint64_t>(state.evaluated + state.pruned), 0);
    };
    answer->advice = advise(answer->problem, answer->machine, options);
    answer->assessment = assess(answer->problem, answer->machine, answer->advice.candidates);
  });
  return {std::move(answer)};
}

// Keyword arguments of schedule(): the knobs that the pattern uses, where they have a value.
py::dict candidate_knobs(const RankedCandidate& candidate) {
  py::dict knobs;
  const Values& values = candidate->knobs;
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    const Spec& spec = values.specs()[i];
    if (!spec.of_every_run && !candidate->pattern->uses(spec.name)) continue;
    py::object value = to_python(values, i);
    if (!value.is_none()) knobs[py::str(std::string(spec.name))] = std::move(value);
  }
  return knobs;
}

std::optional<Spread> spread_of(const RankedCandidate& candidate) {
  return candidate->spread.known() ? std::optional(candidate->spread) : std::nullopt;
}

py::dict candidate_record(const RankedCandidate& candidate) {
  return row_of(candidate_fields(), candidate.ranked());
}

py::list records_of(const PythonAdvice& advice) {
  py::list rows;
  for (std::size_t i = 0; i < advice.size(); ++i) rows.append(candidate_record(advice.at(i)));
  return rows;
}

RankedCandidate find_candidate(const PythonAdvice& advice, const std::string& pattern) {
  for (std::size_t i = 0; i < advice.size(); ++i) {
    if (advice.at(i)->pattern->name == pattern) return advice.at(i);
  }
  throw UserError(
      fmt::format("'{}' was not found to run on this problem; Advice.candidates has what was", pattern));
}

Answered answered(const PythonAdvice& advice) {
  const Answer& answer = *advice.answer;
  return verdict_of(answer.problem, answer.advice.candidates, answer.assessment);
}

py::list forms_of(const PythonAdvice& advice) {
  return rows_of(library_form_fields(), library_forms(advice.answer->advice.candidates));
}

py::list classes_of(const PythonAdvice& advice) {
  const Answer& answer = *advice.answer;
  return rows_of(class_verdict_fields(),
                 class_verdicts(answer.problem, answer.advice.candidates, answer.assessment));
}

std::optional<double> known(double value) { return value > 0 ? std::optional<double>(value) : std::nullopt; }

void add_candidates(py::module_& module) {
  using C = RankedCandidate;
  py::class_<C> type(module, "Candidate", "The best candidate of one pattern");
  add_properties(type, candidate_fields(), &C::ranked);
  type.def_property_readonly("knobs", &candidate_knobs, "As keyword arguments of schedule()")
      .def_property_readonly("account", [](const C& one) { return one->taxes.account; })
      .def_property_readonly("taxes", [](const C& one) { return one->taxes; })
      .def_property_readonly("spread", &spread_of, "With other seeds; None where these were not run")
      .def("record", &candidate_record)
      .def("__repr__", [](const C& one) {
        return fmt::format("<Candidate {} {}: {:.1f} us, {}>", one.place + 1, one->pattern->name,
                           one->time_ns / 1000, describe(*one->pattern, one->knobs));
      });
}

void add_advice(py::module_& module) {
  using A = PythonAdvice;
  py::class_<A> type(module, "Advice", "The patterns of a workload, ranked");
  add_properties(type, answered_fields(), &answered);
  type.def_property_readonly("candidates",
                             [](const A& advice) {
                               std::vector<RankedCandidate> all;
                               for (std::size_t i = 0; i < advice.size(); ++i) all.push_back(advice.at(i));
                               return all;
                             })
      .def_property_readonly("best", [](const A& advice) { return advice.at(0); })
      .def("__getitem__", &find_candidate, py::arg("pattern"))
      .def_property_readonly("explanation", [](const A& advice) { return advice.answer->advice.explanation; })
      .def_property_readonly("left_out", [](const A& advice) { return advice.answer->advice.left_out; })
      .def_property_readonly("evaluated", [](const A& advice) { return advice.answer->advice.evaluated; })
      .def_property_readonly(
          "given_up", [](const A& advice) { return advice.answer->advice.given_up; },
          "Of those evaluated: stopped early")
      .def_property_readonly("pruned", [](const A& advice) { return advice.answer->advice.pruned; })
      .def_property_readonly(
          "band",
          [](const A& advice) {
            const std::vector<double>& bands = advice.answer->assessment.bands;
            return known(bands.empty() ? 0 : bands.front());
          },
          "Prediction band of the best time; None: nothing comparable was measured")
      .def_property_readonly(
          "ratio_band", [](const A& advice) { return known(advice.answer->assessment.band); },
          "The same of the ratio of the best own pattern to what is there without, on which the verdict "
          "rests")
      .def_property_readonly("cautions",
                             [](const A& advice) { return advice.answer->assessment.trust.cautions; })
      .def_property_readonly("library_forms", &forms_of, "Libraries called otherwise, as dicts")
      .def_property_readonly("kernel_classes", &classes_of,
                             "What the knobs of the rows give in other kernel classes, as dicts")
      .def(
          "frame", [](const A& advice) { return frame_of(records_of(advice)); }, "As a pandas.DataFrame");
  module.def(
      "advise", &advise_python, py::arg("problem"), py::arg("machine"), py::kw_only(), py::arg("seed") = 1,
      py::arg("threads") = 0, py::arg("selector") = std::string(selectors().front().name),
      py::arg("taxes") = true, py::arg("progress") = py::none(),
      "Which pattern, with which knobs; those given by keyword are held. progress(candidates done, 0)");
}

// One row per varied value of an input.
void add_rows(py::list& rows, const std::vector<Sensitivity>& inputs, double makespan_ns) {
  for (const Sensitivity& input : inputs) {
    for (const Variation& variation : input.variations) {
      py::dict row;
      row["input"] = input.input;
      row["value"] = input.value;
      row["varied_to"] = variation.value;
      row["makespan_ns"] = variation.makespan_ns;
      row["change"] = variation.makespan_ns / makespan_ns - 1;
      row["obstacle"] = variation.obstacle;
      rows.append(std::move(row));
    }
  }
}

struct PythonExplanation {
  Run run;
  std::vector<std::string> sentences;
  py::list overlaps;
  py::list sensitivities;
};

// One row per GPU.
py::list rows_of(const std::vector<Overlap>& overlaps) {
  py::list rows;
  for (const Overlap& one : overlaps) {
    py::dict row;
    row["rank"] = rows.size();
    row["computing_ns"] = one.computing_ns;
    row["communicating_ns"] = one.communicating_ns;
    row["both_ns"] = one.both_ns;
    row["idle_ns"] = one.idle_ns;
    row["hidden"] = one.hidden();
    row["idle_launch_ns"] = one.idle.launch_ns;
    row["idle_flag_ns"] = one.idle.flag_ns;
    row["idle_kernel_ns"] = one.idle.kernel_ns;
    row["idle_other_ns"] = one.idle.other_ns;
    rows.append(std::move(row));
  }
  return rows;
}

PythonExplanation explain_python(const BoundSchedule& schedule, const Machine& machine, std::uint64_t seed,
                                 int threads, const py::object& progress) {
  threads_of(threads);
  Explanation found;
  run_call(progress, [&](Call& call) {
    std::unique_ptr<tbb::global_control> cores;
    if (threads > 0) {
      cores = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    static_cast<std::size_t>(threads));
    }
    schedule.require_sound_on(machine);
    SimulationOptions options;
    options.seed = seed;
    options.stop = &call.stop();
    found = explain(*schedule, machine, schedule.rebuild(), options,
                    [&call](std::size_t done, std::size_t total) { call.report(done, total); });
  });
  PythonExplanation answer{run_of(found.result, *schedule, machine), std::move(found.sentences),
                           rows_of(found.overlaps), py::list()};
  answer.run.taxes = found.taxes;
  for (const auto* inputs : {&found.with_effect, &found.without_effect, &found.not_variable}) {
    add_rows(answer.sensitivities, *inputs, found.result.makespan_ns);
  }
  return answer;
}

void add_explanations(py::module_& module) {
  using E = PythonExplanation;
  py::class_<E>(module, "Explanation", "Why a run takes as long as it does")
      .def_readonly("run", &E::run)
      .def_readonly("sentences", &E::sentences)
      .def_readonly(
          "overlaps", &E::overlaps,
          "A row a GPU: how long it computes, communicates, does both or neither (by cause), and the "
          "share of communicating that goes on beside products")
      .def_readonly("sensitivities", &E::sensitivities,
                    "A row for every other value of an input, strongest first")
      .def(
          "frame", [](const E& one) { return frame_of(one.sensitivities); },
          "The sensitivities as a pandas.DataFrame");
  module.def("explain", &explain_python, py::arg("schedule"), py::arg("machine"), py::kw_only(),
             py::arg("seed") = 1, py::arg("threads") = 0, py::arg("progress") = py::none(),
             "Varies every parameter of the machine, and the knobs of a schedule that a pattern built. "
             "progress(simulations done, all)");
}

}  // namespace

void add_studies(py::module_& module) {
  add_candidates(module);
  add_advice(module);
  add_explanations(module);
}

}  // namespace tritax::python

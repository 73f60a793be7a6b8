// Whole language models: prefill and decode over batch, context, tensor and expert parallelism.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/workload/parse_value.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/runs.hpp"
#include "sim/study/model_time.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

using Counts = std::vector<std::int64_t>;

void require_counts(const Counts& counts, const std::string& what, std::int64_t most) {
  if (counts.empty()) throw UserError(what + ": empty; give one or more numbers");
  for (const std::int64_t count : counts) parse_integer(std::to_string(count), what, 1, most);
}

std::vector<ModelPoint> points_of(const Counts& batch, const Counts& context, const Counts& tp,
                                  const Counts& ep, bool experts) {
  const std::size_t count = batch.size() * context.size() * tp.size() * std::max<std::size_t>(ep.size(), 1);
  if (count > kMostModelPoints) {
    throw UserError(fmt::format("batch, context, tp, ep: {} combinations are too many; give up to {}", count,
                                kMostModelPoints));
  }
  std::vector<ModelPoint> points;
  for (const std::int64_t sequences : batch) {
    for (const std::int64_t tokens : context) {
      for (const std::int64_t gpus : tp) {
        const Counts usual{experts ? gpus : 1};
        for (const std::int64_t sharers : ep.empty() ? usual : ep)
          points.push_back({sequences, tokens, {static_cast<int>(gpus), static_cast<int>(sharers)}});
      }
    }
  }
  return points;
}

void add_phase(py::dict& row, const std::string& prefix, const PhaseAnswer& phase) {
  const TimeAccount& account = phase.account();
  const auto put = [&](const char* name, double value) { row[py::str(prefix + name)] = value; };
  put("_ns", phase.time_ns());
  put("_graph_ns", phase.usual[static_cast<std::size_t>(LaunchForm::graph)].sum_ns());
  put("_stream_ns", phase.usual[static_cast<std::size_t>(LaunchForm::stream)].sum_ns());
  put("_fused_ns", phase.fused.sum_ns());
  put("_roofline_ns", phase.least_ns);
  put("_communication_ns", account.wire_ns);
  put("_launch_ns", account.launch_ns);
  put("_bulk_synchronous_ns", account.bulk_synchronous_ns);
  put("_locality_ns", account.locality_ns);
  for (std::size_t i = 0; i < phase.blocks.size(); ++i) {
    const BlockAnswer& block = phase.blocks[i];
    if (block.verdict != Verdict::pays) continue;
    put(("_change_" + phase.pass.blocks[i].name).c_str(), block.change);
  }
}

py::dict model_row(const ModelAnswer& answer) {
  py::dict row;
  row["batch"] = answer.point.batch;
  row["context"] = answer.point.context;
  row["tp"] = answer.point.deployment.tp;
  row["ep"] = answer.point.deployment.ep;
  row["gpus"] = answer.point.deployment.gpus();
  row["weight_bytes"] = answer.memory ? py::object(py::float_(answer.memory->weight_bytes)) : py::none();
  row["cache_bytes"] = answer.memory ? py::object(py::float_(answer.memory->cache_bytes)) : py::none();
  row["refused"] = answer.refusal.empty() ? py::object(py::none()) : py::str(answer.refusal);
  if (!answer.prefill) return row;
  row["tokens_per_s_per_gpu"] = answer.tokens_per_s();
  add_phase(row, "ttft", *answer.prefill);
  add_phase(row, "tpot", *answer.decode);
  return row;
}

py::object model_python(const std::string& name, const Machine& machine, const Counts& batch,
                        const Counts& context, Counts tp, const Counts& ep, const std::string& dtype,
                        std::int64_t pass_tokens, double engine_us, const py::object& selector,
                        std::uint64_t seed, int threads, const py::object& progress) {
  ModelQuestion question;
  question.model = find_model(name);
  question.machine = machine;
  question.dtype = dtype.empty() ? question.model.dtype
                                 : static_cast<DType>(parse_name(dtype, "dtype", kCommonDTypeNames));
  if (tp.empty()) tp = {machine.gpu_count()};
  require_counts(batch, "batch", kMostModelSequences);
  require_counts(context, "context", kMaxSize);
  require_counts(tp, "tp", machine.gpu_count());
  if (!ep.empty()) require_counts(ep, "ep", machine.gpu_count());
  parse_integer(std::to_string(pass_tokens), "pass_tokens", 1, kMaxSize);
  question.points = points_of(batch, context, tp, ep, question.model.experts > 0);
  if (!(engine_us >= 0 && engine_us <= static_cast<double>(kMostEngineUs))) {
    throw UserError(
        fmt::format("engine_us: {} is no number of microseconds from 0 to {}", engine_us, kMostEngineUs));
  }
  question.pass_tokens = pass_tokens;
  question.engine_ns = 1e3 * engine_us;
  if (!selector.is_none()) {
    question.decode_selector = &find_selector(selector.cast<std::string>(), "selector");
    question.prefill_selector = question.decode_selector;
  }
  question.seed = seed;
  question.threads = threads_of(threads);
  ModelAnswers answers;
  run_call(progress, [&](Call& call) {
    question.stop = &call.stop();
    question.progress = [&call](std::size_t done, std::size_t all) { call.report(done, all); };
    answers = answer_model(question);
  });
  py::list rows;
  for (const ModelAnswer& answer : answers.points) rows.append(model_row(answer));
  return frame_of(rows);
}

}  // namespace

void add_models(py::module_& module) {
  module.def("model", &model_python, py::arg("model"), py::arg("machine"), py::kw_only(),
             py::arg("batch") = Counts{1, 8, 64}, py::arg("context") = Counts{1024, 8192},
             py::arg("tp") = Counts{}, py::arg("ep") = Counts{}, py::arg("dtype") = std::string(),
             py::arg("pass_tokens") = 8192, py::arg("engine_us") = 0.0, py::arg("selector") = py::none(),
             py::arg("seed") = 1, py::arg("threads") = 0, py::arg("progress") = py::none(),
             "Time to first token and per output token of a language model as a pandas.DataFrame, a row a "
             "combination; what cannot be says why in `refused`");
}

}  // namespace tritax::python

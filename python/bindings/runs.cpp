#include "python/bindings/runs.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <atomic>
#include <utility>

#include "model/machine/topology.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/fields.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/timelines.hpp"
#include "sim/account_fields.hpp"
#include "sim/run_fields.hpp"
#include "sim/timeline.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

// Records the requested data, and counts operations for the progress.
class WatchedRun final : public SimulationObserver, public CounterObserver {
 public:
  WatchedRun(const Schedule& schedule, bool record, Call& call) : total_(schedule.ops.size()), call_(call) {
    if (record) recorder_.emplace(schedule);
  }
  Recorded take() { return {recorder_->take(), recorder_->take_counters()}; }

  void op_started(const OpPlace& place, double time_ns) override {
    if (recorder_) recorder_->op_started(place, time_ns);
  }
  void op_finished(const OpPlace& place, double time_ns) override {
    call_.report(++done_, total_);
    if (recorder_) recorder_->op_finished(place, time_ns);
  }
  void kernel_started(std::uint32_t kernel, double time_ns) override {
    if (recorder_) recorder_->kernel_started(kernel, time_ns);
  }
  void kernel_finished(std::uint32_t kernel, double time_ns) override {
    if (recorder_) recorder_->kernel_finished(kernel, time_ns);
  }
  void host_op_started(int rank, std::uint32_t host_op, double time_ns) override {
    if (recorder_) recorder_->host_op_started(rank, host_op, time_ns);
  }
  void host_op_finished(int rank, std::uint32_t host_op, double time_ns) override {
    if (recorder_) recorder_->host_op_finished(rank, host_op, time_ns);
  }
  void copy_started(int rank, std::uint32_t host_op, int engine, double time_ns) override {
    if (recorder_) recorder_->copy_started(rank, host_op, engine, time_ns);
  }
  void copy_finished(int rank, std::uint32_t host_op, double time_ns) override {
    if (recorder_) recorder_->copy_finished(rank, host_op, time_ns);
  }
  void link_rate(int edge, double time_ns, double gb_per_s) override {
    if (recorder_) recorder_->link_rate(edge, time_ns, gb_per_s);
  }
  void clock_changed(int rank, double time_ns, double ghz) override {
    if (recorder_) recorder_->clock_changed(rank, time_ns, ghz);
  }
  void op_reads(const OpPlace& place, int from, const ReadBytes& bytes) override {
    if (recorder_) recorder_->op_reads(place, from, bytes);
  }
  void copy_reads(int rank, std::uint32_t host_op, int from, const ReadBytes& bytes) override {
    if (recorder_) recorder_->copy_reads(rank, host_op, from, bytes);
  }

 private:
  std::optional<TimelineRecorder> recorder_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  Call& call_;
};

struct Asked {
  std::uint64_t seed = 1;
  bool taxes = false;
  bool spread = false;
  bool timeline = false;
  bool progress = false;
};

Run run_on(const BoundSchedule& schedule, const Machine& machine, const Asked& asked, Call& call,
           Recorded& recorded) {
  schedule.require_sound_on(machine);
  SimulationOptions options;
  options.seed = asked.seed;
  options.stop = &call.stop();
  WatchedRun watched(*schedule, asked.timeline, call);
  if (asked.timeline || asked.progress) options.observer = &watched;
  options.link_counters = asked.timeline;
  Run run = run_of(simulate(*schedule, machine, options), *schedule, machine);
  if (asked.timeline) recorded = watched.take();
  options.observer = nullptr;
  options.link_counters = false;
  if (asked.taxes && !call.stop()) {
    CounterfactualMakespans makespans;
    simulate_in_order(*schedule, machine, options, makespans);
    simulate_by_dependences(*schedule, machine, options, makespans);
    run.taxes = taxes_of(run.result, makespans);
  }
  if (asked.spread && !call.stop()) {
    run.spread = spread_of(*schedule, machine, options, run.result.makespan_ns);
  }
  return run;
}

Run simulate_python(const BoundSchedule& schedule, const Machine& machine, std::uint64_t seed, bool taxes,
                    bool spread, bool timeline, const py::object& progress) {
  const Asked asked{seed, taxes, spread, timeline, !progress.is_none()};
  Recorded recorded;
  Run run;
  run_call(progress, [&](Call& call) { run = run_on(schedule, machine, asked, call, recorded); });
  if (timeline) run.timeline = to_python(std::move(recorded), schedule, machine);
  return run;
}

py::list gpu_rows(const Run& run) {
  py::list rows;
  for (const RankResult& one : run.result.ranks) {
    rows.append(row_of(rank_fields(), RankedResult{rows.size(), &one}));
  }
  return rows;
}

py::list links_of(const Run& run) {
  py::list rows;
  for (std::size_t edge = 0; edge < run.result.link_bytes.size(); ++edge) {
    const double bytes = run.result.link_bytes[edge];
    if (bytes <= 0) continue;
    py::dict row;
    row["link"] = run.links[edge];
    row["bytes"] = bytes;
    row["utilisation"] = bytes / (run.result.makespan_ns * run.link_gb_per_s[edge]);
    rows.append(std::move(row));
  }
  return rows;
}

py::list caches_of(const Run& run) {
  py::list rows;
  for (const CacheRow& one : run.result.caches) {
    py::dict row;
    row["rank"] = one.rank;
    row["die"] = one.die < 0 ? py::object(py::none()) : py::int_(one.die);
    row["buffer"] = run.buffers[static_cast<std::size_t>(one.buffer)];
    row["operation"] = std::string(name_of(one.operation));
    row["asked_bytes"] = one.traffic.asked_bytes;
    row["l2_hit_bytes"] = one.traffic.l2_hit_bytes;
    row["llc_hit_bytes"] = one.traffic.llc_hit_bytes;
    row["hbm_read_bytes"] = one.traffic.hbm_read_bytes;
    row["hbm_written_bytes"] = one.traffic.hbm_written_bytes;
    rows.append(std::move(row));
  }
  return rows;
}

py::dict record_of(const Run& run) {
  py::dict row;
  row["schedule"] = run.schedule;
  row["machine"] = run.machine;
  add_row(row, run_fields(), run.result);
  return row;
}

py::dict parts_of(const TimeAccount& account) { return row_of(account_fields(), account); }

void add_accounts(py::module_& module) {
  py::class_<TimeAccount> account(module, "TimeAccount",
                                  "Where the time of the critical path went; the parts sum to the makespan");
  add_properties(account, account_fields(), std::identity());
  account.def_property_readonly("sum_ns", &TimeAccount::sum_ns).def("parts", &parts_of, "By name");
  py::class_<Taxes> taxes(module, "Taxes",
                          "Savings of the run without each of the three taxes, and without all");
  taxes.def_readonly("account", &Taxes::account);
  add_properties(taxes, savings_fields(), std::identity());
  py::class_<Spread>(module, "Spread",
                     "The same run with other seeds: how much its time depends on random shares")
      .def_readonly("first_seed", &Spread::first_seed)
      .def_readonly("times_ns", &Spread::times_ns)
      .def_property_readonly("relative", &Spread::relative);
}

}  // namespace

py::object frame_of(const py::object& rows) { return py::module_::import("pandas").attr("DataFrame")(rows); }

Run run_of(SimulationResult result, const Schedule& schedule, const Machine& machine) {
  Run run;
  run.schedule = schedule.name;
  run.machine = machine.title();
  run.result = std::move(result);
  for (const Buffer& buffer : schedule.buffers) run.buffers.push_back(buffer.name);
  for (const TopologyEdge& edge : build_topology(machine, schedule.ranks).edges) {
    run.links.push_back(edge.name);
    run.link_gb_per_s.push_back(edge.raw_gb_per_s);
  }
  return run;
}

void add_runs(py::module_& module) {
  add_accounts(module);
  py::class_<Run> type(module, "Run", "One simulated run");
  add_properties(type, run_fields(), &Run::result);
  type.def_readonly("schedule", &Run::schedule)
      .def_readonly("machine", &Run::machine)
      .def_property_readonly("account", [](const Run& run) { return run.result.account; })
      .def_property_readonly("gpus", &gpu_rows, "A row a GPU")
      .def_property_readonly("links", &links_of, "A row a link direction that carried anything")
      .def_property_readonly("caches", &caches_of, "A row a GPU, die, buffer and operation")
      .def_readonly("taxes", &Run::taxes, "None unless asked for")
      .def_readonly("spread", &Run::spread, "None unless asked for")
      .def_readonly("timeline", &Run::timeline, "None unless asked for")
      .def("record", &record_of, "The run as one row")
      .def("__repr__", [](const Run& run) {
        return fmt::format("<Run {} on {}: {:.1f} us>", run.schedule, run.machine,
                           run.result.makespan_ns / 1000);
      });
  module.def(
      "simulate", &simulate_python, py::arg("schedule"), py::arg("machine"), py::kw_only(),
      py::arg("seed") = 1, py::arg("taxes") = false, py::arg("spread") = false, py::arg("timeline") = false,
      py::arg("progress") = py::none(),
      "How long a schedule takes and where the time goes; `taxes` adds what it would save without each of "
      "them, `spread` other seeds, `timeline` what ran when. progress(operations done, all)");
  module.def(
      "frame",
      [](const py::object& rows) {
        py::list records;
        for (const py::handle row : rows) {
          records.append(py::isinstance<py::dict>(row) ? py::reinterpret_borrow<py::object>(row)
                                                       : row.attr("record")());
        }
        return frame_of(records);
      },
      py::arg("rows"), "Runs, candidates or dictionaries as a pandas.DataFrame, a row each");
}

}  // namespace tritax::python

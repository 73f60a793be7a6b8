// The Chrome trace event format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/items.hpp"
#include "model/timeline/causes.hpp"
#include "model/timeline/op_name.hpp"
#include "model/timeline/op_times.hpp"
#include "model/timeline/perfetto.hpp"
#include "model/timeline/slots.hpp"

namespace tritax {

namespace {

// Track (thread) numbers inside the process of a GPU; their order is the order on screen.
constexpr int kHostTrack = 1;
constexpr int kFirstStreamTrack = 2;
constexpr int kPathTrack = 899;
constexpr int kFirstEngineTrack = 900;
constexpr int kFirstCuTrack = 1000;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// What differs between traces.
struct Form {
  const char* of_gpu = "";          // behind the name of a GPU's process
  bool measured = false;            // no host tracks; signals beside the stores
  const Topology* links = nullptr;  // null: no link counters
  std::string remark;
  std::string about = {};  // members of "otherData"
  const Counters* counters = nullptr;
};

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const Schedule& schedule, Form form)
      : timeline_(timeline),
        schedule_(schedule),
        form_(std::move(form)),
        slots_(timeline),
        sinks_(accumulator_sinks(schedule)),
        names_(schedule.ops.size()) {}

  // `beside`: a measurement whose processes go between those of the timeline; may be null.
  std::string write(const MeasuredTrace* beside) {
    put("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"schedule\":\"{}\",\"ranks\":{},\"operations\":{}{}{}{"
        "}}},"
        "\"traceEvents\":[\n",
        escaped(schedule_.name), schedule_.ranks, schedule_.ops.size(),
        form_.remark.empty() ? "" : fmt::format(",\"measured\":\"{}\"", escaped(form_.remark)),
        form_.about.empty() ? "" : ",", form_.about);
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      name_process(rank, 2 * rank, fmt::format("GPU {}{}", rank, form_.of_gpu));
      if (!form_.measured) name_track(rank, kHostTrack, "host");
    }
    write_host_ops();
    write_kernels();
    write_copies();
    write_ops();
    if (!form_.measured) write_causes(beside == nullptr);
    if (form_.links != nullptr) write_links();
    if (form_.counters != nullptr) {
      write_clocks(*form_.counters);
      write_reads(*form_.counters);
    }
    if (beside != nullptr) write_measured(*beside);
    put("\n]}}\n");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void begin_event() {
    put("{}", first_ ? "" : ",\n");
    first_ = false;
  }

  // Processes are shown in the order of `place`.
  void name_process(int process, int place, const std::string& name) {
    begin_event();
    put(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"{}"}}}})", process,
        escaped(name));
    begin_event();
    put(R"({{"ph":"M","pid":{},"tid":0,"name":"process_sort_index","args":{{"sort_index":{}}}}})", process,
        place);
  }

  void name_track(int process, int track, const std::string& name) {
    name_track_as_it_is(process, track, escaped(name));
  }

  // `name` is escaped already.
  void name_track_as_it_is(int process, int track, const std::string& name) {
    if (!named_.emplace(process, track).second) {
      return;
    }
    begin_event();
    put(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", process, track,
        name);
    begin_event();
    put(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", process,
        track, track);
  }

  // Whole nanoseconds, so that intervals that touch in the simulation touch in the trace too.
  static std::int64_t whole_ns(double time_ns) { return std::llround(time_ns); }

  // An event from begin to end, up to its arguments; the caller writes those and closes two braces.
  void begin_interval(int process, int track, const std::string& name, std::string_view category,
                      double begin_ns, double end_ns) {
    const std::int64_t begin = whole_ns(begin_ns);
    const std::int64_t duration = whole_ns(end_ns) - begin;
    begin_event();
    put(R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"{}","ts":{}.{:03},"dur":{}.{:03},"args":{{)",
        process, track, name, category, begin / 1000, begin % 1000, duration / 1000, duration % 1000);
  }

  std::string name_of_host_op(const HostInterval& interval) const {
    const HostOp& op = schedule_.host[static_cast<std::size_t>(interval.rank)][interval.host_op];
    return escaped(host_op_name(schedule_, op));
  }

  void write_host_ops() {
    for (const HostInterval& interval : timeline_.host_ops) {
      const HostOp& op = schedule_.host[static_cast<std::size_t>(interval.rank)][interval.host_op];
      begin_interval(interval.rank, kHostTrack, name_of_host_op(interval), "host", interval.begin_ns,
                     interval.end_ns);
      put(R"("stream":{}}}}})", op.stream);
    }
  }

  void write_kernels() {
    for (const KernelInterval& interval : timeline_.kernels) {
      const Kernel& kernel = schedule_.kernels[interval.kernel];
      const int track = kFirstStreamTrack + interval.stream;
      name_track(kernel.rank, track, fmt::format("stream {}", interval.stream));
      begin_interval(kernel.rank, track, escaped(kernel.name), "kernel", interval.begin_ns, interval.end_ns);
      put(R"("workgroups":{}}}}})", kernel.workgroups.size());
    }
  }

  void write_copies() {
    for (const CopyInterval& interval : timeline_.copies) {
      const HostOp& op = schedule_.host[static_cast<std::size_t>(interval.rank)][interval.host_op];
      const Op& copy = schedule_.transfers[static_cast<std::size_t>(op.transfer)];
      const int track = kFirstEngineTrack + std::min(interval.engine, kFirstCuTrack - kFirstEngineTrack - 1);
      name_track(interval.rank, track, fmt::format("copy engine {}", interval.engine));
      begin_interval(interval.rank, track, escaped(transfer_name(schedule_, copy)), "copy", interval.begin_ns,
                     interval.end_ns);
      put(R"("stream":{},"bytes":{:.0f}}}}})", op.stream, tile_bytes(schedule_, copy));
    }
  }

  bool beside_the_rest(OpKind kind) const {
    return is_asynchronous(kind) || (form_.measured && kind == OpKind::signal);
  }

  int cu_track(const OpInterval& interval) {
    const int slot = slots_.slot_of(interval);
    const int store = beside_the_rest(interval.kind) ? 1 : 0;
    const int track = kFirstCuTrack + (interval.place.cu * slots_.per_cu() + slot) * 2 + store;
    if (named_.count({interval.place.rank, track}) == 0) {
      const std::string which = slot == 0 ? std::string() : fmt::format(" slot {}", slot + 1);
      name_track(interval.place.rank, track,
                 fmt::format("CU {}{}{}", interval.place.cu, which, store == 1 ? " stores" : ""));
    }
    return track;
  }

  const std::string& name_of_op(std::size_t op, int rank) {
    if (names_[op].empty()) {
      names_[op] = escaped(op_name(schedule_, sinks_, op, rank));
    }
    return names_[op];
  }

  void write_ops() {
    const std::vector<double> begins = service_begins(timeline_);
    for (std::size_t i = 0; i < timeline_.ops.size(); ++i) {
      const OpInterval& interval = timeline_.ops[i];
      const OpPlace& place = interval.place;
      const Kernel& kernel = schedule_.kernels[place.kernel];
      const std::size_t index = kernel.workgroups[place.workgroup].first_op + place.op;
      begin_interval(place.rank, cu_track(interval), name_of_op(index, place.rank), name_of(interval.kind),
                     begins[i], interval.end_ns);
      write_op_arguments(kernel, interval, schedule_.ops[index]);
    }
  }

  void write_op_arguments(const Kernel& kernel, const OpInterval& interval, const Op& op) {
    const OpPlace& place = interval.place;
    const Workgroup& own = kernel.workgroups[place.workgroup];
    put(R"("kernel":"{}","workgroup":{})", escaped(kernel.name), place.workgroup);
    if (place.op < own.op_count) {
      put(R"(,"operation":{})", place.op);
    } else {
      const std::int32_t item = item_of(kernel, own.first_op + place.op);
      put(R"(,"item":{},"operation":{})", item,
          own.first_op + place.op - kernel.items[static_cast<std::size_t>(item)].first_op);
    }
    if (multiplies(op.kind)) {
      put(R"(,"k_begin":{},"k_end":{})", op.k_begin, op.k_end);
    } else if (op.flag >= 0) {
      put(R"(,"flag":"{}","index":{},"value":{})",
          escaped(schedule_.flags[static_cast<std::size_t>(op.flag)].name), op.index, op.value);
    } else if (op.buffer >= 0) {
      put(R"(,"bytes":{:.0f})", bytes_of(schedule_.buffers[static_cast<std::size_t>(op.buffer)], op.rect));
    }
    if (interval.clock_ghz > 0) put(R"(,"clock_ghz":{:.3f})", interval.clock_ghz);
    put("}}}}");
  }

  // One end of an arrow: inside the interval, which ends where its last nanosecond does.
  void write_arrow_end(const OpInterval& interval, std::string_view phase, std::size_t id) {
    const int track = cu_track(interval);
    const std::int64_t at = std::max(whole_ns(interval.begin_ns), whole_ns(interval.end_ns) - 1);
    begin_event();
    put(R"({{{},"id":{},"pid":{},"tid":{},"name":"flag","cat":"flag","ts":{}.{:03}}})", phase, id,
        interval.place.rank, track, at / 1000, at % 1000);
  }

  // Arrows from signals to the waits that had to wait for them, and the critical path on a track of its own:
  // of a process of its own, `apart`, or of GPU 0, where processes stand in pairs.
  void write_causes(bool apart) {
    const std::vector<std::uint32_t> releases = releases_of(timeline_, schedule_);
    std::size_t arrows = 0;
    for (std::size_t i = 0; i < releases.size(); ++i) {
      if (releases[i] == kNoCause) continue;
      const OpInterval& signal = timeline_.ops[releases[i]];
      if (signal.end_ns <= timeline_.ops[i].begin_ns) continue;
      write_arrow_end(signal, R"("ph":"s")", arrows);
      write_arrow_end(timeline_.ops[i], R"("ph":"f","bp":"e")", arrows++);
    }
    const std::vector<PathStep> path = critical_path_of(timeline_, schedule_, releases);
    if (path.empty()) return;
    const int process = apart ? schedule_.ranks + 1 : 0;
    if (apart) name_process(process, -1, "critical path");
    name_track(process, kPathTrack, "critical path");
    for (const PathStep& step : path) {
      const auto [name, rank, category] = described(step);
      begin_interval(process, kPathTrack, name, category, step.begin_ns, step.end_ns);
      put(R"("gpu":{}}}}})", rank);
    }
  }

  struct StepText {
    std::string name;  // escaped
    int rank = 0;
    std::string_view category;
  };

  StepText described(const PathStep& step) {
    if (step.kind == StepKind::op) {
      const OpInterval& op = timeline_.ops[step.index];
      const OpPlace& place = op.place;
      return {name_of_op(index_of(schedule_, place), place.rank), place.rank, name_of(op.kind)};
    }
    if (step.kind == StepKind::kernel) {
      const Kernel& kernel = schedule_.kernels[timeline_.kernels[step.index].kernel];
      return {escaped(kernel.name), kernel.rank, "kernel"};
    }
    if (step.kind == StepKind::copy) return {"copy", timeline_.copies[step.index].rank, "copy"};
    const HostInterval& host = timeline_.host_ops[step.index];
    return {name_of_host_op(host), host.rank, "host"};
  }

  void write_links() {
    if (timeline_.links.empty()) {
      return;
    }
    const int process = schedule_.ranks;
    name_process(process, 2 * schedule_.ranks, "links");
    for (const LinkSample& sample : timeline_.links) {
      write_counter(process, escaped(form_.links->edges[static_cast<std::size_t>(sample.edge)].name), "GB/s",
                    whole_ns(sample.time_ns), sample.gb_per_s);
    }
  }

  // `name` is escaped already.
  void write_counter(int process, std::string_view name, std::string_view unit, std::int64_t at,
                     double value) {
    begin_event();
    put(R"({{"ph":"C","pid":{},"name":"{}","ts":{}.{:03},"args":{{"{}":{:.3f}}}}})", process, name, at / 1000,
        at % 1000, unit, value);
  }

  void write_clocks(const Counters& counters) {
    for (const ClockSample& sample : counters.clocks) {
      write_counter(sample.rank, "matrix core clock", "GHz", whole_ns(sample.time_ns), sample.ghz);
    }
  }

  // Where a rate changes; of levels that a GPU reads nothing from there is no counter.
  void write_reads(const Counters& counters) {
    struct LevelName {
      double ReadBytes::*rate;
      std::string_view name;
    };
    constexpr std::array<LevelName, 3> kLevels{{{&ReadBytes::l2, "read from L2"},
                                                {&ReadBytes::llc, "read from last-level cache"},
                                                {&ReadBytes::hbm, "read from memory"}}};
    const ReadRates rates = read_rates(timeline_, counters, schedule_.ranks);
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      const std::vector<ReadBytes>& gpu = rates.of_gpu[static_cast<std::size_t>(rank)];
      for (const LevelName& level : kLevels) {
        double before = 0;
        for (std::size_t step = 0; step <= gpu.size(); ++step) {
          // As it is written: sums that differ in their last bits are no change.
          const double rate = step < gpu.size() ? std::round(1e3 * gpu[step].*level.rate) / 1e3 : 0;
          if (rate == std::exchange(before, rate)) continue;
          write_counter(rank, level.name, "GB/s", static_cast<std::int64_t>(step) * rates.step_ns, rate);
        }
      }
    }
  }

  void write_measured(const MeasuredTrace& measured) {
    const auto process_of = [this](int rank) { return schedule_.ranks + 1 + rank; };
    for (int rank = 0; rank < measured.ranks; ++rank) {
      name_process(process_of(rank), 2 * rank + 1, fmt::format("GPU {} measured", rank));
    }
    for (const auto& [place, name] : measured.tracks) {
      name_track_as_it_is(process_of(place.first), place.second, name);
    }
    double first_ns = measured.events.front().begin_ns;
    for (const auto& event : measured.events) first_ns = std::min(first_ns, event.begin_ns);
    double begin_ns = 0;
    for (std::size_t i = 0; i < timeline_.kernels.size(); ++i) {
      const double begin = timeline_.kernels[i].begin_ns;
      begin_ns = i == 0 ? begin : std::min(begin_ns, begin);
    }
    const double shift_ns = begin_ns - first_ns;
    for (const auto& event : measured.events) {
      begin_interval(process_of(event.rank), event.track, event.name, event.category,
                     event.begin_ns + shift_ns, event.end_ns + shift_ns);
      put("{}}}}}", event.arguments);
    }
  }

  const Timeline& timeline_;
  const Schedule& schedule_;
  Form form_;
  Slots slots_;
  std::vector<std::int32_t> sinks_;
  std::vector<std::string> names_;       // by operation, once needed
  std::set<std::pair<int, int>> named_;  // tracks that have a name
  fmt::memory_buffer out_;
  bool first_ = true;
};

}  // namespace

std::string timeline_to_perfetto_json(const Timeline& timeline, const Schedule& schedule,
                                      const Topology& topology, const std::string& about,
                                      const Counters& counters) {
  return TraceWriter(timeline, schedule, {"", false, &topology, "", about, &counters}).write(nullptr);
}

std::string measured_timeline_to_perfetto_json(const Timeline& timeline, const Schedule& schedule,
                                               const std::string& remark) {
  return TraceWriter(timeline, schedule, {" measured", true, nullptr, remark}).write(nullptr);
}

std::string side_by_side_perfetto_json(const Timeline& simulated, const Schedule& schedule,
                                       const Topology& topology, const MeasuredTrace& measured,
                                       const std::string& about, const Counters& counters) {
  if (measured.schedule != schedule.name || measured.ranks != schedule.ranks ||
      measured.operations != static_cast<std::int64_t>(schedule.ops.size())) {
    throw UserError(fmt::format(
        "{}: a timeline of the schedule '{}' with {} ranks and {} operations, but this one is '{}' with {} "
        "and {}; give the scenario, pattern, knobs and machine that were measured",
        measured.origin, measured.schedule, measured.ranks, measured.operations, schedule.name,
        schedule.ranks, schedule.ops.size()));
  }
  return TraceWriter(simulated, schedule, {" simulated", false, &topology, "", about, &counters})
      .write(&measured);
}

}  // namespace tritax

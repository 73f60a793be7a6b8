#include "model/timeline/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/core/base64.hpp"
#include "model/timeline/causes.hpp"
#include "model/timeline/op_name.hpp"
#include "model/timeline/op_times.hpp"
#include "model/timeline/slots.hpp"

namespace tritax {

namespace {

using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

constexpr std::size_t kKernelKind = kOpKindNames.size();
constexpr std::size_t kCopyKind = kKernelKind + 1;
constexpr std::size_t kHostKind = kKernelKind + 2;
constexpr std::uint32_t kNothing = 0xffffffffu;

template <typename T>
ordered_json column(std::string_view type, const std::vector<T>& numbers) {
  return {{"type", type},
          {"base64",
           base64({reinterpret_cast<const unsigned char*>(numbers.data()), numbers.size() * sizeof(T)})}};
}

// The order of tracks on screen: by GPU, then these, then by number.
enum class TrackGroup : std::uint8_t { host, stream, engine, cu, stores };
constexpr std::array<std::string_view, 5> kTrackGroupNames{"host", "stream", "engine", "cu", "stores"};

struct TrackKey {
  std::int32_t gpu = 0;
  int section = 0;  // host, streams, engines, compute units
  int number = 0;
  int slot = 0;
  TrackGroup group = TrackGroup::host;
  auto operator<=>(const TrackKey&) const = default;
};

struct Drawn {
  TrackKey track;
  double begin_ns = 0;
  double end_ns = 0;
  std::uint8_t kind = 0;
  std::uint32_t name = 0;
  std::uint32_t workgroup = kNothing;
  std::uint32_t source = 0;  // index in what the timeline has of its kind
};

class Columns {
 public:
  Columns(const Timeline& timeline, const Schedule& schedule, const Machine& machine,
          const Topology& topology, const ColumnOptions& options)
      : timeline_(timeline),
        schedule_(schedule),
        machine_(machine),
        topology_(topology),
        options_(options),
        releases_(releases_of(timeline, schedule)),
        path_(critical_path_of(timeline, schedule, releases_)) {
    end_ns_ = path_.empty() ? 0 : path_.back().end_ns;
    // Whole ns in 32 bits; longer runs in coarser steps.
    while (end_ns_ / tick_ns_ > 4e9) tick_ns_ *= 10;
    count_ranks();
  }

  ordered_json write() {
    draw_hosts();
    draw_kernels();
    draw_copies();
    draw_ops();
    std::stable_sort(drawn_.begin(), drawn_.end(), [](const Drawn& a, const Drawn& b) {
      return a.track != b.track ? a.track < b.track : a.begin_ns < b.begin_ns;
    });
    for (std::uint32_t i = 0; i < drawn_.size(); ++i)
      place_of_[{group_of_kind(drawn_[i].kind), drawn_[i].source}] = i;
    std::vector<std::string_view> kinds(kOpKindNames.begin(), kOpKindNames.end());
    kinds.insert(kinds.end(), {"kernel", "copy engine", "host"});
    ordered_json json{{"tick_ns", tick_ns_},
                      {"end", ticks(end_ns_)},
                      {"ranks", schedule_.ranks},
                      {"ranks_shown", ranks_shown_},
                      {"operations", timeline_.ops.size()},
                      {"operations_shown", operations_shown_},
                      {"dies", machine_.gpu.xcds},
                      {"kinds", kinds}};
    json["tracks"] = tracks_json();
    json["names"] = names_;
    json["intervals"] = intervals_json();
    json["flags"] = flags_json();
    json["path"] = path_json();
    json["path_shares"] = path_shares_json(kinds);
    json["links"] = links_json();
    return json;
  }

 private:
  static StepKind group_of_kind(std::uint8_t kind) {
    if (kind == kKernelKind) return StepKind::kernel;
    if (kind == kCopyKind) return StepKind::copy;
    return kind == kHostKind ? StepKind::host : StepKind::op;
  }

  void count_ranks() {
    std::vector<std::size_t> by_rank(static_cast<std::size_t>(schedule_.ranks), 0);
    for (const OpInterval& op : timeline_.ops) ++by_rank[static_cast<std::size_t>(op.place.rank)];
    for (const std::size_t count : by_rank) {
      if (ranks_shown_ > 0 && operations_shown_ + count > options_.most_operations) break;
      ++ranks_shown_;
      operations_shown_ += count;
    }
  }

  std::uint32_t ticks(double time_ns) const {
    return static_cast<std::uint32_t>(std::llround(time_ns / tick_ns_));
  }

  std::uint32_t name(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(text);
    return at->second;
  }

  void draw_hosts() {
    for (std::uint32_t i = 0; i < timeline_.host_ops.size(); ++i) {
      const HostInterval& interval = timeline_.host_ops[i];
      if (interval.rank >= ranks_shown_) continue;
      const HostOp& op = schedule_.host[static_cast<std::size_t>(interval.rank)][interval.host_op];
      drawn_.push_back({{interval.rank, 0, 0, 0, TrackGroup::host},
                        interval.begin_ns,
                        interval.end_ns,
                        kHostKind,
                        name(host_op_name(schedule_, op)),
                        kNothing,
                        i});
    }
  }

  void draw_kernels() {
    for (std::uint32_t i = 0; i < timeline_.kernels.size(); ++i) {
      const KernelInterval& interval = timeline_.kernels[i];
      const Kernel& kernel = schedule_.kernels[interval.kernel];
      if (kernel.rank >= ranks_shown_) continue;
      drawn_.push_back({{kernel.rank, 1, interval.stream, 0, TrackGroup::stream},
                        interval.begin_ns,
                        interval.end_ns,
                        kKernelKind,
                        name(kernel.name),
                        kNothing,
                        i});
    }
  }

  void draw_copies() {
    for (std::uint32_t i = 0; i < timeline_.copies.size(); ++i) {
      const CopyInterval& interval = timeline_.copies[i];
      if (interval.rank >= ranks_shown_) continue;
      const HostOp& op = schedule_.host[static_cast<std::size_t>(interval.rank)][interval.host_op];
      const Op& copy = schedule_.transfers[static_cast<std::size_t>(op.transfer)];
      drawn_.push_back({{interval.rank, 2, interval.engine, 0, TrackGroup::engine},
                        interval.begin_ns,
                        interval.end_ns,
                        kCopyKind,
                        name(transfer_name(schedule_, copy)),
                        kNothing,
                        i});
    }
  }

  // Where one workgroup's asynchronous operations overlap each is drawn from where the one before ended.
  void draw_ops() {
    const Slots slots(timeline_);
    const std::vector<double> begins = service_begins(timeline_);
    const std::vector<std::int32_t> sinks = accumulator_sinks(schedule_);
    std::unordered_map<std::uint64_t, std::uint32_t> known;  // names by rank and operation of the schedule
    for (std::uint32_t i = 0; i < timeline_.ops.size(); ++i) {
      const OpInterval& interval = timeline_.ops[i];
      const OpPlace& place = interval.place;
      if (place.rank >= ranks_shown_) continue;
      const std::size_t op = index_of(schedule_, place);
      const auto [at, is_new] = known.try_emplace(op * static_cast<std::size_t>(schedule_.ranks) +
                                                  static_cast<std::size_t>(place.rank));
      if (is_new) at->second = name(op_name(schedule_, sinks, op, place.rank));
      const TrackGroup group = is_asynchronous(interval.kind) ? TrackGroup::stores : TrackGroup::cu;
      drawn_.push_back({{place.rank, 3, place.cu, slots.slot_of(interval), group},
                        begins[i],
                        interval.end_ns,
                        static_cast<std::uint8_t>(interval.kind),
                        at->second,
                        place.workgroup,
                        i});
    }
  }

  static std::string track_name(const TrackKey& track) {
    switch (track.group) {
      case TrackGroup::host:
        return "host";
      case TrackGroup::stream:
        return fmt::format("stream {}", track.number);
      case TrackGroup::engine:
        return fmt::format("copy engine {}", track.number);
      case TrackGroup::cu:
      case TrackGroup::stores:
        break;
    }
    return fmt::format("CU {}{}{}", track.number,
                       track.slot == 0 ? "" : fmt::format(" slot {}", track.slot + 1),
                       track.group == TrackGroup::stores ? " stores" : "");
  }

  ordered_json tracks_json() {
    ordered_json tracks = ordered_json::array();
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      const TrackKey& track = drawn_[i].track;
      if (i > 0 && track == drawn_[i - 1].track) {
        track_of_.push_back(track_of_.back());
        continue;
      }
      track_of_.push_back(static_cast<std::uint32_t>(tracks.size()));
      tracks.push_back({{"gpu", track.gpu},
                        {"group", kTrackGroupNames[static_cast<std::size_t>(track.group)]},
                        {"name", track_name(track)}});
      if (track.section == 3) tracks.back()["die"] = track.number / machine_.gpu.cus_per_xcd;
    }
    return tracks;
  }

  ordered_json intervals_json() const {
    std::vector<std::uint32_t> begin, end, names, workgroups;
    std::vector<std::uint8_t> kinds;
    for (const Drawn& one : drawn_) {
      begin.push_back(ticks(one.begin_ns));
      end.push_back(ticks(one.end_ns));
      names.push_back(one.name);
      workgroups.push_back(one.workgroup);
      kinds.push_back(one.kind);
    }
    return {{"track", column("u32", track_of_)}, {"begin", column("u32", begin)},
            {"end", column("u32", end)},         {"kind", column("u8", kinds)},
            {"name", column("u32", names)},      {"workgroup", column("u32", workgroups)}};
  }

  std::uint32_t place_of(StepKind kind, std::uint32_t source) const {
    const auto at = place_of_.find({kind, source});
    return at == place_of_.end() ? kNothing : at->second;
  }

  ordered_json flags_json() const {
    std::vector<std::uint32_t> signals, waits;
    for (std::uint32_t i = 0; i < releases_.size(); ++i) {
      if (releases_[i] == kNoCause || timeline_.ops[releases_[i]].end_ns <= timeline_.ops[i].begin_ns)
        continue;
      const std::uint32_t signal = place_of(StepKind::op, releases_[i]);
      const std::uint32_t wait = place_of(StepKind::op, i);
      if (signal == kNothing || wait == kNothing) continue;
      signals.push_back(signal);
      waits.push_back(wait);
    }
    return {{"signal", column("u32", signals)}, {"wait", column("u32", waits)}};
  }

  ordered_json path_json() const {
    std::vector<std::uint32_t> intervals, begin, end;
    for (const PathStep& step : path_) {
      intervals.push_back(place_of(step.kind, step.index));
      begin.push_back(ticks(step.begin_ns));
      end.push_back(ticks(step.end_ns));
    }
    return {
        {"interval", column("u32", intervals)}, {"begin", column("u32", begin)}, {"end", column("u32", end)}};
  }

  ordered_json path_shares_json(const std::vector<std::string_view>& kinds) const {
    std::vector<double> shares(kinds.size(), 0);
    for (const PathStep& step : path_) {
      std::size_t kind = kHostKind;
      if (step.kind == StepKind::op) kind = static_cast<std::size_t>(timeline_.ops[step.index].kind);
      if (step.kind == StepKind::kernel) kind = kKernelKind;
      if (step.kind == StepKind::copy) kind = kCopyKind;
      shares[kind] += step.end_ns - step.begin_ns;
    }
    ordered_json json = ordered_json::object();
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (shares[kind] > 0) json[std::string(kinds[kind])] = shares[kind];
    }
    return json;
  }

  // What each link carried in equal parts of the run, from its rate as it changed.
  ordered_json links_json() const {
    std::map<std::int32_t, std::vector<double>> carried;  // GB/s · ns by part
    std::map<std::int32_t, LinkSample> now;
    const double part_ns = end_ns_ / static_cast<double>(options_.link_parts);
    const auto fill = [&](const LinkSample& from, double until_ns) {
      if (from.gb_per_s <= 0 || until_ns <= from.time_ns) return;
      std::vector<double>& parts = carried.try_emplace(from.edge, options_.link_parts, 0.0).first->second;
      double time_ns = from.time_ns;
      for (auto part = static_cast<std::size_t>(time_ns / part_ns); part < parts.size() && time_ns < until_ns;
           ++part) {
        const double end = std::min(until_ns, static_cast<double>(part + 1) * part_ns);
        parts[part] += from.gb_per_s * std::max(0.0, end - time_ns);
        time_ns = std::max(time_ns, end);
      }
    };
    for (const LinkSample& sample : timeline_.links) {
      const auto before = now.find(sample.edge);
      if (before != now.end()) fill(before->second, sample.time_ns);
      now[sample.edge] = sample;
    }
    for (const auto& [edge, sample] : now) fill(sample, end_ns_);
    ordered_json links = ordered_json::array();
    for (const auto& [edge, parts] : carried) {
      const TopologyEdge& link = topology_.edges[static_cast<std::size_t>(edge)];
      std::vector<float> rates;
      double sum = 0;
      for (const double part : parts) {
        rates.push_back(static_cast<float>(part / part_ns));
        sum += part;
      }
      links.push_back({{"name", link.name},
                       {"raw_gb_per_s", link.raw_gb_per_s},
                       {"mean_gb_per_s", sum / end_ns_},
                       {"rates", column("f32", rates)}});
    }
    return links;
  }

  const Timeline& timeline_;
  const Schedule& schedule_;
  const Machine& machine_;
  const Topology& topology_;
  const ColumnOptions& options_;
  std::vector<std::uint32_t> releases_;
  std::vector<PathStep> path_;
  double end_ns_ = 0;
  double tick_ns_ = 1;
  std::int32_t ranks_shown_ = 0;
  std::size_t operations_shown_ = 0;
  std::vector<Drawn> drawn_;
  std::vector<std::uint32_t> track_of_;  // of each drawn interval
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::map<std::pair<StepKind, std::uint32_t>, std::uint32_t> place_of_;  // in drawn_
};

}  // namespace

ordered_json timeline_columns(const Timeline& timeline, const Schedule& schedule, const Machine& machine,
                              const Topology& topology, const ColumnOptions& options) {
  return Columns(timeline, schedule, machine, topology, options).write();
}

}  // namespace tritax

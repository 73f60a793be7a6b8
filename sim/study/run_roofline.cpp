#include "sim/study/run_roofline.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/machine/topology.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/operations.hpp"
#include "sim/study/sparsity_roofline.hpp"
#include "sim/timeline.hpp"

namespace tritax {

namespace {

constexpr std::size_t kLinkLevel = static_cast<std::size_t>(MemoryLevel::links);

// Totals of one kind of operation, on all GPUs.
struct KindTotals {
  std::vector<std::vector<std::pair<double, double>>> spans;  // by rank
  std::map<DType, double> flops;                              // of matrix cores
  double other_flops = 0;                                     // of sparse products, which have no ceiling
  std::array<double, kMemoryLevels> bytes{};
};

// Time that the spans cover together.
double covered_ns(std::vector<std::pair<double, double>> spans) {
  std::sort(spans.begin(), spans.end());
  double covered = 0, until = 0;
  for (const auto& [begin, end] : spans) {
    covered += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return covered;
}

void add_traffic(const CacheRow& row, std::array<double, kMemoryLevels>& bytes) {
  const CacheTraffic& traffic = row.traffic;
  const auto add = [&](MemoryLevel level, double more) { bytes[static_cast<std::size_t>(level)] += more; };
  add(MemoryLevel::hbm, traffic.hbm_read_bytes + traffic.hbm_written_bytes);
  if (row.die < 0) return;  // bypasses the caches
  add(MemoryLevel::l2, traffic.asked_bytes + traffic.hbm_written_bytes);
  add(MemoryLevel::llc, traffic.asked_bytes - traffic.l2_hit_bytes + traffic.hbm_written_bytes);
}

class RunTotals {
 public:
  RunTotals(const Schedule& schedule, const Timeline& timeline, const SimulationResult& result)
      : schedule_(schedule), kinds_(kOpTraits.size() + 1) {
    for (KindTotals& kind : kinds_) kind.spans.resize(static_cast<std::size_t>(schedule.ranks));
    for (const OpInterval& interval : timeline.ops) add(interval);
    for (const CopyInterval& copy : timeline.copies) add(copy);
    for (const CacheRow& row : result.caches)
      add_traffic(row, kinds_[static_cast<std::size_t>(row.operation)].bytes);
  }

  std::vector<DType> dtypes() const {
    std::map<DType, double> all;
    for (const KindTotals& kind : kinds_) all.insert(kind.flops.begin(), kind.flops.end());
    std::vector<DType> dtypes;
    for (const auto& [dtype, flops] : all) dtypes.push_back(dtype);
    return dtypes;
  }

  std::vector<RooflinePoint> points(const MachineCeilings& ceilings, double run_ns) const {
    std::vector<RooflinePoint> points;
    RooflinePoint run = point_of("run", {}, ceilings);
    run.busy_ns = run_ns;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const bool engines = kind == kOpTraits.size();
      const RooflinePoint point =
          point_of(engines ? "copy engines" : std::string(kOpTraits[kind].name), kinds_[kind], ceilings);
      run.flops += point.flops;
      run.compute_ns += point.compute_ns;
      for (std::size_t level = 0; level < kMemoryLevels; ++level) {
        run.bytes[level] += point.bytes[level];
        run.memory_ns[level] += point.memory_ns[level];
      }
      if (point.busy_ns > 0 && (point.flops > 0 || point.least_ns() > 0)) points.push_back(point);
    }
    points.push_back(std::move(run));
    return points;
  }

 private:
  void add(const OpInterval& interval) {
    const Op& op = op_of(schedule_, interval.place);
    KindTotals& kind = kinds_[static_cast<std::size_t>(interval.kind)];
    kind.spans[static_cast<std::size_t>(interval.place.rank)].emplace_back(interval.begin_ns,
                                                                           interval.end_ns);
    if (multiplies(interval.kind)) {
      kind.flops[schedule_.buffers[static_cast<std::size_t>(op.src_buffer)].dtype] += flops_of(op);
      if (fetches_a(op)) kind.bytes[kLinkLevel] += tile_bytes(schedule_, load_of_a(op, interval.place.rank));
    } else if (interval.kind == OpKind::sparse_product) {
      kind.other_flops += flops_of(op);
    } else if (moves_data(interval.kind) && peer_of(op, interval.place.rank) != interval.place.rank) {
      kind.bytes[kLinkLevel] += bytes_of(schedule_.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
    }
  }

  void add(const CopyInterval& copy) {
    KindTotals& kind = kinds_.back();
    const HostOp& op = schedule_.host[static_cast<std::size_t>(copy.rank)][copy.host_op];
    const Op& transfer = schedule_.transfers[static_cast<std::size_t>(op.transfer)];
    kind.spans[static_cast<std::size_t>(copy.rank)].emplace_back(copy.begin_ns, copy.end_ns);
    if (transfer.rank == transfer.src_rank) return;
    kind.bytes[kLinkLevel] +=
        bytes_of(schedule_.buffers[static_cast<std::size_t>(transfer.buffer)], transfer.rect);
  }

  RooflinePoint point_of(std::string name, const KindTotals& kind, const MachineCeilings& ceilings) const {
    const double gpus = schedule_.ranks;
    RooflinePoint point;
    point.name = std::move(name);
    point.flops = kind.other_flops / gpus;
    for (const auto& spans : kind.spans) point.busy_ns += covered_ns(spans) / gpus;
    for (const MachineCeilings::Peak& peak : ceilings.peaks) {
      const auto found = kind.flops.find(peak.dtype);
      if (found == kind.flops.end()) continue;
      point.flops += found->second / gpus;
      point.compute_ns += found->second / gpus / peak.gflop_per_s;
    }
    for (std::size_t level = 0; level < kMemoryLevels; ++level) {
      if (ceilings.gb_per_s[level] <= 0) continue;
      point.bytes[level] = kind.bytes[level] / gpus;
      point.memory_ns[level] = point.bytes[level] / ceilings.gb_per_s[level];
    }
    return point;
  }

  const Schedule& schedule_;
  std::vector<KindTotals> kinds_;  // by OpKind; last: copy engines
};

double link_ceiling(const Machine& machine, int gpus) {
  const Fabric& fabric = machine.fabric;
  const int peers = std::min(gpus, machine.gpus_per_node) - 1;
  const double network = gpus > machine.gpus_per_node ? fabric.network_gb_per_s : 0;
  if (peers < 1) return network;
  const int links = fabric.kind == LinkKind::mesh   ? peers
                    : fabric.kind == LinkKind::ring ? std::min(peers, 2)
                                                    : 1;
  const double raw = fabric.link_raw_gb_per_s * links;
  const auto capped = [&](double efficiency, double egress, double ingress) {
    double rate = raw * efficiency;
    for (const double limit : {egress, ingress}) {
      if (limit > 0) rate = std::min(rate, limit);
    }
    return rate;
  };
  return network +
         std::max(
             capped(fabric.store_efficiency, fabric.store_egress_gb_per_s, fabric.store_ingress_gb_per_s),
             capped(fabric.load_efficiency, fabric.load_egress_gb_per_s, fabric.load_ingress_gb_per_s));
}

}  // namespace

MachineCeilings ceilings_of(const Machine& machine, int gpus, const std::vector<DType>& dtypes) {
  const Gpu& gpu = machine.gpu;
  MachineCeilings ceilings;
  for (const DType dtype : dtypes) ceilings.peaks.push_back({dtype, peaks_of(machine, dtype).gflop_per_s});
  ceilings.gb_per_s = {gpu.xcds * std::max(gpu.l2_gb_per_s, gpu.l2_lock_step_gb_per_s),
                       gpu.llc_bytes > 0 ? gpu.llc_gb_per_s : 0, gpu.hbm_gb_per_s,
                       link_ceiling(machine, gpus)};
  return ceilings;
}

double RooflinePoint::least_ns() const {
  return std::max(compute_ns, *std::max_element(memory_ns.begin(), memory_ns.end()));
}

std::string RooflinePoint::bound() const {
  const auto most = std::max_element(memory_ns.begin(), memory_ns.end());
  if (least_ns() <= 0) return "-";
  if (compute_ns >= *most) return "matrix cores";
  return std::string(kMemoryLevelNames[static_cast<std::size_t>(most - memory_ns.begin())]);
}

RunRoofline run_roofline(const Schedule& schedule, const Machine& machine, SimulationOptions options) {
  TimelineRecorder recorder(schedule);
  options.observer = &recorder;
  RunRoofline roofline;
  roofline.result = simulate(schedule, machine, options);
  const RunTotals totals(schedule, recorder.take(), roofline.result);
  roofline.ceilings = ceilings_of(machine, schedule.ranks, totals.dtypes());
  roofline.points = totals.points(roofline.ceilings, roofline.result.makespan_ns);
  return roofline;
}

}  // namespace tritax

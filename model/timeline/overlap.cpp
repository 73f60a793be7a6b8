#include "model/timeline/overlap.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/schedule/op_traits.hpp"
#include "model/timeline/causes.hpp"

namespace tritax {

namespace {

using Spans = std::vector<std::pair<double, double>>;  // begin and end

// The same times, in order and apart from each other.
Spans joined(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans apart;
  for (const auto& [begin, end] : spans) {
    if (!apart.empty() && begin <= apart.back().second) {
      apart.back().second = std::max(apart.back().second, end);
    } else if (end > begin) {
      apart.emplace_back(begin, end);
    }
  }
  return apart;
}

double length_of(const Spans& apart) {
  double length = 0;
  for (const auto& [begin, end] : apart) length += end - begin;
  return length;
}

// Of two lists as `joined` gives them.
double common_length(const Spans& a, const Spans& b) {
  double length = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    if (a[i].second < b[j].second) {
      ++i;
    } else {
      ++j;
    }
  }
  return length;
}

// What is in `a` and not in `b`, of lists as `joined` gives them.
Spans without(const Spans& a, const Spans& b) {
  Spans left;
  std::size_t j = 0;
  for (auto [begin, end] : a) {
    while (j < b.size() && b[j].second <= begin) ++j;
    for (std::size_t k = j; k < b.size() && b[k].first < end; ++k) {
      if (b[k].first > begin) left.emplace_back(begin, b[k].first);
      begin = std::max(begin, b[k].second);
    }
    if (end > begin) left.emplace_back(begin, end);
  }
  return left;
}

// What goes on for a GPU, first as it comes, then as `joined` gives it.
struct GpuSpans {
  Spans computing;
  Spans communicating;
  Spans own_moves;     // of data in its own memory
  Spans peer_flags;    // waits that a peer's signal ends
  Spans others;        // all other operations
  Spans kernels;       // and copies by its engines
  Spans barriers;      // its host stands at one
  double last_ns = 0;  // end of its last kernel or copy
};

Spans& spans_of(GpuSpans& gpu, const Timeline& timeline, const Schedule& schedule, std::size_t index,
                std::uint32_t release) {
  const OpPlace& place = timeline.ops[index].place;
  const Op& op = op_of(schedule, place);
  if (multiplies(op.kind) || op.kind == OpKind::sparse_product) return gpu.computing;
  if (moves_data(op.kind)) return peer_of(op, place.rank) != place.rank ? gpu.communicating : gpu.own_moves;
  const bool for_peer = release != kNoCause && timeline.ops[release].place.rank != place.rank;
  return for_peer ? gpu.peer_flags : gpu.others;
}

std::vector<GpuSpans> spans_by_gpu(const Timeline& timeline, const Schedule& schedule) {
  std::vector<GpuSpans> gpus(static_cast<std::size_t>(schedule.ranks));
  const std::vector<std::uint32_t> releases = releases_of(timeline, schedule);
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const OpInterval& interval = timeline.ops[i];
    GpuSpans& gpu = gpus[static_cast<std::size_t>(interval.place.rank)];
    spans_of(gpu, timeline, schedule, i, releases[i]).emplace_back(interval.begin_ns, interval.end_ns);
    if (fetches_a(op_of(schedule, interval.place)))
      gpu.communicating.emplace_back(interval.begin_ns, interval.end_ns);
  }
  for (const CopyInterval& copy : timeline.copies) {
    GpuSpans& gpu = gpus[static_cast<std::size_t>(copy.rank)];
    const HostOp& op = schedule.host[static_cast<std::size_t>(copy.rank)][copy.host_op];
    const Op& transfer = schedule.transfers[static_cast<std::size_t>(op.transfer)];
    Spans& spans = transfer.rank == transfer.src_rank ? gpu.own_moves : gpu.communicating;
    spans.emplace_back(copy.begin_ns, copy.end_ns);
    gpu.kernels.emplace_back(copy.begin_ns, copy.end_ns);
  }
  for (const KernelInterval& kernel : timeline.kernels) {
    GpuSpans& gpu = gpus[static_cast<std::size_t>(schedule.kernels[kernel.kernel].rank)];
    gpu.kernels.emplace_back(kernel.begin_ns, kernel.end_ns);
  }
  for (const HostInterval& host : timeline.host_ops) {
    const auto rank = static_cast<std::size_t>(host.rank);
    if (schedule.host[rank][host.host_op].kind != HostOpKind::barrier) continue;
    gpus[rank].barriers.emplace_back(host.begin_ns, host.end_ns);
  }
  for (GpuSpans& gpu : gpus) {
    for (Spans* spans : {&gpu.computing, &gpu.communicating, &gpu.own_moves, &gpu.peer_flags, &gpu.others,
                         &gpu.kernels, &gpu.barriers}) {
      *spans = joined(std::move(*spans));
    }
    gpu.last_ns = gpu.kernels.empty() ? 0 : gpu.kernels.back().second;
  }
  return gpus;
}

// Takes from `idle` what is in `spans`; returns how long that is.
double take(Spans& idle, const Spans& spans) {
  Spans left = without(idle, spans);
  const double taken = length_of(idle) - length_of(left);
  idle = std::move(left);
  return taken;
}

// When kernels or copies of GPUs other than `rank` run.
Spans running_elsewhere(const std::vector<GpuSpans>& gpus, std::size_t rank) {
  Spans all;
  for (std::size_t other = 0; other < gpus.size(); ++other) {
    if (other != rank) all.insert(all.end(), gpus[other].kernels.begin(), gpus[other].kernels.end());
  }
  return joined(std::move(all));
}

IdleCauses idle_causes(const std::vector<GpuSpans>& gpus, std::size_t rank, double run_ns) {
  const GpuSpans& gpu = gpus[rank];
  Spans idle = without(without({{0, run_ns}}, gpu.computing), gpu.communicating);
  IdleCauses causes;
  causes.other_ns = take(idle, gpu.own_moves);
  causes.flag_ns = take(idle, gpu.peer_flags);
  causes.other_ns += take(idle, gpu.others);
  causes.kernel_ns = take(idle, gpu.kernels);
  Spans waits = gpu.barriers;
  waits.emplace_back(gpu.last_ns, std::numeric_limits<double>::infinity());
  waits = joined(std::move(waits));
  const Spans elsewhere = running_elsewhere(gpus, rank);
  causes.kernel_ns += take(idle, without(elsewhere, without(elsewhere, waits)));
  causes.launch_ns = length_of(idle);
  return causes;
}

}  // namespace

std::vector<Overlap> overlaps_of(const Timeline& timeline, const Schedule& schedule, double run_ns) {
  const std::vector<GpuSpans> gpus = spans_by_gpu(timeline, schedule);
  std::vector<Overlap> overlaps;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    const GpuSpans& gpu = gpus[rank];
    Overlap& one = overlaps.emplace_back();
    one.computing_ns = length_of(gpu.computing);
    one.communicating_ns = length_of(gpu.communicating);
    one.both_ns = common_length(gpu.computing, gpu.communicating);
    one.idle_ns = run_ns - (one.computing_ns + one.communicating_ns - one.both_ns);
    one.idle = idle_causes(gpus, rank, run_ns);
  }
  return overlaps;
}

}  // namespace tritax

#include "model/timeline/op_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "model/core/quantile.hpp"

namespace tritax {

std::vector<double> service_begins(const Timeline& timeline) {
  // Intervals of one workgroup come in the order of their begin, and asynchronous ones drain in that order.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, double> last_end;
  std::vector<double> begins;
  begins.reserve(timeline.ops.size());
  for (const OpInterval& op : timeline.ops) {
    begins.push_back(op.begin_ns);
    if (!is_asynchronous(op.kind)) continue;
    const auto [last, first] =
        last_end.try_emplace({op.place.kernel, op.place.workgroup, op.launch}, op.end_ns);
    if (first) continue;
    begins.back() = std::min(op.end_ns, std::max(op.begin_ns, last->second));
    last->second = std::max(last->second, op.end_ns);
  }
  return begins;
}

OpGroup group_of(const Kernel& kernel, const Op& op) {
  OpGroup group;
  group.kernel = kernel.name;
  group.kind = op.kind;
  group.remote = (names_rank(op.kind) && op.rank != kernel.rank) ||
                 (op.kind == OpKind::copy && op.src_rank != kernel.rank) || fetches_a(op);
  if (multiplies(op.kind)) {
    group.size = fmt::format("{}x{}x{}", op.rect.rows, op.rect.cols, op.k_end - op.k_begin);
  } else if (op.buffer >= 0) {
    group.size = fmt::format("{}x{}", op.rect.rows, op.rect.cols);
  }
  return group;
}

std::vector<OpTimes> op_times(const Timeline& timeline, const Schedule& schedule) {
  const std::vector<double> begins = service_begins(timeline);
  std::map<OpGroup, std::vector<double>> times_us;
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const OpInterval& interval = timeline.ops[i];
    const Kernel& kernel = schedule.kernels[interval.place.kernel];
    const Op& op = op_of(schedule, interval.place);
    times_us[group_of(kernel, op)].push_back((interval.end_ns - begins[i]) * 1e-3);
  }
  std::vector<OpTimes> all;
  for (auto& [group, times] : times_us) {
    OpTimes& one = all.emplace_back();
    one.group = group;
    one.count = static_cast<std::int64_t>(times.size());
    one.median_us = quantile(times, 0.5);
    one.p10_us = quantile(times, 0.1);
    one.p90_us = quantile(times, 0.9);
    for (const double time : times) one.sum_us += time;
  }
  return all;
}

}  // namespace tritax

#include "backend_hip/measured_timeline.hpp"

#include <algorithm>
#include <optional>

#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

// Place of every operation of Schedule::ops, without the compute unit; for an item's operation, without the
// workgroup.
std::vector<OpPlace> places_of(const Schedule& schedule) {
  std::vector<OpPlace> places(schedule.ops.size());
  for (std::size_t k = 0; k < schedule.kernels.size(); ++k) {
    const Kernel& kernel = schedule.kernels[k];
    for (std::size_t w = 0; w < kernel.workgroups.size(); ++w) {
      for (std::uint32_t i = 0; i < kernel.workgroups[w].op_count; ++i) {
        places[kernel.workgroups[w].first_op + i] = {static_cast<std::uint32_t>(k),
                                                     static_cast<std::uint32_t>(w), i, kernel.rank, 0};
      }
    }
    for (const Item& item : kernel.items) {
      for (std::uint32_t i = 0; i < item.op_count; ++i) {
        places[item.first_op + i] = {static_cast<std::uint32_t>(k), 0, i, kernel.rank, 0};
      }
    }
  }
  return places;
}

template <typename Interval>
void sort_by_begin(std::vector<Interval>& intervals) {
  std::stable_sort(intervals.begin(), intervals.end(),
                   [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
}

}  // namespace

Timeline timeline_of(const Schedule& schedule, const std::vector<StampedOp>& stamps) {
  const std::vector<OpPlace> places = places_of(schedule);
  const std::vector<std::vector<std::int32_t>> streams = streams_of_kernels(schedule);
  std::vector<std::optional<KernelInterval>> kernels(schedule.kernels.size());
  Timeline timeline;
  for (const StampedOp& stamp : stamps) {
    const auto number = static_cast<std::size_t>(stamp.number);
    TRITAX_ASSERT(number < places.size(), "a stamp of an operation that the schedule does not have");
    OpInterval interval;
    interval.place = places[number];
    if (stamp.workgroup >= 0) {  // of an item
      const auto w = static_cast<std::uint32_t>(stamp.workgroup);
      const std::uint32_t first = schedule.kernels[interval.place.kernel].workgroups[w].first_op;
      interval.place.workgroup = w;
      interval.place.op = static_cast<std::uint32_t>(number) - first;
    }
    interval.place.cu = stamp.cu;
    interval.kind = schedule.ops[number].kind;
    interval.begin_ns = stamp.begin_us * 1e3;
    interval.end_ns = stamp.end_us * 1e3;
    interval.clock_ghz = stamp.clock_ghz;
    timeline.ops.push_back(interval);
    const std::uint32_t k = interval.place.kernel;
    if (!kernels[k]) {
      kernels[k] = {k, streams[k].empty() ? 0 : streams[k].back(), interval.begin_ns, interval.end_ns};
    }
    kernels[k]->begin_ns = std::min(kernels[k]->begin_ns, interval.begin_ns);
    kernels[k]->end_ns = std::max(kernels[k]->end_ns, interval.end_ns);
  }
  for (const auto& kernel : kernels) {
    if (kernel) timeline.kernels.push_back(*kernel);
  }
  sort_by_begin(timeline.ops);
  sort_by_begin(timeline.kernels);
  return timeline;
}

}  // namespace tritax::gpu

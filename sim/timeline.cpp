#include "sim/timeline.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr double kOpen = std::numeric_limits<double>::infinity();

CacheRead cache_read(int from, bool by_engine, std::size_t interval, const ReadBytes& bytes) {
  return {from,
          by_engine,
          static_cast<std::uint32_t>(interval),
          static_cast<float>(bytes.l2),
          static_cast<float>(bytes.llc),
          static_cast<float>(bytes.hbm)};
}

}  // namespace

TimelineRecorder::TimelineRecorder(const Schedule& schedule)
    : schedule_(schedule),
      streams_of_kernel_(streams_of_kernels(schedule)),
      launches_(schedule.kernels.size(), 0),
      open_kernels_(schedule.kernels.size(), 0),
      open_host_ops_(static_cast<std::size_t>(schedule.ranks), 0) {
  for (const Kernel& kernel : schedule.kernels) {
    open_ops_.emplace_back(kernel.workgroups.size());
  }
}

void TimelineRecorder::op_started(const OpPlace& place, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  const OpKind kind = op_of(schedule_, place).kind;
  open_ops_[place.kernel][place.workgroup].push_back({place.op, timeline_.ops.size()});
  timeline_.ops.push_back({place, kind, launches_[place.kernel] - 1, time_ns, kOpen});
}

void TimelineRecorder::op_finished(const OpPlace& place, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  auto& open = open_ops_[place.kernel][place.workgroup];
  const auto at = std::find_if(open.begin(), open.end(),
                               [&](const OpenOp& candidate) { return candidate.op == place.op; });
  TRITAX_ASSERT(at != open.end(), "an operation ended that had not started");
  timeline_.ops[at->interval].end_ns = time_ns;
  open.erase(at);
}

void TimelineRecorder::kernel_started(std::uint32_t kernel, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  const auto& streams = streams_of_kernel_[kernel];
  TRITAX_ASSERT(launches_[kernel] < streams.size(), "a kernel started more often than the hosts launch it");
  open_kernels_[kernel] = timeline_.kernels.size();
  timeline_.kernels.push_back({kernel, streams[launches_[kernel]++], time_ns, kOpen});
}

void TimelineRecorder::kernel_finished(std::uint32_t kernel, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  timeline_.kernels[open_kernels_[kernel]].end_ns = time_ns;
}

void TimelineRecorder::host_op_started(int rank, std::uint32_t host_op, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  open_host_ops_[static_cast<std::size_t>(rank)] = timeline_.host_ops.size();
  timeline_.host_ops.push_back({rank, host_op, time_ns, kOpen});
}

void TimelineRecorder::host_op_finished(int rank, std::uint32_t /*host_op*/, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  timeline_.host_ops[open_host_ops_[static_cast<std::size_t>(rank)]].end_ns = time_ns;
}

void TimelineRecorder::copy_started(int rank, std::uint32_t host_op, int engine, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  timeline_.copies.push_back({rank, host_op, engine, time_ns, kOpen});
}

void TimelineRecorder::copy_finished(int rank, std::uint32_t host_op, double time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  const auto open =
      std::find_if(timeline_.copies.rbegin(), timeline_.copies.rend(),
                   [&](const CopyInterval& copy) { return copy.rank == rank && copy.host_op == host_op; });
  TRITAX_ASSERT(open != timeline_.copies.rend(), "a copy ended that had not started");
  open->end_ns = time_ns;
}

void TimelineRecorder::link_rate(int edge, double time_ns, double gb_per_s) {
  now_ns_ = std::max(now_ns_, time_ns);
  timeline_.links.push_back({edge, time_ns, gb_per_s});
}

void TimelineRecorder::clock_changed(int rank, double time_ns, double ghz) {
  counters_.clocks.push_back({rank, time_ns, ghz});
}

void TimelineRecorder::op_reads(const OpPlace& place, int from, const ReadBytes& bytes) {
  const auto& open = open_ops_[place.kernel][place.workgroup];
  const auto at = std::find_if(open.rbegin(), open.rend(),
                               [&](const OpenOp& candidate) { return candidate.op == place.op; });
  TRITAX_ASSERT(at != open.rend(), "an operation read that had not started");
  counters_.reads.push_back(cache_read(from, false, at->interval, bytes));
}

void TimelineRecorder::copy_reads(int rank, std::uint32_t host_op, int from, const ReadBytes& bytes) {
  const auto open =
      std::find_if(timeline_.copies.rbegin(), timeline_.copies.rend(),
                   [&](const CopyInterval& copy) { return copy.rank == rank && copy.host_op == host_op; });
  TRITAX_ASSERT(open != timeline_.copies.rend(), "a copy read that had not started");
  const auto interval = timeline_.copies.rend() - open - 1;
  counters_.reads.push_back(cache_read(from, true, static_cast<std::size_t>(interval), bytes));
}

Counters TimelineRecorder::take_counters() { return std::exchange(counters_, {}); }

Timeline TimelineRecorder::take() {
  const auto close = [this](auto& intervals) {
    for (auto& interval : intervals) {
      interval.end_ns = interval.end_ns == kOpen ? now_ns_ : interval.end_ns;
    }
  };
  close(timeline_.ops);
  close(timeline_.kernels);
  close(timeline_.host_ops);
  close(timeline_.copies);
  return std::exchange(timeline_, {});
}

}  // namespace tritax

// The timeline: what ran where and when in one run of a schedule, simulated or measured.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/op_traits.hpp"

namespace tritax {

// Where an operation stands: kernel, workgroup of the kernel, operation of the workgroup (all indices from
// 0).
struct OpPlace {
  std::uint32_t kernel = 0;
  std::uint32_t workgroup = 0;
  std::uint32_t op = 0;  // from the first of the workgroup; an item's operations lie behind its own
  std::int32_t rank = 0;
  std::int32_t cu = 0;  // compute unit of the GPU it runs on
};

// Its index in Schedule::ops.
inline std::size_t index_of(const Schedule& schedule, const OpPlace& place) {
  return std::size_t{schedule.kernels[place.kernel].workgroups[place.workgroup].first_op} + place.op;
}
inline const Op& op_of(const Schedule& schedule, const OpPlace& place) {
  return schedule.ops[index_of(schedule, place)];
}

struct OpInterval {
  OpPlace place;
  OpKind kind = OpKind::barrier;
  std::uint32_t launch = 0;  // of the kernel, counted from 0
  double begin_ns = 0;
  double end_ns = 0;
  double clock_ghz = 0;  // measured: mean clock of its compute unit meanwhile; 0: not known
};

// A copy by a copy engine of a GPU; `host_op` posted it.
struct CopyInterval {
  std::int32_t rank = 0;
  std::uint32_t host_op = 0;
  std::int32_t engine = 0;
  double begin_ns = 0;
  double end_ns = 0;
};

struct KernelInterval {
  std::uint32_t kernel = 0;
  std::int32_t stream = 0;
  double begin_ns = 0;
  double end_ns = 0;
};

struct HostInterval {
  std::int32_t rank = 0;
  std::uint32_t host_op = 0;
  double begin_ns = 0;
  double end_ns = 0;
};

// The sum of rates over one link direction from `time_ns` on.
struct LinkSample {
  std::int32_t edge = 0;  // of the topology
  double time_ns = 0;
  double gb_per_s = 0;
};

// All in order of their begin.
struct Timeline {
  std::vector<OpInterval> ops;
  std::vector<KernelInterval> kernels;
  std::vector<HostInterval> host_ops;
  std::vector<CopyInterval> copies;
  std::vector<LinkSample> links;
};

// The stream of each launch of each kernel, in the order of the host programs.
std::vector<std::vector<std::int32_t>> streams_of_kernels(const Schedule& schedule);

}  // namespace tritax

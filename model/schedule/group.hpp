// Groups: operations of a workgroup that start together, as schedule.hpp defines them.
//
// A kernel that serves its peers one after the other pays the latency of each. Published kernels give every
// peer a thread that signals and polls, and have the loads from all peers in flight at once (vLLM's
// custom_all_reduce.cuh, PyTorch's CUDASymmetricMemoryOps.cu). A group says so:
//
//   signal to 1   signal to 2   signal to 3    one group: takes as long as the slowest
//   wait for 1    wait for 2    wait for 3     another
//   load own      reduce of 1   reduce of 2    another; the sum is in this order, whichever arrives first
//
// A group of n moves shares the rate of its workgroup: latency + n · bytes / rate, where n operations that
// follow each other take n · (latency + bytes / rate). A group that the switch carries out (`multimem`) takes
// latency + bytes / rate: the workgroup stores or loads the bytes of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Most operations of a group: an interpreter gives each a thread of one wave.
inline constexpr std::size_t kMostTogether = 64;

// Index behind the group that ops[first] begins; first + 1 if the operation is alone.
inline std::size_t end_of_group(std::span<const Op> ops, std::size_t first) {
  std::size_t end = first + 1;
  while (end < ops.size() && ops[end].with_previous) ++end;
  return end;
}

// Whether switches add up elements of this type (PTX ISA, multimem.ld_reduce for sm_90: f16, bf16, f32, f64).
bool adds_in_switch(DType dtype);

// What is wrong with ops[number] of a program as a member of its group, or as the first of a group that the
// switch carries out; empty if nothing is. `block_end`: index of the operation behind the last block that a
// claim may skip. The operation itself is in range.
std::string fault_of_group(const Schedule& schedule, const Workgroup& program, std::size_t number,
                           std::int32_t rank, std::size_t block_end);

}  // namespace tritax

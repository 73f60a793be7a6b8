// Models how the workgroups of a die are assigned to its shader engines.
//
// The dispatcher gives the workgroups of a kernel to the shader engines of a die in turn (J. Greathouse, AMD:
// "it distributes workgroups to the shader engines in a round-robin manner", ROCm/legacy-rocm-build issue
// 1456), in proportion to their compute units (AMD patent US 11,941,723: by the quantity of active resources
// of each), and not by the room that other kernels leave: a workgroup whose turn falls on a full engine waits
// for this engine, and later workgroups wait with it. The last is an assumption. Its reason: in ROCm/iris
// examples/gemm/notebooks (April 2025) a scatter kernel of 48 workgroups beside a GEMM of 256 on 304 compute
// units ends 2.54 and 2.51 ms after the GEMM for 8192x8192x28672 and x30720 on two GPUs (20.9 and 22.5 ms),
// eight rounds of 0.39 MB per workgroup: the time that one workgroup needs for all its 43 tiles, not for the
// last six. 32 and 6 workgroups per die are one too many for an engine of nine.
//
// Only kernels with resident workgroups (all_resident()) are assigned in this way. A workgroup of another
// kernel takes any room on its die: its wait for an engine would depend on the lifetime of workgroups, which
// would be far too long if one workgroup stands for many small ones
// (model/workloads/remote_access/schedule.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// The first compute unit of a shader engine, counted from the first of its die; for `engine` =
// shader_engines, the number of compute units. Larger and smaller engines alternate: 38 units in four engines
// are 10, 9, 10 and 9 (assumed).
std::int32_t engine_begin(const Gpu& gpu, std::int32_t engine);

// The shader engine of each of the first cus_per_xcd workgroups of a kernel on a die; the sequence then
// repeats. An engine has no turn in a round for which it has no compute unit.
std::vector<std::int32_t> engine_turns(const Gpu& gpu);

// How many workgroups of another kernel fit beside `taken` workgroups of one kernel, one per compute unit,
// without waiting: a multiple of the number of dies, counted on the fullest die.
std::int32_t workgroups_beside(const Gpu& gpu, std::int32_t taken);

// Whether `more` workgroups of another kernel get one compute unit each at once, beside `taken` workgroups of
// one kernel that already occupy one compute unit each.
bool fit_beside(const Gpu& gpu, std::int32_t taken, std::int32_t more);

// Whether the workgroups of a kernel are assigned in turn: they are resident, and any compute unit is
// allowed.
inline bool goes_in_turn(const Kernel& kernel) {
  return all_resident(kernel.placement) && kernel.cu_begin == 0 && kernel.cu_end == 0;
}

}  // namespace tritax

// How the workgroups of a die are dealt to its shader engines.
//
// The dispatcher gives the workgroups of a kernel to the shader engines of a die in turn (J. Greathouse, AMD:
// "it distributes workgroups to the shader engines in a round-robin manner", ROCm/legacy-rocm-build issue
// 1456), in proportion to their compute units (AMD patent US 11,941,723: by the quantity of active resources
// of each), and not by what other kernels have left free: a workgroup whose turn has come at a full engine
// waits there, and those behind it with it. The last is assumed. Why it is thought so: in ROCm/iris
// examples/gemm/notebooks (April 2025) a scatter kernel of 48 workgroups beside a GEMM of 256 on 304 compute
// units ends 2.54 and 2.51 ms after the GEMM for 8192x8192x28672 and x30720 on two GPUs (20.9 and 22.5 ms),
// eight rounds of 0.39 MB a workgroup: what one of them needs for all its 43 tiles, not for the last six. 32
// and 6 workgroups a die are one too many for an engine of nine.
//
// Only kernels whose workgroups stay (all_resident()) are dealt so here. Of others a workgroup takes
// any room on its die: how long it would wait for its engine depends on how long workgroups last, and where
// one stands for many small ones (model/workloads/remote_access/schedule.cpp) that would be far too long.
#pragma once

#include <cstdint>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// The first compute unit of a shader engine, counted from that of its die; of `engine` = shader_engines, the
// number of compute units. Larger and smaller ones take turns: 38 in four are 10, 9, 10 and 9 (assumed).
std::int32_t engine_begin(const Gpu& gpu, std::int32_t engine);

// The shader engine of each of the first cus_per_xcd workgroups of a kernel on a die; then it begins again.
// An engine has no turn in a round that it has no compute unit for.
std::vector<std::int32_t> engine_turns(const Gpu& gpu);

// How many workgroups another kernel can have beside `taken` of one, each with a compute unit for itself,
// without any that waits: a multiple of the number of dies, on the fullest of which it is counted.
std::int32_t workgroups_beside(const Gpu& gpu, std::int32_t taken);

// Whether `more` workgroups of another kernel have a compute unit each at once beside `taken` of one that are
// there already, a compute unit each.
bool fit_beside(const Gpu& gpu, std::int32_t taken, std::int32_t more);

// Whether the workgroups of a kernel are dealt so: they stay, and may have any compute unit.
inline bool goes_in_turn(const Kernel& kernel) {
  return all_resident(kernel.placement) && kernel.cu_begin == 0 && kernel.cu_end == 0;
}

}  // namespace tritax

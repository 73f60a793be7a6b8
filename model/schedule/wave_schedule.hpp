// Describes wave schedules: the parallel roles of a workgroup's waves on GPUs whose waves fill LDS themselves
// (MI200, MI300, MI350). GPUs with a copy engine for LDS have other kinds of kernels.
//
//   ping_pong          two waves per SIMD, half a phase apart: one computes while the other moves data, with
//                      a barrier at each change (arXiv:2511.08083, §3.3)
//   interleaved        one wave per SIMD, with all registers; memory and matrix instructions alternate
//   producer_consumer  `producers` additional waves bring operands into LDS, the waves of the tile only
//                      compute
//
// Registers are divided evenly among all waves when a workgroup starts (AMD CDNA 3 instruction set reference,
// §3: in steps of 8), so registers that producers get but do not need are lost for accumulators:
//
//   registers of a thread ≤ registers_per_cu / threads of all waves
//
// On MI300 and MI350 two waves per SIMD have 256 registers each, and one wave has 512. A tile of 256×256
// needs 128 accumulators with eight waves and 256 with four. With four producers beside eight waves, 168
// registers are left, and a tile of 128×256 fits. Producers and consumers need two stages in LDS, one that is
// filled and one that is read; the other two schedules use one stage if there is no room for more (64 KiB on
// MI300), with the next stage in flight in registers.
//
// Costs: model/cost/matmul_cost.hpp, attend_cost.hpp. The time of a barrier or a change of phase is not
// modelled: there is no public figure.
#pragma once

#include <cstdint>
#include <string>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

constexpr bool is_wave_schedule(Pipeline pipeline) {
  return pipeline == Pipeline::ping_pong || pipeline == Pipeline::interleaved ||
         pipeline == Pipeline::producer_consumer;
}

// Additional waves of a workgroup, which only fill LDS.
std::int32_t producers_of(const Gpu& gpu, const MatmulTile& tile);

// The problem of such waves on the GPU and an alternative; empty if there is no problem, and for other
// pipelines.
std::string fault_of_waves(const Gpu& gpu, const MatmulTile& tile);

// Most 32-bit registers per thread of a workgroup with `threads` threads.
double registers_of_thread(const Gpu& gpu, Pipeline pipeline, std::int32_t threads);

}  // namespace tritax

// Wave schedules: what the waves of a workgroup do beside each other, on GPUs whose waves fill the LDS
// themselves (MI200, MI300, MI350); where a copy engine does, kernels are of other kinds.
//
//   ping_pong          two waves on every SIMD, half a phase apart: one computes while the other moves data,
//                      with a barrier where they change (arXiv:2511.08083, §3.3)
//   interleaved        one wave on every SIMD, with all its registers; memory and matrix instructions
//                      alternate
//   producer_consumer  `producers` further waves bring operands into LDS, those of the tile only compute
//
// Registers are divided evenly among all waves when a workgroup starts (AMD CDNA 3 instruction set reference,
// §3: in steps of 8), so that what producers are given and do not need is lost to the accumulators:
//
//   registers of a thread ≤ registers_per_cu / threads of all waves
//
// Two waves a SIMD have 256 each and one 512 on MI300 and MI350. A tile of 256×256 takes 128 accumulators of
// eight waves and 256 of four; with four producers beside eight, 168 are left, and 128×256 is what fits.
// Producers and consumers need two stages in LDS, one that is filled and one that is read; the other two have
// one where there is no room for more (64 KiB of MI300), and the next stage on its way in registers.
//
// What each costs: model/cost/matmul_cost.hpp, attend_cost.hpp. That a barrier or a change of phase takes
// time of its own is left out: no public figure says how much.
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

// Waves of a workgroup beside those of its tile, which only fill the LDS.
std::int32_t producers_of(const Gpu& gpu, const MatmulTile& tile);

// What is wrong with such waves on the GPU, and what to take instead; empty where nothing is, and for other
// pipelines.
std::string fault_of_waves(const Gpu& gpu, const MatmulTile& tile);

// 32-bit registers that a thread of a workgroup of so many can have.
double registers_of_thread(const Gpu& gpu, Pipeline pipeline, std::int32_t threads);

}  // namespace tritax

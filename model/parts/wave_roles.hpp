// A workgroup whose waves have roles: producers bring operands into LDS, consumers multiply. Of GPUs whose
// waves fill the LDS themselves (MI200, MI300, MI350); where a copy engine does, producers cost next to
// nothing, and kernels have them anyway.
//
// Registers are divided evenly among all waves when a workgroup starts (AMD CDNA 3 instruction set reference,
// §3: in steps of 8), so that what producers are given and do not need is lost to the accumulators:
//
//   registers of a thread  ≤ registers_per_cu / threads of all waves
//   consumers need           m·n / their threads + two sets of fragments + the rest, as in
//   matmul_resources.cpp,
//                            but nothing on its way to LDS
//
// LDS holds two stages, one that is filled and one that is read. Consumers begin on a stage all at once, when
// it is handed over: they read its fragments, then multiply, and no wave of a SIMD computes while another
// reads, as in the ping-pong of eight waves or the interleaved four, which the overlapped pipeline stands for
// (arXiv:2511.08083, §3.3). In cycles of a K step, with the symbols of matmul_cost.hpp:
//
//   t = max(t_mfma + t_read, t_write, t_port)
#pragma once

#include "model/cost/matmul_cost.hpp"

namespace tritax {

struct WaveRoles {
  Resources resources;      // of the workgroup
  double matmul_share = 1;  // of the rate of the same tile in the overlapped pipeline without producers
};

// `tile.waves` consumers and so many producers, of the overlapped pipeline. Throws UserError where the GPU
// copies by itself, and for tiles that registers or LDS do not allow, with what is left.
WaveRoles wave_roles(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                     std::int32_t producers);

}  // namespace tritax

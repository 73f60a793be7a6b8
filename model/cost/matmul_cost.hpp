// Cost law of a matrix tile on one compute unit, without contention.
//
// Per K step of depth k a workgroup needs, in cycles of the loaded clock f:
//
//   t_mfma  = 2·m·n·k / (flop_per_clk · issue_efficiency)
//   t_port  = matmul_step_clk + (m + n)·k·e / cu_l2_bytes_per_clk   operands from L2 through the CU's port,
//   and the
//                                                              hand-over from the waves that ask for them;
//             no less than matmul_least_step_clk, which the waves that multiply need for one round of stages
//   t_write = (m + n)·k·e / lds_bytes_per_clk                 operands into LDS (0: asynchronous copies)
//   t_read  = waves · (m/wm + n/wn)·k·e / lds_bytes_per_clk   fragments out of LDS, wm × wn waves
//
//   serial pipeline:     t = max(t_mfma + t_write + t_read, t_port)
//   overlapped pipeline: t = max(t_mfma, t_write + t_read, t_port)
//   producers, consumers: t = max(t_mfma + t_read, t_write + t_read, t_port)
//
// Of wave schedules (model/schedule/wave_schedule.hpp) ping-pong and interleaved waves are ways to the
// overlapped pipeline: some wave of a SIMD multiplies while another reads, or its reads stand between its
// matrix instructions, which take 16 clocks of which they are issued in 4. They differ in registers and in
// fragments. Consumers begin on a stage all at once, when producers hand it over: they read its fragments,
// then multiply, and no wave of a SIMD computes while another reads.
//
// and there are matmul_steps(), ceil(K / k) for most, k as step_depth() says. wm × wn is the wave grid that
// reads the fewest fragments; a wave has at least 16×16. Waves or tiles too few to give every matrix core a
// 16×16 block use their share of the rate only; in a library's kernels each 128 of the depth of a step count
// as blocks of their own, because waves share it (local split U).
//
// Where the GPU has asynchronous tile copies t_write vanishes. On A100, and in fp64, waves read fragments for
// mma.sync (m16n8k16; m8n8k4, m16n8k8) and t = max(t_mfma, t_read, t_port). wgmma reads its operands from LDS
// as part of the instruction, so that t_read vanishes too; rows are padded to the 64 of the instruction (in a
// library's kernels they lie along the columns of a tile where only those are a multiple of 64), in t_port
// too: a step of 16 rows takes what one of 64 takes, though it loads less
// (scenarios/measured/h200-1-step.csv); and an instruction with too few columns is paced by its own operands,
// (64 + columns)·k·e / lds_bytes_per_clk (that is why wgmma reaches its peak from 64 columns on:
// arXiv:2501.12084). Ragged tiles take as long as full tiles, because the matrix instructions run over
// padding; they load and compute less that is useful.
//
// Operands that come from memory arrive no faster than one stage every latency / (stages - 1): all stages but
// the one in use are on their way (Little's law). In the serial pipeline the one on its way is in registers:
// its loads go out together, pass through the compute unit at the rate of one that streams from HBM (from a
// nearer level in as much less time as the latency is shorter: equal bytes on their way), and are written
// into LDS once all are there, so that
//
//   t = max(t_mfma + t_read, latency + (m + n)·k·e / cu_load_bandwidth) + t_write
//
// Steps of two-stage Triton kernels on few compute units of MI300X take 0.70 to 0.84 us with tiles of
// 64×64×64, 1.31 to 1.57 with 256×64 (differences over K of the times in ryanswann-amd/iris @989ed0e8
// benchmark/) and 1.07 to 1.45 with 128×128 (@2f99119b). This law has 0.75, 1.25 and 1.09, the latency alone
// 0.42, 1.04 and 1.00.
//
// Sources: issue rates from ROCm/rocm-libraries shared/origami; LDS and port widths from the machine file;
// the serial and overlapped forms are those of arXiv:2511.08083 §3 (ping-pong) and the Triton two-stage
// pipeline.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/cost/kernel_costs.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// One wgmma multiplies so many rows, and is issued by a group of so many waves (NVIDIA PTX ISA,
// wgmma.mma_async).
inline constexpr std::int32_t kWgmmaRows = 64;
inline constexpr std::int32_t kWavesOfWgmma = 4;

struct MatmulCost {
  double compute_ns = 0;     // without waiting for memory, all K steps
  double prologue_ns = 0;    // until the first operands arrive: latency of HBM, the worst case
  double operand_bytes = 0;  // through the CU's L2 port: (rows + cols)·K·e
  double a_bytes = 0;        // of which A
  double b_bytes = 0;
  double q_bytes = 0;  // of attention: of its queries, which no other tile reads; a and b are keys and values
  double flops = 0;    // useful, 2·rows·cols·K
};

// Equal matmuls take times that are uniform about the mean, with `matmul_spread` as relative standard
// deviation. Where neighbours coalesce, a fifth of it is a workgroup's own and the rest common to a port:
// stamps of products on an H100, in lock step within pairs 0.1 to 0.6 % of the time, of all 0.7 to 2.5 %
// (scenarios/measured/h100-1-lock-step.csv).
inline constexpr double kOwnSpread = 0.2;

// Half the width of that distribution, of the part that is a port's and a workgroup's own together.
double spread_width(const Gpu& gpu, const KernelCosts& costs);

// How much faster than the mean a matmul can be by chance.
inline double most_luck(const Gpu& gpu, const KernelCosts& costs) { return 1 + spread_width(gpu, costs); }

// How many steps K takes. The last one of a library's kernel is as deep as what is left of K, in whole rows
// of 128 bytes (hipBLASLt's tail loop); all others go through a whole step. `tile` has the depth of a step,
// `e` is the size of an element. Example: K = 320 of fp16 by steps of 256 takes 1.25 steps, and 2 of other
// kernels.
double matmul_steps(const KernelCosts& costs, const MatmulTile& tile, std::int64_t k, double e);

// Elements of K that one step goes through: those of the tile, or of a stage that a copy engine fills.
std::int32_t step_depth(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile);

// Stages that kernels whose waves load operands have at most: what cuBLAS' have in fp64 (…_64x64_16x4), and
// this project's.
inline constexpr std::int32_t kMostStagesOfWaves = 4;

// Stages that the kernels of a profile have at most; in fp64 waves load the operands.
inline std::int32_t most_stages(const KernelCosts& costs, DType dtype) {
  return dtype == DType::fp64 ? std::min(kMostStagesOfWaves, costs.most_operand_stages)
                              : costs.most_operand_stages;
}

// Stages of operands that `lds_bytes` of a workgroup hold, 1 to as many as its profile has; 0: as many as it
// can have. Asynchronous tile stores take the room of a finished tile, and of what its senders need, first:
// CUTLASS 3 carves it out (StageCountAutoCarveout).
std::int32_t operand_stages(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                            double lds_bytes);

// Time between two stages out of a memory of `latency_ns`, with `stages` in LDS.
double stage_interval_ns(const Gpu& gpu, DType dtype, const MatmulTile& tile, std::int32_t stages,
                         double latency_ns);

// m/wm + n/wn of the wave grid of `tile` that reads the fewest operand fragments; a wave has at least 16×16.
std::int32_t fragment_edges(const MatmulTile& tile);

// Whether a kernel with tiles of `dtype` leaves them to waves of its own, which carry them out of a staging
// area in LDS beside the next matmul (Gpu::async_tile_store). Not in fp64, for which there is no wgmma: the
// waves of such kernels load, multiply by mma.sync and store (cuBLAS' too: cutlass_80_tensorop_d884gemm).
inline bool stages_tiles(const Gpu& gpu, DType dtype) { return gpu.async_tile_store && dtype != DType::fp64; }

// The same of a kernel of a schedule, by what its matmuls multiply.
bool has_sender(const Schedule& schedule, const Kernel& kernel, const Gpu& gpu);

// Cost of `rows` × `cols` × `k` elements computed with tiles of shape `tile`, rows <= m and cols <= n.
// Throws UserError if the GPU has no matrix instruction for the dtype.
MatmulCost matmul_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                       std::int64_t rows, std::int64_t cols, std::int64_t k);

}  // namespace tritax

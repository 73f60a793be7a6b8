// Cost law of a matrix tile on one compute unit, without contention.
//
// Per K step of depth k a workgroup needs, in cycles of the loaded clock f:
//
//   t_mfma  = 2·m·n·k / (flop_per_clk · issue_efficiency)
//   t_port  = matmul_step_clk + (m + n)·k·e / cu_l2_bytes_per_clk
//                                                             operands from L2 through the CU's port, and the
//                                                             hand-over from the waves that load them;
//             at least matmul_least_step_clk, which multiplying waves need for one round of stages
//   t_write = (m + n)·k·e / lds_bytes_per_clk                 operands into LDS (0: asynchronous copies)
//   t_read  = waves · (m/wm + n/wn)·k·e / lds_bytes_per_clk   fragments out of LDS, wm × wn waves
//
//   serial pipeline:     t = max(t_mfma + t_write + t_read, t_port)
//   overlapped pipeline: t = max(t_mfma, t_write + t_read, t_port)
//   producers, consumers: t = max(t_mfma + t_read, t_write + t_read, t_port)
//
// Among wave schedules (model/schedule/wave_schedule.hpp), ping-pong and interleaved waves have the
// overlapped pipeline: one wave of a SIMD multiplies while another reads, or a wave's reads alternate with
// its matrix instructions, which take 16 clocks and 4 issue clocks. The two differ in registers and in
// fragments. Consumers begin a stage all at once, when producers hand the stage over: they read its
// fragments, then multiply, and no wave of a SIMD computes while another reads.
//
// The number of steps is matmul_steps(), ceil(K / k) for most kernels, with k from step_depth(). wm × wn is
// the wave grid that reads the fewest fragments; a wave has at least 16×16. If there are too few waves or
// blocks of 16×16 for all matrix cores, the tile gets only its share of the rate. In a library's kernels each
// 128 of the depth of a step count as separate blocks, because waves share the depth (local split U).
//
// On GPUs with asynchronous tile copies t_write is 0. On A100, and in fp64, waves read fragments for mma.sync
// (m16n8k16; m8n8k4, m16n8k8) and t = max(t_mfma, t_read, t_port). A wgmma instruction reads its operands
// from LDS, so t_read is 0 too. Rows are padded to the 64 rows of the instruction, also in t_port (in a
// library's kernels these rows lie along the columns of the tile if only the columns are a multiple of 64): a
// step of 16 rows takes as long as a step of 64 rows, although it loads less
// (scenarios/measured/h200-1-step.csv). The operands of an instruction with too few columns limit its rate,
// (64 + columns)·k·e / lds_bytes_per_clk (so wgmma reaches its peak from 64 columns on: arXiv:2501.12084).
// Ragged tiles take as long as full tiles, because the matrix instructions also run over padding; they load
// and compute fewer useful elements.
//
// Operands from memory arrive no faster than one stage per latency / (stages - 1): all stages except the one
// in use are in flight (Little's law). In the serial pipeline the stage in flight is in registers. Its loads
// are issued together and pass through the compute unit at the rate of streaming from HBM (from a nearer
// level the time scales with the latency: equal bytes in flight). When all have arrived they are written into
// LDS, so that
//
//   t = max(t_mfma + t_read, latency + (m + n)·k·e / cu_load_bandwidth) + t_write
//
// Steps of two-stage Triton kernels on few compute units of MI300X take 0.70 to 0.84 us with tiles of
// 64×64×64, 1.31 to 1.57 with 256×64 (differences over K of the times in ryanswann-amd/iris @989ed0e8
// benchmark/) and 1.07 to 1.45 with 128×128 (@2f99119b). This law gives 0.75, 1.25 and 1.09 us, the latency
// alone 0.42, 1.04 and 1.00 us.
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

// Rows that one wgmma multiplies, and waves of the group that issues it (NVIDIA PTX ISA, wgmma.mma_async).
inline constexpr std::int32_t kWgmmaRows = 64;
inline constexpr std::int32_t kWavesOfWgmma = 4;

struct MatmulCost {
  double compute_ns = 0;     // all K steps, without waiting for memory
  double prologue_ns = 0;    // until the first operands arrive: latency of HBM, the worst case
  double operand_bytes = 0;  // through the CU's L2 port: (rows + cols)·K·e
  double a_bytes = 0;        // of which A
  double b_bytes = 0;
  double q_bytes = 0;    // attention: queries, which no other tile reads; a and b are keys and values
  double sum_bytes = 0;  // attention backward: sums that are added to memory
  double flops = 0;      // useful, 2·rows·cols·K
};

// Times of equal matmuls are uniform around the mean, with relative standard deviation `matmul_spread`. With
// coalescing neighbours a fifth of it is the workgroup's own and the rest is common to a port: time stamps of
// products on an H100 in lock step differ by 0.1 to 0.6 % within pairs and by 0.7 to 2.5 % among all
// (scenarios/measured/h100-1-lock-step.csv).
inline constexpr double kOwnSpread = 0.2;

// Half the width of that uniform distribution, for the common and the own part together.
double spread_width(const Gpu& gpu, const KernelCosts& costs);

// Largest factor by which a matmul is faster than the mean.
inline double most_luck(const Gpu& gpu, const KernelCosts& costs) { return 1 + spread_width(gpu, costs); }

// Number of steps for K. The last step of a library's kernel is only as deep as the rest of K, in whole rows
// of 128 bytes (hipBLASLt's tail loop); other kernels run a whole last step. `tile` has the depth of a step,
// `e` is the size of an element. Example: K = 320 in fp16 with steps of 256 takes 1.25 steps, and 2 steps in
// other kernels.
double matmul_steps(const KernelCosts& costs, const MatmulTile& tile, std::int64_t k, double e);

// Elements of K per step: the depth of the tile, or of a stage that a copy engine fills.
std::int32_t step_depth(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile);

// Most stages of kernels whose waves load operands: 4 in cuBLAS' fp64 kernels (…_64x64_16x4) and in this
// project's kernels.
inline constexpr std::int32_t kMostStagesOfWaves = 4;

// Most stages of the kernels of a profile; in fp64 waves load the operands.
inline std::int32_t most_stages(const KernelCosts& costs, DType dtype) {
  return dtype == DType::fp64 ? std::min(kMostStagesOfWaves, costs.most_operand_stages)
                              : costs.most_operand_stages;
}

// Stages of operands that fit in `lds_bytes` of a workgroup, from 1 to the most of its profile; `lds_bytes`
// 0: the most that a workgroup can have. With asynchronous tile stores, a finished tile and the needs of its
// sending waves take their room first, as in CUTLASS 3 (StageCountAutoCarveout).
std::int32_t operand_stages(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                            double lds_bytes);

// Time between two stages from a memory of `latency_ns`, with `stages` in LDS.
double stage_interval_ns(const Gpu& gpu, DType dtype, const MatmulTile& tile, std::int32_t stages,
                         double latency_ns);

// The least time in which all stages of A arrive from the memory of a peer. In the serial pipeline the loads
// of a stage are issued together, pass through the compute unit at its rate of loads from peers, and are
// written into LDS when all have arrived, as from the own memory (above). In the other pipelines stages
// overlap, up to that rate.
struct PeerStages {
  double latency_ns = 0;    // round trips that nothing hides: all steps over the stages in flight
  double load_ns = 0;       // bytes of A over the rate of one workgroup alone on a compute unit
  double write_ns = 0;      // operands of all steps into LDS
  bool one_by_one = false;  // serial

  // With `sharers` workgroups on the compute unit, which share its rate.
  double least_ns(std::int32_t sharers) const {
    const double together_ns = sharers * load_ns;
    return one_by_one ? latency_ns + together_ns + write_ns : std::max(latency_ns, together_ns);
  }
};
// `steps` of `tile` with `stages` in LDS; `a_bytes` of A at `gb_per_s`; `round_trip_ns` to the peer.
PeerStages peer_stages(const Gpu& gpu, const MatmulTile& tile, DType dtype, double steps, std::int32_t stages,
                       double a_bytes, double gb_per_s, double round_trip_ns);

// m/wm + n/wn of the wave grid of `tile` that reads the fewest operand fragments; a wave has at least 16×16.
std::int32_t fragment_edges(const MatmulTile& tile);

// Whether a kernel with tiles of `dtype` has sending waves, which move finished tiles out of a staging area
// in LDS during the next matmul (Gpu::async_tile_store). False in fp64, which has no wgmma: the waves of such
// kernels load, multiply by mma.sync and store (also in cuBLAS: cutlass_80_tensorop_d884gemm).
inline bool stages_tiles(const Gpu& gpu, DType dtype) { return gpu.async_tile_store && dtype != DType::fp64; }

// The same for a kernel of a schedule, by the dtype of its matmuls.
bool has_sender(const Schedule& schedule, const Kernel& kernel, const Gpu& gpu);

// Cost of `rows` × `cols` × `k` elements computed with tiles of shape `tile`, rows <= m and cols <= n.
// Throws UserError if the GPU has no matrix instruction for the dtype.
MatmulCost matmul_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                       std::int64_t rows, std::int64_t cols, std::int64_t k);

}  // namespace tritax

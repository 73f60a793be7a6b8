#include "model/patterns/builders.hpp"
#include "model/scenario/workload_schedules.hpp"

namespace tritax {

namespace {

// Libraries accumulate products of 8-bit numbers in 32 bits and write them as 16-bit numbers (hipBLASLt's
// kernels F8BS_BH, HazyResearch/HipKittens kernels/gemm/fp8fp32).
void widen_result(Schedule& schedule, DType dtype) {
  if (dtype == DType::fp8)
    schedule.buffers[static_cast<std::size_t>(schedule.result_buffer)].dtype = DType::bf16;
}

Schedule build(const LibraryGemm& workload, const Machine& machine) {
  const GemmAllScatter alone{workload.m, workload.n, workload.k, workload.dtype, 1};
  Knobs knobs;
  knobs.host_barriers = false;
  if (workload.tile.m == 0) {
    return build_schedule(find_pattern("library", "library-gemm"), alone, machine, knobs);
  }
  knobs.tile_m = workload.tile.m;
  knobs.tile_n = workload.tile.n;
  knobs.tile_k = workload.tile.k;
  knobs.waves = workload.tile.waves;
  knobs.pipeline = workload.tile.pipeline;
  const Pattern own{"library-gemm", "a GEMM kernel of a given tile", {}, build_gemm_of_tile};
  return build_schedule(own, alone, machine, knobs);
}

}  // namespace

Schedule library_gemm_schedule(const LibraryGemm& workload, const Machine& machine) {
  Schedule schedule = build(workload, machine);
  widen_result(schedule, workload.dtype);
  return schedule;
}

}  // namespace tritax

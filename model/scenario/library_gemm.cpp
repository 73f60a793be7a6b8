#include "model/scenario/workload_schedules.hpp"

namespace tritax {

Schedule library_gemm_schedule(const LibraryGemm& workload, const Machine& machine) {
  const GemmAllScatter alone{workload.m, workload.n, workload.k, workload.dtype, 1};
  Knobs knobs;
  knobs.host_barriers = false;
  return build_schedule(find_pattern("library", "library-gemm"), alone, machine, knobs);
}

}  // namespace tritax

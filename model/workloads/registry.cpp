#include "model/workloads/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/core/error.hpp"
#include "model/workloads/all_gather/schedule.hpp"
#include "model/workloads/all_gather_gemm/problem.hpp"
#include "model/workloads/all_reduce/workload.hpp"
#include "model/workloads/all_reduce_norm/workload.hpp"
#include "model/workloads/all_to_all/workload.hpp"
#include "model/workloads/attention_forward/workload.hpp"
#include "model/workloads/broadcast/workload.hpp"
#include "model/workloads/expert_exchange/workload.hpp"
#include "model/workloads/flash_decode/workload.hpp"
#include "model/workloads/gemm/patterns.hpp"
#include "model/workloads/gemm_all_reduce/patterns.hpp"
#include "model/workloads/gemm_all_reduce_norm/workload.hpp"
#include "model/workloads/gemm_all_scatter/problem.hpp"
#include "model/workloads/gemm_all_to_all/patterns.hpp"
#include "model/workloads/gemm_beside_all_gather/patterns.hpp"
#include "model/workloads/gemm_reduce_scatter/patterns.hpp"
#include "model/workloads/grouped_gemm/workload.hpp"
#include "model/workloads/library_gemm/workload.hpp"
#include "model/workloads/moe/workload.hpp"
#include "model/workloads/paged_attention/workload.hpp"
#include "model/workloads/reduce_scatter/workload.hpp"
#include "model/workloads/remote_access/schedule.hpp"
#include "model/workloads/ring_attention/workload.hpp"
#include "model/workloads/spmv/workload.hpp"
#include "model/workloads/streaming_kernel/workload.hpp"
#include "model/workloads/ulysses_attention/workload.hpp"

namespace tritax {

std::span<const Workload* const> workloads() {
  static const std::array<const Workload*, 26> all{&gemm_all_scatter(),
                                                   &all_gather_gemm(),
                                                   &gemm_reduce_scatter(),
                                                   &gemm_all_reduce(),
                                                   &gemm_all_reduce_norm(),
                                                   &gemm_all_to_all(),
                                                   &gemm_beside_all_gather(),
                                                   &gemm(),
                                                   &library_gemm(),
                                                   &remote_access(),
                                                   &all_gather(),
                                                   &reduce_scatter(),
                                                   &all_reduce(),
                                                   &all_reduce_norm(),
                                                   &all_to_all(),
                                                   &broadcast(),
                                                   &expert_exchange(),
                                                   &flash_decode(),
                                                   &attention(),
                                                   &paged_attention(),
                                                   &ring_attention(),
                                                   &ulysses(),
                                                   &moe(),
                                                   &grouped_gemm(),
                                                   &streaming_kernel(),
                                                   &spmv()};
  return all;
}

const Workload& find_workload(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Workload* workload : workloads()) {
    if (workload->name == name) return *workload;
    names.push_back(workload->name);
  }
  const std::string nearest = nearest_name(std::string(name), names);
  throw UserError(fmt::format("{}: unknown workload '{}'{}; the workloads are {}", where, name,
                              nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                              fmt::join(names, ", ")));
}

const Workload* find_workload(Projection projection) {
  const auto found = std::find_if(workloads().begin(), workloads().end(), [&](const Workload* workload) {
    return workload->projection.projection == projection;
  });
  return found == workloads().end() ? nullptr : *found;
}

}  // namespace tritax

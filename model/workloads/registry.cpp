#include "model/workloads/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/core/error.hpp"
#include "model/workloads/all_gather/workload.hpp"
#include "model/workloads/all_gather_gemm/workload.hpp"
#include "model/workloads/all_reduce/workload.hpp"
#include "model/workloads/all_reduce_norm/workload.hpp"
#include "model/workloads/all_to_all/workload.hpp"
#include "model/workloads/attention_backward/workload.hpp"
#include "model/workloads/attention_forward/workload.hpp"
#include "model/workloads/broadcast/workload.hpp"
#include "model/workloads/expert_exchange/workload.hpp"
#include "model/workloads/flash_decode/workload.hpp"
#include "model/workloads/gemm/workload.hpp"
#include "model/workloads/gemm_all_reduce/workload.hpp"
#include "model/workloads/gemm_all_reduce_norm/workload.hpp"
#include "model/workloads/gemm_all_scatter/workload.hpp"
#include "model/workloads/gemm_all_to_all/workload.hpp"
#include "model/workloads/gemm_beside_collective/workload.hpp"
#include "model/workloads/gemm_reduce_scatter/workload.hpp"
#include "model/workloads/grouped_gemm/workload.hpp"
#include "model/workloads/library_gemm/workload.hpp"
#include "model/workloads/moe/workload.hpp"
#include "model/workloads/paged_attention/workload.hpp"
#include "model/workloads/reduce_scatter/workload.hpp"
#include "model/workloads/remote_access/workload.hpp"
#include "model/workloads/ring_attention/workload.hpp"
#include "model/workloads/rooted/workload.hpp"
#include "model/workloads/spmv/workload.hpp"
#include "model/workloads/streaming_kernel/workload.hpp"
#include "model/workloads/ulysses_attention/workload.hpp"

namespace tritax {

namespace {

// The first workload for which `suits` holds; null if there is none.
template <typename Suits>
const Workload* first_that(const Suits& suits) {
  const auto found = std::find_if(workloads().begin(), workloads().end(),
                                  [&](const Workload* workload) { return suits(*workload); });
  return found == workloads().end() ? nullptr : *found;
}

}  // namespace

std::span<const Workload* const> workloads() {
  static const std::array<const Workload*, 32> all{&gemm_all_scatter(),
                                                   &all_gather_gemm(),
                                                   &gemm_reduce_scatter(),
                                                   &gemm_all_reduce(),
                                                   &gemm_all_reduce_norm(),
                                                   &gemm_all_to_all(),
                                                   &gemm_all_gather(),
                                                   &gemm_beside_collective(),
                                                   &gemm(),
                                                   &library_gemm(),
                                                   &remote_access(),
                                                   &all_gather(),
                                                   &reduce_scatter(),
                                                   &all_reduce(),
                                                   &all_reduce_norm(),
                                                   &all_to_all(),
                                                   &broadcast(),
                                                   &rooted_reduce(),
                                                   &rooted_gather(),
                                                   &rooted_scatter(),
                                                   &send_receive(),
                                                   &expert_exchange(),
                                                   &flash_decode(),
                                                   &attention(),
                                                   &attention_backward(),
                                                   &paged_attention(),
                                                   &ring_attention(),
                                                   &ulysses(),
                                                   &moe(),
                                                   &grouped_gemm(),
                                                   &streaming_kernel(),
                                                   &spmv()};
  return all;
}

const Workload* workload_named(std::string_view name) {
  return first_that([&](const Workload& workload) { return is_called(workload, name); });
}

const Workload& find_workload(std::string_view name, const std::string& where) {
  if (const Workload* workload = workload_named(name)) return *workload;
  std::vector<std::string_view> names;
  for (const Workload* workload : workloads()) names.push_back(workload->name);
  const std::string nearest = nearest_name(std::string(name), names);
  throw UserError(fmt::format("{}: unknown workload '{}'{}; the workloads are {}", where, name,
                              nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                              fmt::join(names, ", ")));
}

const Workload* find_workload(Projection projection) {
  return first_that([&](const Workload& workload) { return workload.projection.projection == projection; });
}

const Workload& find_workload(BlockRole block) {
  const Workload* found = first_that([&](const Workload& workload) { return workload.block == block; });
  TRITAX_ASSERT(found != nullptr, "a workload computes every block of a layer");
  return *found;
}

const Workload* find_workload(TracedCollective collective, BesideProduct beside) {
  return first_that([&](const Workload& workload) {
    return workload.traced && workload.traced->collective == collective && workload.traced->beside == beside;
  });
}

}  // namespace tritax

#include "model/workload/gemm_all_scatter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// Keeps every product of two sizes below 2^40 and of three below 2^60, so nothing overflows 64 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
// Ranks are 16-bit in a tile schedule; no node of today comes near.
constexpr int kMaxGpus = 1024;

void check_size(std::int64_t size, const char* name, const std::string& where) {
  if (size < 1 || size > kMaxSize) {
    throw UserError(
        fmt::format("{}: {} = {} is not allowed; it must be between 1 and {}", where, name, size, kMaxSize));
  }
}

}  // namespace

ColumnRange owned_columns(const GemmAllScatter& workload, int rank) {
  TRITAX_ASSERT(rank >= 0 && rank < workload.gpus, "rank outside the workload");
  const std::int64_t share = workload.n / workload.gpus;
  const std::int64_t wider = workload.n % workload.gpus;  // the first `wider` ranks own one column more
  const std::int64_t begin = rank * share + std::min<std::int64_t>(rank, wider);
  return {begin, begin + share + (rank < wider ? 1 : 0)};
}

double flops(const GemmAllScatter& workload) {
  return 2.0 * static_cast<double>(workload.m) * static_cast<double>(workload.n) *
         static_cast<double>(workload.k);
}

double egress_bytes(const GemmAllScatter& workload, int rank) {
  const std::int64_t elements = workload.m * owned_columns(workload, rank).size() * (workload.gpus - 1);
  return static_cast<double>(elements) * bytes_of(workload.dtype);
}

void check(const GemmAllScatter& workload, const std::string& where) {
  check_size(workload.m, "M", where);
  check_size(workload.n, "N", where);
  check_size(workload.k, "K", where);
  if (workload.gpus < 1 || workload.gpus > kMaxGpus) {
    throw UserError(fmt::format("{}: gpus = {} is not allowed; it must be between 1 and {}", where,
                                workload.gpus, kMaxGpus));
  }
  if (workload.n < workload.gpus) {
    throw UserError(
        fmt::format("{}: N = {} has fewer columns than there are GPUs ({}); every GPU must own at least one",
                    where, workload.n, workload.gpus));
  }
}

}  // namespace tritax

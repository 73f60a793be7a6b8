// Builders of the patterns of this workload.
#pragma once

#include <cstdint>
#include <optional>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GemmAllToAll {
  std::int64_t m = 0;  // of all ranks together
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::fp16;  // of A, B and C; accumulation is fp32
  int gpus = 1;
};

struct ExchangeKnobs : GemmKnobs {
  std::int32_t chunks = 2;  // pieces of the own rows
  Posts posts = Posts::host;
  std::optional<DType> result;  // of C
};

// Rows of A that a rank has, and columns of C that it ends with; rank 0 has the most of both.
Share own_rows(const GemmAllToAll& problem, int rank);
Share own_columns(const GemmAllToAll& problem, int rank);

// One builder per pattern; builders expect checked knobs.
Schedule build_exchange_library(const GemmAllToAll& problem, const Machine& machine,
                                const ExchangeKnobs& knobs);
Schedule build_exchange_fused(const GemmAllToAll& problem, const Machine& machine,
                              const ExchangeKnobs& knobs);
Schedule build_exchange_chunked(const GemmAllToAll& problem, const Machine& machine,
                                const ExchangeKnobs& knobs);
Schedule build_exchange_copy_engine(const GemmAllToAll& problem, const Machine& machine,
                                    const ExchangeKnobs& knobs);

// The tile of the library's GEMM, which does not depend on the knobs.
LibraryTile exchange_library_tile(const GemmAllToAll& problem, const Machine& machine);

}  // namespace tritax

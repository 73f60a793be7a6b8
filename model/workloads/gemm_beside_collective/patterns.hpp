// Builders of the patterns of this workload.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// The collective beside the GEMM.
enum class BesideCollective : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };
inline constexpr std::array<std::string_view, 4> kBesideNames{"all-gather", "reduce-scatter", "all-reduce",
                                                              "all-to-all"};

struct GemmBeside {
  GemmShape gemm;         // the same on every rank
  std::int64_t rows = 0;  // of a rank's block of X, or of a rank's matrix
  std::int64_t cols = 0;
  int gpus = 2;
  BesideCollective collective = BesideCollective::all_gather;

  bool gathers() const { return collective == BesideCollective::all_gather; }
  bool sums() const {
    return collective == BesideCollective::reduce_scatter || collective == BesideCollective::all_reduce;
  }
};

// The matrices of all ranks as one array, cut by rows: what a rank adds up, or what it receives of every
// rank. Not of an all-gather.
inline PartialSums array_of(const GemmBeside& problem) {
  return {problem.rows, problem.cols, 0, problem.gemm.dtype, Blocks::rows, problem.gpus};
}

// One builder per pattern; builders expect checked knobs.
Schedule build_beside_library(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs,
                              bool two_streams);
Schedule build_beside_streams(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs);
Schedule build_beside_copy_engine(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs);
Schedule build_beside_queues(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs);

}  // namespace tritax

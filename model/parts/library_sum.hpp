// Partial sums by vendors' libraries: the GEMM of each rank, unless the summands are there, then the
// all-reduce of the collective library.
//
//   stream 0, GEMM:        the vendor's kernel: C = A_r·B_r
//   stream 0, ALL-REDUCE:  model/parts/library_collectives.hpp; behind a GEMM in place
//
// Nothing waits for the host in between: a framework puts all of it into streams. Products of fp8 leave the
// GEMM in bf16, in which they are added: libraries multiply fp8 into bf16.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "model/parts/library_tile.hpp"
#include "model/parts/partial_sums.hpp"

namespace tritax {

// Dtype of C behind the GEMM of a library, and of its sums.
constexpr DType library_sum_dtype(DType dtype) { return dtype == DType::fp8 ? DType::bf16 : dtype; }

// The tile of the library's GEMM for the rank that has most of K.
LibraryTile library_sum_tile(const PartialSums& problem, const Machine& machine);

// A draft with a product for add_library_sum(): C is cut as one array, along its longer side.
SumDraft library_sum_draft(std::string_view pattern, const PartialSums& problem, const Machine& machine,
                           const SumKnobs& asked);

// Adds kernels and host programs of all ranks. `behind`: adds what a rank launches into stream 0 behind the
// sum.
void add_library_sum(SumDraft& draft, const std::function<void(int rank)>& behind = {});

}  // namespace tritax

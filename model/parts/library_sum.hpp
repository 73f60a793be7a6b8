// Sums of partial sums by vendors' libraries: the GEMM of each rank, unless the summands exist already, and
// then the all-reduce of the collective library.
//
//   stream 0, GEMM:        the vendor's kernel: C = A_r·B_r
//   stream 0, ALL-REDUCE:  model/parts/library_collectives.hpp; behind a GEMM in place
//
// Nothing waits for the host in between, because a framework puts all calls into streams. Products leave the
// GEMM in product_dtype(), in which they are added.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_tile.hpp"
#include "model/parts/partial_sums.hpp"

namespace tritax {

// The tile of the library's GEMM for the rank with the largest share of K.
LibraryTile library_sum_tile(const PartialSums& problem, const Machine& machine);

// Adds and launches the vendor's product of a rank, into the buffer `target`, behind a host barrier where the
// knobs ask for host barriers. `parts`: from add_buffer_of_parts().
void launch_library_product(SumDraft& draft, int rank, const LibraryTile& library, std::int16_t target,
                            std::int16_t parts);

// The part of a collective that is the same on all ranks, which adds up the blocks of `own` into the draft's
// C. Adds slots and flags. An all-reduce where sums go to all ranks, else a reduce-scatter.
LibraryReduce library_reduce_of(SumDraft& draft, std::string kernel, std::int16_t own, DType dtype,
                                std::vector<Rect> blocks);

// A draft with a product, for add_library_sum(); C is cut as one array, along its longer side.
SumDraft library_sum_draft(std::string_view pattern, const PartialSums& problem, const Machine& machine,
                           const SumKnobs& asked);

// Adds kernels and host programs of all ranks. `behind`: adds launches of a rank into stream 0 behind the
// sum.
void add_library_sum(SumDraft& draft, const std::function<void(int rank)>& behind = {});

}  // namespace tritax

// The steps behind an all-reduce in a transformer layer: the residual stream is added, and the rows of the
// new stream are normalised (RMSNorm, arXiv:1910.07467) for the next product.
//
//   C = Σ over ranks of partial sums + residual,   normed = rms_norm(C) · weights      on every rank
//
// A workgroup has one row at a time, because the root mean square needs the whole row. Fused into an
// all-reduce in one shot (TensorRT-LLM and FlashInfer: allreduce_fusion; lightseekorg/tokenspeed PR 1544), G
// workgroups:
//
//   push:  for pieces of rows p, p+G, …: load partial(piece); for peers: store -> slot there;
//                              arrived[row] += 1 there
//          for rows p, p+G, …: wait arrived[row]; load residual; reduce partial; for peers: reduce slot
//                              store C; rms_norm; store normed
//   pull:  exchange arrivals;  for rows p, p+G, …: load residual; reduce partial; for peers: reduce theirs
//                              store C; rms_norm; store normed; at the end exchange arrivals, or
//                              behind a GEMM open the own partial sums with its next run
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/parts/partial_sums.hpp"

namespace tritax {

// Buffers of the residual stream, the weights and the normalised rows.
struct NormRows {
  std::int16_t residual = -1;
  std::int16_t weights = -1;
  std::int16_t normed = -1;
  std::int16_t shard = -1;  // the normalised rows of the own block, before a gather; -1: none
};

// A row of C.
Rect row_of(const SumDraft& draft, std::int32_t row);

// Adds a persistent kernel whose workgroups hold a row at a time; returns its number.
std::int32_t norm_rows_kernel(SumDraft& draft, const char* name, int rank);

// Throws UserError for rows of `cols` elements that no workgroup can hold; `field`: the name of `cols`.
void check_norm_columns(std::int64_t cols, std::string_view field);

// Throws UserError where normalising `rows` rows of sums of `gpus` GPUs is too much to schedule.
void check_norm_rows(std::int64_t rows, int gpus, std::string_view field);

// Bytes per rank of C, the residual stream, the weights and the normalised rows of type `normed`.
double norm_bytes(std::int64_t rows, std::int64_t cols, DType operands, DType normed);
inline double norm_bytes(std::int64_t rows, std::int64_t cols, DType operands) {
  return norm_bytes(rows, cols, operands, product_dtype(operands));
}

// Adds buffers, inputs and reference; the normalised rows of all blocks are the result, on every rank. C and
// the residual stream have product_dtype(); so must the draft's C. `normed`: type of the normalised rows; the
// same by default. Where the draft's sums stay with their owners, so does the stream.
NormRows add_norm(SumDraft& draft, std::optional<DType> normed = {});

// Adds the operations that leave in the accumulator the residual and the sum of a row over all ranks.
// `slots`: of the peers' summands, the draft's or one matrix per source, or -1 where their partial sums are
// loaded.
void add_up_norm_row(SumDraft& draft, const NormRows& norm, std::int16_t slots, int rank, std::int32_t row,
                     const std::vector<int>& peers);

// Adds the end of a row: the sum with the residual is in the accumulator.
void finish_norm_row(SumDraft& draft, const NormRows& norm, int rank, std::int32_t row);

// Adds a kernel that adds the residual to the rank's C, which holds the sums, and normalises it; a workgroup
// per row, of a vendor's framework or of the same hand as the others. Returns its number.
std::int32_t add_norm_kernel(SumDraft& draft, const NormRows& norm, int rank,
                             KernelProfile profile = KernelProfile::vendor);

// The fused all-reduce of partial sums that exist already. add_one_shot_rows() adds buffers and flags, once,
// before any kernel; add_one_shot_kernel() adds the kernel of one rank and returns its number.
struct OneShotRows {
  std::int16_t slots = -1;    // push: all of C per source
  std::int16_t arrived = -1;  // push: one per row
  std::int16_t ready = -1;    // pull: (workgroup, rank)
  std::int32_t workgroups = 1;
  std::int32_t pieces = 1, width = 0;  // push: pieces per row, and columns per piece
};
OneShotRows add_one_shot_rows(SumDraft& draft, std::int32_t workgroups);
std::int32_t add_one_shot_kernel(SumDraft& draft, const NormRows& norm, const OneShotRows& shot, int rank);

}  // namespace tritax

// The schedules of memory-bound kernels: what a kernel moves, and in which order.
//
// Every operation reads and writes the same data as the kernel, tile by tile. In place of the kernel's
// arithmetic on a row it adds or copies, so that the result can be checked: z = y = x + residual; y = x +
// table, for each head. The arithmetic costs time (vector_work.hpp).
//
// add-norm in separate kernels, as PyTorch runs it eagerly; the first with dropout, the third with an fp32
// norm:
//
//   t = x, mask | z = t + residual | w = z | y = w
//
// rotary in separate kernels; h is the first half of the columns of a head:
//
//   h = x | t = h, x | a = x + table | b = t + table | y = a + b
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/machine/machine.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workloads/streaming_kernel/vector_work.hpp"

namespace tritax {

inline constexpr std::int32_t kHeadColumns = 128;  // of rotary

struct Streaming {
  StreamingOperation operation = StreamingOperation::add_norm;
  std::int32_t rows = 1, cols = 1;
  DType dtype = DType::bf16;
  std::int32_t strip = 4, shift = 0;
  bool apart = false;
  bool graph = false;
  bool compiled = false;  // by Triton
  bool dropout = false, wide_norm = false;
  bool keeps_mask = false;  // of dropout, a byte per element; PyTorch's own kernel always does
  RandomNumbers random = RandomNumbers::four;
  RowArithmetic arithmetic = RowArithmetic::fp32;

  bool rotates() const { return operation == StreamingOperation::rotary; }
  std::int32_t strips() const { return ceil_div(rows, strip); }
  std::int32_t width() const { return rotates() ? std::min(cols, kHeadColumns) : cols; }
  std::int32_t pieces() const { return ceil_div(cols, width()); }  // per row
  bool splits_row() const { return rotates() && apart; }
  std::int32_t tiles() const { return strips() * (splits_row() ? pieces() : 1); }
  std::int32_t pieces_of_tile() const { return splits_row() ? 1 : pieces(); }
  DType norm_dtype() const { return wide_norm ? DType::fp32 : dtype; }
};

// Resources of a workgroup: registers for the rows of a piece, in fp32. Throws UserError that names `strip`
// where the rows do not fit.
Resources streaming_resources(const Streaming& streaming, const Gpu& gpu);

// One kernel per step.
Schedule separate_streams(const Streaming& streaming, const Machine& machine);

// One kernel, with a workgroup per strip of rows, or with as many as are resident together.
Schedule fused_streams(const Streaming& streaming, const Machine& machine, bool persistent);

}  // namespace tritax

// The GEMM of a vendor's library on one rank, as kernels of a schedule.
//
//   one workgroup per tile (persistent where finished tiles leave beside the next matmul):
//                                       matmul; store into the target
//   or, split along K:                  matmul of a part; store into `parts`, then a kernel that adds them up
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_tile.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

// Name of the kernel that adds up the parts of a GEMM that is split along K.
inline constexpr std::string_view kAddingKernel = "library_add_parts";

// Workgroups per compute unit of the kernels around the products. Their rates are measured, but not their
// grids. Assumed: several workgroups per compute unit, and none for fewer than some thousand elements.
inline constexpr std::int32_t kCopiesOfCu = 4;

// C = A·B of one rank: all of A and B, or some rows and columns of them; C is a rectangle of a buffer.
struct LibraryGemmPlan {
  int rank = 0;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int32_t k = 0;
  std::int16_t target = -1;
  Rect rect;                // in the target: M rows and the columns of B
  std::int16_t parts = -1;  // buffer for the parts of K, if there are several
  DType dtype = DType::fp16;
  LibraryTile library;
  GemmKnobs order{};                     // grid order: group_m and xcd_remap
  std::int32_t a_row = 0, b_column = 0;  // first row of A, and first column of B
  bool picks = true;  // whether the library picked the tile, so that its measured calls apply
  // Compute units that another kernel holds: tiles go to the units that are free, one workgroup each.
  bool shares_units = false;
};

// Adds a buffer for the parts of K of M × `columns`; -1 if there is only one part.
std::int16_t add_buffer_of_parts(ScheduleBuilder& builder, const LibraryTile& library, std::int64_t m,
                                 std::int32_t columns);

// Adds the kernels and returns their numbers, in order.
std::vector<std::int32_t> add_library_gemm(ScheduleBuilder& builder, const Machine& machine,
                                           const LibraryGemmPlan& plan);

}  // namespace tritax

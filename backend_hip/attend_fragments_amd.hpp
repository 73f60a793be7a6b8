// Matrix instructions of attention on AMD: v_mfma_f32_16x16x16, operands from LDS.
//
// A wave owns 16 rows of queries. Products are computed transposed: scoresᵀ = K·Qᵀ and outᵀ = Vᵀ·weightsᵀ. A
// *fragment* is the accumulator of one instruction, 16 rows × 16 columns as seen from the queries, 4 numbers
// per lane. Element e of lane l is row l mod 16, column 4·(l div 16) + e, because the accumulators of MFMA
// are neighbours along their rows (AMD Instinct MI300 ISA, "Matrix Arithmetic Instructions"). In this layout
// the scores of 16 keys already lie where the product with the values expects its right operand.
//
// Tiles in LDS: as in attend_fragments_nvidia.hpp. They arrive through registers, while the waves wait: a
// correct form, not a fast one.
#pragma once

#include <cstdint>

#include "backend_hip/device.hpp"

namespace tritax::gpu {

inline constexpr int kFragmentCols = 16;
inline constexpr int kLaneRows = 1;
inline constexpr bool kAsyncTiles = false;

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kWaveLanes; }
__device__ inline int fragment_row(int) { return lane_of_thread() % 16; }
__device__ inline int fragment_col(int e) { return lane_of_thread() / 16 * 4 + e; }
constexpr int lane_row(int) { return 0; }

__device__ inline float row_max(float value) {
  value = fmaxf(value, __shfl_xor(value, 16));
  return fmaxf(value, __shfl_xor(value, 32));
}
__device__ inline float row_sum(float value) {
  value += __shfl_xor(value, 16);
  return value + __shfl_xor(value, 32);
}

using TilePlace = unsigned char*;
__device__ inline TilePlace tile_place(unsigned char* shared) { return shared; }

__device__ inline void begin_chunk(TilePlace to, const unsigned char* from, bool wanted) {
  *reinterpret_cast<uint4*>(to) = wanted ? load_16(from) : uint4{0, 0, 0, 0};
}
__device__ inline void end_group() {}
__device__ inline void await_all_but_one() {}

template <int row_bytes>
__device__ inline TilePlace chunk_place(TilePlace tile, int row, int chunk) {
  return tile + row * row_bytes + ((chunk ^ (row & 7)) << 4);
}

// Four neighbouring 16-bit elements of a row, from a column that is a multiple of four.
template <int row_bytes>
__device__ inline std::uint64_t four_of(TilePlace tile, int row, int col) {
  return *reinterpret_cast<const std::uint64_t*>(chunk_place<row_bytes>(tile, row, col / 8) + col % 8 * 2);
}

template <DType dtype>
__device__ inline void multiply(float (&d)[4], std::uint64_t a, std::uint64_t b) {
  using Sums = float __attribute__((ext_vector_type(4)));
  Sums sums = {d[0], d[1], d[2], d[3]};
  if constexpr (dtype == DType::bf16) {
    using Vec = short __attribute__((ext_vector_type(4)));
    sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(Vec, a), __builtin_bit_cast(Vec, b),
                                                     sums, 0, 0, 0);
  } else {
    using Vec = _Float16 __attribute__((ext_vector_type(4)));
    sums = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(Vec, a), __builtin_bit_cast(Vec, b), sums,
                                                 0, 0, 0);
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) d[e] = sums[e];
}

template <DType dtype, int row_bytes, int row_blocks, int fragments>
__device__ __forceinline__ void multiply_scores(float (&scores)[row_blocks][fragments][4], TilePlace queries,
                                                int first_row, TilePlace keys, int first_key) {
  const int row = lane_of_thread() % 16;
  const int col = lane_of_thread() / 16 * 4;
#pragma unroll
  for (int step = 0; step < row_bytes / 32; ++step) {
    std::uint64_t b[row_blocks];
#pragma unroll
    for (int block = 0; block < row_blocks; ++block)
      b[block] = four_of<row_bytes>(queries, first_row + block * 16 + row, step * 16 + col);
#pragma unroll
    for (int j = 0; j < fragments; ++j) {
      const std::uint64_t a = four_of<row_bytes>(keys, first_key + j * 16 + row, step * 16 + col);
#pragma unroll
      for (int block = 0; block < row_blocks; ++block) multiply<dtype>(scores[block][j], a, b[block]);
    }
  }
}

template <DType dtype, int row_bytes, int row_blocks, int fragments, int out_fragments>
__device__ __forceinline__ void multiply_values(float (&out)[row_blocks][out_fragments][4],
                                                const float (&weights)[row_blocks][fragments][4],
                                                TilePlace values, int first_key) {
  const int row = lane_of_thread() % 16;
  const int col = lane_of_thread() / 16 * 4;
#pragma unroll
  for (int j = 0; j < fragments; ++j) {  // 16 keys
    std::uint64_t b[row_blocks];
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      const float(&w)[4] = weights[block][j];
      b[block] = pack_pair<dtype>(w[0], w[1]) | std::uint64_t{pack_pair<dtype>(w[2], w[3])} << 32;
    }
#pragma unroll
    for (int c = 0; c < out_fragments; ++c) {
      std::uint64_t a = 0;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int of = c * 16 + row;
        const TilePlace at =
            chunk_place<row_bytes>(values, first_key + j * 16 + col + e, of / 8) + of % 8 * 2;
        a |= std::uint64_t{*reinterpret_cast<const unsigned short*>(at)} << (16 * e);
      }
#pragma unroll
      for (int block = 0; block < row_blocks; ++block) multiply<dtype>(out[block][c], a, b[block]);
    }
  }
}

}  // namespace tritax::gpu

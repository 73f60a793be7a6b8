// Matrix instructions of attention on NVIDIA: mma.sync m16n8k16, operands by ldmatrix, tiles by cp.async.
//
// A wave owns 16 rows of queries. A *fragment* is the accumulator of one instruction: 16 rows × 8 columns, 4
// numbers per lane. Element e of lane l is row l div 4 + 8·(e div 2), column 2·(l mod 4) + e mod 2 (PTX ISA,
// "Matrix fragments for mma.m16n8k16"). The scores of 16 keys, rounded to 16 bits, already lie where the
// product with the values expects its left operand.
//
// Tiles in shared memory: rows of 16-bit elements, in chunks of 16 bytes; chunk c of row r lies at place
// c xor (r mod 8), so that the 8 rows that a load of 8×8 elements touches lie in different banks.
#pragma once

#include <cstdint>

#include "backend_hip/device.hpp"

namespace tritax::gpu {

inline constexpr int kFragmentCols = 8;
inline constexpr int kLaneRows = 2;        // rows of a fragment for which a lane holds numbers
inline constexpr bool kAsyncTiles = true;  // tiles are under way while the waves compute

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kWaveLanes; }
__device__ inline int fragment_row(int e) { return lane_of_thread() / 4 + e / 2 * 8; }
__device__ inline int fragment_col(int e) { return lane_of_thread() % 4 * 2 + e % 2; }
constexpr int lane_row(int e) { return e / 2; }  // index among the rows of the lane

// Maximum over all lanes that hold numbers of the same row.
__device__ inline float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}
__device__ inline float row_sum(float value) {
  value += __shfl_xor_sync(0xffffffffU, value, 1);
  return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

using TilePlace = std::uint32_t;  // in shared memory
__device__ inline TilePlace tile_place(unsigned char* shared) {
  return static_cast<TilePlace>(__cvta_generic_to_shared(shared));
}

// Starts the copy of 16 bytes, or of zeros; bypasses the first-level cache, because peers may have written
// the bytes.
__device__ inline void begin_chunk(TilePlace to, const unsigned char* from, bool wanted) {
  const int bytes = wanted ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all groups but the last have arrived.
__device__ inline void await_all_but_one() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

template <int row_bytes>
__device__ inline TilePlace chunk_place(TilePlace tile, int row, int chunk) {
  return tile + static_cast<TilePlace>(row * row_bytes + ((chunk ^ (row & 7)) << 4));
}

__device__ inline void load_matrices(std::uint32_t (&r)[4], TilePlace from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from));
}
__device__ inline void load_matrices_turned(std::uint32_t (&r)[4], TilePlace from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from));
}

template <DType dtype>
__device__ inline void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  if constexpr (dtype == DType::bf16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// scores += queries·keysᵀ; rows of queries from `first_row` on, keys from `first_key` on.
template <DType dtype, int row_bytes, int row_blocks, int fragments>
__device__ __forceinline__ void multiply_scores(float (&scores)[row_blocks][fragments][4], TilePlace queries,
                                                int first_row, TilePlace keys, int first_key) {
  const int lane = lane_of_thread();
  const int matrix = lane / 8;
  const int row = lane % 8;
#pragma unroll
  for (int step = 0; step < row_bytes / 32; ++step) {  // 16 columns of a head
    std::uint32_t a[row_blocks][4];
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      load_matrices(a[block], chunk_place<row_bytes>(queries, first_row + block * 16 + matrix % 2 * 8 + row,
                                                     step * 2 + matrix / 2));
    }
#pragma unroll
    for (int pair = 0; pair < fragments / 2; ++pair) {
      std::uint32_t b[4];
      load_matrices(b, chunk_place<row_bytes>(keys, first_key + pair * 16 + matrix / 2 * 8 + row,
                                              step * 2 + matrix % 2));
#pragma unroll
      for (int block = 0; block < row_blocks; ++block) {
        multiply<dtype>(scores[block][2 * pair], a[block], b[0], b[1]);
        multiply<dtype>(scores[block][2 * pair + 1], a[block], b[2], b[3]);
      }
    }
  }
}

// out += weights·values; the rows of the values from `first_key` on belong to the columns of the weights.
template <DType dtype, int row_bytes, int row_blocks, int fragments, int out_fragments>
__device__ __forceinline__ void multiply_values(float (&out)[row_blocks][out_fragments][4],
                                                const float (&weights)[row_blocks][fragments][4],
                                                TilePlace values, int first_key) {
  const int lane = lane_of_thread();
  const int matrix = lane / 8;
  const int row = lane % 8;
#pragma unroll
  for (int pair = 0; pair < fragments / 2; ++pair) {  // 16 keys
    std::uint32_t a[row_blocks][4];
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      const float(&low)[4] = weights[block][2 * pair];
      const float(&high)[4] = weights[block][2 * pair + 1];
      a[block][0] = pack_pair<dtype>(low[0], low[1]);
      a[block][1] = pack_pair<dtype>(low[2], low[3]);
      a[block][2] = pack_pair<dtype>(high[0], high[1]);
      a[block][3] = pack_pair<dtype>(high[2], high[3]);
    }
#pragma unroll
    for (int col = 0; col < out_fragments; col += 2) {
      std::uint32_t b[4];
      load_matrices_turned(
          b, chunk_place<row_bytes>(values, first_key + pair * 16 + matrix % 2 * 8 + row, col + matrix / 2));
#pragma unroll
      for (int block = 0; block < row_blocks; ++block) {
        multiply<dtype>(out[block][col], a[block], b[0], b[1]);
        multiply<dtype>(out[block][col + 1], a[block], b[2], b[3]);
      }
    }
  }
}

}  // namespace tritax::gpu

// The device primitives of the vendor of this build.
#pragma once

#if defined(TRITAX_GPU_NVIDIA)
#include "backend_hip/device_nvidia.hpp"
#else
#include "backend_hip/device_amd.hpp"
#endif

namespace tritax::gpu {

// Storage for records in shared memory, where constructors must not run.
template <class T, int count = 1>
struct SharedRoom {
  alignas(T) unsigned char bytes[count * sizeof(T)];
  __device__ T* get() { return reinterpret_cast<T*>(bytes); }
};

// The bits of one element in memory, of up to 4 bytes; fp64 has separate kernels (tile_fp64.hpp).
template <DType dtype>
__device__ inline std::uint32_t load_element(const void* address) {
  static_assert(bytes_of(dtype) <= 4);
  if constexpr (bytes_of(dtype) == 4) return *static_cast<const std::uint32_t*>(address);
  if constexpr (bytes_of(dtype) == 2) return *static_cast<const unsigned short*>(address);
  return *static_cast<const unsigned char*>(address);
}

template <DType dtype>
__device__ inline void store_element(void* address, std::uint32_t bits) {
  static_assert(bytes_of(dtype) <= 4);
  if constexpr (bytes_of(dtype) == 4) *static_cast<std::uint32_t*>(address) = bits;
  if constexpr (bytes_of(dtype) == 2)
    *static_cast<unsigned short*>(address) = static_cast<unsigned short>(bits);
  if constexpr (bytes_of(dtype) == 1)
    *static_cast<unsigned char*>(address) = static_cast<unsigned char>(bits);
}

// Edges of a row of units that begins `offset` units behind a multiple of 16 bytes: the units in words that
// the row does not fill, numbered from 0. The units between the edges are whole words.
struct RowEdges {
  int head;   // units before the first whole word
  int tail;   // the first unit behind the last whole word
  int units;  // in the row

  __device__ RowEdges(int offset, int row_units, int word_units) : units(row_units) {
    head = offset == 0 ? 0 : min(word_units - offset, row_units);
    tail = max((offset + row_units) / word_units * word_units - offset, head);
  }
  __device__ int count() const { return head + units - tail; }
  __device__ int unit(int edge) const { return edge < head ? edge : edge - head + tail; }
  __device__ int whole_words(int word_units) const { return (tail - head) / word_units; }
};

// Place of a thread in a tile whose words are dealt out to the threads row after row. Each step advances by
// `threads` words; separate row and column save a division per word.
struct WordCursor {
  int row;
  int col;

  __device__ void advance(int row_step, int col_step, int row_words) {
    row += row_step;
    col += col_step;
    if (col >= row_words) {
      col -= row_words;
      ++row;
    }
  }
};

}  // namespace tritax::gpu

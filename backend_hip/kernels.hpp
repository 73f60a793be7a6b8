// The compiled interpreter kernels. One file per dtype instantiates them (kernels_*.hip), because each takes
// the compiler a while.
#pragma once

#include <vector>

#include "backend_hip/gpu_api.hpp"
#include "backend_hip/judge.hpp"
#include "backend_hip/lower.hpp"

namespace tritax::gpu {

struct TileKernel {
  TileTraits traits;
  const void* function = nullptr;
};

std::vector<TileKernel> matmul_kernels_bf16();
std::vector<TileKernel> matmul_kernels_fp16();
std::vector<TileKernel> matmul_kernels_fp8();
std::vector<TileKernel> matmul_kernels_fp64();
std::vector<TileKernel> matmul_kernels_fp32();  // AMD only: wgmma has no fp32, and tf32 gives another result

// Kernels with attention, of 16-bit types; TileTraits::depth gives the columns of a head.
std::vector<TileKernel> attend_kernels_bf16();
std::vector<TileKernel> attend_kernels_fp16();

// The kernel without matmul for workgroups of `threads`; `lean`: see LoweredKernel.
const void* vector_kernel_for(int threads, bool lean);

// The kernel of sparse products for workgroups of `threads`.
const void* sparse_kernel_for(int threads);

// reference[rows] = A·x with products and sums in fp64; A is given by its structure and values.
struct SparseOperands {
  const std::int32_t* offsets = nullptr;
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;
  const double* x = nullptr;
  std::int32_t rows = 0;
};
void launch_sparse_reference(const SparseOperands& operands, double* reference, hipStream_t stream);

// The functions below check a run, and keep all numbers in fp64.

// Launches a fill with random data: uniform in [-1, 1), rounded to `dtype`; element (row, col) depends only
// on the seed and its place. `transposed` may be null.
void launch_fill_random(DType dtype, void* matrix, std::int32_t rows, std::int32_t cols, std::int32_t pitch,
                        void* transposed, std::int32_t transposed_pitch, std::uint64_t seed,
                        hipStream_t stream);

// reference[rows × cols] (contiguous) = A·B with products and sums in fp64.
void launch_reference(DType dtype, const void* a, std::int32_t a_pitch, const void* b, std::int32_t b_pitch,
                      std::int32_t rows, std::int32_t cols, std::int32_t k, double* reference,
                      hipStream_t stream);

// The operands of an attention, contiguous: `queries`, `keys` and `values` have rows of `depth` columns. With
// `limit` > 0 query i sees only the first limit + i div `group` keys.
struct AttentionOperands {
  const double* queries = nullptr;
  const double* keys = nullptr;
  const double* values = nullptr;
  std::int32_t query_count = 0;
  std::int32_t key_count = 0;
  std::int32_t depth = 0;  // at most 512
  std::int32_t limit = 0;
  std::int32_t group = 1;
};

// reference[query_count × depth] = softmax(queries·keysᵀ/√depth)·values, 0 where a query sees no key.
void launch_attention_reference(const AttentionOperands& operands, double* reference, hipStream_t stream);

// reference[rows × cols] = rows of a / √(mean of their squares + kNormEpsilon) · weights, summed in fp64.
void launch_norm_reference(const double* a, const double* weights, std::int32_t rows, std::int32_t cols,
                           double* reference, hipStream_t stream);

// values = matrix, or values += matrix; a row of `values` is `values_cols` long.
void launch_widen(DType dtype, const void* matrix, std::int32_t pitch, std::int32_t rows, std::int32_t cols,
                  double* values, std::int32_t values_cols, bool add, hipStream_t stream);

// Adds the squares of a rectangle of values, with rows of `reference_cols`, to `*sums` on the device.
void launch_squares(std::int32_t rows, std::int32_t cols, const double* reference,
                    std::int32_t reference_cols, Comparison* sums, hipStream_t stream);

// Adds the comparison of a rectangle of `result` with such values to `*sums`, which already has the squares
// of all `elements`.
void launch_compare(DType dtype, const void* result, std::int32_t pitch, std::int32_t rows, std::int32_t cols,
                    const double* reference, std::int32_t reference_cols, double elements, Comparison* sums,
                    hipStream_t stream);

}  // namespace tritax::gpu

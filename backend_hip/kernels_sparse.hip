// Kernels of sparse products, and their fp64 reference, which shares no code with them.
#include "backend_hip/kernels.hpp"
#include "backend_hip/tile_sparse.hpp"

namespace tritax::gpu {

namespace {

constexpr int kReferenceThreads = 64;  // per row

__global__ void __launch_bounds__(kReferenceThreads)
    multiply_sparse_fp64(const SparseOperands of, double* reference) {
  __shared__ double parts[kReferenceThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t row = blockIdx.x; row < of.rows; row += gridDim.x) {
    double sum = 0;
    for (std::int64_t k = of.offsets[row] + thread; k < of.offsets[row + 1]; k += kReferenceThreads)
      sum += of.values[k] * of.x[of.columns[k]];
    parts[thread] = sum;
    workgroup_barrier();
    for (int half = kReferenceThreads / 2; half > 0; half /= 2) {
      if (thread < half) parts[thread] += parts[thread + half];
      workgroup_barrier();
    }
    if (thread == 0) reference[row] = parts[0];
    workgroup_barrier();
  }
}

}  // namespace

const void* sparse_kernel_for(int threads) {
  if (threads <= 256) return reinterpret_cast<const void*>(&sparse_kernel<256>);
  if (threads <= 512) return reinterpret_cast<const void*>(&sparse_kernel<512>);
  return reinterpret_cast<const void*>(&sparse_kernel<1024>);
}

void launch_sparse_reference(const SparseOperands& operands, double* reference, hipStream_t stream) {
  constexpr std::int32_t kMostBlocks = 1 << 14;
  const auto blocks = static_cast<unsigned int>(operands.rows < kMostBlocks ? operands.rows : kMostBlocks);
  multiply_sparse_fp64<<<blocks, kReferenceThreads, 0, stream>>>(operands, reference);
  TRITAX_GPU_CHECK(hipGetLastError());
}

}  // namespace tritax::gpu

// Checking the product that a schedule computed: C = A·[B_0 … B_{W-1}] on every rank, against fp64.
#pragma once

#include <vector>

#include "backend_hip/executor.hpp"
#include "backend_hip/gpu_memory.hpp"
#include "backend_hip/kernels.hpp"
#include "model/workload/gemm_all_scatter.hpp"

namespace tritax::gpu {

// Where A, B and C of a schedule lie in the heap.
struct ProductView {
  GemmAllScatter workload;
  BufferPlace a;
  BufferPlace b;
  BufferPlace c;
  DType operand_dtype = DType::bf16;
  DType result_dtype = DType::bf16;
};

// Throws UserError when the schedule has no buffers "A" and "B" or names no result.
ProductView product_of(const Schedule& schedule, const HeapLayout& heap);

// The columns of the product that `rank` owns, in fp32 on its GPU. Call with that GPU selected.
DeviceMemory reference_block(const ProductView& product, int rank, const unsigned char* heap);

// Compares all of C on one rank with the blocks of all ranks.
Comparison compare_with_reference(const ProductView& product, int rank, const unsigned char* heap,
                                  const std::vector<DeviceMemory>& blocks);

CheckResult judge(const ProductView& product, const std::vector<Comparison>& sums);

}  // namespace tritax::gpu

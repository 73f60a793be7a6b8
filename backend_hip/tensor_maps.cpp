#include "backend_hip/tensor_maps.hpp"

#include <fmt/format.h>

#include <cstring>

#include "backend_hip/gpu_api.hpp"
#include "model/core/error.hpp"

#if defined(TRITAX_GPU_NVIDIA)

#include <cudaTypedefs.h>

namespace tritax::gpu {

namespace {

CUtensorMapDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::fp32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::fp8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

}  // namespace

TensorMap encode_tensor_map(const TensorMapSpec& spec) {
  static const auto encode =
      reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(driver_function("cuTensorMapEncodeTiled", 12000));
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(spec.cols), static_cast<cuuint64_t>(spec.rows)};
  const cuuint64_t pitch[1] = {static_cast<cuuint64_t>(spec.pitch)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(spec.box_cols), static_cast<cuuint32_t>(spec.box_rows)};
  const cuuint32_t strides[2] = {1, 1};
  alignas(64) CUtensorMap map;
  const CUresult result =
      encode(&map, type_of(spec.dtype), 2, reinterpret_cast<void*>(spec.address), sizes, pitch, box, strides,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw UserError(fmt::format(
        "the CUDA driver refuses a tensor map of {}x{} elements, pitch {}, box {}x{} (error {})", spec.rows,
        spec.cols, spec.pitch, spec.box_rows, spec.box_cols, static_cast<int>(result)));
  }
  TensorMap out;
  std::memcpy(out.bytes, &map, sizeof(out.bytes));
  return out;
}

}  // namespace tritax::gpu

#else

namespace tritax::gpu {

TensorMap encode_tensor_map(const TensorMapSpec&) { return {}; }

}  // namespace tritax::gpu

#endif

#include "backend_hip/blas.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend_hip/gpu_memory.hpp"
#include "backend_hip/kernels.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {

#if defined(TRITAX_GPU_NVIDIA)

namespace {

// The used part of cublas_v2.h, so that the header is not needed to build.
using CreateHandle = int (*)(void**);
using GemmEx = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
                       int, const void*, void*, int, int, int, int);
constexpr int kNoTranspose = 0;
constexpr int kCompute32F = 68;
constexpr int kCompute64F = 70;
constexpr int kDefaultAlgorithm = -1;

int cuda_type(DType dtype) {
  if (dtype == DType::fp64) return CUDA_R_64F;
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

void* load_library() {
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  throw UserError(
      "cuBLAS cannot be loaded: libcublas.so.13, .12 or without number is not on the library path");
}

template <class Function>
Function symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) throw UserError(fmt::format("cuBLAS has no {}", name));
  return reinterpret_cast<Function>(found);
}

}  // namespace

std::vector<double> time_vendor_gemm(const GemmShape& shape, int warmup, int repeats, double flush_bytes) {
  const bool wide = shape.dtype == DType::fp64;
  if (shape.dtype != DType::bf16 && shape.dtype != DType::fp16 && !wide) {
    throw UserError(
        fmt::format("{}: the comparison with cuBLAS knows bf16, fp16 and fp64", name_of(shape.dtype)));
  }
  void* library = load_library();
  void* handle = nullptr;
  if (symbol<CreateHandle>(library, "cublasCreate_v2")(&handle) != 0)
    throw UserError("cuBLAS does not start");
  const auto gemm = symbol<GemmEx>(library, "cublasGemmEx");

  const auto bytes = [&](std::int64_t rows, std::int64_t cols) {
    return static_cast<std::size_t>(rows * cols * bytes_of(shape.dtype));
  };
  const DeviceMemory a(0, bytes(shape.m, shape.k));
  const DeviceMemory b(0, bytes(shape.k, shape.n));
  const DeviceMemory c(0, bytes(shape.m, shape.n));
  const DeviceMemory flush(0, static_cast<std::size_t>(flush_bytes) + 1);
  const int element = bytes_of(shape.dtype);
  launch_fill_random(shape.dtype, a.get(), shape.m, shape.k, shape.k * element, nullptr, 0, 1, nullptr);
  launch_fill_random(shape.dtype, b.get(), shape.k, shape.n, shape.n * element, nullptr, 0, 2, nullptr);

  hipEvent_t begin{};
  hipEvent_t end{};
  TRITAX_GPU_CHECK(hipEventCreate(&begin));
  TRITAX_GPU_CHECK(hipEventCreate(&end));
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const void* const alpha = wide ? static_cast<const void*>(&wide_one) : &one;
  const void* const beta = wide ? static_cast<const void*>(&wide_zero) : &zero;
  std::vector<double> times;
  for (int i = 0; i < warmup + repeats; ++i) {
    TRITAX_GPU_CHECK(hipMemset(flush.get(), 1, flush.bytes()));
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
    TRITAX_GPU_CHECK(hipEventRecord(begin, nullptr));
    // cuBLAS is column-major: Cᵀ = Bᵀ·Aᵀ.
    const int status =
        gemm(handle, kNoTranspose, kNoTranspose, shape.n, shape.m, shape.k, alpha, b.get(),
             cuda_type(shape.dtype), shape.n, a.get(), cuda_type(shape.dtype), shape.k, beta, c.get(),
             cuda_type(shape.dtype), shape.n, wide ? kCompute64F : kCompute32F, kDefaultAlgorithm);
    if (status != 0) throw UserError(fmt::format("cublasGemmEx fails with status {}", status));
    TRITAX_GPU_CHECK(hipEventRecord(end, nullptr));
    TRITAX_GPU_CHECK(hipEventSynchronize(end));
    float ms = 0;
    TRITAX_GPU_CHECK(hipEventElapsedTime(&ms, begin, end));
    if (i >= warmup) times.push_back(static_cast<double>(ms) * 1e3);
  }
  TRITAX_GPU_CHECK(hipEventDestroy(begin));
  TRITAX_GPU_CHECK(hipEventDestroy(end));
  return times;
}

#else

std::vector<double> time_vendor_gemm(const GemmShape&, int, int, double) {
  throw UserError("the comparison with the vendor's GEMM is built for NVIDIA only");
}

#endif

}  // namespace tritax::gpu

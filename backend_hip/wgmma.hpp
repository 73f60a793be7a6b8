// The wgmma instructions of sm_90a in use: D[64×N] += A[64×k]·B[k×N], A and B in shared memory, fp32
// accumulators.
//
// 16-bit types take B with N as the fast axis (row-major K×N), fp8 with K as the fast axis. `scale` 0
// overwrites the accumulators instead of adding to them. PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions".
#pragma once

#include <cstdint>

#include "backend_hip/gpu_api.hpp"
#include "model/core/dtype.hpp"

namespace tritax::gpu {

// clang-format off
#define TRITAX_REGISTERS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TRITAX_REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TRITAX_REGISTERS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TRITAX_REGISTERS_128 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TRITAX_OPERANDS_8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TRITAX_OPERANDS_16(d, i) TRITAX_OPERANDS_8(d, i), TRITAX_OPERANDS_8(d, i + 8)
#define TRITAX_OPERANDS_32(d, i) TRITAX_OPERANDS_16(d, i), TRITAX_OPERANDS_16(d, i + 16)
#define TRITAX_OPERANDS_64(d, i) TRITAX_OPERANDS_32(d, i), TRITAX_OPERANDS_32(d, i + 32)
#define TRITAX_OPERANDS_128(d, i) TRITAX_OPERANDS_64(d, i), TRITAX_OPERANDS_64(d, i + 64)
// clang-format on

// The three operands behind the accumulators: %A, %B and %S are their numbers, `tail` is ", 0, 1" for 16-bit
// types (A not transposed, B transposed) and empty for fp8.
#define TRITAX_WGMMA(count, shape, types, a_number, b_number, scale_number, tail)              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" scale_number                               \
               ", 0;\nwgmma.mma_async.sync.aligned." shape types " {" TRITAX_REGISTERS_##count \
               "}, %" a_number ", %" b_number ", p, 1, 1" tail ";\n}\n"                        \
               : TRITAX_OPERANDS_##count(d, 0)                                                 \
               : "l"(a), "l"(b), "r"(scale))

// One instruction: k is 16 for 16-bit types, 32 for fp8. `a` and `b` are shared memory matrix descriptors.
template <DType dtype, int n>
__device__ __forceinline__ void wgmma(float (&d)[n / 2], std::uint64_t a, std::uint64_t b, int scale) {
  static_assert(n == 64 || n == 128 || n == 256 || (n == 32 && dtype != DType::fp8));
  if constexpr (dtype == DType::bf16 && n == 32) {
    TRITAX_WGMMA(16, "m64n32k16", ".f32.bf16.bf16", "16", "17", "18", ", 0, 1");
  } else if constexpr (dtype == DType::fp16 && n == 32) {
    TRITAX_WGMMA(16, "m64n32k16", ".f32.f16.f16", "16", "17", "18", ", 0, 1");
  } else if constexpr (dtype == DType::bf16 && n == 64) {
    TRITAX_WGMMA(32, "m64n64k16", ".f32.bf16.bf16", "32", "33", "34", ", 0, 1");
  } else if constexpr (dtype == DType::fp16 && n == 64) {
    TRITAX_WGMMA(32, "m64n64k16", ".f32.f16.f16", "32", "33", "34", ", 0, 1");
  } else if constexpr (dtype == DType::fp8 && n == 64) {
    TRITAX_WGMMA(32, "m64n64k32", ".f32.e4m3.e4m3", "32", "33", "34", "");
  } else if constexpr (dtype == DType::bf16 && n == 128) {
    TRITAX_WGMMA(64, "m64n128k16", ".f32.bf16.bf16", "64", "65", "66", ", 0, 1");
  } else if constexpr (dtype == DType::fp16 && n == 128) {
    TRITAX_WGMMA(64, "m64n128k16", ".f32.f16.f16", "64", "65", "66", ", 0, 1");
  } else if constexpr (dtype == DType::fp8 && n == 128) {
    TRITAX_WGMMA(64, "m64n128k32", ".f32.e4m3.e4m3", "64", "65", "66", "");
  } else if constexpr (dtype == DType::bf16 && n == 256) {
    TRITAX_WGMMA(128, "m64n256k16", ".f32.bf16.bf16", "128", "129", "130", ", 0, 1");
  } else if constexpr (dtype == DType::fp16 && n == 256) {
    TRITAX_WGMMA(128, "m64n256k16", ".f32.f16.f16", "128", "129", "130", ", 0, 1");
  } else if constexpr (dtype == DType::fp8 && n == 256) {
    TRITAX_WGMMA(128, "m64n256k32", ".f32.e4m3.e4m3", "128", "129", "130", "");
  }
}

}  // namespace tritax::gpu

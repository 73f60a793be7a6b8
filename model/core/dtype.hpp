// Element types of operands and results.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tritax {

enum class DType : std::uint8_t { fp32, fp16, bf16, fp8, fp64 };

inline constexpr int kDTypeCount = 5;
inline constexpr std::array<std::string_view, kDTypeCount> kDTypeNames{"fp32", "fp16", "bf16", "fp8", "fp64"};

// The first dtypes, which every workload has. Only plain products have fp64: attention and layers of models
// do not use fp64.
inline constexpr int kCommonDTypeCount = 4;
inline constexpr std::span<const std::string_view> kCommonDTypeNames{kDTypeNames.data(), kCommonDTypeCount};

// Bytes of one element.
constexpr int bytes_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 8;
    case DType::fp32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 2;
    case DType::fp8:
      return 1;
  }
  return 0;
}

// The dtype of accumulators and partial sums: no matrix unit rounds to less than fp32 while it sums.
constexpr DType accumulator_of(DType dtype) { return dtype == DType::fp64 ? DType::fp64 : DType::fp32; }

// The dtype in which kernels store products of such operands. Libraries accumulate products of 8-bit numbers
// in 32 bits and store 16-bit numbers (hipBLASLt's kernels F8BS_BH, HazyResearch/HipKittens
// kernels/gemm/fp8fp32).
constexpr DType product_dtype(DType operands) { return operands == DType::fp8 ? DType::bf16 : operands; }

constexpr std::string_view name_of(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }

// Throws UserError that lists the known names; `where` is the file:line, key or flag to blame.
DType parse_dtype(std::string_view name, const std::string& where);

}  // namespace tritax

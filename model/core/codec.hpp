// Line codecs: how elements are held while they cross links. Groups of kCodecGroup consecutive elements of a
// row share one fp16 scale s, and an element x is held as a number q of few bits. Source:
// mk1-project/quickreduce, csrc/core/allreduce.h (the same kernels in vLLM, SGLang and ROCm/aiter).
//
//   int b   s = -m / 2^(b-1) with m the element of largest magnitude; q = x / s, rounded to the nearest
//           integer and cut off at -2^(b-1) and 2^(b-1) - 1; x becomes q·s
//   fp8     s = |m| / 240; q = x / s, rounded to e4m3, whose largest number on CDNA3 is 240; x becomes q·s
//
// Error of an element, as a share of |m|. An integer is off by half a step of 2^-(b-1), or by one step where
// it is cut off, because 2^(b-1) steps fit on one side of 0 only. e4m3 has 3 bits behind the first, so it is
// off by 2^-4 of the element. The scale is off by 2^-11, which the rounded element passes on where it is cut
// off.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tritax {

enum class Codec : std::uint8_t { same, fp8, int8, int6, int4 };  // same: elements of the dtype
inline constexpr std::array<std::string_view, 5> kCodecNames{"same", "fp8", "int8", "int6", "int4"};

inline constexpr int kCodecGroup = 32;
inline constexpr int kCodecScaleBytes = 2;

// Bits of a held element, without its share of the scale; not of `same`.
constexpr int bits_of(Codec codec) {
  switch (codec) {
    case Codec::same:
      break;
    case Codec::fp8:
    case Codec::int8:
      return 8;
    case Codec::int6:
      return 6;
    case Codec::int4:
      return 4;
  }
  return 0;
}

// Bytes of so many elements from the start of a group on.
constexpr double coded_bytes(Codec codec, std::int64_t elements) {
  const std::int64_t groups = (elements + kCodecGroup - 1) / kCodecGroup;
  return static_cast<double>(elements * bits_of(codec)) / 8 + static_cast<double>(groups * kCodecScaleBytes);
}

// The largest error of an element, as a share of the largest magnitude in its group.
constexpr double error_of(Codec codec) {
  constexpr double kOfScale = 1.0 / 2048;
  if (codec == Codec::same) return 0;
  if (codec == Codec::fp8) return 1.0 / 16 + kOfScale;
  return 1.0 / (1 << (bits_of(codec) - 1)) + kOfScale;
}

constexpr std::string_view name_of(Codec codec) { return kCodecNames[static_cast<std::size_t>(codec)]; }

}  // namespace tritax

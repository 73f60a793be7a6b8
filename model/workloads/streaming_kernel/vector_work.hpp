// Vector work of memory-bound kernels: cycles of one compute unit per element of x, besides its moves.
//
// Lanes that a compute unit retires per cycle:
//
//                              NVIDIA  AMD
//   plain fp32                    128   64
//   logic, integer addition        64   64
//   low half of a product          64   16
//   high half of a product         64   16
//
// NVIDIA: CUDA C++ Programming Guide, throughput of arithmetic instructions, compute capability 9.0. AMD:
// four SIMDs of 16 lanes (CDNA3 ISA guide, §4); a product of 32 bits takes four times as long as an addition
// (LLVM, SISchedule.td, WriteIntMul).
//
// Dropout draws from Philox4x32-10 (Salmon et al., SC 2011), in PyTorch, cuRAND, rocRAND and Triton: ten
// rounds with two 32×32 -> 64 bit products and two exclusive ors of three words each, for four numbers.
// NVIDIA makes the halves of a product one by one; AMD makes both with one V_MAD_U64_U32. LOP3, and
// V_BITOP3_B32 of gfx950, take three words at once; gfx942 takes two. A kernel that keeps one of the four
// numbers (tl.rand) makes them all the same.
//
// Of an element, a fused kernel in fp32 converts two operands, scales, selects, adds, takes two sums for mean
// and variance, normalises with two instructions and packs: 14 plain ones. Rounded arithmetic unpacks,
// computes and packs at every one of nine steps, 2.5 instructions per element for pairs, and divides by the
// root, 10.
//
// Blocks of Triton are powers of two, and masked lanes work like others: 5120 columns cost as 8192.
//
// PyTorch's own kernels are calibrated: time per element of x on one H200, of 131072 x 2048 elements
// in scenarios/measured/h200-1-streaming-steps.csv. Where a kernel takes longer than its bytes do, index
// arithmetic, dynamic types and narrow loads take the time; the same number of plain lanes is charged on
// every GPU.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/machine/machine.hpp"

namespace tritax {

enum class StreamingOperation : std::uint8_t { add_norm, rotary };
enum class RandomNumbers : std::uint8_t { four, one };  // kept of a call of the generator
inline constexpr std::array<std::string_view, 2> kRandomNumbersNames{"four", "one"};
enum class RowArithmetic : std::uint8_t { fp32, rounded };
inline constexpr std::array<std::string_view, 2> kRowArithmeticNames{"fp32", "rounded"};

struct RowForm {
  bool dropout = false;
  RandomNumbers random = RandomNumbers::four;
  RowArithmetic arithmetic = RowArithmetic::fp32;
};

// Cycles of a compute unit per element of x of one fused kernel.
double fused_clk(const Gpu& gpu, StreamingOperation operation, const RowForm& form);

// Steps of PyTorch that its memory traffic alone does not explain.
enum class FrameworkStep : std::uint8_t { dropout, cast, norm, norm_fp32, strided, concatenate, broadcast };

// Cycles of a compute unit per element of x of a step.
double framework_clk(const Gpu& gpu, FrameworkStep step);

}  // namespace tritax

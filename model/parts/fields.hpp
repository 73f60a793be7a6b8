// Rows for tables of fields that many workloads share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// Keeps every product of two sizes below 2^40, and of three below 2^60, so that nothing overflows 64 bits.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
// Ranks are 16-bit in a tile schedule; no node comes near this number.
inline constexpr int kMaxGpus = 1024;

// A side of a matrix; required.
Spec size_field(std::string_view name, std::string_view option, std::string_view help);

Spec dtype_field(DType usual, std::string_view help,
                 std::span<const std::string_view> names = kCommonDTypeNames);

// Number of GPUs that share the work, at least `least`; on the command line all GPUs of the machine by
// default.
Spec gpus_field(int least = 1);

// "8192x4608x36864 fp16" of the fields m, n, k and dtype.
std::string product_text(const Problem& problem);

}  // namespace tritax

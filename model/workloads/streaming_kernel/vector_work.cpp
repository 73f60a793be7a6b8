#include "model/workloads/streaming_kernel/vector_work.hpp"

#include <cstddef>

namespace tritax {

namespace {

constexpr double kRounds = 10;
constexpr double kNumbersOfCall = 4;
constexpr double kFusedInstructions = 14;  // of add-norm in fp32
constexpr double kTurnInstructions = 6;    // of rotary: two products, a sum, conversions
constexpr double kRoundedInstructions = 9 * 2.5 + 10;
constexpr double kDropInstructions = 4;  // a number from its bits, comparison, selection, scale

// Plain lanes per element of x, in the order of FrameworkStep: time per element x 132 compute units x 1.98
// GHz x 128 lanes.
constexpr std::array<double, 7> kFrameworkLanes{55, 95, 57, 79, 40, 99, 90};

bool is_nvidia(const Gpu& gpu) { return gpu.lanes_per_wave == 32; }
double plain_lanes(const Gpu& gpu) { return is_nvidia(gpu) ? 128 : 16.0 * gpu.simds_per_cu; }

double philox_clk(const Gpu& gpu) {
  const double products = 2 * kRounds, logic_lanes = is_nvidia(gpu) ? 64 : 16.0 * gpu.simds_per_cu;
  const double product_clk = is_nvidia(gpu) ? products * 2 / 64 : products / (4.0 * gpu.simds_per_cu);
  const double logic = is_nvidia(gpu) || gpu.arch == "gfx950" ? products : 2 * products;
  return product_clk + logic / logic_lanes;
}

}  // namespace

double fused_clk(const Gpu& gpu, StreamingOperation operation, const RowForm& form) {
  const bool rounded = form.arithmetic == RowArithmetic::rounded;
  double plain = operation == StreamingOperation::rotary ? kTurnInstructions
                 : rounded                               ? kRoundedInstructions
                                                         : kFusedInstructions;
  if (!form.dropout) return plain / plain_lanes(gpu);
  plain += kDropInstructions;
  const double numbers = form.random == RandomNumbers::one ? 1 : kNumbersOfCall;
  return plain / plain_lanes(gpu) + philox_clk(gpu) / numbers;
}

double framework_clk(const Gpu& gpu, FrameworkStep step) {
  return kFrameworkLanes[static_cast<std::size_t>(step)] / plain_lanes(gpu);
}

}  // namespace tritax

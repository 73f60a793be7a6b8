// Kernel classes say how well a user's own kernels are written. The class decides verdicts, so every workload
// with own kernels has a knob `kernels`:
//
//   own     Kernels of this project's executor, which reads a schedule operation by operation, with the costs
//           that `tritax calibrate` measures. Predictions are compared with measurements of these kernels.
//   triton  Kernels compiled by Triton, without the costs of reading a schedule. If the GPU has no copies
//           into LDS that bypass registers, a workgroup keeps the next step of K in registers (the serial
//           pipeline). Peers come in the order of their ranks. Outside a graph a launch costs a call from
//           Python.
//   vendor  Kernels compiled and tuned for one shape, like the kernels of the vendor's libraries.
//
// The profiles of model/cost/kernel_costs.hpp are the costs of the classes. For example, one-shot all-reduce
// by vLLM's compiled kernel is `vendor`, Iris' fused kernels are `triton`.
//
// Measured on one H200 (2026-11-29, driver 580, torch 2.11, Triton 3.6; the rows TC-… of
// scenarios/published/verdicts-one-gpu.toml): a plain Triton product, the best of five tiles, takes 1.09
// times cuBLAS in the median of 15 shapes (1.00 to 1.27). Its call takes a host 17 to 19 us.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/values.hpp"

namespace tritax {

struct Pattern;

enum class KernelClass : std::uint8_t { own, triton, vendor };
inline constexpr std::array<std::string_view, 3> kKernelClassNames{"own", "triton", "vendor"};
inline constexpr std::string_view kKernelsKnob = "kernels";

// The row of the knob for the tables of workloads.
Spec kernels_knob();

// The class of a pattern's kernels by the knobs; `own` without the knob and for a vendor's library.
KernelClass kernel_class_of(const Pattern& pattern, const Values& knobs);

// The knobs with the properties of their class besides costs: pipeline, order of peers and `call_us`, if
// these knobs exist and are not given.
Values with_class(const Values& knobs, const Machine& machine);

// The machine with the costs of the class as costs of own kernels, for building and bounding schedules.
Machine machine_of_class(const Machine& machine, KernelClass kernels);

// Gives the kernels of an own pattern the profile of the class. Kernels of the profile `mma-sync` keep it.
void write_as(Schedule& schedule, KernelClass kernels);

}  // namespace tritax

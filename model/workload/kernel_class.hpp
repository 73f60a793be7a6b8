// How well the own kernels of a question are taken to be written. It decides verdicts, so it is a knob of
// every workload that has own kernels, `kernels`, and can be given:
//
//   own     As this project's executor runs them: a schedule that is read, operation by operation, with
//           the costs that `tritax calibrate` measures. Predictions are compared with measurements of these.
//   triton  Compiled from Triton: none of the costs of reading. Where the GPU has no copies into LDS that
//           go past registers, a workgroup keeps the next step of K in them (the serial pipeline). Peers
//           come in the order of their ranks. Outside a graph a launch costs a call from Python.
//   vendor  Compiled and tuned for one shape, as the kernels of the vendor's libraries are.
//
// The costs of each are the profiles of model/cost/kernel_costs.hpp. For example, one-shot all-reduce by
// vLLM's compiled kernel is `vendor`, Iris' fused kernels are `triton`.
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

// A row for the tables of workloads.
Spec kernels_knob();

// What the knobs say of the kernels of a pattern; `own` where they say nothing, and of a vendor's library.
KernelClass kernel_class_of(const Pattern& pattern, const Values& knobs);

// The knobs with what their class holds besides its costs: pipeline, order of peers and `call_us`, as far as
// there are such knobs and nobody gave them.
Values with_class(const Values& knobs, const Machine& machine);

// The machine whose own kernels cost what those of the class do. What builds and bounds schedules asks it.
Machine machine_of_class(const Machine& machine, KernelClass kernels);

// Gives the kernels of an own pattern the costs of the class. Attention that is written in the way of
// `mma-sync` stays that.
void write_as(Schedule& schedule, KernelClass kernels);

}  // namespace tritax

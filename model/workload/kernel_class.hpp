// How well the own kernels of a question are taken to be written. It decides verdicts, so it is a knob of
// every workload, `kernels`, and can be given:
//
//   own     as this project's executor runs them: a schedule that is read, operation by operation, with the
//   costs
//           that `tritax calibrate` measures. Predictions are compared with measurements of these.
//   triton  compiled from Triton: none of the costs of reading. A workgroup keeps the step of K that is on
//   its way
//           in registers (the serial pipeline) where the GPU has no copies into LDS that go past them; peers
//           come in the order of their ranks; outside a graph a launch costs a call from Python.
//   vendor  compiled and tuned for one shape, as the kernels of the vendor's libraries are
//
// The costs of each are the profiles of model/cost/kernel_costs.hpp. For example, one-shot all-reduce by
// vLLM's compiled kernel is `vendor`, Iris' fused kernels are `triton`.
//
// Measured on one H200 (2026-11-29, driver 580, torch 2.11, Triton 3.6): a plain Triton product, the best of
// five tiles, takes 1.09 times cuBLAS in the median of 15 shapes (1.00 to 1.27), and its call takes a host 17
// to 19 us.
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

// What the knobs say; `own` where they say nothing.
KernelClass kernel_class_of(const Values& knobs);

// The knobs with what their class holds besides its costs: pipeline, order of peers and `call_us`, as far as
// there are such knobs and nobody gave them.
Values with_class(const Values& knobs, const Machine& machine);

// The machine whose own kernels cost what those of the class do. What builds and bounds schedules asks it.
Machine machine_of_class(const Machine& machine, KernelClass kernels);

// Gives the kernels of an own pattern the costs of the class. Attention that is written in the way of
// `mma-sync` stays that.
void write_as(Schedule& schedule, const Pattern& pattern, KernelClass kernels);

}  // namespace tritax

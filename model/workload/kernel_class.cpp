#include "model/workload/kernel_class.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/workload/launching.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

namespace {

constexpr double kTritonCallUs = 18;  // total host time; see the header

KernelProfile profile_of(KernelClass kernels) {
  switch (kernels) {
    case KernelClass::triton:
      return KernelProfile::triton;
    case KernelClass::vendor:
      return KernelProfile::vendor;
    case KernelClass::own:
      break;
  }
  return KernelProfile::interpreter;
}

KernelClass class_in(const Values& knobs) {
  return knobs.has(kKernelsKnob) ? static_cast<KernelClass>(knobs[kKernelsKnob]) : KernelClass::own;
}

}  // namespace

Spec kernels_knob() {
  Spec spec;
  spec.name = kKernelsKnob;
  spec.help =
      "quality of own kernels: run by Tritax's executor (own), compiled by Triton (triton), or as good as "
      "the vendor's (vendor)";
  spec.kind = ValueKind::name;
  spec.names = kKernelClassNames;
  spec.shown = "{} kernels";
  spec.not_shown = static_cast<std::int64_t>(KernelClass::own);
  spec.value_if_column_missing = static_cast<std::int64_t>(KernelClass::own);
  return spec;
}

KernelClass kernel_class_of(const Pattern& pattern, const Values& knobs) {
  return pattern.vendor ? KernelClass::own : class_in(knobs);
}

Values with_class(const Values& knobs, const Machine& machine) {
  Values all = knobs;
  if (class_in(knobs) != KernelClass::triton) return all;
  const auto give = [&](std::string_view knob, std::int64_t value) {
    if (all.has(knob) && !all.given(knob)) all.give(knob, value);
  };
  if (!machine.gpu.async_tile_copy) give("pipeline", static_cast<std::int64_t>(Pipeline::serial));
  if (const Spec* peers = find_spec(knobs.specs(), "peer_order"); peers != nullptr) {
    const auto fixed = std::find(peers->names.begin(), peers->names.end(), "fixed");
    TRITAX_ASSERT(fixed != peers->names.end(), "peer_order has no value 'fixed'");
    give("peer_order", fixed - peers->names.begin());
  }
  give(kCallKnob, std::max<std::int64_t>(0, std::llround(kTritonCallUs - machine.host.launch_call_ns / 1e3)));
  return all;
}

Machine machine_of_class(const Machine& machine, KernelClass kernels) {
  Machine other = machine;
  other.interpreter = costs(machine, profile_of(kernels));
  return other;
}

void write_as(Schedule& schedule, KernelClass kernels) {
  if (kernels == KernelClass::own) return;
  for (Kernel& kernel : schedule.kernels) {
    const bool interpreted = kernel.profile == KernelProfile::interpreter;
    if (interpreted || kernel.profile == KernelProfile::triton) kernel.profile = profile_of(kernels);
  }
}

}  // namespace tritax

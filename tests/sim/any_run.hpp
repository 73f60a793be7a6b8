// Any pattern on any shape, machine and choice of knobs, small enough to be simulated in about a millisecond.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "model/machine/parameters.hpp"
#include "tests/machine/any_dtype.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {

// A shipped machine cut down to a few compute units, so that small matrices take several rounds and fill
// caches. Rates and latencies stay.
inline Machine small(Machine machine) {
  machine.gpu.xcds = std::min(machine.gpu.xcds, 2);
  machine.gpu.cus_per_xcd = 4;
  machine.gpu.l2_bytes /= 16;
  machine.gpu.llc_bytes /= 64;
  machine.gpu.hbm_gb_per_s /= 16;
  return machine;
}

struct AnyRun {
  Machine machine;
  GemmAllScatter workload;
  const Pattern* pattern = nullptr;
  GemmKnobs knobs;
  CallForm form = CallForm::stream;  // of a library

  Schedule schedule() const {
    Values all = values_of(knobs);
    all.give(kFormKnob, static_cast<std::int64_t>(form));
    return build_schedule(*pattern, problem_of(workload), machine, all);
  }
  std::string text() const {
    return std::string(pattern->name) + " " + std::to_string(workload.m) + "x" + std::to_string(workload.n) +
           "x" + std::to_string(workload.k) + " on " + std::to_string(workload.gpus) + " of " + machine.name;
  }
};

inline AnyRun any_run() {
  AnyRun run;
  run.machine = small(find_machine(*rc::gen::elementOf(shipped_machines())));
  run.workload.gpus = *rc::gen::inRange(1, std::min(8, run.machine.gpu_count()) + 1);
  run.workload.m = *rc::gen::inRange(1, 1500);
  run.workload.n = *rc::gen::inRange(run.workload.gpus, 3000);
  run.workload.k = *rc::gen::inRange(1, 2000);
  run.workload.dtype = any_dtype(run.machine.gpu);
  run.pattern =
      &gemm_all_scatter().patterns[*rc::gen::inRange<std::size_t>(0, gemm_all_scatter().patterns.size())];
  const KnobSpace space = knob_space(*run.pattern, run.workload, run.machine);
  Option option = *rc::gen::elementOf(coarse_choices(space));
  const std::vector<Option> near = neighbours(space, option.choice);
  if (!near.empty() && *rc::gen::arbitrary<bool>()) option = *rc::gen::elementOf(near);
  run.knobs = gemm_knobs_of(option.knobs);
  run.knobs.lock =
      *rc::gen::element(LockProtocol::load_store, LockProtocol::exchange, LockProtocol::compare_and_swap);
  RC_LOG() << run.text() << "\n";
  return run;
}

// Multiplies one parameter, for a matrix rate that of every dtype.
inline void scale_parameter(Machine& machine, const ParameterSpec& spec, double factor) {
  std::visit(
      [&](auto member) {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, double Gpu::*>) machine.gpu.*member *= factor;
        if constexpr (std::is_same_v<Member, double KernelCosts::*>) machine.interpreter.*member *= factor;
        if constexpr (std::is_same_v<Member, double HostCosts::*>) machine.host.*member *= factor;
        if constexpr (std::is_same_v<Member, double LibraryCosts::*>) machine.library.*member *= factor;
        if constexpr (std::is_same_v<Member, double Fabric::*>) machine.fabric.*member *= factor;
        if constexpr (std::is_same_v<Member, double NodeNetwork::*>) machine.network.*member *= factor;
        if constexpr (std::is_same_v<Member, double MatrixRate::*>) {
          for (MatrixRate& matrix : machine.gpu.matrix) matrix.*member *= factor;
        }
      },
      spec.target);
}

}  // namespace tritax

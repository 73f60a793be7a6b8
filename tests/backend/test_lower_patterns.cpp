// Lowering of every pattern of every workload.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workloads/registry.hpp"
#include "one_kernel.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax::gpu {
namespace {

// Whatever the shape, every pattern's tiles stay inside the heap and every rank's program mirrors its
// operations.
RC_GTEST_PROP(Lowering, KeepsEveryAddressOfEveryPatternInsideAHeap, ()) {
  const Machine machine = find_machine("h200-4");
  GemmKnobs knobs;
  knobs.tile_m = 128;
  knobs.tile_n = *rc::gen::element(128, 256);
  knobs.pipeline = Pipeline::overlapped;
  const int gpus = *rc::gen::element(1, 2, 4);
  const GemmAllScatter workload{*rc::gen::inRange(1, 700), *rc::gen::inRange(4, 900),
                                *rc::gen::inRange(1, 600), DType::bf16, gpus};
  const DeviceTraits device = device_with_copy_engine();
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    if (pattern.name == "library") continue;  // its tiles are the library's
    const Schedule schedule = build(pattern, workload, machine, knobs);
    const HeapLayout heap = lay_out_heap(schedule, device);
    std::vector<std::uint64_t> bases;
    for (int r = 0; r < gpus; ++r) bases.push_back((static_cast<std::uint64_t>(r) + 1) << 40);
    for (int r = 0; r < gpus; ++r) {
      const RankProgram program = lower(schedule, heap, device, r, bases);
      for (const DeviceOp& op : program.ops) {
        const auto kind = static_cast<OpKind>(op.kind);
        if (kind == OpKind::barrier) continue;
        const std::uint64_t base = op.address >> 40 << 40;
        RC_ASSERT(std::find(bases.begin(), bases.end(), base) != bases.end());
        const bool tile = kind == OpKind::store || kind == OpKind::copy;
        const std::uint64_t bytes =
            tile ? static_cast<std::uint64_t>(op.rows - 1) * static_cast<std::uint64_t>(op.pitch) +
                       2U * static_cast<std::uint64_t>(op.cols)
                 : 4;
        RC_ASSERT(op.address - base + bytes <= heap.bytes);
        if (op.width > 0) RC_ASSERT(op.address % op.width == 0U);
      }
    }
  }
}

// Sizes that tiles divide, so that the copy engine takes them; tiles that the device has.
Problem even_problem(const Workload& workload) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, 4);
    } else if (field.required && field.kind == ValueKind::name) {
      problem.values.give(field.name, static_cast<std::int64_t>(field.names.size()) - 1);
    } else if (field.required) {
      problem.values.give(field.name, field.kind == ValueKind::bytes ? 1 << 16 : 1024);
    }
  }
  if (problem.values.has("dtype")) problem.values.give("dtype", static_cast<std::int64_t>(DType::bf16));
  complete_problem(problem, "test");
  return problem;
}

// What stands for a vendor's library is measured by scripts.
TEST(Lowering, AcceptsEveryPatternOfEveryWorkloadButTheLibrarys) {
  const Machine machine = find_machine("h200-4");
  const DeviceTraits device = device_with_copy_engine();
  for (const Workload* workload : workloads()) {
    const Problem problem = even_problem(*workload);
    Values knobs(workload->knobs);
    for (const auto& [column, value] :
         {std::pair{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 64}, {"comm_cus", 8}}) {
      if (knobs.has(column)) knobs.give(column, value);
    }
    for (const Pattern& pattern : workload->patterns) {
      if (pattern.vendor) continue;
      const char* form = nullptr;  // a knob with two values that change what is lowered
      for (const char* name : {"transport", "fetch"}) form = pattern.uses(name) ? name : form;
      for (int value = 0; value < (form != nullptr ? 2 : 1); ++value) {
        SCOPED_TRACE(std::string(workload->name) + ", " + std::string(pattern.name));
        if (form != nullptr) knobs.give(form, value);
        const Schedule schedule =
            build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, knobs));
        const HeapLayout heap = lay_out_heap(schedule, device);
        std::vector<std::uint64_t> bases;
        for (int r = 0; r < schedule.ranks; ++r) bases.push_back((static_cast<std::uint64_t>(r) + 1) << 40);
        // It normalises whole rows of C, which its tiles do not hold, in the kernel that multiplies.
        const bool rows_are_wider = workload->name == "gemm-all-reduce-norm" && pattern.name == "fused";
        // No kernel of the executor computes gradients of attention.
        const bool refused = rows_are_wider || workload->name == "attention-backward";
        for (int r = 0; r < schedule.ranks; ++r) {
          if (refused) {
            try {
              lower(schedule, heap, device, r, bases);
              ADD_FAILURE() << "not refused";
            } catch (const UserError& error) {
              EXPECT_NE(std::string(error.what())
                            .find(rows_are_wider ? "are more than the kernel's" : "no kernel here runs it"),
                        std::string::npos)
                  << error.what();
            }
          } else {
            EXPECT_NO_THROW(lower(schedule, heap, device, r, bases));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tritax::gpu

// Attention backward on one GPU: every order computes the gradients, and masked blocks cost nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/core/csv.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/operations.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/attention_backward/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

RC_GTEST_PROP(AttentionBackward, IsSoundAndRightInEveryOrder, ()) {
  const int group = *rc::gen::element(1, 2, 4);
  const Machine machine =
      find_machine(*rc::gen::element<std::string>("mi300x-8", "mi355x-8", "h100-4", "a100-8"));
  const Problem problem = problem_with(
      attention_backward(),
      {{"batch", *rc::gen::inRange(1, 3)},
       {"q_heads", 4},
       {"kv_heads", 4 / group},
       {"context", *rc::gen::inRange(1, 100)},
       {"head_dim", *rc::gen::element(16, 32)},
       {"causal", *rc::gen::inRange(0, 2)},
       {"dtype", static_cast<std::int64_t>(*rc::gen::element(DType::fp16, DType::bf16, DType::fp32))}});
  const Pattern& pattern = *rc::gen::elementOf(attention_backward().patterns);
  const Values knobs = knobs_with(
      problem, machine, {{"tile_q", *rc::gen::element(16, 32)}, {"tile_kv", *rc::gen::element(16, 48)}});
  const std::string wrong = what_is_wrong(pattern, problem, machine, knobs);
  RC_LOG() << pattern.name << ": " << wrong << '\n';
  RC_ASSERT(wrong.empty());
}

RC_GTEST_PROP(AttentionBackward, DoesTheFlopsOfItsFiveProducts, ()) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_with(attention_backward(), {{"q_heads", 4},
                                                              {"kv_heads", *rc::gen::element(1, 2, 4)},
                                                              {"context", *rc::gen::inRange(1, 300)},
                                                              {"head_dim", 64},
                                                              {"causal", *rc::gen::inRange(0, 2)}});
  const Pattern& pattern = *rc::gen::elementOf(attention_backward().patterns);
  const Schedule schedule = build_schedule(pattern, problem, machine, knobs_with(problem, machine, {}));
  const double flops = std::accumulate(schedule.ops.begin(), schedule.ops.end(), 0.0,
                                       [](double sum, const Op& op) { return sum + flops_of(op); });
  RC_ASSERT(std::abs(flops / work_of(problem).flops - 1) < 1e-12);
}

TEST(AttentionBackward, LeavesOutMaskedBlocks) {
  const Machine machine = find_machine("mi355x-8");
  const auto ns = [&](std::int64_t causal) {
    const Problem problem = problem_with(
        attention_backward(), {{"context", 8192}, {"batch", 4}, {"q_heads", 16}, {"causal", causal}});
    return time_with("naive-block-first", problem, machine);
  };
  EXPECT_LT(ns(1), 0.6 * ns(0));
  EXPECT_GT(ns(1), 0.5 * ns(0));
}

// Of a group, so that keys and values are fetched, and their gradients stored, once.
TEST(AttentionBackward, GoesThroughAllHeadsOfAGroupInOneWorkgroup) {
  const Machine machine = find_machine("h100-4");
  const Problem problem =
      problem_with(attention_backward(), {{"context", 256}, {"q_heads", 8}, {"kv_heads", 2}});
  const Schedule schedule = schedule_with("naive-head-first", problem, machine, {{"tile_kv", 128}});
  const Kernel& main = schedule.kernels[1];
  ASSERT_EQ(main.name, "gradients");
  EXPECT_EQ(main.workgroups.size(), 4U);
  for (const Workgroup& workgroup : main.workgroups) {
    int stores = 0;
    std::set<std::int32_t> heads;
    for (const Op& op : std::span(schedule.ops).subspan(workgroup.first_op, workgroup.op_count)) {
      if (op.kind == OpKind::store) ++stores;
      if (op.kind == OpKind::attend_backward) heads.insert(op.src_col);
    }
    EXPECT_EQ(stores, 1);
    EXPECT_EQ(heads.size(), 4U);
  }
}

TEST(AttentionBackward, RefusesWhatCannotBe) {
  const Machine machine = find_machine("mi300x-8");
  const auto refusal = [&](const Given& fields, const Given& knobs) {
    return refusal_by([&] {
      schedule_with("naive-head-first", problem_with(attention_backward(), fields), machine, knobs);
    });
  };
  EXPECT_NE(refusal({{"context", 64}, {"q_heads", 12}, {"kv_heads", 8}}, {})
                .find("is not a multiple of kv_heads = 8"),
            std::string::npos);
  EXPECT_NE(refusal({{"context", 64}}, {{"tile_kv", 40}}).find("sides are multiples of 16"),
            std::string::npos);
  EXPECT_NE(refusal({{"context", 64}}, {{"tile_kv", 512}}).find("use a smaller tile"), std::string::npos);
  EXPECT_NE(refusal({{"context", 64}, {"batch", 4096}}, {}).find("more than 21845 heads in all"),
            std::string::npos);
}

TEST(AttentionBackward, IsValidatedByRowsOfALibrary) {
  const std::string csv =
      "workload,form,launch,gpus,context,batch,q_heads,kv_heads,head_dim,causal,dtype,repeats,device_us,"
      "device_p10_us,device_p90_us,wall_us,wall_p10_us,wall_p90_us,relative_error\n"
      "attention-backward,library,graph,1,2048,8,16,16,128,False,bf16,30,900,890,910,920,910,930,1e-3\n"
      "attention-backward,library,eager,1,2048,8,16,16,128,False,bf16,30,950,890,960,990,910,995,1e-3\n";
  std::vector<LibraryCall> calls;
  read_csv(csv, "test.csv", "workload,form", "a script", [&](const CsvRow& row) {
    if (std::optional<LibraryCall> call = attention_backward().library_call(row))
      calls.push_back(std::move(*call));
  });
  ASSERT_EQ(calls.size(), 1U);  // the replayed graph
  EXPECT_EQ(calls.front().pattern, "library");
  EXPECT_EQ(calls.front().form, LibraryForm::kernel);
  EXPECT_EQ(calls.front().time_column, "device_us");
  EXPECT_EQ(calls.front().problem["context"], 2048);
  const Schedule schedule =
      build_schedule(find_pattern(attention_backward(), "library", "test"), calls.front().problem,
                     find_machine("h200-8"), calls.front().knobs);
  ASSERT_EQ(schedule.graphs.size(), 1U);
  EXPECT_EQ(schedule.graphs.front().size(), 3U);
}

}  // namespace
}  // namespace tritax

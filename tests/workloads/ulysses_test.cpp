#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "model/workloads/ulysses_attention/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

struct SharedHeads {
  int context = 37, heads = 4, kv_heads = 4, depth = 16, gpus = 2;
  bool causal = false;
  DType dtype = DType::fp16;

  Problem problem() const {
    Problem problem = problem_of(ulysses());
    problem.values.give("context", context);
    problem.values.give("q_heads", heads);
    problem.values.give("kv_heads", kv_heads);
    problem.values.give("head_dim", depth);
    problem.values.give("causal", causal ? 1 : 0);
    problem.values.give("dtype", static_cast<std::int64_t>(dtype));
    problem.values.give("gpus", gpus);
    complete_problem(problem, "test");
    return problem;
  }
};

// The library's copies fill a GPU however little there is to copy, and take a while to check: between more
// than two GPUs one run says enough.
int runs_of(const Pattern& pattern, int gpus) { return pattern.name == "library" && gpus > 2 ? 1 : 3; }

TEST(Ulysses, IsSoundAndRightForEveryPatternDtypeAndNumberOfGpus) {
  const Machine machine = find_machine("h200-8");
  const Given small{{"tile_q", 16}, {"tile_kv", 16}, {"waves", 1}, {"comm_cus", 2}};
  for (const Pattern& pattern : ulysses().patterns) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      for (const int gpus : {1, 2, 3, 5, 8}) {
        if (dtype != DType::fp16 && gpus != 3) continue;
        if (pattern.name == "library" && gpus > 3) continue;
        const bool causal = (gpus + static_cast<int>(dtype)) % 2 == 1;
        const Problem problem =
            SharedHeads{
                .context = 29, .heads = 8, .kv_heads = 8, .gpus = gpus, .causal = causal, .dtype = dtype}
                .problem();
        EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs_with(problem, machine, small),
                                runs_of(pattern, gpus)),
                  "")
            << pattern.name << " on " << gpus << " GPUs in " << name_of(dtype);
      }
    }
  }
}

RC_GTEST_PROP(UlyssesLaw, AnySizeAndKnobsGiveTheResultOfTheWholeSequence, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  SharedHeads heads;
  heads.gpus = between(1, 4);
  heads.context = between(heads.gpus, 50);
  heads.kv_heads = between(heads.gpus, 5);
  heads.heads = heads.kv_heads * between(1, 2);
  heads.causal = between(0, 1) == 1;
  const Problem problem = heads.problem();
  const Values knobs = knobs_with(problem, machine,
                                  {{"tile_q", 16 * between(1, 3)},
                                   {"tile_kv", 16 * between(1, 2)},
                                   {"waves", between(1, 4)},
                                   {"transport", between(0, 1)},
                                   {"comm_cus", between(1, 5)},
                                   {"comm_tile_m", 16 * between(1, 2)},
                                   {"comm_tile_n", 16},
                                   {"peer_order", between(0, 2)},
                                   {"lock", between(0, 2)},
                                   {"launch", between(0, 1)},
                                   {"host_barriers", between(0, 1)}});
  const Pattern& pattern = ulysses().patterns[static_cast<std::size_t>(between(0, 4))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, runs_of(pattern, heads.gpus)) == std::string());
}

TEST(Ulysses, BoundsStayBelow) {
  for (const char* name : {"mi300x-8", "h200-4"}) {
    const Machine machine = find_machine(name);
    for (const bool causal : {false, true}) {
      const SharedHeads heads{
          .context = 3000, .heads = 10, .kv_heads = 5, .depth = 64, .gpus = 4, .causal = causal};
      const Problem problem = heads.problem();
      for (const Pattern& pattern : ulysses().patterns) {
        EXPECT_LE(ulysses().bound_ns(pattern, problem, machine, knobs_with(problem, machine, {})),
                  time_with(pattern.name, problem, machine) * (1 + 1e-9))
            << name << ' ' << pattern.name;
      }
    }
  }
}

// Every rank sends all other ranks' heads of its tokens, and gets the results of as many back.
TEST(Ulysses, SendsEveryTokenOnceToEachGpuAndBack) {
  const Machine machine = find_machine("mi300x-8");
  const SharedHeads heads{.context = 64, .heads = 8, .kv_heads = 4, .gpus = 4};
  for (const Pattern& pattern : ulysses().patterns) {
    const Problem problem = heads.problem();
    const Schedule schedule = schedule_with(pattern.name, problem, machine, {{"comm_cus", 4}});
    double bytes = 0;
    for (const Kernel& kernel : schedule.kernels) {
      for (const Workgroup& workgroup : kernel.workgroups) {
        for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
          const Op& op = schedule.ops[workgroup.first_op + i];
          const bool writes = op.kind == OpKind::store || op.kind == OpKind::copy;
          if (writes && op.rank != kernel.rank) bytes += 2.0 * op.rect.rows * op.rect.cols;
        }
      }
    }
    for (const Op& op : schedule.transfers) {
      if (op.rank != op.src_rank) bytes += 2.0 * op.rect.rows * op.rect.cols;
    }
    // Q and O of 8 heads, K and V of 4, three quarters of all of them.
    EXPECT_EQ(bytes, 64 * (8 + 8 + 4 + 4) * 16 * 2 * 3 / 4) << pattern.name;
  }
}

std::string ulysses_refusal(const SharedHeads& heads, const Given& given = {}) {
  return refusal_by([&] { schedule_with("direct", heads.problem(), find_machine("mi300x-8"), given); });
}

TEST(Ulysses, RefusesWhatCannotBe) {
  EXPECT_EQ(ulysses_refusal({.context = 3, .gpus = 4}),
            "test: context = 3 is less than a token for each of 4 GPUs");
  EXPECT_EQ(ulysses_refusal({.heads = 4, .kv_heads = 2, .gpus = 4}),
            "kv_heads: 2 heads of keys are less than there are GPUs (4); every GPU must have one");
  EXPECT_EQ(ulysses_refusal({}, {{"comm_cus", 1000}}).substr(0, 8), "comm_cus");
}

}  // namespace
}  // namespace tritax

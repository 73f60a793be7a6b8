#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "model/workloads/ring_attention/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

struct Ring {
  int context = 37, heads = 2, kv_heads = 1, depth = 16, gpus = 2, batch = 1;
  bool causal = false;
  DType dtype = DType::fp16;

  Problem problem() const {
    Problem problem = problem_of(ring_attention());
    problem.values.give("context", context);
    problem.values.give("batch", batch);
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

TEST(RingAttention, IsSoundAndRightForEveryPatternDtypeAndNumberOfGpus) {
  const Machine machine = find_machine("h200-8");
  const Given small{{"tile_q", 16}, {"tile_kv", 16}, {"waves", 1}, {"comm_cus", 2}};
  for (const Pattern& pattern : ring_attention().patterns) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      for (const int gpus : {1, 2, 3, 5, 8}) {
        if (dtype != DType::fp16 && gpus != 3) continue;
        const bool causal = (gpus + static_cast<int>(dtype)) % 2 == 1;
        const Problem problem =
            Ring{.context = 35, .gpus = gpus, .batch = 1 + gpus % 2, .causal = causal, .dtype = dtype}
                .problem();
        EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs_with(problem, machine, small)), "")
            << pattern.name << " on " << gpus << " GPUs in " << name_of(dtype);
      }
    }
  }
}

RC_GTEST_PROP(RingAttentionLaw, AnySizeAndKnobsGiveTheResultOfTheWholeSequence, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  Ring ring;
  ring.gpus = between(1, 4);
  ring.context = between(ring.gpus, 70);
  ring.kv_heads = between(1, 2);
  ring.heads = ring.kv_heads * between(1, 2);
  ring.batch = between(1, 2);
  ring.causal = between(0, 1) == 1;
  const Problem problem = ring.problem();
  const int transport = between(0, 1);
  const Values knobs = knobs_with(problem, machine,
                                  {{"tile_q", 16 * between(1, 3)},
                                   {"tile_kv", 16 * between(1, 2)},
                                   {"waves", between(1, 4)},
                                   {"zigzag", between(0, 1)},
                                   {"transport", transport},
                                   {"route", between(transport, 2)},
                                   {"comm_cus", between(1, 5)},
                                   {"comm_tile_m", 16 * between(1, 2)},
                                   {"comm_tile_n", 16},
                                   {"lock", between(0, 2)},
                                   {"launch", between(0, 1)},
                                   {"host_barriers", between(0, 1)}});
  const Pattern& pattern = ring_attention().patterns[static_cast<std::size_t>(between(0, 3))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs) == std::string());
}

TEST(RingAttention, BoundsStayBelow) {
  for (const char* name : {"mi300x-8", "h200-4"}) {
    const Machine machine = find_machine(name);
    for (const bool causal : {false, true}) {
      const Ring ring{.context = 3000, .heads = 4, .kv_heads = 2, .depth = 64, .gpus = 4, .causal = causal};
      const Problem problem = ring.problem();
      for (const Pattern& pattern : ring_attention().patterns) {
        for (const int zigzag : {0, 1}) {
          const Given given{{"zigzag", zigzag}};
          EXPECT_LE(ring_attention().bound_ns(pattern, problem, machine, knobs_with(problem, machine, given)),
                    time_with(pattern.name, problem, machine, given) * (1 + 1e-9))
              << name << ' ' << pattern.name;
        }
      }
    }
  }
}

// Under a mask the last of 4 GPUs has 7/16 of the work of a sequence that is cut into four, and an equal
// share of one that is cut into eight.
TEST(RingAttention, AZigzagSharesTheWorkUnderAMask) {
  const Machine machine = find_machine("h200-4");
  const Ring ring{.context = 32768, .heads = 16, .kv_heads = 4, .depth = 128, .gpus = 4, .causal = true};
  const double with_ns = time_with("fused", ring.problem(), machine, {{"zigzag", 1}});
  const double without_ns = time_with("fused", ring.problem(), machine, {{"zigzag", 0}});
  EXPECT_NEAR(without_ns / with_ns, 7.0 / 4, 0.25);
}

// A ring goes over one link of the seven that a GPU has in a mesh; its blocks from their owners over all.
TEST(RingAttention, OnAMeshBlocksFromTheirOwnersComeOverAllLinks) {
  const Machine machine = find_machine("mi300x-8");
  const Ring ring{.context = 4096, .heads = 32, .kv_heads = 32, .depth = 128, .gpus = 8};
  const double ring_ns = time_with("fused", ring.problem(), machine, {{"route", 0}, {"comm_cus", 64}});
  const double at_once_ns = time_with("fused", ring.problem(), machine, {{"route", 2}, {"comm_cus", 64}});
  const double bytes = 2.0 * 4096 / 8 * 32 * 128 * 2;  // of a block
  EXPECT_GT(ring_ns, 7 * bytes / machine.fabric.link_raw_gb_per_s);
  EXPECT_LT(at_once_ns, ring_ns / 2);
}

TEST(RingAttention, HidesSendsBesideAttention) {
  const Machine machine = find_machine("h200-4");
  const Ring ring{.context = 32768, .heads = 16, .kv_heads = 16, .depth = 128, .gpus = 4};
  const double bulk_ns = time_with("library", ring.problem(), machine);
  EXPECT_LT(time_with("library-streams", ring.problem(), machine), bulk_ns);
  EXPECT_LT(time_with("copy-engine", ring.problem(), machine), bulk_ns);
  EXPECT_LT(time_with("fused", ring.problem(), machine), bulk_ns);
}

// Sequences are as independent as heads are.
TEST(RingAttention, SeveralSequencesTakeWhatAsManyHeadsTake) {
  const Machine machine = find_machine("h200-4");
  const Ring four{.context = 4096, .heads = 4, .kv_heads = 2, .depth = 128, .gpus = 4, .batch = 4};
  const Ring one{.context = 4096, .heads = 16, .kv_heads = 8, .depth = 128, .gpus = 4};
  for (const Pattern& pattern : ring_attention().patterns)
    EXPECT_EQ(time_with(pattern.name, four.problem(), machine),
              time_with(pattern.name, one.problem(), machine));
  EXPECT_EQ(ring_attention().work(four.problem()).flops, ring_attention().work(one.problem()).flops);
}

std::string ring_refusal(const Ring& ring, const Given& given = {}) {
  return refusal_by([&] { schedule_with("fused", ring.problem(), find_machine("mi300x-8"), given); });
}

TEST(RingAttention, RefusesWhatCannotBe) {
  EXPECT_EQ(ring_refusal({.context = 3, .gpus = 4}),
            "test: context = 3 is less than a token for each of 4 GPUs");
  EXPECT_EQ(ring_refusal({.heads = 6, .kv_heads = 4}),
            "test: q_heads = 6 is not a multiple of kv_heads = 4; each head of keys serves as many query "
            "heads");
  EXPECT_EQ(ring_refusal({.heads = 128, .kv_heads = 128, .depth = 128, .batch = 65}),
            "test: batch = 65 times q_heads = 128 times head_dim = 128 are more than 1048576 columns");
  EXPECT_EQ(ring_refusal({}, {{"transport", 1}, {"route", 0}}).substr(0, 6), "route:");
  EXPECT_EQ(ring_refusal({}, {{"comm_cus", 1000}}).substr(0, 8), "comm_cus");
  EXPECT_NE(
      ring_refusal({.context = 1 << 24, .heads = 128, .kv_heads = 128, .depth = 128}).find("GB on every GPU"),
      std::string::npos);
  EXPECT_EQ(ring_refusal({.context = 1 << 20, .heads = 512, .kv_heads = 1, .gpus = 8}, {{"tile_q", 16}})
                .substr(0, 5),
            "tile:");
}

}  // namespace
}  // namespace tritax

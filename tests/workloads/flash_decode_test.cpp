#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "model/workloads/flash_decode/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

struct Decode {
  int batch = 1, heads = 4, kv_heads = 2, depth = 16, keys = 33, gpus = 2;
  DType dtype = DType::fp16;

  Problem problem() const {
    Problem problem = problem_of(flash_decode());
    problem.values.give("batch", batch);
    problem.values.give("q_heads", heads);
    problem.values.give("kv_heads", kv_heads);
    problem.values.give("head_dim", depth);
    problem.values.give("kv_length", keys);
    problem.values.give("dtype", static_cast<std::int64_t>(dtype));
    problem.values.give("gpus", gpus);
    complete_problem(problem, "test");
    return problem;
  }
};

TEST(FlashDecode, IsSoundAndRightForEveryPatternDtypeAndNumberOfGpus) {
  const Machine machine = find_machine("mi300x-8");
  for (const Pattern& pattern : flash_decode().patterns) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      for (int gpus = 1; gpus <= 8; ++gpus) {
        const Decode decode{.batch = 1 + gpus % 2, .keys = 37, .gpus = gpus, .dtype = dtype};
        const Problem problem = decode.problem();
        EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs_with(problem, machine, {{"splits", 3}})), "")
            << pattern.name << " on " << gpus << " GPUs in " << name_of(dtype);
      }
    }
  }
}

RC_GTEST_PROP(FlashDecodeLaw, AnySizeAndKnobsGiveTheResultOfAllKeys, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  Decode decode;
  decode.kv_heads = between(1, 3);
  decode.heads = decode.kv_heads * between(1, 20);
  decode.batch = between(1, 3);
  decode.keys = between(1, 90);
  decode.depth = 16 * between(1, 2);
  decode.gpus = between(1, 4);
  const Problem problem = decode.problem();
  const Values knobs = knobs_with(problem, machine,
                                  {{"splits", between(1, 9)},
                                   {"block", 16 * between(1, 4)},
                                   {"waves", between(1, 4)},
                                   {"lock", between(0, 2)},
                                   {"launch", between(0, 1)},
                                   {"steps", between(1, 2)},
                                   {"call_us", between(0, 1) * 80},
                                   {"host_barriers", between(0, 1)},
                                   {"sync", between(0, 1)},
                                   {"staged", between(0, 1)},
                                   {"flags", between(0, 1)}});
  const Pattern& pattern = flash_decode().patterns[static_cast<std::size_t>(between(0, 3))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs) == std::string());
}

RC_GTEST_PROP(FlashDecodeLaw, BoundsStayBelow, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const Machine machine = find_machine(*rc::gen::element<std::string>("mi300x-8", "h200-4"));
  Decode decode;
  decode.kv_heads = between(1, 12);
  decode.heads = decode.kv_heads * between(1, 8);
  decode.batch = between(1, 4);
  decode.keys = between(1, 20000);
  decode.depth = 64;
  decode.gpus = between(1, 4);
  const Problem problem = decode.problem();
  const Values knobs =
      knobs_with(problem, machine, {{"splits", between(1, 40)}, {"pipeline", between(0, 1)}});
  const Pattern& pattern = flash_decode().patterns[static_cast<std::size_t>(between(0, 3))];
  const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
  const double time_ns = simulate(schedule, machine, {}).makespan_ns;
  RC_ASSERT(flash_decode().bound_ns(pattern, problem, machine, knobs) <= time_ns * (1 + 1e-9));
}

// Bytes that cross links: every GPU sends its partials, d results and a log-sum-exp of 4 bytes a head, to all
// others.
TEST(FlashDecode, SendsOnePartialOfEveryHeadToEveryPeer) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = Decode{.batch = 2, .heads = 6, .depth = 32, .gpus = 4}.problem();
  for (const Pattern& pattern : flash_decode().patterns) {
    const Schedule schedule = schedule_with(pattern.name, problem, machine, {{"splits", 2}});
    double bytes = 0;
    for (const Kernel& kernel : schedule.kernels) {
      for (const Workgroup& workgroup : kernel.workgroups) {
        for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
          const Op& op = schedule.ops[workgroup.first_op + i];
          const bool writes = op.kind == OpKind::store || op.kind == OpKind::copy;
          if (writes && op.rank != kernel.rank) bytes += 4.0 * op.rect.rows * op.rect.cols;
        }
      }
    }
    EXPECT_EQ(bytes, 4 * 3 * 2 * 6 * (32 + 1) * 4.0) << pattern.name;
  }
}

// Without launches to pay for, a long cache takes what memory gives: 12 heads of 128 columns and 131072
// keys on one GPU.
TEST(FlashDecode, OfALongCacheIsLimitedByMemory) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem =
      Decode{.heads = 96, .kv_heads = 12, .depth = 128, .keys = 131072, .gpus = 1}.problem();
  const double time_ns = time_with("fully-fused", problem, machine, {{"splits", 64}});
  const double bytes = 2.0 * 131072 * 12 * 128 * 2;
  EXPECT_GT(bytes / time_ns, 0.6 * machine.gpu.hbm_gb_per_s);
  EXPECT_LT(bytes / time_ns, machine.gpu.hbm_gb_per_s);
}

// Steps after the first take as long as each other; a single one pays the launch and the end as well.
TEST(FlashDecode, StepsFollowEachOtherWithoutABarrier) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = Decode{.heads = 16, .kv_heads = 4, .depth = 64, .keys = 4096, .gpus = 4}.problem();
  const auto time_of = [&](std::string_view name, int steps) {
    return time_with(name, problem, machine, {{"steps", steps}, {"call_us", 80}});
  };
  const double further_ns = time_of("fully-fused", 2) - time_of("fully-fused", 1);
  // Three calls of 80 us and the launches: the host decides.
  EXPECT_NEAR(further_ns, 3 * (80e3 + machine.host.launch_call_ns), 0.05 * further_ns);
  EXPECT_LT(further_ns, time_of("fully-fused", 1));
}

// The own all-gather is a kernel of the stream like others, unless hosts meet around it; a framework's copies
// into and out of a symmetric buffer are two launches more.
TEST(FlashDecode, UnfusedWaitsInItsStreamOrHostsMeet) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = Decode{.heads = 16, .kv_heads = 4, .depth = 64, .keys = 4096, .gpus = 4}.problem();
  const auto time_of = [&](std::string_view name, const Given& given) {
    return time_with(name, problem, machine, given);
  };
  const double plain_ns = time_of("unfused", {{"call_us", 80}});
  EXPECT_NEAR(plain_ns, time_of("fused-wait", {{"call_us", 80}}), 20e3);
  EXPECT_GT(time_of("unfused", {{"call_us", 80}, {"sync", 1}}), plain_ns + 2 * machine.host.barrier_ns);
  EXPECT_GT(time_of("unfused", {{"call_us", 80}, {"staged", 1}}), plain_ns + 2 * 80e3);
}

// With a counter for every source the merge of one head waits for all heads.
TEST(FlashDecode, CountsHeadsOrFlagsThem) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = Decode{.batch = 2, .heads = 6, .kv_heads = 2, .gpus = 4}.problem();
  const auto most_awaited = [&](int flags) {
    std::int32_t most = 0;
    for (const Op& op : schedule_with("fully-fused", problem, machine, {{"flags", flags}}).ops) {
      if (op.kind == OpKind::wait && op.scope == Scope::system) most = std::max(most, op.value);
    }
    return most;
  };
  EXPECT_EQ(most_awaited(0), 4 - 1);  // openings of the peers
  EXPECT_EQ(most_awaited(1), 2 * 6);
}

std::string decode_refusal(const Decode& decode, const Given& given = {}) {
  return refusal_by([&] { schedule_with("library", decode.problem(), find_machine("mi300x-8"), given); });
}

TEST(FlashDecode, RefusesWhatCannotBe) {
  EXPECT_EQ(decode_refusal({.heads = 6, .kv_heads = 4}),
            "test: q_heads = 6 is not a multiple of kv_heads = 4; each head of keys serves as many query "
            "heads");
  EXPECT_EQ(decode_refusal({.batch = 1024, .heads = 96, .kv_heads = 12}),
            "test: batch = 1024 times q_heads = 96 are more than 65536 heads in all");
  EXPECT_EQ(decode_refusal({.batch = 1024, .keys = 1048577, .gpus = 1}).substr(0, 40),
            "test: batch = 1024 times kv_length = 104");
  EXPECT_NE(decode_refusal({.batch = 64, .heads = 96, .kv_heads = 96, .depth = 128, .keys = 1 << 20})
                .find("GB on every GPU"),
            std::string::npos);
  EXPECT_EQ(decode_refusal({.depth = 512, .dtype = DType::fp32}, {{"block", 512}}).substr(0, 6), "block:");
}

}  // namespace
}  // namespace tritax

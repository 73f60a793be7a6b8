#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "model/parts/expert_routing.hpp"
#include "model/workloads/expert_exchange/workload.hpp"
#include "model/workloads/moe/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

constexpr double kErrorOfTwoProducts = 1e-5;

// Copies and persistent kernels fill a GPU however little there is to do: one of few compute units is quick
// to check.
Machine small_machine(int gpus) {
  Machine machine = find_machine(gpus > 4 ? "h200-8" : "h200-4");
  machine.gpu.cus_per_xcd = 8;
  machine.library.channels = 4;
  return machine;
}

TEST(Moe, IsSoundAndRightForEveryPatternDtypeAndNumberOfGpus) {
  for (const Pattern& pattern : moe().patterns) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      for (const int gpus : {1, 2, 3, 5, 8}) {
        if (dtype != DType::fp16 && gpus != 2) continue;
        const Machine machine = small_machine(gpus);
        const Problem problem = problem_with(moe(), {{"tokens", 7},
                                                     {"hidden", 24},
                                                     {"ffn", 20},
                                                     {"gated", gpus % 2},
                                                     {"experts", 9},
                                                     {"top_k", 2},
                                                     {"routing", 2},
                                                     {"dtype", static_cast<std::int64_t>(dtype)},
                                                     {"gpus", gpus}});
        const Values knobs =
            knobs_with(problem, machine, {{"comm_cus", 2}, {"tile_m", 64}, {"tile_n", 16}, {"waves", 4}});
        EXPECT_EQ(what_is_wrong(pattern, problem, machine, knobs, 3, kErrorOfTwoProducts), "")
            << pattern.name << " on " << gpus << " GPUs in " << name_of(dtype);
      }
    }
  }
}

// Errors are relative to the largest element of the result. A result of one element may be a sum that nearly
// cancels, whose rounding is then large beside it.
constexpr int kLeastHidden = 4;

RC_GTEST_PROP(MoeLaw, AnySizeRoutingAndKnobsGiveTheSumOfTheExperts, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const int gpus = between(1, 3);
  const Machine machine = small_machine(gpus);
  const int experts = between(gpus, 9);
  const Problem problem = problem_with(moe(), {{"tokens", between(1, 20)},
                                               {"hidden", between(kLeastHidden, 40)},
                                               {"ffn", between(1, 40)},
                                               {"gated", between(0, 1)},
                                               {"experts", experts},
                                               {"top_k", between(1, experts)},
                                               {"routing", between(0, 2)},
                                               {"skew", between(0, 300)},
                                               {"routing_seed", between(0, 9)},
                                               {"capacity", between(0, 1) * between(50, 200)},
                                               {"block", between(1, 3)},
                                               {"gpus", gpus}});
  const Values knobs = knobs_with(problem, machine,
                                  {{"tile_m", 64 * between(1, 2)},
                                   {"tile_n", 16},
                                   {"waves", 4},
                                   {"transport", between(0, 1)},
                                   {"comm_cus", between(1, 4)},
                                   {"lock", between(0, 2)},
                                   {"launch", between(0, 1)},
                                   {"host_barriers", between(0, 1)}});
  const Pattern& pattern = moe().patterns[static_cast<std::size_t>(between(0, 5))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, 3, kErrorOfTwoProducts) == std::string());
}

RC_GTEST_PROP(ExpertExchangeLaw, AnySizeRoutingAndKnobsBringEveryRowOrSum, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  const int gpus = between(1, 4);
  const Machine machine = small_machine(gpus);
  const int experts = between(gpus, 9);
  const Problem problem =
      problem_with(expert_exchange(),
                   {{"tokens", between(1, 30)},
                    {"step", between(0, 1)},
                    {"hidden", between(1, 40)},
                    {"experts", experts},
                    {"top_k", between(1, experts)},
                    {"routing", between(0, 2)},
                    {"capacity", between(0, 1) * between(50, 200)},
                    {"block", between(1, 3)},
                    {"dtype", *rc::gen::element(static_cast<int>(DType::bf16), static_cast<int>(DType::fp8))},
                    {"gpus", gpus}});
  const Values knobs = knobs_with(problem, machine,
                                  {{"transport", between(0, 1)},
                                   {"comm_cus", between(1, 4)},
                                   {"peer_order", between(0, 2)},
                                   {"lock", between(0, 2)},
                                   {"launch", between(0, 1)},
                                   {"host_barriers", between(0, 1)}});
  const Pattern& pattern = expert_exchange().patterns[static_cast<std::size_t>(between(0, 1))];
  RC_LOG() << pattern.name << ' ' << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, 3, kErrorOfTwoProducts) == std::string());
}

// Over nodes a token crosses once to each other node, and the results of a node once back.
RC_GTEST_PROP(ExpertExchangeLaw, ByNodeBringsEveryRowOrSumToo, ()) {
  const auto between = [](int low, int high) { return *rc::gen::inRange(low, high + 1); };
  Machine machine = find_machine("h200-8x8");
  machine.gpus_per_node = between(1, 3);
  machine.nodes = between(1, 3);
  const int gpus = machine.gpu_count();
  const int experts = between(gpus, 12);
  const Problem problem = problem_with(
      expert_exchange(),
      {{"tokens", between(1, 60)},
       {"step", between(0, 1)},
       {"hidden", between(1, 40)},
       {"experts", experts},
       {"top_k", between(1, experts)},
       {"routing", between(0, 2)},
       {"capacity", between(0, 1) * between(50, 200)},
       {"block", between(1, 3)},
       {"dtype", *rc::gen::element(static_cast<int>(DType::bf16), static_cast<int>(DType::fp16))},
       {"gpus", gpus}});
  const Values knobs = knobs_with(problem, machine,
                                  {{"route", 1},
                                   {"comm_cus", between(1, 4)},
                                   {"peers", between(0, 1)},
                                   {"lock", between(0, 2)},
                                   {"host_barriers", between(0, 1)}});
  const Pattern& pattern = find_pattern(expert_exchange(), "direct", "test");
  RC_LOG() << key_of(problem.values) << ' ' << key_of(knobs) << '\n';
  RC_ASSERT(what_is_wrong(pattern, problem, machine, knobs, 3, kErrorOfTwoProducts) == std::string());
}

// Bytes between nodes: straight, a token crosses for each GPU; by node, once.
TEST(ExpertExchange, CrossesBetweenNodesOnceByNode) {
  Machine machine = find_machine("h200-8x8");
  machine.nodes = 2;
  machine.gpus_per_node = 4;
  constexpr int kTokens = 30, kHidden = 16;
  for (const int step : {0, 1}) {
    const Problem problem = problem_with(expert_exchange(), {{"tokens", kTokens},
                                                             {"step", step},
                                                             {"hidden", kHidden},
                                                             {"experts", 8},
                                                             {"top_k", 8},
                                                             {"block", 1},
                                                             {"gpus", 8}});
    const auto rows_between_nodes = [&](int route) {
      const Schedule schedule =
          schedule_with("direct", problem, machine, {{"route", route}, {"comm_cus", 3}});
      double rows = 0;
      for (const Kernel& kernel : schedule.kernels) {
        for (const Workgroup& workgroup : kernel.workgroups) {
          for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
            const Op& op = schedule.ops[workgroup.first_op + i];
            const bool writes = op.kind == OpKind::store || op.kind == OpKind::copy;
            if (writes && op.rank / 4 != kernel.rank / 4) rows += op.rect.rows * op.rect.cols / kHidden;
          }
        }
      }
      return rows;
    };
    EXPECT_EQ(rows_between_nodes(0), 8 * kTokens * 4);  // every token goes to all GPUs
    EXPECT_EQ(rows_between_nodes(1), 8 * kTokens);
  }
}

TEST(ExpertExchange, ByNodeNeedsWholeNodes) {
  const Machine machine = find_machine("h200-8x8");
  const Problem problem = problem_with(
      expert_exchange(), {{"tokens", 8}, {"hidden", 16}, {"experts", 16}, {"top_k", 2}, {"gpus", 12}});
  EXPECT_EQ(refusal_by([&] {
              schedule_with("direct", problem, machine, {{"route", 1}});
            }),
            "route: by-node needs whole nodes; 12 GPUs are no multiple of 8");
}

ExpertRouting routing_with(RoutingKind kind) {
  return {.tokens = 512, .experts = 64, .top_k = 4, .kind = kind, .gpus = 8};
}

TEST(ExpertRouting, GivesEveryTokenAsManyDifferentExpertsAsItChooses) {
  for (const RoutingKind kind : {RoutingKind::balanced, RoutingKind::uniform, RoutingKind::zipf}) {
    const Routes routes(routing_with(kind));
    for (int source = 0; source < 8; ++source) {
      std::map<std::int32_t, std::map<int, int>> targets;
      for (const Routed& routed : routes.of(source)) ++targets[routed.token][routed.target];
      EXPECT_EQ(targets.size(), 512U);
      for (const auto& [token, of_token] : targets) EXPECT_EQ(of_token.size(), 4U) << token;
    }
  }
}

TEST(ExpertRouting, SharesAreEvenInTurnAndFallAsWeightsSay) {
  const double even = 8 * 512 * 4 / 64.0;
  const auto most = [&](RoutingKind kind) {
    const Routes routes(routing_with(kind));
    int largest = 0;
    for (int expert = 0; expert < 64; ++expert) largest = std::max(largest, routes.target_rows(expert));
    return largest / even;
  };
  EXPECT_EQ(most(RoutingKind::balanced), 1);
  EXPECT_NEAR(most(RoutingKind::uniform), 1, 0.25);  // a standard deviation is 6 %
  EXPECT_GT(most(RoutingKind::zipf), 5);             // weight 1 of 4.7 in all, four choices each
}

TEST(ExpertRouting, TakesNoMoreThanTheCapacity) {
  ExpertRouting routing = routing_with(RoutingKind::zipf);
  routing.capacity = 125;
  const Routes routes(routing);
  for (int expert = 0; expert < 64; ++expert) EXPECT_LE(routes.target_rows(expert), 320);
}

// Of 256 experts on 8 GPUs, 8 choices reach 8 (1 - C(224, 8) / C(256, 8)) = 5.29 GPUs.
TEST(ExpertRouting, SendsATokenOnceToEachGpuOfItsExperts) {
  const Routes routes({.tokens = 1024, .experts = 256, .top_k = 8, .gpus = 8, .once_per_gpu = true});
  double rows = 0;
  for (int source = 0; source < 8; ++source) rows += routes.rows_of_source(source);
  EXPECT_NEAR(rows / (8 * 1024), 5.29, 0.03);
}

// A GPU whose experts are wanted more gets more, and all others wait for it.
TEST(Moe, UnevenExpertsCostTime) {
  const Machine machine = find_machine("h200-4");
  Given fields{{"tokens", 4096}, {"hidden", 4096}, {"ffn", 2048}, {"experts", 16}, {"top_k", 2}, {"gpus", 4}};
  for (const Pattern& pattern : moe().patterns) {
    fields["routing"] = static_cast<std::int64_t>(RoutingKind::balanced);
    const double even_ns = time_with(pattern.name, problem_with(moe(), fields), machine);
    fields["routing"] = static_cast<std::int64_t>(RoutingKind::zipf);
    EXPECT_GT(time_with(pattern.name, problem_with(moe(), fields), machine), 1.15 * even_ns) << pattern.name;
  }
}

TEST(Moe, BoundsStayBelow) {
  const Machine machine = find_machine("h200-4");
  const Given fields{{"tokens", 2048}, {"hidden", 512}, {"ffn", 1024},
                     {"experts", 4},   {"top_k", 2},    {"gpus", 4}};
  const Problem problem = problem_with(moe(), fields);
  for (const Pattern& pattern : moe().patterns) {
    EXPECT_LE(moe().bound_ns(pattern, problem, machine, knobs_with(problem, machine, {})),
              time_with(pattern.name, problem_with(moe(), fields), machine))
        << pattern.name;
  }
}

std::string moe_refusal(const Given& fields, const Given& knobs = {}) {
  return refusal_by(
      [&] { schedule_with("fused", problem_with(moe(), fields), find_machine("h200-4"), knobs); });
}

TEST(Moe, RefusesWhatCannotBe) {
  EXPECT_EQ(moe_refusal({{"tokens", 8}, {"experts", 3}, {"top_k", 1}, {"gpus", 4}}),
            "test: experts = 3 is less than there are GPUs (4); every GPU must have one");
  EXPECT_EQ(moe_refusal({{"tokens", 8}, {"experts", 4}, {"top_k", 5}, {"gpus", 4}}),
            "test: top_k = 5 is more than there are experts (4)");
  EXPECT_EQ(moe_refusal({{"tokens", 8}, {"gpus", 4}}, {{"comm_cus", 1000}}).substr(0, 8), "comm_cus");
  EXPECT_NE(
      moe_refusal({{"tokens", 8}, {"hidden", 65536}, {"ffn", 65536}, {"gpus", 4}}).find("GB on every GPU"),
      std::string::npos);
}

}  // namespace
}  // namespace tritax

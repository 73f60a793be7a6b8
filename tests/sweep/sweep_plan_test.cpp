// The points of a sweep file, and messages for faulty files.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "sim/study/sweep/sweep_plan.hpp"

namespace tritax {
namespace {

SweepPlan plan_of(const std::string& text) { return parse_sweep(text, "s.toml", "s"); }

std::string refusal_of_plan(const std::string& text) {
  try {
    plan_of(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "it is accepted";
}

// Of every point, in their order.
std::vector<std::string> texts_of(const SweepPlan& plan, const std::string& pointer) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < plan.count(); ++i)
    texts.push_back(plan.point(i).at(nlohmann::json::json_pointer(pointer)).dump());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(SweepPlan, ProductsMultiplyAndTheFirstOfTheFileVariesSlowest) {
  const SweepPlan plan = plan_of(
      "[point]\nmachine = 'h200-4'\nproblem = { n = 512, k = 256 }\n[product]\n"
      "set.fabric.link = ['32GB/s', '64GB/s']\nproblem.m = [128, 64]\n");
  ASSERT_EQ(plan.count(), 4u);
  EXPECT_EQ(plan.name, "s");
  EXPECT_EQ(plan.point(1),
            nlohmann::json::parse(
                R"({"ask": "simulate", "machine": "h200-4", "problem": {"m": 64, "n": 512, "k": 256},
                                   "set": {"fabric.link": "32GB/s"}})"));
  EXPECT_EQ(texts_of(plan, "/set/fabric.link"),
            (Texts{"\"32GB/s\"", "\"32GB/s\"", "\"64GB/s\"", "\"64GB/s\""}));
  EXPECT_EQ(texts_of(plan, "/problem/m"), (Texts{"128", "64", "128", "64"}));
}

TEST(SweepPlan, RangesHaveTheirEnds) {
  const auto values = [](const std::string& range) {
    return texts_of(plan_of("[product]\nproblem.m = " + range), "/problem/m");
  };
  EXPECT_EQ(values("{ from = 64, to = 512, factor = 2 }"), (Texts{"64", "128", "256", "512"}));
  EXPECT_EQ(values("{ from = 64, to = 300, step = 100 }"), (Texts{"64", "164", "264"}));
  EXPECT_EQ(values("{ from = 0.1, to = 0.3, step = 0.1 }").size(), 3u);
  EXPECT_EQ(values("{ from = 1, to = 1000, count = 4, log = true }"), (Texts{"1", "10", "100", "1000"}));
  EXPECT_EQ(values("{ from = 1, to = 2, count = 9 }"), (Texts{"1", "2"}));
  EXPECT_EQ(values("{ from = 100, to = 1000, count = 3, multiple_of = 64 }"), (Texts{"128", "576", "960"}));
  EXPECT_EQ(values("{ from = 64, to = 100, step = 64, multiple_of = 64 }"), (Texts{"64"}));
  EXPECT_EQ(values("{ from = 8, to = 16, factor = 2, unit = 'GB/s' }"), (Texts{"\"8GB/s\"", "\"16GB/s\""}));
}

TEST(SweepPlan, ZipGoesSideBySideAndMultipliesWithTheRest) {
  const SweepPlan plan =
      plan_of("[zip]\nproblem.m = [1, 2]\nproblem.n = [10, 20]\n[product]\npattern = ['a', 'b', 'c']\n");
  ASSERT_EQ(plan.count(), 6u);
  EXPECT_EQ(texts_of(plan, "/problem/m"), (Texts{"1", "1", "1", "2", "2", "2"}));
  EXPECT_EQ(texts_of(plan, "/problem/n"), (Texts{"10", "10", "10", "20", "20", "20"}));
}

RC_GTEST_PROP(SweepPlan, SamplesOfALatinHypercubeHaveOneInEveryPart, ()) {
  const auto samples = *rc::gen::inRange<std::size_t>(1, 60);
  const auto seed = *rc::gen::inRange(0, 1000);
  const std::string text = "[latin_hypercube]\nsamples = " + std::to_string(samples) +
                           "\nseed = " + std::to_string(seed) +
                           "\nproblem.m = { from = 1, to = " + std::to_string(samples) +
                           " }\nscale.fabric.link = { from = 0.5, to = 1.5 }\n";
  const SweepPlan plan = plan_of(text);
  std::set<std::int64_t> sizes;
  std::set<std::size_t> parts;
  for (std::size_t i = 0; i < samples; ++i) {
    const nlohmann::json point = plan.point(i);
    sizes.insert(point.at("problem").at("m").get<std::int64_t>());
    const double share = point.at("scale").at("fabric.link").get<double>() - 0.5;
    parts.insert(static_cast<std::size_t>(share * static_cast<double>(samples) * (1 - 1e-12)));
  }
  RC_ASSERT(sizes.size() == samples);
  RC_ASSERT(*sizes.begin() == 1);
  RC_ASSERT(*sizes.rbegin() == static_cast<std::int64_t>(samples));
  RC_ASSERT(parts.size() == samples);
  for (std::size_t i = 0; i < samples; ++i) RC_ASSERT(plan_of(text).point(i) == plan.point(i));
}

TEST(SweepPlan, RandomSamplesAreTheSameEverywhereAndChangeWithTheSeed) {
  const auto sizes = [](int seed) {
    return texts_of(plan_of("[random]\nsamples = 4\nseed = " + std::to_string(seed) +
                            "\nproblem.m = { from = 64, to = 8192, multiple_of = 64, log = true }\n"),
                    "/problem/m");
  };
  EXPECT_EQ(sizes(1), (Texts{"128", "128", "576", "64"}));
  EXPECT_NE(sizes(1), sizes(2));
}

TEST(SweepPlan, RefusalsNameTheLineTheKeyAndWhatIsAllowed) {
  const auto says = [](const std::string& text, const std::vector<std::string>& words) {
    const std::string refusal = refusal_of_plan(text);
    for (const std::string& word : words) EXPECT_NE(refusal.find(word), std::string::npos) << refusal;
  };
  says("[product]\nproblem.mm = [1]", {"s.toml:2", "problem.mm", "field"});
  says("[product]\nknobs.tlie = [1]", {"s.toml:2", "'tile'"});
  says("[product]\nset.fabric.lnk = ['1GB/s']", {"s.toml:2", "fabric.link"});
  says("[product]\npatern = ['a']", {"s.toml:2", "'pattern'"});
  says("ask = 'simulat'\n[product]\nproblem.m = [1]", {"s.toml:1", "\"simulate\"", "layer"});
  says("[product]\nproblem.m = []", {"s.toml:2", "empty"});
  says("[product]\nproblem.m = { from = 1, to = 9 }", {"step", "factor", "count"});
  says("[product]\nproblem.m = { from = 9, to = 1, step = 1 }", {"from = 9", "to = 1"});
  says("[product]\nproblem.m = { from = 0, to = 9, factor = 2 }", {"above 0"});
  says("[product]\nproblem.m = { from = 65, to = 100, step = 1, multiple_of = 64 }", {"no multiple of 64"});
  says("[product]\nproblem.m = { from = 1, to = 2, step = 1e-300 }", {"s.toml:2", "1000000 steps", "larger"});
  says("[product]\nproblem.m = { from = 1, to = 9, stp = 2 }", {"'step'"});
  says("[zip]\nproblem.m = [1, 2]\nproblem.n = [1, 2, 3]", {"3 values", "problem.m has 2"});
  says("[point]\nproblem.m = 1\n[product]\nproblem.m = [1, 2]", {"s.toml:4", "given twice"});
  says("[random]\nproblem.m = [1, 2]", {"'samples'"});
  says("[products]\nproblem.m = [1, 2]", {"'product'"});
  says("name = 'a'", {"no point"});
  says(
      "[product]\nproblem.m = { from = 1, to = 100000, step = 1 }\nproblem.n = { from = 1, to = 100000, step "
      "= 1 }",
      {"1e+10", "20000000"});
}

}  // namespace
}  // namespace tritax

// One question has one verdict, whichever command answers it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "model/workloads/registry.hpp"
#include "tests/cli/run_json.hpp"

namespace tritax {
namespace {

using nlohmann::json;

// Of four GPUs, 512 of whatever has to be given; of names the first that is not one GPU alone.
std::string question_of(const Workload& workload) {
  std::string options = fmt::format(" --workload {} --machine mi300x-8 --selector defaults", workload.name);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus)
      options += fmt::format(" {} {}", field.option_name(), std::min<std::int64_t>(4, field.high));
    else if (field.required && field.kind == ValueKind::name)
      options += fmt::format(" {} {}", field.option_name(),
                             field.names[field.names.front() == "self" ? field.names.size() - 1 : 0]);
    else if (field.required)
      options +=
          fmt::format(" {} {}", field.option_name(),
                      std::min<std::int64_t>(field.kind == ValueKind::bytes ? 1 << 20 : 512, field.high));
  }
  return options;
}

// What stands in a page for its script.
json data_in(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

class OneVerdict : public testing::TestWithParam<const Workload*> {};

// JSON of advise takes what runs without a tax save, which is long to find; its text is enough.
TEST_P(OneVerdict, OfAdviseAndTaxonomy) {
  const std::string question = question_of(*GetParam());
  const test::Outcome advice = test::run_tritax("advise" + question);
  ASSERT_EQ(advice.exit_code, 0) << advice.err;
  std::string said = advice.out;
  std::replace(said.begin(), said.end(), '\n', ' ');
  const json point = test::run_json("taxonomy" + question)["points"][0];
  EXPECT_THAT(said, testing::HasSubstr(point["verdict"].get<std::string>())) << question;
  EXPECT_EQ(point["decision"] == "nothing to fuse", point["verdict"] == "") << question;
}

INSTANTIATE_TEST_SUITE_P(Workloads, OneVerdict, testing::ValuesIn(workloads().begin(), workloads().end()),
                         [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(OneVerdictOfAll, OfAdviseAndItsPage) {
  const std::string question = question_of(*workloads().front());
  const test::ScratchDirectory folder;
  const std::string page = folder.path("report.html");
  const test::Outcome outcome = test::run_tritax("report advise" + question + " --fast -o " + page);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json data = data_in(test::read_file(page))["result"];
  const json advice = test::run_json("advise" + question);
  EXPECT_EQ(data["decision"], advice["decision"]);
  EXPECT_EQ(data["verdict"], advice["verdict"]);
}

// A step of a layer is the question that its record says, in the form of its phase.
TEST(OneVerdictOfAll, OfLayerAndAdviseOnItsSteps) {
  const json layer = test::run_json(
      "layer --model llama-3-8b --phase decode --batch 16 --tp 4 --machine h200-4 --selector defaults");
  int fused = 0;
  for (const json& step : layer["steps"]) {
    if (step["verdict"] == "nothing to fuse") continue;
    ++fused;
    const json advice = test::run_json(fmt::format(
        "advise --workload gemm-all-reduce -M {} -N {} -K {} --gpus 4 --dtype {} --machine h200-4 "
        "--selector defaults",
        step["rows"].get<int>(), step["columns"].get<int>(), 4 * step["depth"].get<int>(),
        layer["dtype"].get<std::string>()));
    EXPECT_EQ(advice["decision"], step["verdict"]) << step["step"];
  }
  EXPECT_EQ(fused, 2);
}

}  // namespace
}  // namespace tritax

// Which scenarios `measure` runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "backend_hip/selection.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {
namespace {

class SelectScenarios : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "selection-" + std::to_string(getpid()) + ".toml";
    std::ofstream(path_) << R"(
[defaults]
machine = "h200-4"
workload = "gemm-all-scatter"
m = 512
n = 1024
k = 256
dtype = "bf16"
gpus = 4
[[scenario]]
id = "small/64"
pattern = ["library", "fused-sequential", "bulk-synchronous"]
[[scenario]]
id = "small/640"
pattern = "fused-sequential"
)";
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::vector<std::string> ids(std::vector<std::string> wanted, std::vector<int> gpus = {}) const {
    std::vector<std::string> found;
    for (const Scenario& scenario : select_scenarios({{path_}, std::move(wanted), std::move(gpus), ""})) {
      found.push_back(scenario.id + " " + std::to_string(scenario.problem.gpus()));
    }
    return found;
  }

  std::string path_;
};

TEST_F(SelectScenarios, TakesAllButTheLibraryOnEveryNumberOfGpus) {
  EXPECT_EQ(ids({}), (std::vector<std::string>{"small/64/fused-sequential 4", "small/64/bulk-synchronous 4",
                                               "small/640 4"}));
  EXPECT_EQ(ids({"small/640"}, {2, 4}), (std::vector<std::string>{"small/640 2", "small/640 4"}));
}

TEST_F(SelectScenarios, AnIdChoosesWholePartsOnly) {
  EXPECT_EQ(ids({"small/64"}),
            (std::vector<std::string>{"small/64/fused-sequential 4", "small/64/bulk-synchronous 4"}));
  EXPECT_EQ(ids({"small"}).size(), 3u);
}

TEST_F(SelectScenarios, AnUnknownIdIsRefusedAndTheNearestOffered) {
  try {
    ids({"small/65"});
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'small/65' (did you mean 'small/640'?)"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tritax::gpu

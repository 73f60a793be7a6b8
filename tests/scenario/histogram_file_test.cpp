// Files that fields of a scenario name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/scenario/read_scenario.hpp"
#include "model/scenario/scenario.hpp"
#include "model/scenario/write_scenario.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {
namespace {

// A folder of its own for one test.
class HistogramFolder {
 public:
  HistogramFolder()
      : root_(std::filesystem::temp_directory_path() / ("tritax_histogram_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_);
  }
  ~HistogramFolder() { std::filesystem::remove_all(root_); }
  HistogramFolder(const HistogramFolder&) = delete;
  HistogramFolder& operator=(const HistogramFolder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
    return (root_ / name).string();
  }

 private:
  std::filesystem::path root_;
};

// A path is one from the folder of the file that names it, and its content is part of the key.
TEST(HistogramFile, BelongsToTheScenarioAndItsKey) {
  const HistogramFolder folder;
  const std::string histogram = folder.write("h.csv", "1,2,1");
  const std::string path =
      folder.write("s.toml",
                   "[[scenario]]\nid = \"a\"\nmachine = \"h200-4\"\nworkload = \"moe\"\ntokens "
                   "= 8\ntop_k = 1\ngpus = 2\nhistogram = \"h.csv\"\npattern = \"direct\"\n");
  const Scenario scenario = read_scenarios(path).front();
  EXPECT_EQ(file_of(scenario.problem["histogram"]), histogram);
  EXPECT_EQ(scenario.problem["experts"], 3);
  const Scenario again = parse_scenarios(write_scenario(scenario), "saved.toml").front();
  EXPECT_EQ(scenario_key(again), scenario_key(scenario));
  folder.write("h.csv", "2,1,1");
  EXPECT_NE(scenario_key(read_scenarios(path).front()), scenario_key(scenario));
}

}  // namespace
}  // namespace tritax

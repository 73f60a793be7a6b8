// The shipped h200-4 is what `tritax calibrate` makes of its data sheet and the stored microbenchmarks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/machine/parameters.hpp"
#include "sim/calibrate/calibrate.hpp"

namespace tritax {
namespace {

TEST(ShippedMachine, h200_4_is_calibrated_from_the_stored_microbenchmarks) {
  const std::string root = TRITAX_SOURCE_DIR;
  const Machine base = read_machine(root + "/model/machine/uncalibrated/h200-4.toml");
  const Machine shipped = find_machine("h200-4");
  const MicrobenchTable table =
      read_microbench(std::vector<std::string>{root + "/scenarios/measured/h200-4-microbench.csv",
                                               root + "/scenarios/measured/h200-4-microbench-3.csv",
                                               root + "/scenarios/measured/h200-4-microbench-4.csv"},
                      base.gpus_per_node, base.gpu.cu_count());
  const Machine made = calibrate(base, table, "h200-4").machine;
  constexpr double kRounding = 1e-3;  // compilers round differently, and the fits stop where little is gained
  ASSERT_EQ(made.parameters.size(), shipped.parameters.size());
  for (std::size_t i = 0; i < made.parameters.size(); ++i) {
    const Parameter& a = made.parameters[i];
    const Parameter& b = shipped.parameters[i];
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.unit, b.unit) << a.key;
    EXPECT_EQ(a.source, b.source) << a.key;
    EXPECT_EQ(a.how, b.how) << a.key;
    EXPECT_NEAR(a.value, b.value, kRounding * b.value) << a.key;
    EXPECT_NEAR(a.residual, b.residual, 0.01 * b.residual + 1e-4) << a.key;
  }
}

}  // namespace
}  // namespace tritax

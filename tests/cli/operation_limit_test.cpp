// Simulations of too many operations are refused.
#include <gmock/gmock.h>

#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax::cli {
namespace {

using testing::HasSubstr;

TEST(Effort, TooManyOperationsAreRefusedWithTheirNumberAndTheLimit) {
  const std::string run =
      "simulate --pattern fused-sequential -M 512 -N 512 -K 256 --gpus 2 --machine mi300x-8 ";
  const test::Outcome refused = test::run_tritax(run + "--max-operations 20");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr(" operations on 2 GPUs are too many to simulate; --max-operations allows 20"));
  EXPECT_THAT(test::run_tritax(run + "--max-operations 10000 --json -").err, testing::IsEmpty());
  const test::Outcome taxes = test::run_tritax(run + "--max-operations 1000 --json -");
  EXPECT_EQ(taxes.exit_code, 2);
  EXPECT_THAT(taxes.err, HasSubstr("simulated 7 times, are "));
  EXPECT_THAT(taxes.err, HasSubstr("ask for one run"));
}

}  // namespace
}  // namespace tritax::cli

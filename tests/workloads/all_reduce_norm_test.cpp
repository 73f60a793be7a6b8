// All-reduces with residual and RMSNorm: every pattern leaves every rank the new residual stream and its
// normalised rows, three times in a row.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/all_reduce_norm/workload.hpp"
#include "model/workloads/gemm_all_reduce_norm/workload.hpp"
#include "sim/functional_reference.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

bool multiplies(const Workload& workload) { return find_spec(workload.fields, "k") != nullptr; }

Problem norm_problem(const Workload& workload, std::int64_t rows, std::int64_t cols, DType dtype, int gpus) {
  Problem problem = problem_of(workload);
  problem.values.give(multiplies(workload) ? "m" : "rows", rows);
  problem.values.give(multiplies(workload) ? "n" : "cols", cols);
  if (multiplies(workload)) problem.values.give("k", 70);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

Machine norm_machine() {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // so that workgroups take turns
  machine.gpu.cus_per_xcd = 3;
  return machine;
}

Values norm_knobs(const Workload& workload, const Pattern& pattern, int transport) {
  Values knobs = multiplies(workload) ? sums::small_tiles(workload) : Values(workload.knobs);
  if (pattern.uses("transport")) knobs.give("transport", transport);
  return knobs;
}

class EveryNorm : public testing::TestWithParam<const Workload*> {
 protected:
  const Workload& workload() const { return *GetParam(); }
};

TEST_P(EveryNorm, IsSoundAndRightOnUpToEightRanks) {
  const Machine machine = norm_machine();
  for (const int gpus : {1, 2, 8}) {
    for (const DType dtype : {DType::bf16, DType::fp8}) {
      if (dtype == DType::fp8 && gpus != 2) continue;
      const Problem asked = norm_problem(workload(), 35, 50, dtype, gpus);
      for (const bool host_barriers : {false, true}) {
        for (const Pattern& pattern : workload().patterns) {
          for (int transport = 0; transport < (pattern.uses("transport") ? 2 : 1); ++transport) {
            Values knobs = norm_knobs(workload(), pattern, transport);
            knobs.give("host_barriers", host_barriers);
            EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "")
                << gpus << " ranks, transport " << transport;
          }
        }
      }
    }
  }
}

TEST_P(EveryNorm, RefusesRowsThatNoWorkgroupHolds) {
  try {
    norm_problem(workload(), 16, 16385, DType::bf16, 2);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("16385"), std::string::npos) << message;
    EXPECT_NE(message.find("at most 16384 elements"), std::string::npos) << message;
  }
}

double buffer_bytes(const Schedule& schedule) {
  double bytes = 0;
  for (const Buffer& buffer : schedule.buffers) bytes += bytes_of(buffer, {0, 0, buffer.rows, buffer.cols});
  return bytes;
}

// What says before that memory does not do says so for what the buffers take, and for nothing that fits:
// whatever is summed, sent and normalised in other types.
TEST_P(EveryNorm, IsRefusedWhereItsBuffersDoNotFitAndOnlyThere) {
  std::vector<std::int64_t> wires{0};
  if (find_spec(workload().knobs, "wire_dtype") != nullptr) wires = {0, 1, 1 + std::int64_t(DType::fp8)};
  for (const int gpus : {1, 2, 4}) {
    for (const DType dtype : {DType::bf16, DType::fp8}) {
      const Problem asked = norm_problem(workload(), 35, 50, dtype, gpus);
      for (const Pattern& pattern : workload().patterns) {
        for (const std::int64_t wire : pattern.uses("wire_dtype") ? wires : std::vector<std::int64_t>{0}) {
          for (int transport = 0; transport < (pattern.uses("transport") ? 2 : 1); ++transport) {
            Machine machine = norm_machine();
            Values knobs = norm_knobs(workload(), pattern, transport);
            if (wire > 0) knobs.give("wire_dtype", wire);
            machine.gpu.hbm_bytes = buffer_bytes(sums::built(pattern, asked, machine, knobs));
            EXPECT_NO_THROW(sums::built(pattern, asked, machine, knobs))
                << pattern.name << ' ' << gpus << name_of(dtype) << wire << transport;
            machine.gpu.hbm_bytes -= 1;
            EXPECT_THROW(sums::built(pattern, asked, machine, knobs), UserError)
                << pattern.name << ' ' << gpus << name_of(dtype) << wire << transport;
          }
        }
      }
    }
  }
}

TEST_P(EveryNorm, RefusesRowsThatAreTooManyToScheduleAndSaysHowManyAreNot) {
  const Machine machine = find_machine("mi300x-8");
  constexpr std::int64_t kMost = (8 << 20) / (8 * (4 * 8 + 8));
  const Problem asked = norm_problem(workload(), kMost + 1, 32, DType::bf16, 8);
  for (const Pattern& pattern : workload().patterns) {
    try {
      sums::built(pattern, asked, machine, Values(workload().knobs));
      FAIL() << pattern.name << " accepted";
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(" = 26215: "), std::string::npos) << message;
      EXPECT_NE(message.find("give at most 26214 rows"), std::string::npos) << message;
    }
  }
}

// Few rows are sent in pieces, so that all workgroups send: each to every peer, once, none too narrow to be
// worth it, from whole sectors on.
TEST_P(EveryNorm, SendsFewRowsInPieces) {
  const Machine machine = norm_machine();
  constexpr int kRows = 2, kCols = 4000, kRanks = 3, kWorkgroups = 6;
  const Problem asked = norm_problem(workload(), kRows, kCols, DType::bf16, kRanks);
  const Pattern& pattern = find_pattern(workload(), "one-shot", "test");
  const Values knobs = norm_knobs(workload(), pattern, static_cast<int>(Transport::push));
  const Schedule schedule = sums::built(pattern, asked, machine, knobs);
  std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> sent;  // (rank, peer): columns from, to
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.name != "all_reduce_rms_norm") continue;
    ASSERT_EQ(kernel.workgroups.size(), std::size_t{kWorkgroups});
    for (const Workgroup& workgroup : kernel.workgroups) {
      int stores = 0;
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule.ops[workgroup.first_op + i];
        if (op.kind != OpKind::store || op.rank == kernel.rank) continue;
        ++stores;
        const int row = op.rect.row - kRows * kernel.rank;
        sent[{kernel.rank, op.rank}].emplace_back(row * kCols + op.rect.col,
                                                  row * kCols + op.rect.col + op.rect.cols);
        EXPECT_EQ(op.rect.col % 16, 0);
        EXPECT_GE(op.rect.cols, 512);
      }
      EXPECT_EQ(stores, kRanks - 1);
    }
  }
  ASSERT_EQ(sent.size(), std::size_t{kRanks * (kRanks - 1)});
  for (auto& [ranks, pieces] : sent) {
    std::sort(pieces.begin(), pieces.end());
    int end = 0;
    for (const auto& [from, to] : pieces) {
      EXPECT_EQ(from, end);
      end = to;
    }
    EXPECT_EQ(end, kRows * kCols);
  }
  EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "");
}

// In one shot every rank sends all of its partial sums to every peer, or loads theirs.
TEST_P(EveryNorm, SendsAllToAllInOneShot) {
  const Machine machine = norm_machine();
  const Problem asked = norm_problem(workload(), 48, 64, DType::bf16, 4);
  for (const Pattern& pattern : workload().patterns) {
    if (pattern.vendor || pattern.name.ends_with("two-shot")) continue;
    for (const int transport : {0, 1}) {
      const auto bytes =
          sums::sent_bytes(sums::built(pattern, asked, machine, norm_knobs(workload(), pattern, transport)));
      ASSERT_EQ(bytes.size(), 4U) << pattern.name;
      for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 48.0 * 64 * 2 * 3) << pattern.name << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryNorm, testing::Values(&all_reduce_norm(), &gemm_all_reduce_norm()),
                         [](const auto& workload) {
                           std::string name(workload.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// In two shots it sends the part of each peer's block, or the peer loads it, and the sums of its own block to
// all.
TEST(AllReduceNorm, SendsBlocksAndSumsInTwoShots) {
  const Machine machine = norm_machine();
  const Problem asked = norm_problem(all_reduce_norm(), 48, 64, DType::bf16, 4);
  const Pattern& pattern = find_pattern(all_reduce_norm(), "two-shot", "test");
  for (const int transport : {0, 1}) {
    const Values knobs = norm_knobs(all_reduce_norm(), pattern, transport);
    const auto bytes = sums::sent_bytes(sums::built(pattern, asked, machine, knobs));
    ASSERT_EQ(bytes.size(), 4U);
    for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 2 * 12.0 * 64 * 2 * 3) << rank;
  }
}

Problem with_out(Problem problem, DType out, bool at_owners) {
  problem.values.give("out", 1 + static_cast<std::int64_t>(out));
  problem.values.give("sums", at_owners ? 1 : 0);
  complete_problem(problem, "test");
  return problem;
}

// In one kernel it sends the part of each peer's block, or the peer loads it, and the normalised rows of its
// own block to all, and the sums too unless they stay with their owner.
TEST(AllReduceNorm, SendsNormalisedRowsInTheirOwnTypeAndSumsOnlyWhereTheyAreNeeded) {
  const Machine machine = norm_machine();
  const Pattern& pattern = find_pattern(all_reduce_norm(), "fused-two-shot", "test");
  for (const bool at_owners : {false, true}) {
    const Problem asked =
        with_out(norm_problem(all_reduce_norm(), 48, 64, DType::bf16, 4), DType::fp8, at_owners);
    for (const int transport : {0, 1}) {
      const Schedule schedule =
          sums::built(pattern, asked, machine, norm_knobs(all_reduce_norm(), pattern, transport));
      EXPECT_EQ(schedule.kernels.size(), 4U);
      const auto bytes = sums::sent_bytes(schedule);
      ASSERT_EQ(bytes.size(), 4U);
      for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, 12.0 * 64 * 3 * (at_owners ? 3 : 5)) << rank;
    }
  }
}

TEST(AllReduceNorm, IsRightInEveryTypeOfRowsWhoeverKeepsTheSum) {
  const Machine machine = norm_machine();
  for (const int gpus : {1, 2, 3, 5, 8}) {
    for (int out = 0; out < kCommonDTypeCount; ++out) {
      if (gpus > 3 && out < 2) continue;
      for (const bool at_owners : {false, true}) {
        for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
          if (dtype != DType::bf16 && gpus != 3) continue;
          const Problem asked = with_out(norm_problem(all_reduce_norm(), 11, 50, dtype, gpus),
                                         static_cast<DType>(out), at_owners);
          for (const Pattern& pattern : all_reduce_norm().patterns) {
            for (int run = 0; run < (pattern.uses("transport") ? 4 : 2); ++run) {
              Values knobs = norm_knobs(all_reduce_norm(), pattern, run / 2);
              knobs.give("host_barriers", run % 2);
              EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "")
                  << asked.workload->size_text(asked) << ", " << gpus << " ranks, run " << run;
            }
          }
        }
      }
    }
  }
}

// With fewer rows than GPUs, some have no row to normalise.
TEST(AllReduceNorm, IsRightInOneKernelWithFewerRowsThanGpus) {
  const Pattern& pattern = find_pattern(all_reduce_norm(), "fused-two-shot", "test");
  const Problem asked = norm_problem(all_reduce_norm(), 3, 50, DType::bf16, 8);
  for (const int transport : {0, 1}) {
    const Values knobs = norm_knobs(all_reduce_norm(), pattern, transport);
    EXPECT_EQ(sums::what_is_wrong(pattern, asked, norm_machine(), knobs), "") << transport;
  }
}

TEST(AllReduceNorm, TakesTheMemoryOfRowsInTheirTypeAndOfTheSumsThatItKeeps) {
  for (const bool at_owners : {false, true}) {
    const Problem asked =
        with_out(norm_problem(all_reduce_norm(), 35, 50, DType::bf16, 4), DType::fp8, at_owners);
    for (const Pattern& pattern : all_reduce_norm().patterns) {
      for (int transport = 0; transport < (pattern.uses("transport") ? 2 : 1); ++transport) {
        Machine machine = norm_machine();
        const Values knobs = norm_knobs(all_reduce_norm(), pattern, transport);
        machine.gpu.hbm_bytes = buffer_bytes(sums::built(pattern, asked, machine, knobs));
        EXPECT_NO_THROW(sums::built(pattern, asked, machine, knobs)) << pattern.name << transport;
        machine.gpu.hbm_bytes -= 1;
        EXPECT_THROW(sums::built(pattern, asked, machine, knobs), UserError) << pattern.name << transport;
      }
    }
  }
}

TEST(AllReduceNorm, RefusesSumsAtOwnersWhereAGpuOwnsNoRow) {
  try {
    with_out(norm_problem(all_reduce_norm(), 3, 50, DType::bf16, 8), DType::fp8, true);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "test: sums = owners with 3 rows on 8 GPUs; every GPU must own a row: give at least 8 rows, "
                 "or everywhere");
  }
}

// Half the bytes of the gather, and a launch and a reading of C less.
TEST(AllReduceNorm, IsFasterInOneKernelForManyRowsOfFp8WhoseSumsStay) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked =
      with_out(norm_problem(all_reduce_norm(), 2048, 7168, DType::bf16, 8), DType::fp8, true);
  const auto time_ns = [&](std::string_view pattern) {
    const Pattern& found = find_pattern(all_reduce_norm(), pattern, "test");
    return simulate(sums::built(found, asked, machine, Values(all_reduce_norm().knobs)), machine).makespan_ns;
  };
  EXPECT_LT(time_ns("fused-two-shot"), time_ns("two-shot"));
}

// Few rows are faster in one shot, many in two: by then the bytes on the links cost more than a launch.
TEST(AllReduceNorm, TwoShotsAreForManyRows) {
  const Machine machine = find_machine("mi355x-8");
  const auto time_ns = [&](std::string_view pattern, std::int64_t rows) {
    const Problem asked = norm_problem(all_reduce_norm(), rows, 7168, DType::bf16, 8);
    const Pattern& found = find_pattern(all_reduce_norm(), pattern, "test");
    Values knobs(all_reduce_norm().knobs);
    knobs.give("transport", static_cast<std::int64_t>(Transport::push));
    knobs.give("launch", static_cast<std::int64_t>(LaunchMode::graph));
    return simulate(sums::built(found, asked, machine, knobs), machine).makespan_ns;
  };
  EXPECT_LT(time_ns("one-shot", 2), time_ns("two-shot", 2));
  EXPECT_LT(time_ns("two-shot", 256), time_ns("one-shot", 256));
}

// Two launches and a reading of C less.
TEST(AllReduceNorm, IsFasterInOneKernelForFewRows) {
  const Machine machine = find_machine("h200-8");
  const Problem asked = norm_problem(all_reduce_norm(), 4, 8192, DType::bf16, 8);
  const auto time_ns = [&](std::string_view pattern) {
    const Pattern& found = find_pattern(all_reduce_norm(), pattern, "test");
    return simulate(sums::built(found, asked, machine, Values(all_reduce_norm().knobs)), machine).makespan_ns;
  };
  EXPECT_LT(time_ns("one-shot"), time_ns("library"));
}

TEST(NormalisedRows, AreDividedByTheRootOfTheMeanOfTheirSquares) {
  Eigen::MatrixXd values(3, 2);
  values << 3, 4, -6, 8, 0, 0;
  const Eigen::MatrixXd normalised = normalised_rows(values);
  EXPECT_NEAR(normalised(0, 0), 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(normalised(1, 1), 8 / std::sqrt(50.0), 1e-6);
  EXPECT_EQ(normalised(2, 0), 0);
}

// Only what has been filled has a root.
TEST(NormalisedRows, AreNotThoseOfAnEmptyAccumulator) {
  for (const bool filled : {false, true}) {
    ScheduleBuilder builder("norm", 1);
    const std::int16_t x = builder.buffer({"x", DType::fp32, 1, 8, 1, 8});
    const std::int16_t w = builder.buffer({"w", DType::fp32, 1, 8, 1, 8});
    const std::int16_t y = builder.buffer({"y", DType::fp32, 1, 8, 1, 8});
    builder.input(builder.whole(x));
    builder.input(builder.whole(w));
    builder.expect_rms_norm(builder.whole(y), builder.whole(x, 0), builder.whole(w, 0));
    Kernel kernel;
    kernel.name = "norm";
    const std::int32_t id = builder.kernel(kernel);
    builder.workgroup(id);
    if (filled) builder.load(x, {0, 0, 1, 8}, 0);
    builder.rms_norm(w, {0, 0, 1, 8}, 0);
    builder.store(y, {0, 0, 1, 8}, 0);
    builder.launch(0, id);
    builder.host(0, HostOpKind::device_synchronize);
    const Schedule schedule = builder.finish();
    const std::vector<Finding> findings = check_schedule(schedule);
    ASSERT_EQ(findings.empty(), filled);
    if (filled) {
      const FunctionalResult result = execute_functionally(schedule, find_machine("mi300x-8"), 7);
      EXPECT_LT(result.max_relative_error, result.right_within);
    } else {
      EXPECT_NE(findings.front().message.find("normalises rows that nothing has filled"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tritax

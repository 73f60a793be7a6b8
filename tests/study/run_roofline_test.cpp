// The roofline of a run: ceilings of a machine, the work of each kind of operation, and its bound.
#include "sim/study/run_roofline.hpp"

#include <gtest/gtest.h>

#include <string>

#include "model/core/error.hpp"
#include "model/scenario/scenario.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/operations.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

TEST(RooflinePoints, TheLongestLeastTimeIsTheBound) {
  RooflinePoint point;  // the example of the header
  point.busy_ns = 10'000;
  point.flops = 2e9;
  point.compute_ns = 5000;
  point.memory_ns = {4000, 0, 1000, 0};
  EXPECT_EQ(point.gflop_per_s(), 200'000);
  EXPECT_EQ(point.bound(), "matrix cores");
  EXPECT_EQ(point.share(), 0.5);
  point.memory_ns[2] = 9000;
  EXPECT_EQ(point.bound(), "hbm");
  EXPECT_EQ(point.share(), 0.9);
  EXPECT_EQ(RooflinePoint{}.bound(), "-");
}

TEST(RooflineCeilings, AreThoseOfTheMachineFile) {
  const Machine mesh = find_machine("mi300x-8");
  const MachineCeilings ceilings = ceilings_of(mesh, 8, {DType::fp16});
  EXPECT_EQ(ceilings.of(MemoryLevel::hbm), mesh.gpu.hbm_gb_per_s);
  EXPECT_EQ(ceilings.of(MemoryLevel::llc), mesh.gpu.llc_gb_per_s);
  EXPECT_GE(ceilings.of(MemoryLevel::l2), mesh.gpu.xcds * mesh.gpu.l2_gb_per_s);
  ASSERT_EQ(ceilings.peaks.size(), 1U);
  EXPECT_GT(ceilings.peaks[0].gflop_per_s, 1e5);
  // A link to every peer of a mesh, and none without peers.
  EXPECT_GT(ceilings.of(MemoryLevel::links), 2 * ceilings_of(mesh, 2, {}).of(MemoryLevel::links));
  EXPECT_EQ(ceilings_of(mesh, 1, {}).of(MemoryLevel::links), 0);
  EXPECT_EQ(ceilings_of(find_machine("h100-4"), 4, {}).of(MemoryLevel::llc), 0);
}

// Every GPU multiplies a row of tiles and copies its result to the next.
Schedule multiply_and_pass_on(int ranks) {
  ScheduleBuilder builder("multiply and pass on", ranks);
  const std::int16_t a = builder.buffer({"a", DType::fp16, 256, 512, 256, 64});
  const std::int16_t b = builder.buffer({"b", DType::fp16, 512, 1024, 64, 256});
  const std::int16_t c = builder.buffer({"c", DType::fp16, 256, 1024, 256, 256});
  const std::int16_t d = builder.buffer({"d", DType::fp16, 256, 1024, 256, 256});
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  for (int rank = 0; rank < ranks; ++rank) {
    Kernel kernel;
    kernel.name = "multiply";
    kernel.rank = rank;
    kernel.resources = {256, 64, 65536};
    kernel.tile = {256, 256, 64, 4, Pipeline::overlapped};
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t tile = 0; tile < 4; ++tile) {
      const Rect rect{0, 256 * tile, 256, 256};
      builder.workgroup(id);
      builder.matmul(a, b, rect, 0, 512);
      builder.store(c, rect, rank);
      builder.copy(d, rect, (rank + 1) % ranks, c, rect.row, rect.col, rank);
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

const RooflinePoint* point_named(const RunRoofline& roofline, const std::string& name) {
  for (const RooflinePoint& point : roofline.points) {
    if (point.name == name) return &point;
  }
  return nullptr;
}

TEST(RunRooflines, CountsWhatOperationsDid) {
  const Machine machine = find_machine("mi300x-8");
  const Schedule schedule = multiply_and_pass_on(3);
  const RunRoofline roofline = run_roofline(schedule, machine);
  const RooflinePoint* matmul = point_named(roofline, "matmul");
  const RooflinePoint* copy = point_named(roofline, "copy");
  ASSERT_NE(matmul, nullptr);
  ASSERT_NE(copy, nullptr);
  const auto links = static_cast<std::size_t>(MemoryLevel::links);
  EXPECT_EQ(matmul->flops, 2.0 * 256 * 1024 * 512);  // of one GPU
  EXPECT_EQ(matmul->bytes[links], 0);
  EXPECT_EQ(copy->flops, 0);
  EXPECT_EQ(copy->bytes[links], 2.0 * 256 * 1024);
  EXPECT_EQ(copy->bound(), "links");
  const RooflinePoint& run = roofline.points.back();
  EXPECT_EQ(run.name, "run");
  EXPECT_EQ(run.busy_ns, roofline.result.makespan_ns);
  EXPECT_EQ(run.flops, matmul->flops);
  const double hbm = hbm_bytes(roofline.result.caches) / schedule.ranks;
  EXPECT_NEAR(run.bytes[static_cast<std::size_t>(MemoryLevel::hbm)], hbm, 1e-9 * hbm);
}

// No kind goes through its roof, whatever the workload; where it did, a ceiling or a count would be wrong.
TEST(RunRooflines, NothingLiesAboveItsCeiling) {
  for (const char* name : {"mi300x-8", "h100-4"}) {
    const Machine machine = find_machine(name);
    const RunRoofline roofline = run_roofline(multiply_and_pass_on(4), machine);
    for (const RooflinePoint& point : roofline.points) {
      EXPECT_GT(point.share(), 0) << name << ' ' << point.name;
      EXPECT_LE(point.share(), 1 + 1e-9) << name << ' ' << point.name;
    }
  }
}

}  // namespace
}  // namespace tritax

// Waves with roles: what producers take from a tile.
#include "model/parts/wave_roles.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "model/core/error.hpp"
#include "model/cost/matmul_step.hpp"

namespace tritax {
namespace {

const Machine& read_once(const std::string& name) {
  static std::map<std::string, Machine> machines;
  const auto found = machines.find(name);
  return found != machines.end() ? found->second : machines.emplace(name, find_machine(name)).first->second;
}

WaveRoles roles_on(const char* machine, const MatmulTile& tile, std::int32_t producers) {
  const Machine& found = read_once(machine);
  return wave_roles(found.gpu, costs(found, KernelProfile::vendor), DType::bf16, tile, producers);
}

std::string refusal_on(const char* machine, const MatmulTile& tile, std::int32_t producers) {
  try {
    roles_on(machine, tile, producers);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Twelve waves have 131072 / 768 = 170 registers each, 168 in steps of 8. 256x256 by eight consumers takes
// 128 for sums, 2·24 for fragments of 128 + 64 rows and columns, and 24.
TEST(WaveRoles, LeaveTheRegistersOfProducersToNobody) {
  const MatmulTile half{128, 256, 64, 8, Pipeline::overlapped}, whole{256, 256, 64, 8, Pipeline::overlapped};
  EXPECT_EQ(roles_on("mi355x-8", half, 4).resources.threads, 768);
  EXPECT_EQ(roles_on("mi355x-8", half, 4).resources.registers_per_thread, 64 + 32 + 24);
  const std::string refusal = refusal_on("mi355x-8", whole, 4);
  EXPECT_NE(refusal.find("needs 200 registers"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("have 168 each"), std::string::npos) << refusal;
}

TEST(WaveRoles, NeedTwoStagesInLds) {
  const MatmulTile tile{128, 256, 64, 8, Pipeline::overlapped};
  EXPECT_EQ(roles_on("mi355x-8", tile, 4).resources.lds_bytes, 2 * 384 * 128);
  EXPECT_NE(refusal_on("mi300x-8", tile, 4).find("LDS"), std::string::npos);  // 96 of 64 KiB
}

TEST(WaveRoles, AreForGpusWhoseWavesFillTheLds) {
  EXPECT_NE(refusal_on("h100-4", {128, 128, 64, 8, Pipeline::overlapped}, 4).find("by itself"),
            std::string::npos);
  EXPECT_NE(refusal_on("mi355x-8", {64, 64, 32, 8, Pipeline::overlapped}, 9).find("17 waves"),
            std::string::npos);
}

// 2·128·256·64 flops at 0.94 of 4096 a clock, and 8 waves that read 64 + 64 rows of 128 bytes at 256 a clock.
TEST(WaveRoles, ReadAndMultiplyInTurn) {
  const Machine machine = find_machine("mi355x-8");
  const MatrixRate& rate = machine.gpu.rate(DType::bf16);
  const double products = 2.0 * 128 * 256 * 64 / (rate.flop_per_clk_per_cu * rate.issue_efficiency);
  const double reads = 8 * 128 * 128 / machine.gpu.lds_bytes_per_clk;
  const WaveRoles roles = roles_on("mi355x-8", {128, 256, 64, 8, Pipeline::overlapped}, 4);
  EXPECT_NEAR(roles.matmul_share, products / (products + reads), 1e-9);
}

RC_GTEST_PROP(WaveRoles, ProducersGiveNothingAndTakeRegisters, ()) {
  const std::int32_t waves = *rc::gen::element(2, 4, 8), edges = *rc::gen::element(64, 128, 256);
  const std::int32_t producers = *rc::gen::inRange(1, 16 - waves);
  const MatmulTile tile{edges, *rc::gen::element(64, 128, 256), *rc::gen::element(32, 64), waves,
                        Pipeline::overlapped};
  const bool fits = refusal_on("mi355x-8", tile, producers).empty();
  if (fits) {
    const double share = roles_on("mi355x-8", tile, producers).matmul_share;
    RC_ASSERT(share > 0 && share <= 1);
    if (producers > 1) RC_ASSERT(refusal_on("mi355x-8", tile, producers - 1).empty());
  } else if (producers < 16 - waves) {
    RC_ASSERT(!refusal_on("mi355x-8", tile, producers + 1).empty());
  }
}

}  // namespace
}  // namespace tritax

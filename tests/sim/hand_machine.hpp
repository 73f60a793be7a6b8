// A machine for exact tests: every cost is zero and every bandwidth out of reach until a test sets it, so
// that what a test does not mention takes no time.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "sim/simulate.hpp"

namespace tritax::hand {

constexpr double kUnlimited = 1e15;  // GB/s
constexpr double kStepNs = 1000;     // one K step of a full GEMM tile
constexpr std::int32_t kTile = 64;   // rows and columns of the tile of `gemm_kernel`, and depth of a K step
constexpr double kTileBytes = 2.0 * kTile * kTile;
constexpr double kExact = 1e-6;  // ns: rounding of sums of times up to some milliseconds

// `gpus` GPUs in a mesh, each with 2 dies of 4 compute units; a compute unit has room for one workgroup that
// takes all of its LDS, or for 8 of 256 threads that take none.
inline Machine machine(int gpus = 1) {
  Machine out;
  out.name = "hand";
  out.gpus_per_node = gpus;
  Gpu& gpu = out.gpu;
  gpu.name = "hand";
  gpu.arch = "hand";
  gpu.xcds = 2;
  gpu.cus_per_xcd = 4;
  gpu.registers_per_cu = 131072;
  gpu.registers_per_thread_max = 512;
  gpu.lds_bytes_per_cu = 65536;
  gpu.lds_bytes_per_workgroup_max = 65536;
  gpu.lds_bytes_per_clk = kUnlimited;
  gpu.cu_l2_bytes_per_clk = kUnlimited;
  gpu.boost_clock_ghz = 1;  // as under load: the clock stays
  gpu.matrix[static_cast<std::size_t>(DType::fp16)] = {2.0 * kTile * kTile * kTile / kStepNs, 1, 1};
  gpu.l2_bytes = 4e6;
  gpu.l2_gb_per_s = kUnlimited;
  gpu.hbm_bytes = 1e12;
  gpu.hbm_gb_per_s = kUnlimited;
  gpu.cu_load_gb_per_s = kUnlimited;
  gpu.cu_store_gb_per_s = kUnlimited;
  gpu.cu_remote_store_gb_per_s = kUnlimited;
  gpu.cu_remote_load_gb_per_s = kUnlimited;
  gpu.cu_remote_atomic_gb_per_s = kUnlimited;
  Fabric& fabric = out.fabric;
  fabric.link_raw_gb_per_s = kUnlimited;
  fabric.store_efficiency = fabric.load_efficiency = fabric.atomic_efficiency = 1;
  fabric.store_egress_gb_per_s = fabric.store_ingress_gb_per_s = kUnlimited;
  fabric.load_egress_gb_per_s = fabric.load_ingress_gb_per_s = kUnlimited;
  return out;
}

// A clock so short that claims of one counter, of which it takes one a clock, do not wait for each other;
// matmuls take as long as before.
inline Machine with_free_draws(Machine machine) {
  constexpr double kFaster = 1e9;
  machine.gpu.boost_clock_ghz *= kFaster;
  for (MatrixRate& rate : machine.gpu.matrix) {
    rate.flop_per_clk_per_cu /= kFaster;
    rate.load_clock_ghz *= kFaster;
    rate.light_clock_ghz *= kFaster;
  }
  return machine;
}

// A schedule with one fp16 buffer "A" of `tiles` tiles in a column, "B" of one tile, and "C" as large as A.
struct Draft {
  explicit Draft(int ranks, std::int32_t tiles = 64) : builder("hand", ranks) {
    a = builder.buffer({"A", DType::fp16, tiles * kTile, kTile, kTile, kTile});
    b = builder.buffer({"B", DType::fp16, kTile, kTile, kTile, kTile});
    c = builder.buffer({"C", DType::fp16, tiles * kTile, kTile, kTile, kTile});
  }

  static Rect tile(std::int32_t row) { return {row * kTile, 0, kTile, kTile}; }

  // A kernel without matrix tiles; many of its workgroups fit a compute unit.
  std::int32_t data_kernel(const std::string& name, int rank) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    kernel.profile = profile;
    return builder.kernel(kernel);
  }
  // A kernel whose workgroups take a compute unit each. Its operands do not depend on `cu_load_gb_per_s`, as
  // those of a serial pipeline do.
  std::int32_t gemm_kernel(const std::string& name, int rank, std::int32_t cu_begin = 0,
                           std::int32_t cu_end = 0) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    kernel.profile = profile;
    kernel.resources.lds_bytes = 65536;
    kernel.tile = {kTile, kTile, kTile, 4, Pipeline::overlapped};
    kernel.cu_begin = cu_begin;
    kernel.cu_end = cu_end;
    return builder.kernel(kernel);
  }
  // Computes tile `row` of A·B once: kStepNs.
  void matmul(std::int32_t row) { builder.matmul(a, b, tile(row), 0, kTile); }
  void signal(std::int16_t flag, std::int32_t index, int rank,
              LockProtocol protocol = LockProtocol::load_store) {
    builder.signal(flag, index, 1, rank, Scope::system, protocol);
  }
  void wait(std::int16_t flag, std::int32_t index, std::int32_t value = 1,
            LockProtocol protocol = LockProtocol::load_store) {
    builder.wait(flag, index, value, Scope::system, protocol);
  }

  ScheduleBuilder builder;
  KernelProfile profile = KernelProfile::interpreter;  // of the next kernels
  std::int16_t a = 0, b = 0, c = 0;
};

struct Span {
  double begin_ns = NAN;
  double end_ns = NAN;
  double length_ns() const { return end_ns - begin_ns; }
};

// What happened when.
class Recorder : public SimulationObserver {
 public:
  void op_started(const OpPlace& place, double time_ns) override {
    ops[{place.kernel, place.workgroup, place.op}].begin_ns = time_ns;
    cu_of[{place.kernel, place.workgroup}] = place.cu;
  }
  void op_finished(const OpPlace& place, double time_ns) override {
    ops[{place.kernel, place.workgroup, place.op}].end_ns = time_ns;
  }
  void kernel_started(std::uint32_t kernel, double time_ns) override { kernels[kernel].begin_ns = time_ns; }
  void kernel_finished(std::uint32_t kernel, double time_ns) override { kernels[kernel].end_ns = time_ns; }
  void host_op_started(int rank, std::uint32_t op, double time_ns) override {
    host_ops[{rank, op}].begin_ns = time_ns;
  }
  void host_op_finished(int rank, std::uint32_t op, double time_ns) override {
    host_ops[{rank, op}].end_ns = time_ns;
  }

  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Span> ops;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> cu_of;
  std::map<std::uint32_t, Span> kernels;
  std::map<std::pair<int, std::uint32_t>, Span> host_ops;
};

struct Observed {
  SimulationResult result;
  Recorder seen;
};

// Simulates and checks that the account sums to the makespan.
inline Observed run(const Schedule& schedule, const Machine& machine) {
  Observed out;
  SimulationOptions options;
  options.observer = &out.seen;
  out.result = simulate(schedule, machine, options);
  EXPECT_NEAR(out.result.account.sum_ns(), out.result.makespan_ns, 1e-9 * out.result.makespan_ns);
  return out;
}

}  // namespace tritax::hand

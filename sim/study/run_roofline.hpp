// Where the operations of a schedule lie below the ceilings of a machine (roofline model, Williams, Waterman
// and Patterson, CACM 52(4), 2009). A simulation gives, for every kind of operation, its flops, its bytes at
// every level, and the time in which any of them ran.
//
//   attained rate   = flops / busy          busy: time in which any operation of the kind runs on a GPU
//   intensity       = flops / bytes         of each level
//   least time      = max(flops / peak, bytes / bandwidth of each level)
//   bound           = the level of the maximum
//   share           = least time / busy
//
// Busy times of kinds overlap, as operations do, so the shares of one resource may sum to more than the share
// of the whole run; the last row is the whole run, with its makespan as busy time.
//
//   Example: 2 GFLOP in 10 us are 200 TFLOP/s; with 40 MB through an L2 of 10 TB/s in all and a peak of 400
//   TFLOP/s the least time is max(5, 4) us: bound by the matrix cores, at half of their peak.
//
// Bytes of a level. L2: bytes that operations asked of the L2, and bytes written through it to memory.
// Last-level cache: bytes that missed the L2s, and bytes written. HBM: bytes read and written. Links: bytes
// that operations and copy engines moved between GPUs, without protocol. Flops of sparse products have no
// peak, because machine files only have the peaks of matrix cores: memory bounds sparse products.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/simulate.hpp"

namespace tritax {

enum class MemoryLevel : std::uint8_t { l2, llc, hbm, links };
inline constexpr std::size_t kMemoryLevels = 4;
inline constexpr std::array<std::string_view, kMemoryLevels> kMemoryLevelNames{"l2", "llc", "hbm", "links"};

// Highest sustained rates of one GPU.
struct MachineCeilings {
  struct Peak {
    DType dtype = DType::fp16;
    double gflop_per_s = 0;
  };
  std::vector<Peak> peaks;                       // of the types that are multiplied
  std::array<double, kMemoryLevels> gb_per_s{};  // 0: no such level
  double of(MemoryLevel level) const { return gb_per_s[static_cast<std::size_t>(level)]; }
};

// Ceilings with `gpus` participating GPUs, for the types that are multiplied. Links: one direction, all links
// of a GPU, payload of stores or loads, whichever is more.
MachineCeilings ceilings_of(const Machine& machine, int gpus, const std::vector<DType>& dtypes);

// One kind of operation, or the run; values of one GPU, mean over the GPUs of the schedule.
struct RooflinePoint {
  std::string name;  // "matmul", "copy engines", "run"
  double busy_ns = 0;
  double flops = 0;
  std::array<double, kMemoryLevels> bytes{};
  double compute_ns = 0;                          // least time of the flops
  std::array<double, kMemoryLevels> memory_ns{};  // least time of the bytes

  double gflop_per_s() const { return busy_ns > 0 ? flops / busy_ns : 0; }
  double least_ns() const;
  std::string bound() const;  // "matrix cores", a level, or "-" without flops and bytes
  double share() const { return busy_ns > 0 ? least_ns() / busy_ns : 0; }
};

struct RunRoofline {
  MachineCeilings ceilings;
  std::vector<RooflinePoint> points;  // kinds in their order, copy engines, the run
  SimulationResult result;
};

// Simulates the schedule. Throws UserError as `simulate` does, and for a type that the GPU does not multiply.
// `options` without an observer.
RunRoofline run_roofline(const Schedule& schedule, const Machine& machine, SimulationOptions options = {});

}  // namespace tritax

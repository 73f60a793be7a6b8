// The executor: runs a tile schedule, unchanged, on the GPUs of this node.
//
// One process, one host thread a GPU, peer access between all of them. Every rank has one allocation, its
// symmetric heap, laid out alike (lower.hpp). The host program of a rank runs in its thread: launches on
// streams, graphs, synchronisation, barriers among the threads. The kernels are the interpreter's
// (interpreter.hpp).
//
// What the executor does not do: reserve compute units for a kernel (Kernel::cu_begin; the hardware places
// workgroups), run a kernel that stands for a library's at the rates of that (Kernel::library), delay a
// kernel (start_ns), run kernels of other profiles than the interpreter's by what their profile names, or
// spend the time of host_work. `notes()` says so when a schedule asks for it.
//
//   Executor executor(schedule, {});
//   executor.fill(seed);
//   RunTimes times = executor.run();
//   CheckResult check = executor.check();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend_hip/judge.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

struct GpuInfo {
  std::string name;
  std::int32_t compute_units = 0;
  double memory_bytes = 0;
};

// GPUs of this node; empty when there is none or no driver.
std::vector<GpuInfo> list_gpus();

// "CUDA driver 13.0, runtime 13.0"
std::string runtime_versions();

struct ExecutorOptions {
  double spin_limit_s = 2.0;   // a wait that lasts longer ends the run
  bool stamps = false;         // record begin and end of every operation
  double pace_gb_per_s = 0;    // what the workgroups of a matmul kernel together send to peers; 0: no limit
  double flush_bytes = 256e6;  // written on every GPU before a run, to empty the caches; 0: nothing
};

struct RunTimes {
  double wall_us = 0;  // host clock: from a common start until every rank's program and streams are done
  std::vector<double> device_us;  // a rank: from the first workgroup's begin to the last one's end
  std::vector<double> kernel_us;  // a kernel, as Schedule::kernels: likewise; 0: it did not run
  std::vector<double> clock_ghz;  // a kernel: the mean clock of its first workgroup's compute unit
  double longest_device_us() const;
};

struct StampedOp {
  std::int32_t number = 0;  // into Schedule::ops
  std::int32_t cu = 0;      // compute unit that ran it, as the hardware counts
  double begin_us = 0;      // on rank 0's clock, from the earliest stamp; see model/timeline/op_times.hpp
  double end_us = 0;
  double clock_ghz = 0;         // of the compute unit meanwhile; 0: too short to tell
  std::int32_t workgroup = -1;  // that ran it, of an operation of an item
};

class Executor {
 public:
  // Throws UserError: no GPU, fewer GPUs than ranks, no peer access, not enough memory, a tile, dtype or
  // resource the device lacks, a persistent kernel that cannot be resident at once.
  Executor(const Schedule& schedule, const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Fresh data: inputs as the schedule says (model/schedule/reference.hpp), all that no input fills zeros in
  // buffers that are targets of atomic additions and NaNs in others.
  void fill(std::uint64_t seed);

  // Runs the host programs once. Throws UserError that names the operation and its flag when a wait outlasts
  // the limit, and for every error of the GPU runtime.
  RunTimes run();

  // Compares what the buffers hold after a run on fresh data with the reference of the schedule; see
  // verify.hpp. Throws UserError when there is none.
  CheckResult check();

  // Of the last run; empty without `stamps`. Clocks of the GPUs are aligned; see clock_error_us().
  std::vector<StampedOp> stamps();

  // How far the aligned clocks of two GPUs may be apart: half the shortest round trip between them.
  double clock_error_us() const;

  const std::vector<std::string>& notes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritax::gpu

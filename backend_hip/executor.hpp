// The executor: runs a tile schedule, unchanged, on the GPUs of this node.
//
// There is one process, with one host thread per GPU and peer access between all GPUs. Every rank has one
// allocation, its symmetric heap, with the same layout on all ranks (lower.hpp). The host program of a rank
// runs in its thread: launches on streams, graphs, synchronisation, barriers among the threads. Kernels are
// the interpreter's (interpreter.hpp).
//
// The executor does not reserve compute units for a kernel (Kernel::cu_begin; the hardware places
// workgroups), does not run library stand-ins at the library's rates (Kernel::library), does not delay
// kernels (start_ns), runs all profiles with interpreter kernels, and does not spend the time of host_work.
// `notes()` says so when a schedule asks for one of these.
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

// GPUs of this node; empty without GPU or driver.
std::vector<GpuInfo> list_gpus();

// "CUDA driver 13.0, runtime 13.0"
std::string runtime_versions();

struct ExecutorOptions {
  double spin_limit_s = 2.0;   // limit of a wait; a longer wait ends the run
  bool stamps = false;         // record begin and end of every operation
  double pace_gb_per_s = 0;    // limit for all workgroups of a matmul kernel together, to peers; 0: none
  bool share_gpus = false;     // ranks share the GPUs that there are; results count then, times do not
  double flush_bytes = 256e6;  // written on every GPU before a run, to empty the caches; 0: nothing
};

struct RunTimes {
  double wall_us = 0;  // host clock: from a common start until every rank's program and streams are done
  std::vector<double> device_us;  // per rank: from the first workgroup's begin to the last one's end
  std::vector<double>
      kernel_us;  // per kernel, as Schedule::kernels: from first begin to last end; 0: it did not run
  std::vector<double> clock_ghz;  // per kernel: the mean clock of its first workgroup's compute unit
  double longest_device_us() const;
};

struct StampedOp {
  std::int32_t number = 0;  // into Schedule::ops
  std::int32_t cu = 0;      // compute unit of the operation, as the hardware counts
  double begin_us = 0;      // on rank 0's clock, from the earliest stamp; see model/timeline/op_times.hpp
  double end_us = 0;
  double clock_ghz = 0;         // of the compute unit during the operation; 0: too short to tell
  std::int32_t workgroup = -1;  // workgroup that ran the operation of an item
};

class Executor {
 public:
  // Throws UserError: no GPU, fewer GPUs than ranks (unless they share), no peer access, not enough memory, a
  // tile, dtype or resource that the device lacks, or a persistent kernel that cannot be resident at once.
  Executor(const Schedule& schedule, const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Fills in fresh data: inputs as the schedule says (model/schedule/reference.hpp); elsewhere zeros in
  // buffers that are targets of atomic additions, and NaNs in other buffers.
  void fill(std::uint64_t seed);

  // Runs the host programs once. Throws UserError that names the operation and its flag when a wait exceeds
  // the limit, and for every error of the GPU runtime.
  RunTimes run();

  // Compares the buffers after a run on fresh data with the reference of the schedule; see verify.hpp. Throws
  // UserError when there is none.
  CheckResult check();

  // Stamps of the last run; empty without the `stamps` option. Clocks of the GPUs are aligned; see
  // clock_error_us().
  std::vector<StampedOp> stamps();

  // Largest misalignment between the clocks of two GPUs: half the shortest round trip between them.
  double clock_error_us() const;

  const std::vector<std::string>& notes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritax::gpu

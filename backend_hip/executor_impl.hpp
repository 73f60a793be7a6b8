// Implementation details of the executor; included by executor*.cpp only.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend_hip/executor.hpp"
#include "backend_hip/gpu_memory.hpp"
#include "backend_hip/kernels.hpp"
#include "backend_hip/multicast.hpp"

namespace tritax::gpu {

// Barrier of the host threads; a failing thread releases the others.
class HostBarrier {
 public:
  // Thrown in a waiting thread when another thread gives up; the other thread reports the error.
  struct Abandoned : std::runtime_error {
    Abandoned() : std::runtime_error("another rank failed") {}
  };

  explicit HostBarrier(int threads) : threads_(threads) {}

  void arrive_and_wait() {
    const int generation = generation_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      generation_.fetch_add(1);
      return;
    }
    while (generation_.load() == generation) {
      if (abandoned_.load()) throw Abandoned();
    }
  }

  void abandon() { abandoned_.store(true); }

 private:
  int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int> generation_{0};
  std::atomic<bool> abandoned_{false};
};

class Executor::Impl {
 public:
  Impl(const Schedule& schedule, const ExecutorOptions& options);
  ~Impl();

  void fill(std::uint64_t seed);
  RunTimes run();
  CheckResult check();
  std::vector<StampedOp> stamps();

  double clock_error_us_ = 0;
  std::vector<std::string> notes_;

 private:
  struct Launch {
    const void* function = nullptr;
    const TileTraits* tile = nullptr;  // into traits_; null: a kernel without matmul
    unsigned int blocks = 0;
    unsigned int threads = 0;
    unsigned int shared_bytes = 0;
    bool gang = false;  // a cooperative launch
    LaunchParams params;
  };

  struct Rank {
    DeviceMemory heap;
    DeviceMemory ops;
    DeviceMemory workgroups;
    DeviceMemory items;
    DeviceMemory tensor_maps;
    DeviceMemory probes;
    DeviceMemory spans;  // per kernel, then the failure lock
    DeviceMemory stamps;
    DeviceMemory compute_units;    // by workgroup, with stamps
    DeviceMemory item_workgroups;  // workgroups of the items, with stamps
    DeviceMemory flush;
    std::vector<Launch> launches;  // as Schedule::kernels
    std::map<std::int32_t, hipStream_t> streams;
    std::map<std::int32_t, hipEvent_t> events;
    std::map<std::int32_t, hipGraphExec_t> graphs;
    long long clock_offset = 0;  // ticks, this clock minus the clock of rank 0
  };

  void require_gpus() const;
  int device_of(int rank) const { return rank % device_count_; }
  void enable_peers() const;
  void prepare_rank(int r, const std::vector<std::uint64_t>& bases, const hipDeviceProp_t& properties);
  Launch prepare_launch(std::size_t k, const LoweredKernel& lowered, const Rank& rank,
                        const hipDeviceProp_t& properties);
  void require_resident(std::size_t k, const Launch& launch, const hipDeviceProp_t& properties) const;
  void prepare_host(int r, Rank& rank);
  hipGraphExec_t build_graph(const Graph& graph, Rank& rank) const;
  void align_clocks();
  void collect_notes();

  void on_every_rank(const std::function<void(int)>& work);
  void fill_input(int r, const Input& input);
  void reset_rank(int r);
  void run_host_program(int r);
  void copy(Rank& rank, const HostOp& op);
  void launch_kernel(Rank& rank, std::int32_t kernel, std::int32_t stream);
  void throw_failure() const;
  void read_spans(int r, RunTimes& times);

  // Whether any operation of the schedule has this flag.
  bool has_op(bool Op::*flag) const {
    return std::any_of(schedule_.ops.begin(), schedule_.ops.end(), [flag](const Op& op) { return op.*flag; });
  }
  std::size_t spans_bytes() const {
    return schedule_.kernels.size() * sizeof(KernelSpan) + sizeof(std::uint64_t);
  }
  unsigned char* at(int rank, std::size_t offset) {
    return ranks_[static_cast<std::size_t>(rank)].heap.as<unsigned char>() + offset;
  }

  const Schedule& schedule_;
  ExecutorOptions options_;
  int device_count_ = 1;  // devices of the ranks
  std::vector<TileKernel> kernels_;
  DeviceTraits traits_;
  HeapLayout heap_;
  MulticastHeaps multicast_;  // where operations are multimem, and every rank has its own GPU
  std::uint64_t seed_ = 0;    // of the inputs
  std::vector<Rank> ranks_;
  MappedHost<FailureBoard> board_;
  HostBarrier barrier_;
};

}  // namespace tritax::gpu

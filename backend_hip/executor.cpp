#include "backend_hip/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "backend_hip/clock.hpp"
#include "backend_hip/gpu_memory.hpp"
#include "backend_hip/kernels.hpp"
#include "backend_hip/tensor_maps.hpp"
#include "backend_hip/verify.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

using Clock = std::chrono::steady_clock;

// Barrier of the host threads; a thread that fails lets the others go.
class HostBarrier {
 public:
  explicit HostBarrier(int threads) : threads_(threads) {}

  void arrive_and_wait() {
    const int generation = generation_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      generation_.fetch_add(1);
      return;
    }
    while (generation_.load() == generation) {
      if (abandoned_.load()) throw std::runtime_error("another rank failed");
    }
  }

  void abandon() { abandoned_.store(true); }

 private:
  int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int> generation_{0};
  std::atomic<bool> abandoned_{false};
};

std::vector<MatmulKernel> all_matmul_kernels() {
  std::vector<MatmulKernel> all = matmul_kernels_bf16();
  for (const auto& more : {matmul_kernels_fp16(), matmul_kernels_fp8()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

DeviceTraits traits_of(const hipDeviceProp_t& properties, const std::vector<MatmulKernel>& kernels) {
  DeviceTraits traits;
  traits.name = properties.name;
#if defined(TRITAX_GPU_NVIDIA)
  if (properties.major != 9 || properties.minor != 0) {
    throw UserError(fmt::format("{} has compute capability {}.{}; this program is built for 9.0 (H100, H200)",
                                properties.name, properties.major, properties.minor));
  }
  traits.tensor_maps = true;
  traits.fp8_b_transposed = true;
  const bool has_fp8 = true;
#else
  const std::string arch = properties.gcnArchName;
  const bool has_fp8 = !arch.starts_with("gfx90a");
#endif
  for (const MatmulKernel& kernel : kernels) {
    if (kernel.traits.dtype != DType::fp8 || has_fp8) traits.tiles.push_back(kernel.traits);
  }
  return traits;
}

std::vector<bool> targets_of(const Schedule& schedule, std::initializer_list<OpKind> kinds) {
  std::vector<bool> targets(schedule.buffers.size(), false);
  for (const Op& op : schedule.ops) {
    if (std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end())
      targets[static_cast<std::size_t>(op.buffer)] = true;
  }
  return targets;
}

}  // namespace

double RunTimes::longest_device_us() const {
  return device_us.empty() ? 0 : *std::max_element(device_us.begin(), device_us.end());
}

std::vector<GpuInfo> list_gpus() {
  int count = 0;
  if (hipGetDeviceCount(&count) != hipSuccess) {
    static_cast<void>(hipGetLastError());
    return {};
  }
  std::vector<GpuInfo> gpus;
  for (int device = 0; device < count; ++device) {
    hipDeviceProp_t properties{};
    TRITAX_GPU_CHECK(hipGetDeviceProperties(&properties, device));
    gpus.push_back(
        {properties.name, properties.multiProcessorCount, static_cast<double>(properties.totalGlobalMem)});
  }
  return gpus;
}

std::string runtime_versions() {
  int driver = 0;
  int runtime = 0;
  TRITAX_GPU_CHECK(hipDriverGetVersion(&driver));
  TRITAX_GPU_CHECK(hipRuntimeGetVersion(&runtime));
#if defined(TRITAX_GPU_NVIDIA)
  return fmt::format("CUDA driver {}.{}, runtime {}.{}", driver / 1000, driver % 1000 / 10, runtime / 1000,
                     runtime % 1000 / 10);
#else
  return fmt::format("HIP driver {}, runtime {}", driver, runtime);
#endif
}

class Executor::Impl {
 public:
  Impl(const Schedule& schedule, const ExecutorOptions& options)
      : schedule_(schedule), options_(options), kernels_(all_matmul_kernels()), barrier_(schedule.ranks) {
    require_gpus();
    hipDeviceProp_t properties{};
    TRITAX_GPU_CHECK(hipGetDeviceProperties(&properties, 0));
    traits_ = traits_of(properties, kernels_);
    heap_ = lay_out_heap(schedule_, traits_);
    ranks_.resize(static_cast<std::size_t>(schedule_.ranks));
    enable_peers();
    std::vector<std::uint64_t> bases;
    for (int r = 0; r < schedule_.ranks; ++r) {
      ranks_[static_cast<std::size_t>(r)].heap = DeviceMemory(r, std::max<std::size_t>(heap_.bytes, 1024));
      bases.push_back(reinterpret_cast<std::uint64_t>(ranks_[static_cast<std::size_t>(r)].heap.get()));
    }
    for (int r = 0; r < schedule_.ranks; ++r) prepare_rank(r, bases, properties);
    if (options_.stamps) align_clocks();
    collect_notes();
  }

  ~Impl() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      static_cast<void>(hipSetDevice(static_cast<int>(r)));
      for (auto& [number, stream] : ranks_[r].streams) static_cast<void>(hipStreamDestroy(stream));
      for (auto& [number, graph] : ranks_[r].graphs) static_cast<void>(hipGraphExecDestroy(graph));
    }
  }

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
    LaunchParams params;
  };

  struct Rank {
    DeviceMemory heap;
    DeviceMemory ops;
    DeviceMemory workgroups;
    DeviceMemory tensor_maps;
    DeviceMemory spans;  // of all kernels, then the failure lock
    DeviceMemory stamps;
    DeviceMemory flush;
    std::vector<Launch> launches;  // as Schedule::kernels
    std::map<std::int32_t, hipStream_t> streams;
    std::map<std::int32_t, hipGraphExec_t> graphs;
    long long clock_offset = 0;  // ticks, this clock minus that of rank 0
  };

  void require_gpus() const;
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
  void reset_rank(int r);
  void run_host_program(int r);
  void launch_kernel(Rank& rank, std::int32_t kernel, std::int32_t stream);
  void throw_failure() const;
  void read_spans(int r, RunTimes& times);

  std::size_t spans_bytes() const {
    return schedule_.kernels.size() * sizeof(KernelSpan) + sizeof(std::uint64_t);
  }
  unsigned char* at(int rank, std::size_t offset) {
    return ranks_[static_cast<std::size_t>(rank)].heap.as<unsigned char>() + offset;
  }

  const Schedule& schedule_;
  ExecutorOptions options_;
  std::vector<MatmulKernel> kernels_;
  DeviceTraits traits_;
  HeapLayout heap_;
  std::vector<Rank> ranks_;
  MappedHost<FailureBoard> board_;
  HostBarrier barrier_;
};

void Executor::Impl::require_gpus() const {
  const std::size_t count = list_gpus().size();
  if (count == 0) throw UserError("no GPU: the runtime finds no device on this machine");
  if (count < static_cast<std::size_t>(schedule_.ranks)) {
    throw UserError(fmt::format("schedule '{}' needs {} GPUs; this machine has {}", schedule_.name,
                                schedule_.ranks, count));
  }
  if (schedule_.ranks > kMaxRanks) {
    throw UserError(fmt::format("schedule '{}' has {} ranks; at most {} are possible", schedule_.name,
                                schedule_.ranks, kMaxRanks));
  }
}

void Executor::Impl::enable_peers() const {
  for (int from = 0; from < schedule_.ranks; ++from) {
    TRITAX_GPU_CHECK(hipSetDevice(from));
    for (int to = 0; to < schedule_.ranks; ++to) {
      if (from == to) continue;
      int possible = 0;
      TRITAX_GPU_CHECK(hipDeviceCanAccessPeer(&possible, from, to));
      if (possible == 0) throw UserError(fmt::format("GPU {} has no peer access to GPU {}", from, to));
      const hipError_t error = hipDeviceEnablePeerAccess(to, 0);
      if (error == hipErrorPeerAccessAlreadyEnabled) {
        static_cast<void>(hipGetLastError());  // a former executor of this process did it
      } else {
        TRITAX_GPU_CHECK(error);
      }
    }
  }
}

void Executor::Impl::prepare_rank(int r, const std::vector<std::uint64_t>& bases,
                                  const hipDeviceProp_t& properties) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const RankProgram program = lower(schedule_, heap_, traits_, r, bases);
  TRITAX_GPU_CHECK(hipSetDevice(r));
  std::vector<TensorMap> maps;
  for (const TensorMapSpec& spec : program.tensor_maps) maps.push_back(encode_tensor_map(spec));
  rank.ops = upload(r, program.ops);
  rank.workgroups = upload(r, program.workgroups);
  rank.tensor_maps = upload(r, maps);
  rank.spans = DeviceMemory(r, spans_bytes());
  if (options_.stamps) rank.stamps = DeviceMemory(r, schedule_.ops.size() * sizeof(OpStamp) + 1);
  if (options_.flush_bytes > 0) rank.flush = DeviceMemory(r, static_cast<std::size_t>(options_.flush_bytes));
  rank.launches.resize(schedule_.kernels.size());
  for (std::size_t k = 0; k < schedule_.kernels.size(); ++k) {
    if (schedule_.kernels[k].rank != r || schedule_.kernels[k].workgroups.empty()) continue;
    rank.launches[k] = prepare_launch(k, program.kernels[k], rank, properties);
    rank.launches[k].params.rank = r;
  }
  prepare_host(r, rank);
}

Executor::Impl::Launch Executor::Impl::prepare_launch(std::size_t k, const LoweredKernel& lowered,
                                                      const Rank& rank, const hipDeviceProp_t& properties) {
  Launch launch;
  launch.blocks = lowered.workgroup_count;
  launch.threads = static_cast<unsigned int>(lowered.threads);
  launch.shared_bytes = static_cast<unsigned int>(lowered.shared_bytes);
  launch.function = vector_kernel_for(lowered.threads);
  launch.tile = lowered.tile;
  for (const MatmulKernel& kernel : kernels_) {
    if (lowered.tile == nullptr) break;
    const TileTraits& tile = kernel.traits;
    if (tile.dtype == lowered.tile->dtype && tile.m == lowered.tile->m && tile.n == lowered.tile->n) {
      launch.function = kernel.function;
    }
  }
  if (lowered.shared_bytes > 48 * 1024) {
    TRITAX_GPU_CHECK(hipFuncSetAttribute(launch.function, hipFuncAttributeMaxDynamicSharedMemorySize,
                                         lowered.shared_bytes));
  }
  launch.params.ops = rank.ops.as<DeviceOp>();
  launch.params.workgroups = rank.workgroups.as<DeviceWorkgroup>() + lowered.first_workgroup;
  launch.params.tensor_maps = rank.tensor_maps.as<TensorMap>();
  launch.params.stamps = rank.stamps.as<OpStamp>();
  launch.params.span = rank.spans.as<KernelSpan>() + k;
  launch.params.failure_lock =
      reinterpret_cast<std::uint32_t*>(rank.spans.as<KernelSpan>() + schedule_.kernels.size());
  launch.params.spin_limit_ticks = static_cast<unsigned long long>(options_.spin_limit_s * kTicksPerSecond);
  void* board = nullptr;
  TRITAX_GPU_CHECK(hipHostGetDevicePointer(&board, board_.get(), 0));
  launch.params.board = static_cast<FailureBoard*>(board);
  if (schedule_.kernels[k].placement == Placement::persistent) require_resident(k, launch, properties);
  return launch;
}

void Executor::Impl::require_resident(std::size_t k, const Launch& launch,
                                      const hipDeviceProp_t& properties) const {
  int per_unit = 0;
  TRITAX_GPU_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_unit, launch.function, static_cast<int>(launch.threads), launch.shared_bytes));
  const std::int64_t resident = std::int64_t{per_unit} * properties.multiProcessorCount;
  if (static_cast<std::int64_t>(launch.blocks) > resident) {
    throw UserError(
        fmt::format("kernel '{}' is persistent with {} workgroups; {} of them are resident at once on {}",
                    schedule_.kernels[k].name, launch.blocks, resident, properties.name));
  }
}

void Executor::Impl::prepare_host(int r, Rank& rank) {
  std::set<std::int32_t> streams{0};
  for (const HostOp& op : schedule_.host[static_cast<std::size_t>(r)]) streams.insert(op.stream);
  for (const std::int32_t number : streams) {
    TRITAX_GPU_CHECK(hipStreamCreateWithFlags(&rank.streams[number], hipStreamNonBlocking));
  }
  for (const HostOp& op : schedule_.host[static_cast<std::size_t>(r)]) {
    if (op.kind == HostOpKind::graph_launch && rank.graphs.count(op.graph) == 0) {
      rank.graphs[op.graph] = build_graph(schedule_.graphs[static_cast<std::size_t>(op.graph)], rank);
    }
  }
}

hipGraphExec_t Executor::Impl::build_graph(const Graph& graph, Rank& rank) const {
  hipGraph_t built{};
  TRITAX_GPU_CHECK(hipGraphCreate(&built, 0));
  std::map<std::int32_t, hipGraphNode_t> last;  // of each stream
  for (const GraphNode& node : graph) {
    Launch& launch = rank.launches[static_cast<std::size_t>(node.kernel)];
    if (launch.function == nullptr) continue;
    void* arguments[] = {&launch.params};
    hipKernelNodeParams params{};
    params.func = const_cast<void*>(launch.function);
    params.gridDim = dim3(launch.blocks);
    params.blockDim = dim3(launch.threads);
    params.sharedMemBytes = launch.shared_bytes;
    params.kernelParams = arguments;
    const auto before = last.find(node.stream);
    hipGraphNode_t added{};
    TRITAX_GPU_CHECK(hipGraphAddKernelNode(&added, built, before == last.end() ? nullptr : &before->second,
                                           before == last.end() ? 0 : 1, &params));
    last[node.stream] = added;
  }
  hipGraphExec_t executable{};
  TRITAX_GPU_CHECK(hipGraphInstantiateWithFlags(&executable, built, 0));
  TRITAX_GPU_CHECK(hipGraphDestroy(built));
  return executable;
}

void Executor::Impl::align_clocks() {
  constexpr int kRounds = 2000;
  const auto limit = static_cast<unsigned long long>(options_.spin_limit_s * kTicksPerSecond);
  for (int r = 1; r < schedule_.ranks; ++r) {
    const DeviceMemory own = upload(0, std::vector<ClockMail>(1));
    const DeviceMemory best = upload(0, std::vector<ClockReading>(1));
    const DeviceMemory peer = upload(r, std::vector<ClockMail>(1));
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    TRITAX_GPU_CHECK(hipSetDevice(r));
    launch_clock_answer(peer.as<ClockMail>(), own.as<ClockMail>(), kRounds, limit, rank.streams.at(0));
    TRITAX_GPU_CHECK(hipSetDevice(0));
    launch_clock_ask(own.as<ClockMail>(), peer.as<ClockMail>(), best.as<ClockReading>(), kRounds, limit,
                     ranks_[0].streams.at(0));
    TRITAX_GPU_CHECK(hipStreamSynchronize(ranks_[0].streams.at(0)));
    TRITAX_GPU_CHECK(hipSetDevice(r));
    TRITAX_GPU_CHECK(hipStreamSynchronize(rank.streams.at(0)));
    ClockReading reading;
    TRITAX_GPU_CHECK(hipMemcpy(&reading, best.get(), sizeof(reading), hipMemcpyDeviceToHost));
    if (reading.round_trip == ~0ULL) throw UserError(fmt::format("GPU {} does not answer flags of GPU 0", r));
    rank.clock_offset = reading.offset;
    clock_error_us_ =
        std::max(clock_error_us_, static_cast<double>(reading.round_trip) / 2 / kTicksPerSecond * 1e6);
  }
}

void Executor::Impl::collect_notes() {
  bool reserved = false;
  bool limited = false;
  bool modelled_host = false;
  for (const Kernel& kernel : schedule_.kernels) {
    reserved = reserved || kernel.cu_end != 0;
    limited = limited || kernel.workgroup_gb_per_s != 0;
  }
  for (const auto& program : schedule_.host) {
    for (const HostOp& op : program) {
      modelled_host =
          modelled_host || op.kind == HostOpKind::collective_call || op.kind == HostOpKind::framework_sync;
    }
  }
  std::set<std::string> larger;
  for (const Rank& rank : ranks_) {
    for (std::size_t k = 0; k < rank.launches.size(); ++k) {
      const MatmulTile& asked = schedule_.kernels[k].tile;
      const TileTraits* used = rank.launches[k].tile;
      if (used == nullptr || (used->m == asked.m && used->n == asked.n)) continue;
      larger.insert(
          fmt::format("tiles of {}x{} run in the {}x{} kernel, which is slower than a kernel of their own",
                      asked.m, asked.n, used->m, used->n));
    }
  }
  notes_.assign(larger.begin(), larger.end());
  if (reserved) notes_.push_back("compute units are not reserved: the hardware places the workgroups");
  if (limited)
    notes_.push_back("workgroup_gb_per_s is a model of a library; these workgroups run at full speed here");
  if (modelled_host)
    notes_.push_back("collective_call and framework_sync are models of host work; they cost nothing here");
}

void Executor::Impl::on_every_rank(const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> errors(ranks_.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < schedule_.ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        TRITAX_GPU_CHECK(hipSetDevice(r));
        work(r);
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
        board_->stop = 1;  // kernels that wait for this rank leave
        barrier_.abandon();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  throw_failure();
  for (const auto& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const UserError&) {
      throw;
    } catch (const std::exception&) {
      // only "another rank failed": that rank's own error follows
    }
  }
}

void Executor::Impl::throw_failure() const {
  std::string text;
  for (int r = 0; r < schedule_.ranks; ++r) {
    const Failure& failure = board_->of_rank[r];
    if (failure.raised == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", describe_operation(schedule_, failure.number));
    text += failure.cause == kFlagTimeout ? fmt::format(", is {}", failure.seen)
                                          : std::string(": the copy engine did not deliver a tile");
  }
  if (text.empty()) return;
  throw UserError(fmt::format("schedule '{}' gave up after waiting {} s: {}", schedule_.name,
                              options_.spin_limit_s, text));
}

void Executor::Impl::fill(std::uint64_t seed) {
  const std::vector<bool> written = targets_of(schedule_, {OpKind::store, OpKind::copy, OpKind::atomic_add});
  const std::vector<bool> added = targets_of(schedule_, {OpKind::atomic_add});
  on_every_rank([&](int r) {
    for (std::size_t i = 0; i < schedule_.buffers.size(); ++i) {
      const Buffer& buffer = schedule_.buffers[i];
      const BufferPlace& place = heap_.buffers[i];
      const auto bytes = static_cast<std::size_t>(place.pitch) * static_cast<std::size_t>(buffer.rows);
      if (written[i]) {
        TRITAX_GPU_CHECK(hipMemset(at(r, place.offset), added[i] ? 0 : 0xff, bytes));
        continue;
      }
      const std::uint64_t rank_seed = buffer.name == "A" ? 0 : static_cast<std::uint64_t>(r + 1);
      void* transposed = place.transposed_pitch > 0 ? at(r, place.transposed_offset) : nullptr;
      launch_fill_random(buffer.dtype, at(r, place.offset), buffer.rows, buffer.cols, place.pitch, transposed,
                         place.transposed_pitch, seed * 1000003 + i * 101 + rank_seed, nullptr);
    }
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
  });
}

void Executor::Impl::reset_rank(int r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  if (heap_.flags_end > heap_.flags_begin) {
    TRITAX_GPU_CHECK(hipMemset(at(r, heap_.flags_begin), 0, heap_.flags_end - heap_.flags_begin));
  }
  TRITAX_GPU_CHECK(hipMemset(rank.spans.get(), 0, spans_bytes()));
  if (options_.stamps) TRITAX_GPU_CHECK(hipMemset(rank.stamps.get(), 0, rank.stamps.bytes()));
  if (options_.flush_bytes > 0) TRITAX_GPU_CHECK(hipMemset(rank.flush.get(), 1, rank.flush.bytes()));
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
}

void Executor::Impl::launch_kernel(Rank& rank, std::int32_t kernel, std::int32_t stream) {
  Launch& launch = rank.launches[static_cast<std::size_t>(kernel)];
  if (launch.function == nullptr) return;  // a kernel without workgroups
  void* arguments[] = {&launch.params};
  TRITAX_GPU_CHECK(hipLaunchKernel(launch.function, dim3(launch.blocks), dim3(launch.threads), arguments,
                                   launch.shared_bytes, rank.streams.at(stream)));
}

void Executor::Impl::run_host_program(int r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  bool pending = false;  // work that no synchronisation of the program covers
  for (const HostOp& op : schedule_.host[static_cast<std::size_t>(r)]) {
    switch (op.kind) {
      case HostOpKind::launch:
        launch_kernel(rank, op.kernel, op.stream);
        pending = true;
        break;
      case HostOpKind::graph_launch:
        TRITAX_GPU_CHECK(hipGraphLaunch(rank.graphs.at(op.graph), rank.streams.at(op.stream)));
        pending = true;
        break;
      case HostOpKind::stream_synchronize:
        TRITAX_GPU_CHECK(hipStreamSynchronize(rank.streams.at(op.stream)));
        break;
      case HostOpKind::device_synchronize:
        TRITAX_GPU_CHECK(hipDeviceSynchronize());
        pending = false;
        break;
      case HostOpKind::barrier:
        barrier_.arrive_and_wait();
        break;
      case HostOpKind::collective_call:
      case HostOpKind::framework_sync:
        break;  // see notes()
    }
  }
  if (pending) TRITAX_GPU_CHECK(hipDeviceSynchronize());
}

void Executor::Impl::read_spans(int r, RunTimes& times) {
  std::vector<KernelSpan> spans(schedule_.kernels.size());
  TRITAX_GPU_CHECK(hipMemcpy(spans.data(), ranks_[static_cast<std::size_t>(r)].spans.get(),
                             spans.size() * sizeof(KernelSpan), hipMemcpyDeviceToHost));
  const auto us = [](unsigned long long ticks) { return static_cast<double>(ticks) / kTicksPerSecond * 1e6; };
  unsigned long long begin = ~0ULL;
  unsigned long long end = 0;
  for (std::size_t k = 0; k < spans.size(); ++k) {
    if (spans[k].end == 0) continue;
    times.kernel_us[k] = us(spans[k].end - ~spans[k].inverted_begin);
    begin = std::min(begin, ~spans[k].inverted_begin);
    end = std::max(end, spans[k].end);
  }
  times.device_us[static_cast<std::size_t>(r)] = end == 0 ? 0 : us(end - begin);
}

RunTimes Executor::Impl::run() {
  *board_.get() = FailureBoard();
  std::vector<Clock::time_point> begin(ranks_.size());
  std::vector<Clock::time_point> end(ranks_.size());
  RunTimes times;
  times.device_us.resize(ranks_.size());
  times.kernel_us.resize(schedule_.kernels.size());
  on_every_rank([&](int r) {
    const auto i = static_cast<std::size_t>(r);
    reset_rank(r);
    barrier_.arrive_and_wait();
    begin[i] = Clock::now();
    run_host_program(r);
    end[i] = Clock::now();
    read_spans(r, times);
  });
  const auto longest =
      *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
  times.wall_us = std::chrono::duration<double, std::micro>(longest).count();
  return times;
}

CheckResult Executor::Impl::check() {
  const ProductView product = product_of(schedule_, heap_);
  std::vector<DeviceMemory> references(ranks_.size());
  on_every_rank(
      [&](int r) { references[static_cast<std::size_t>(r)] = reference_block(product, r, at(r, 0)); });
  std::vector<Comparison> sums(ranks_.size());
  on_every_rank([&](int r) {
    sums[static_cast<std::size_t>(r)] = compare_with_reference(product, r, at(r, 0), references);
  });
  return judge(product, sums);
}

std::vector<StampedOp> Executor::Impl::stamps() {
  std::vector<StampedOp> all;
  if (!options_.stamps) return all;
  unsigned long long first = ~0ULL;
  std::vector<std::pair<std::int32_t, OpStamp>> raw;
  for (int r = 0; r < schedule_.ranks; ++r) {
    std::vector<OpStamp> of_rank(schedule_.ops.size());
    TRITAX_GPU_CHECK(hipSetDevice(r));
    TRITAX_GPU_CHECK(hipMemcpy(of_rank.data(), ranks_[static_cast<std::size_t>(r)].stamps.get(),
                               of_rank.size() * sizeof(OpStamp), hipMemcpyDeviceToHost));
    const auto offset = static_cast<unsigned long long>(ranks_[static_cast<std::size_t>(r)].clock_offset);
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      if (of_rank[i].begin == 0) continue;
      raw.push_back({static_cast<std::int32_t>(i), {of_rank[i].begin - offset, of_rank[i].end - offset}});
      first = std::min(first, raw.back().second.begin);
    }
  }
  for (const auto& [number, stamp] : raw) {
    all.push_back({number, static_cast<double>(stamp.begin - first) / kTicksPerSecond * 1e6,
                   static_cast<double>(stamp.end - first) / kTicksPerSecond * 1e6});
  }
  return all;
}

Executor::Executor(const Schedule& schedule, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(schedule, options)) {}
Executor::~Executor() = default;
void Executor::fill(std::uint64_t seed) { impl_->fill(seed); }
RunTimes Executor::run() { return impl_->run(); }
CheckResult Executor::check() { return impl_->check(); }
std::vector<StampedOp> Executor::stamps() { return impl_->stamps(); }
double Executor::clock_error_us() const { return impl_->clock_error_us_; }
const std::vector<std::string>& Executor::notes() const { return impl_->notes_; }

}  // namespace tritax::gpu

// Prepares a run: devices, heaps, programs, graphs, clocks.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend_hip/clock.hpp"
#include "backend_hip/executor_impl.hpp"
#include "backend_hip/lower_items.hpp"
#include "backend_hip/tensor_maps.hpp"
#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"

namespace tritax::gpu {

namespace {

std::vector<TileKernel> all_tile_kernels() {
  std::vector<TileKernel> all = matmul_kernels_bf16();
  for (const auto& more : {matmul_kernels_fp16(), matmul_kernels_fp8(), matmul_kernels_fp32(),
                           matmul_kernels_fp64(), attend_kernels_bf16(), attend_kernels_fp16()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// Whether no part of the kernel's tile is wasted. A kernel with the copy engine does not fetch rows of A
// beyond the tile, and multiplies 64 rows at a time for any tile.
bool wastes_nothing(const MatmulTile& asked, const TileTraits& used) {
  if (used.depth > 0) return asked.m == used.m && asked.n == used.n && asked.k == used.depth;
  const bool fed_by_boxes = used.store_cols > 0;
  const std::int32_t rows = fed_by_boxes ? (asked.m + kWgmmaRows - 1) / kWgmmaRows * kWgmmaRows : asked.m;
  return rows == used.m && asked.n == used.n;
}

DeviceTraits traits_of(const hipDeviceProp_t& properties, const std::vector<TileKernel>& kernels) {
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
  for (const TileKernel& kernel : kernels) {
    if (kernel.traits.dtype != DType::fp8 || has_fp8) traits.tiles.push_back(kernel.traits);
  }
  return traits;
}

// Shared memory that a workgroup may have if its kernel asks for it.
std::int64_t most_shared_bytes(const hipDeviceProp_t& properties) {
#if defined(TRITAX_GPU_NVIDIA)
  return static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
#else
  return static_cast<std::int64_t>(properties.sharedMemPerBlock);
#endif
}

}  // namespace

Executor::Impl::Impl(const Schedule& schedule, const ExecutorOptions& options)
    : schedule_(schedule), options_(options), kernels_(all_tile_kernels()), barrier_(schedule.ranks) {
  require_gpus();
  device_count_ = std::min(schedule_.ranks, static_cast<int>(list_gpus().size()));
  hipDeviceProp_t properties{};
  TRITAX_GPU_CHECK(hipGetDeviceProperties(&properties, 0));
  traits_ = traits_of(properties, kernels_);
  heap_ = lay_out_heap(schedule_, traits_);
  ranks_.resize(static_cast<std::size_t>(schedule_.ranks));
  enable_peers();
  std::vector<std::uint64_t> bases;
  const std::size_t heap_bytes = std::max<std::size_t>(heap_.bytes, 1024);
  if (has_op(&Op::multimem) && !options_.share_gpus) multicast_ = MulticastHeaps(schedule_.ranks, heap_bytes);
  for (int r = 0; r < schedule_.ranks; ++r) {
    ranks_[static_cast<std::size_t>(r)].heap =
        multicast_.address() != 0 ? DeviceMemory(device_of(r), multicast_.heap(r), heap_bytes)
                                  : DeviceMemory(device_of(r), heap_bytes);
    bases.push_back(reinterpret_cast<std::uint64_t>(ranks_[static_cast<std::size_t>(r)].heap.get()));
  }
  for (int r = 0; r < schedule_.ranks; ++r) prepare_rank(r, bases, properties);
  if (options_.stamps) align_clocks();
  collect_notes();
}

Executor::Impl::~Impl() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    static_cast<void>(hipSetDevice(device_of(static_cast<int>(r))));
    for (auto& [number, stream] : ranks_[r].streams) static_cast<void>(hipStreamDestroy(stream));
    for (auto& [number, event] : ranks_[r].events) static_cast<void>(hipEventDestroy(event));
    for (auto& [number, graph] : ranks_[r].graphs) static_cast<void>(hipGraphExecDestroy(graph));
  }
}

void Executor::Impl::require_gpus() const {
  const std::size_t count = list_gpus().size();
  if (count == 0) throw UserError("no GPU: the runtime finds no device on this machine");
  if (!options_.share_gpus && count < static_cast<std::size_t>(schedule_.ranks)) {
    throw UserError(fmt::format("schedule '{}' needs {} GPUs; this machine has {}", schedule_.name,
                                schedule_.ranks, count));
  }
  if (has_op(&Op::by_engine) && !options_.share_gpus) {
    throw UserError(fmt::format(
        "schedule '{}': copies are by_engine, which this program carries out by the workgroup itself; the "
        "result can be checked (--check --share-gpus), the times would mean nothing",
        schedule_.name));
  }
  if (schedule_.ranks > kMaxRanks) {
    throw UserError(fmt::format("schedule '{}' has {} ranks; at most {} are possible", schedule_.name,
                                schedule_.ranks, kMaxRanks));
  }
}

void Executor::Impl::enable_peers() const {
  for (int from = 0; from < device_count_; ++from) {
    TRITAX_GPU_CHECK(hipSetDevice(from));
    for (int to = 0; to < device_count_; ++to) {
      if (from == to) continue;
      int possible = 0;
      TRITAX_GPU_CHECK(hipDeviceCanAccessPeer(&possible, from, to));
      if (possible == 0) throw UserError(fmt::format("GPU {} has no peer access to GPU {}", from, to));
      const hipError_t error = hipDeviceEnablePeerAccess(to, 0);
      if (error == hipErrorPeerAccessAlreadyEnabled) {
        static_cast<void>(hipGetLastError());  // an earlier executor of this process enabled it
      } else {
        TRITAX_GPU_CHECK(error);
      }
    }
  }
}

void Executor::Impl::prepare_rank(int r, const std::vector<std::uint64_t>& bases,
                                  const hipDeviceProp_t& properties) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const RankProgram program = lower(schedule_, heap_, traits_, r, bases, multicast_.address());
  TRITAX_GPU_CHECK(hipSetDevice(device_of(r)));
  std::vector<TensorMap> maps;
  for (const TensorMapSpec& spec : program.tensor_maps) maps.push_back(encode_tensor_map(spec));
  rank.ops = upload(device_of(r), program.ops);
  rank.workgroups = upload(device_of(r), program.workgroups);
  rank.items = upload(device_of(r), program.items);
  rank.tensor_maps = upload(device_of(r), maps);
  rank.probes = upload(device_of(r), program.probes);
  for (std::size_t i = 0; i < schedule_.sparse.size(); ++i) {
    const auto put = [&](std::size_t offset, const std::vector<std::int32_t>& numbers) {
      if (numbers.empty()) return;
      TRITAX_GPU_CHECK(hipMemcpy(at(r, offset), numbers.data(), numbers.size() * sizeof(std::int32_t),
                                 hipMemcpyHostToDevice));
    };
    put(heap_.sparse[i].offsets, schedule_.sparse[i]->offsets);
    put(heap_.sparse[i].columns, schedule_.sparse[i]->columns);
  }
  rank.spans = DeviceMemory(device_of(r), spans_bytes());
  if (options_.stamps) {
    const std::size_t stamps = schedule_.ops.size() + item_total(schedule_);
    rank.stamps = DeviceMemory(device_of(r), stamps * sizeof(OpStamp) + 1);
    rank.item_workgroups = DeviceMemory(device_of(r), program.items.size() * sizeof(std::uint32_t) + 1);
    TRITAX_GPU_CHECK(hipMemset(rank.item_workgroups.get(), 0, rank.item_workgroups.bytes()));
    rank.compute_units = DeviceMemory(device_of(r), program.workgroups.size() * sizeof(std::uint32_t) + 1);
    TRITAX_GPU_CHECK(hipMemset(rank.compute_units.get(), 0, rank.compute_units.bytes()));
  }
  if (options_.flush_bytes > 0)
    rank.flush = DeviceMemory(device_of(r), static_cast<std::size_t>(options_.flush_bytes));
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
  launch.function =
      lowered.sparse ? sparse_kernel_for(lowered.threads) : vector_kernel_for(lowered.threads, lowered.lean);
  launch.tile = lowered.tile;
  launch.params.box_rows_of_a = lowered.box_rows_of_a;
  for (const TileKernel& kernel : kernels_) {
    if (lowered.tile == nullptr) break;
    const TileTraits& tile = kernel.traits;
    if (tile.dtype == lowered.tile->dtype && tile.m == lowered.tile->m && tile.n == lowered.tile->n &&
        tile.depth == lowered.tile->depth) {
      launch.function = kernel.function;
    }
  }
  // Otherwise code is loaded at the first launch, which waits for running kernels: forever, where a kernel
  // spins on a kernel that is launched later.
  hipFuncAttributes attributes{};
  TRITAX_GPU_CHECK(hipFuncGetAttributes(&attributes, launch.function));
  const auto shared =
      static_cast<std::int64_t>(lowered.shared_bytes) + static_cast<std::int64_t>(attributes.sharedSizeBytes);
  require_shared_room(schedule_.kernels[k].name, shared, most_shared_bytes(properties), properties.name);
  // Shared memory without a request, including the static part.
  if (shared > 48 * 1024) {
    TRITAX_GPU_CHECK(hipFuncSetAttribute(launch.function, hipFuncAttributeMaxDynamicSharedMemorySize,
                                         lowered.shared_bytes));
  }
  launch.params.ops = rank.ops.as<DeviceOp>();
  launch.params.workgroups = rank.workgroups.as<DeviceWorkgroup>() + lowered.first_workgroup;
  launch.params.items = rank.items.as<DeviceWorkgroup>() + lowered.first_item;
  launch.params.tensor_maps = rank.tensor_maps.as<TensorMap>();
  launch.params.probes = rank.probes.as<std::int32_t>();
  launch.params.stamps = rank.stamps.as<OpStamp>();
  if (options_.stamps) {
    launch.params.compute_units = rank.compute_units.as<std::uint32_t>() + lowered.first_workgroup;
    launch.params.item_workgroups = rank.item_workgroups.as<std::uint32_t>() + lowered.first_item;
  }
  launch.params.span = rank.spans.as<KernelSpan>() + k;
  launch.params.failure_lock =
      reinterpret_cast<std::uint32_t*>(rank.spans.as<KernelSpan>() + schedule_.kernels.size());
  if (lowered.tile != nullptr && lowered.tile->store_rows > 0 && options_.pace_gb_per_s > 0) {
    const TileTraits& tile = *lowered.tile;
    const double box_bytes = static_cast<double>(tile.store_rows) * tile.store_cols * bytes_of(tile.dtype);
    const double box_ns = box_bytes / (options_.pace_gb_per_s / launch.blocks);
    launch.params.remote_box_ticks = static_cast<std::uint32_t>(box_ns * 1e-9 * kTicksPerSecond);
  }
  launch.params.spin_limit_ticks = static_cast<unsigned long long>(options_.spin_limit_s * kTicksPerSecond);
  void* board = nullptr;
  TRITAX_GPU_CHECK(hipHostGetDevicePointer(&board, board_.get(), 0));
  launch.params.board = static_cast<FailureBoard*>(board);
  launch.gang = schedule_.kernels[k].placement == Placement::gang;
  if (all_resident(schedule_.kernels[k].placement)) require_resident(k, launch, properties);
  return launch;
}

void Executor::Impl::require_resident(std::size_t k, const Launch& launch,
                                      const hipDeviceProp_t& properties) const {
  int per_unit = 0;
  TRITAX_GPU_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_unit, launch.function, static_cast<int>(launch.threads), launch.shared_bytes));
  const std::int64_t resident = std::int64_t{per_unit} * properties.multiProcessorCount;
  if (static_cast<std::int64_t>(launch.blocks) > resident) {
    throw UserError(fmt::format(
        "kernel '{}' is {} with {} workgroups; {} of them are resident at once on {}: give it fewer, or "
        "tiles that leave room for several on a compute unit",
        schedule_.kernels[k].name, kPlacementNames[static_cast<std::size_t>(schedule_.kernels[k].placement)],
        launch.blocks, resident, properties.name));
  }
  int cooperative = 1;
  if (launch.gang) {
    int device = 0;
    TRITAX_GPU_CHECK(hipGetDevice(&device));
    TRITAX_GPU_CHECK(hipDeviceGetAttribute(&cooperative, hipDeviceAttributeCooperativeLaunch, device));
  }
  if (cooperative == 0) {
    throw UserError(fmt::format("kernel '{}' is gang; {} knows no cooperative launch",
                                schedule_.kernels[k].name, properties.name));
  }
}

void Executor::Impl::prepare_host(int r, Rank& rank) {
  std::set<std::int32_t> streams{0};
  for (const HostOp& op : schedule_.host[static_cast<std::size_t>(r)]) streams.insert(op.stream);
  for (const std::int32_t number : streams) {
    TRITAX_GPU_CHECK(hipStreamCreateWithFlags(&rank.streams[number], hipStreamNonBlocking));
  }
  for (const HostOp& op : schedule_.host[static_cast<std::size_t>(r)]) {
    if (op.kind == HostOpKind::event_record && rank.events.count(op.event) == 0) {
      TRITAX_GPU_CHECK(hipEventCreateWithFlags(&rank.events[op.event], hipEventDisableTiming));
    }
    if (op.kind == HostOpKind::graph_launch && rank.graphs.count(op.graph) == 0) {
      rank.graphs[op.graph] = build_graph(schedule_.graphs[static_cast<std::size_t>(op.graph)], rank);
    }
  }
}

hipGraphExec_t Executor::Impl::build_graph(const Graph& graph, Rank& rank) const {
  hipGraph_t built{};
  TRITAX_GPU_CHECK(hipGraphCreate(&built, 0));
  std::map<std::int32_t, hipGraphNode_t> last;  // by stream
  for (const GraphNode& node : graph) {
    Launch& launch = rank.launches[static_cast<std::size_t>(node.kernel)];
    if (launch.function == nullptr) continue;
    if (launch.gang) {  // not all runtimes support cooperative launches as nodes of a graph
      throw UserError(
          fmt::format("kernel '{}' is gang and a node of a graph; GPUs start a gang by a launch of its own",
                      schedule_.kernels[static_cast<std::size_t>(node.kernel)].name));
    }
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
    const DeviceMemory peer = upload(device_of(r), std::vector<ClockMail>(1));
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    TRITAX_GPU_CHECK(hipSetDevice(device_of(r)));
    launch_clock_answer(peer.as<ClockMail>(), own.as<ClockMail>(), kRounds, limit, rank.streams.at(0));
    TRITAX_GPU_CHECK(hipSetDevice(0));
    launch_clock_ask(own.as<ClockMail>(), peer.as<ClockMail>(), best.as<ClockReading>(), kRounds, limit,
                     ranks_[0].streams.at(0));
    TRITAX_GPU_CHECK(hipStreamSynchronize(ranks_[0].streams.at(0)));
    TRITAX_GPU_CHECK(hipSetDevice(device_of(r)));
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
  bool modelled = false;
  bool profiled = false;
  bool modelled_host = false;
  for (const Kernel& kernel : schedule_.kernels) {
    reserved = reserved || kernel.cu_end != 0;
    modelled = modelled || kernel.library.routine != LibraryRoutine::none || kernel.start_ns != 0;
    profiled = profiled ||
               (kernel.profile != KernelProfile::interpreter && kernel.profile != KernelProfile::mma_sync);
  }
  for (const auto& program : schedule_.host) {
    for (const HostOp& op : program) {
      modelled_host = modelled_host || op.kind == HostOpKind::host_work;
    }
  }
  std::set<std::string> larger;
  for (const Rank& rank : ranks_) {
    for (std::size_t k = 0; k < rank.launches.size(); ++k) {
      const MatmulTile& asked = schedule_.kernels[k].tile;
      const TileTraits* used = rank.launches[k].tile;
      if (used == nullptr || wastes_nothing(asked, *used)) continue;
      larger.insert(
          used->depth > 0
              ? fmt::format("attention of {} queries with {} keys at a time, heads of {} columns, runs in "
                            "the kernel of {} with {}, columns {}",
                            asked.m, asked.n, asked.k, used->m, used->n, used->depth)
              : fmt::format("tiles of {}x{} run in the {}x{} kernel, which is slower than a kernel of "
                            "their own",
                            asked.m, asked.n, used->m, used->n));
    }
  }
  notes_.assign(larger.begin(), larger.end());
  if (device_count_ < schedule_.ranks)
    notes_.push_back(fmt::format("{} ranks share {} GPU{}: the times mean nothing", schedule_.ranks,
                                 device_count_, device_count_ == 1 ? "" : "s"));
  if (reserved) notes_.push_back("compute units are not reserved: the hardware places the workgroups");
  if (modelled)
    notes_.push_back(
        "library and start_ns of kernels are models of other kernels; these run at full speed here");
  if (profiled)
    notes_.push_back("kernels of the profiles triton and vendor are run by this project's interpreter here");
  if (modelled_host)
    notes_.push_back("host_work stands for what a library's or framework's host does; it costs nothing here");
}

}  // namespace tritax::gpu

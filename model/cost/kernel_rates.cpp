#include "model/cost/kernel_rates.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "model/cost/collective_cost.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/cost/nodes_cost.hpp"
#include "model/machine/library_table.hpp"

namespace tritax {

namespace {

// Time from a release until the waiting peer sees it or, if flags travel in the words of the data, the
// latency of a word.
double flag_ns(const Fabric& fabric, const CollectiveProtocol& protocol) {
  const bool travels_in_data = protocol.payload_share < 1;
  return travels_in_data ? fabric.flag_latency_ns
                         : std::max(fabric.flag_latency_ns, fabric.signal_round_trip_ns);
}

// Time of a workgroup of a vendor's kernel to copy or add up a few bytes in a cache.
double turn_ns(const Machine& machine) {
  const Gpu& gpu = machine.gpu;
  const double read_ns = gpu.llc_bytes > 0 ? gpu.llc_latency_ns : gpu.l2_latency_ns;
  return read_ns + costs(machine, KernelProfile::vendor).copy_op_ns;
}

// Share of a GPU's bytes that its busiest workgroups send: those for peers in the own node; workgroups for
// other nodes send less.
double share_within_node(const NodeGrid& grid) {
  return static_cast<double>(grid.nodes * (grid.gpus - 1)) / (grid.nodes * grid.gpus - 1);
}

// The start of collectives is the time of a whole all-reduce of a tiny message by all GPUs of a node, minus
// the steps of such a kernel: two words across a link, and the summands of all peers.
KernelRates of_all_pairs(const Machine& machine) {
  const double turn = turn_ns(machine);
  const double steps_ns = 2 * (turn + machine.fabric.flag_latency_ns);
  const double sums_ns = (machine.gpus_per_node - 1) * turn;
  KernelRates rates;
  rates.start_ns = std::max(0.0, machine.library.collective_start_ns - steps_ns - sums_ns);
  rates.payload_share = kLowLatencyPayload;
  rates.remote_store_gb_per_s = kLowLatencyPayload * machine.gpu.cu_remote_store_gb_per_s;
  return rates;
}

// What a channel sends at most, where rings cannot use all links of a GPU; a huge number where they can.
double ring_gb_per_s(const Machine& machine, int ranks, std::int32_t channels) {
  const Fabric& fabric = machine.fabric;
  if (fabric.kind != LinkKind::mesh || ranks > machine.gpus_per_node || ring_links(ranks) == ranks - 1) {
    return std::numeric_limits<double>::max();
  }
  return ring_links(ranks) * fabric.link_raw_gb_per_s * fabric.store_efficiency / channels;
}

// Rates of a serving engine's own all-reduce. The start is the set-up of a kernel; all other time is in its
// steps. Small matrices are taken to carry flags in the words of the data, as TensorRT-LLM's one-shot kernel
// does. The limit is assumed: vLLM's kernel changes from one shot to two at this size on eight GPUs
// (vllm-project/vllm csrc/custom_all_reduce.cuh).
KernelRates of_custom(const Machine& machine, double bytes) {
  constexpr double kMostWithFlags = 256 * 1024;
  KernelRates rates;
  rates.start_ns = machine.library.kernel_start_ns;
  if (bytes <= kMostWithFlags) rates.payload_share = kLowLatencyPayload;
  return rates;
}

// A collective and the protocol that the library chooses.
struct Call {
  const LibraryKernel& kernel;
  NodeGrid grid;
  int phases = 1;  // in which all ranks send a block to each other
  CollectiveProtocol protocol;
};

Call call_of(const Machine& machine, const LibraryKernel& kernel) {
  const bool everywhere = is_all_reduce(kernel.routine);
  Call call{kernel, node_grid(machine, kernel.ranks), everywhere ? 2 : 1, {}};
  const int steps = call.phases * (kernel.ranks - 1);
  const bool blocks = kernel.routine != LibraryRoutine::broadcast;
  const double bytes = blocks ? kernel.bytes * steps : kernel.bytes;
  if (kernel.routine == LibraryRoutine::all_to_all) {
    call.protocol = send_protocol(machine.library, kernel.bytes);
  } else if (blocks && call.grid.several()) {
    call.protocol = protocol_of_nodes(machine, call.grid, bytes, kernel.channels, everywhere);
  } else {
    call.protocol = collective_protocol(machine.library, kernel.ranks, bytes, kernel.channels, steps);
  }
  return call;
}

// A workgroup that sends, adds up and sends the sum serves the peers one after the other.
double turns_ns(const Machine& machine, const Call& call) {
  const LibraryRoutine routine = call.kernel.routine;
  const bool adds = routine == LibraryRoutine::reduce_scatter || is_all_reduce(routine);
  if (!adds || call.grid.several() || call.protocol.payload_share == 1) return 0;
  return (call.phases + 1) * (call.kernel.ranks - 1) * turn_ns(machine);
}

double pace_gb_per_s(const Machine& machine, const Call& call) {
  const LibraryKernel& kernel = call.kernel;
  const double channel = call.protocol.channel_gb_per_s;
  if (kernel.routine == LibraryRoutine::all_to_all) return channel;
  const std::int32_t chunks = kernel.chunks;
  const bool halves = is_all_reduce(kernel.routine);
  if (kernel.routine != LibraryRoutine::broadcast && call.grid.several()) {
    const double pace = channel * share_within_node(call.grid);
    return halves ? pace * ((chunks + 1.0) / (2.0 * chunks)) : pace;
  }
  const double pace = std::min(channel, ring_gb_per_s(machine, kernel.ranks, kernel.channels));
  return halves ? pace * (chunks + 1) / (2 * chunks) : pace;
}

KernelRates of_collective(const Machine& machine, const LibraryKernel& kernel) {
  const Call call = call_of(machine, kernel);
  const double flags_ns = kernel.flags * flag_ns(machine.fabric, call.protocol);
  const double network_ns = kernel.crossings * machine.fabric.network_latency_ns;
  KernelRates rates;
  rates.start_ns = std::max(0.0, call.protocol.start_ns - flags_ns - network_ns - turns_ns(machine, call));
  rates.payload_share = call.protocol.payload_share;
  rates.remote_store_gb_per_s = pace_gb_per_s(machine, call);
  return rates;
}

KernelRates of_posts(const Machine& machine, const LibraryKernel& kernel) {
  const Gpu& gpu = machine.gpu;
  const int peers = kernel.ranks - 1;
  const double posted = kernel.bytes * peers;
  const double rate = posted / (gpu.post_ns + peers * gpu.post_peer_ns);
  KernelRates rates;
  if (posted > 0 && rate < gpu.cu_remote_store_gb_per_s) rates.remote_store_gb_per_s = rate;
  return rates;
}

// `routine`: one with is_collective().
CollectiveKind kind_of(LibraryRoutine routine) {
  switch (routine) {
    case LibraryRoutine::all_gather:
      return CollectiveKind::all_gather;
    case LibraryRoutine::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case LibraryRoutine::broadcast:
      return CollectiveKind::broadcast;
    case LibraryRoutine::all_to_all:
      return CollectiveKind::all_to_all;
    case LibraryRoutine::vllm_all_reduce:
      return CollectiveKind::vllm_all_reduce;
    case LibraryRoutine::sglang_all_reduce:
      return CollectiveKind::sglang_all_reduce;
    case LibraryRoutine::trtllm_all_reduce:
      return CollectiveKind::trtllm_all_reduce;
    default:
      return CollectiveKind::all_reduce;
  }
}

double share_or_all(double share) { return share > 0 ? share : 1; }

// Factor on the law's time of a call, and the table of the machine that gives it; 1 without measurements.
struct Correction {
  double factor = 1;
  std::string_view table = {};
};

Correction correction_of(const Machine& machine, const LibraryKernel& call) {
  if (is_collective(call.routine)) {
    const CollectiveKind kind = kind_of(call.routine);
    if (call.ranks > machine.gpus_per_node) return {};
    for (const auto& table : machine.collective_tables) {
      if (table->knows(kind)) return {table->factor(kind, call.ranks, call.bytes), table->name()};
    }
    return {};
  }
  if (call.heads > 0) {
    const AttentionCall attention{call.sequences, call.rows,     call.columns,
                                  call.heads,     call.kv_heads, call.depth};
    for (const auto& table : machine.attention_tables) {
      if (table->knows(call.dtype)) return {table->factor(call.dtype, attention), table->name()};
    }
    return {};
  }
  const bool slow_kernel =
      call.routine == LibraryRoutine::gemm_even_rows || call.routine == LibraryRoutine::gemm_odd_rows;
  if (call.rows == 0 || slow_kernel) return {};
  for (const auto& table : machine.library_tables) {
    if (table->knows(call.dtype))
      return {table->factor(call.dtype, call.rows, call.columns, call.depth), table->name()};
  }
  return {};
}

double time_factor(const Machine& machine, const LibraryKernel& call) {
  return correction_of(machine, call).factor;
}

KernelRates by_law(const Machine& machine, const Kernel& kernel) {
  const LibraryKernel& library = kernel.library;
  KernelRates rates;
  rates.payload_share = kernel.payload_share;
  rates.start_ns = kernel.start_ns;
  if (library.routine == LibraryRoutine::none) return rates;
  if (library.routine == LibraryRoutine::dispatches) {
    const double dispatch_ns = machine.gpu.workgroup_dispatch_ns;
    if (dispatch_ns > 0) rates.workgroup_gb_per_s = library.bytes / (dispatch_ns * machine.gpu.cus_per_xcd);
    return rates;
  }
  if (library.routine == LibraryRoutine::lookup) {
    rates.start_ns = library.accesses * machine.gpu.l2_latency_ns;
    return rates;
  }
  if (library.routine == LibraryRoutine::all_pairs) return of_all_pairs(machine);
  if (library.routine == LibraryRoutine::posts) return of_posts(machine, library);
  const double message_bytes = library.bytes * library.ranks;
  if (is_custom(library.routine) && message_bytes <= kMostCustomBytes)
    return of_custom(machine, message_bytes);
  if (is_collective(library.routine)) return of_collective(machine, library);
  rates.start_ns = machine.library.kernel_start_ns;
  if (library.routine == LibraryRoutine::block_copy)
    rates.workgroup_gb_per_s = machine.library.slice_copy_gb_per_s / library.channels;
  if (library.routine == LibraryRoutine::gemm_even_rows)
    rates.matmul_share = share_or_all(machine.library.even_row_share);
  if (library.routine == LibraryRoutine::gemm_odd_rows)
    rates.matmul_share = share_or_all(machine.library.odd_row_share);
  return rates;
}

}  // namespace

KernelRates kernel_rates(const Machine& machine, const Kernel& kernel) {
  KernelRates rates = by_law(machine, kernel);
  rates.time_factor = time_factor(machine, kernel.library);
  rates.start_ns *= rates.time_factor;
  rates.matmul_share /= rates.time_factor;
  rates.remote_store_gb_per_s /= rates.time_factor;
  return rates;
}

double gap_factor(const Machine& machine, const Kernel& kernel) {
  const bool second = kernel.library.routine == LibraryRoutine::plain && kernel.library.rows > 0;
  return second ? time_factor(machine, kernel.library) : 1;
}

std::vector<std::string> tables_used(const Machine& machine, const Schedule& schedule) {
  std::vector<std::string> used;
  for (const Kernel& kernel : schedule.kernels) {
    const Correction correction = correction_of(machine, kernel.library);
    if (correction.factor == 1) continue;
    if (std::find(used.begin(), used.end(), correction.table) == used.end())
      used.emplace_back(correction.table);
  }
  return used;
}

std::vector<KernelRates> kernel_rates(const Machine& machine, const Schedule& schedule) {
  std::vector<KernelRates> rates;
  rates.reserve(schedule.kernels.size());
  for (const Kernel& kernel : schedule.kernels) rates.push_back(kernel_rates(machine, kernel));
  return rates;
}

}  // namespace tritax

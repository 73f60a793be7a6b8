#include "model/parts/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/grid_order.hpp"
#include "model/schedule/shader_engines.hpp"

namespace tritax {

Share share_of(std::int64_t size, int rank, int ranks) {
  TRITAX_ASSERT(rank >= 0 && rank < ranks, "rank outside the workload");
  const std::int64_t share = size / ranks;
  const std::int64_t wider = size % ranks;  // the first `wider` ranks own one more
  const std::int64_t begin = rank * share + std::min<std::int64_t>(rank, wider);
  return {begin, begin + share + (rank < wider ? 1 : 0)};
}

Share piece_of_rows(std::int64_t rows, std::int32_t i, std::int32_t pieces, std::int32_t tile) {
  const std::int64_t each = ((rows + pieces - 1) / pieces + tile - 1) / tile * tile;
  const std::int64_t begin = std::min(i * each, rows);
  return {begin, std::min(begin + each, rows)};
}

Resources copy_resources() { return {256, 64, 0}; }

Resources tile_copy_resources(const Gpu& gpu, std::int32_t threads, std::int64_t elements) {
  const double most = std::min(gpu.registers_per_thread_max, std::floor(gpu.registers_per_cu / threads));
  const double wanted =
      std::ceil(gpu.copy_registers * static_cast<double>(elements) / (kElementsOfCopyRegisters * threads));
  const double least = copy_resources().registers_per_thread;
  return {threads, static_cast<std::int32_t>(std::max(least, std::min(wanted, most))), 0};
}

Resources with_copy_role(const Gpu& gpu, const Resources& gemm, std::int64_t elements) {
  const Resources copy = tile_copy_resources(gpu, gemm.threads, elements);
  return {gemm.threads, std::max(gemm.registers_per_thread, copy.registers_per_thread),
          std::max(gemm.lds_bytes, copy.lds_bytes)};
}

Split split_cus(const GemmKnobs& knobs, const Gpu& gpu, int ranks, Roles roles) {
  const std::int32_t cus = gpu.cu_count();
  const auto rest_of = [&](std::int32_t taken) {
    const std::int32_t beside = roles == Roles::in_two_kernels ? workgroups_beside(gpu, taken) : 0;
    return beside > 0 ? beside : cus - taken;
  };
  if (ranks == 1) return {all_cus(gpu, knobs.gemm_cus), 0};
  if (cus < 2) throw UserError(fmt::format("{} has one compute unit; this pattern needs two", gpu.name));

  Split split{knobs.gemm_cus, knobs.comm_cus};
  if (split.gemm == 0 && split.comm == 0) {
    split.comm = default_comm_cus(cus);
  }
  if (split.gemm == 0) split.gemm = rest_of(split.comm);
  if (split.comm == 0) split.comm = rest_of(split.gemm);
  if (split.gemm < 1 || split.comm < 1 || split.gemm + split.comm > cus) {
    throw UserError(fmt::format(
        "gemm_cus + comm_cus: {} + {} must both be at least 1 and together at most the {} compute "
        "units of {}",
        split.gemm, split.comm, cus, gpu.name));
  }
  return split;
}

std::string left_out_cus(const Pattern& pattern, const Spec& knob, const Machine& machine) {
  const bool gemm = knob.name == "gemm_cus";
  if (!gemm && knob.name != "comm_cus") return "";
  if (pattern.roles == Roles::in_turn) return gemm ? fmt::format("{}", machine.gpu.cu_count()) : "";
  const Split split = split_cus(GemmKnobs{}, machine.gpu, std::max(machine.gpu_count(), 2), pattern.roles);
  return fmt::format("{}", gemm ? split.gemm : split.comm);
}

std::int32_t all_cus(const Gpu& gpu, std::int32_t knob) { return knob > 0 ? knob : gpu.cu_count(); }

std::int32_t first_item(const GemmKnobs& knobs, const Gpu& gpu, std::int32_t p, std::int32_t workgroups) {
  if (!knobs.xcd_remap) return p;
  return knobs.xcd_chunk > 0 ? chunk_to_dies(p, workgroups, gpu.xcds, knobs.xcd_chunk)
                             : remap_to_dies(p, workgroups, gpu.xcds);
}

std::vector<int> ranks_from(PeerOrder order, int ranks, int rank, std::int32_t workgroup) {
  std::vector<int> all;
  for (int i = 0; i < ranks; ++i) all.push_back(order == PeerOrder::fixed ? i : (rank + 1 + i) % ranks);
  if (order == PeerOrder::staggered && ranks > 1) {
    std::rotate(all.begin(), all.begin() + workgroup % (ranks - 1), all.end() - 1);
  }
  return all;
}

std::vector<int> peers_of(PeerOrder order, int ranks, int rank, std::int32_t workgroup) {
  std::vector<int> peers = ranks_from(order, ranks, rank, workgroup);
  std::erase(peers, rank);
  return peers;
}

void exchange_arrivals(ScheduleBuilder& builder, const std::vector<int>& peers, int ranks, int rank,
                       std::int32_t index, std::int16_t arrived, LockProtocol protocol, ServesPeers serves) {
  const std::int32_t row = index * ranks;
  builder.barrier();
  add_by_peer(builder, serves, [&] {
    for (const int peer : peers) builder.signal(arrived, row + rank, 1, peer, Scope::system, protocol);
  });
  // Iris polls these flags with volatile loads, whatever protocol the tile locks use.
  add_by_peer(builder, serves, [&] {
    for (const int peer : peers)
      builder.wait(arrived, row + peer, 1, Scope::system, LockProtocol::load_store);
  });
}

std::int32_t telling_kernel(ScheduleBuilder& builder, std::string_view name, const std::vector<int>& peers,
                            int ranks, int rank, std::int16_t arrived, LockProtocol protocol) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.placement = Placement::persistent;
  const std::int32_t id = builder.kernel(std::move(kernel));
  builder.workgroup(id);
  exchange_arrivals(builder, peers, ranks, rank, 0, arrived, protocol);
  return id;
}

void tell_behind_copies(ScheduleBuilder& builder, const std::vector<int>& peers, int ranks, int rank,
                        std::int32_t first_event, std::int16_t arrived, LockProtocol protocol) {
  for (const int peer : peers) {
    builder.record_event(rank, first_event + peer, 1 + peer);
    builder.wait_event(rank, first_event + peer);
  }
  builder.launch(rank, telling_kernel(builder, "tell", peers, ranks, rank, arrived, protocol));
}

Spec gather_way_knob() {
  Spec spec;
  spec.name = "through";
  spec.help =
      "how blocks reach the GPUs: peer by peer, or stored once, and the switch copies them to all (multimem, "
      "NVLink SHARP)";
  spec.kind = ValueKind::name;
  spec.names = kGatherWayNames;
  spec.value_if_column_missing = 0;
  spec.shown = "{}";
  spec.not_shown = 0;
  return spec;
}

std::int32_t posting_kernel(ScheduleBuilder& builder, int rank, std::string_view name) {
  constexpr std::int32_t kThreads = 64;    // a wave of AMD, two of NVIDIA: one thread writes the packets
  constexpr std::int32_t kRegisters = 32;  // per thread: addresses and a counter
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = {.threads = kThreads, .registers_per_thread = kRegisters, .lds_bytes = 0};
  kernel.placement = Placement::persistent;
  return builder.kernel(std::move(kernel));
}

std::int32_t cus_beside_small_kernels(const Gpu& gpu, std::int32_t asked) {
  return std::clamp(gpu.cu_count() - std::max(1, gpu.xcds), 1, all_cus(gpu, asked));
}

void host_program(ScheduleBuilder& builder, int rank, const GemmKnobs& knobs, const Graph& kernels) {
  if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  if (knobs.launch == LaunchMode::graph) {
    builder.graph_launch(rank, kernels);
  } else {
    for (const GraphNode& node : kernels) builder.launch(rank, node.kernel, node.stream);
  }
  builder.host(rank, HostOpKind::device_synchronize);
  if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
}

void check_waves(std::int32_t waves, const Gpu& gpu) {
  const int slots = gpu.simds_per_cu * gpu.waves_per_simd;
  if (waves <= slots) return;
  throw UserError(fmt::format("waves: {} waves are more than the {} that a compute unit of {} holds", waves,
                              slots, gpu.name));
}

void check_dtype(DType dtype, const Machine& machine) {
  if (machine.gpu.rate(dtype).flop_per_clk_per_cu > 0) return;
  throw UserError(
      fmt::format("dtype: {} has no matrix instruction for {}", machine.gpu.name, name_of(dtype)));
}

void check_memory(std::string_view what, double bytes, const Gpu& gpu) {
  if (bytes <= gpu.hbm_bytes) return;
  throw UserError(fmt::format("workload: {} needs {:.1f} GB on every GPU; {} has {:.1f} GB", what,
                              bytes / 1e9, gpu.name, gpu.hbm_bytes / 1e9));
}

}  // namespace tritax

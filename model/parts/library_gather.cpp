#include "model/parts/library_gather.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/cost/collective_cost.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_gemm.hpp"

namespace tritax {

Rect piece_of(const Rect& whole, std::int32_t index, std::int32_t count) {
  const std::int32_t row_parts = std::min(whole.rows, count);
  const std::int32_t col_parts = std::min(whole.cols, std::max(1, count / row_parts));
  const std::int32_t i = index % row_parts;
  const std::int32_t j = index / row_parts;
  if (j >= col_parts) return {whole.row, whole.col, 0, 0};
  const auto cut = [](std::int32_t size, std::int32_t parts, std::int32_t part) {
    return static_cast<std::int32_t>(std::int64_t{size} * part / parts);
  };
  const std::int32_t row = cut(whole.rows, row_parts, i);
  const std::int32_t col = cut(whole.cols, col_parts, j);
  return {whole.row + row, whole.col + col, cut(whole.rows, row_parts, i + 1) - row,
          cut(whole.cols, col_parts, j + 1) - col};
}

std::int32_t library_channels(const Machine& machine) {
  return std::min(machine.library.channels, machine.gpu.cu_count());
}

double ring_gb_per_s(const Machine& machine, int ranks, std::int32_t channels) {
  const Fabric& fabric = machine.fabric;
  if (fabric.kind != LinkKind::mesh || ranks > machine.gpus_per_node || ring_links(ranks) == ranks - 1) {
    return std::numeric_limits<double>::max();
  }
  return ring_links(ranks) * fabric.link_raw_gb_per_s * fabric.store_efficiency / channels;
}

std::int32_t add_library_gather(ScheduleBuilder& builder, const Machine& machine, const LibraryGather& gather,
                                const std::function<void(std::int32_t)>& end_channel) {
  const std::int32_t channels = library_channels(machine);
  const int peers = gather.ranks - 1;
  const CollectiveProtocol protocol =
      collective_protocol(machine.library, gather.ranks, gather.widest_bytes * peers, channels);
  Kernel kernel;
  kernel.name = gather.kernel;
  kernel.profile = KernelProfile::vendor;
  kernel.rank = gather.rank;
  kernel.resources = copy_resources();
  kernel.placement = Placement::persistent;
  kernel.start_ns = protocol.start_ns;
  kernel.remote_store_gb_per_s =
      std::min(protocol.channel_gb_per_s, ring_gb_per_s(machine, gather.ranks, channels));
  const std::int32_t id = builder.kernel(std::move(kernel));
  const Rect block{0, 0, gather.slot.rows, gather.slot.cols};
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    const Rect share = piece_of(block, channel, channels);
    if (share.rows == 0 && !end_channel) continue;
    builder.workgroup(id);
    const std::int32_t chunks = std::min(chunks_of_channel(gather.widest_bytes / channels), share.rows);
    for (int step = 0; step <= peers; ++step) {
      const int peer =
          step == peers ? gather.rank : (gather.rank + 1 + (channel + step) % peers) % gather.ranks;
      for (std::int32_t i = 0; i < chunks; ++i) {
        const Rect chunk = piece_of(share, i, chunks);
        const Rect to{gather.slot.row + chunk.row, gather.slot.col + chunk.col, chunk.rows, chunk.cols};
        builder.copy(gather.gathered, to, peer, gather.own, chunk.row, chunk.col, gather.rank);
      }
    }
    if (end_channel) end_channel(channel);
  }
  return id;
}

std::int32_t add_slice_copy(ScheduleBuilder& builder, const Machine& machine, const SliceCopy& copy) {
  Kernel kernel;
  kernel.name = "copy_into_slices";
  kernel.profile = KernelProfile::vendor;
  kernel.rank = copy.rank;
  kernel.resources = copy_resources();
  kernel.start_ns = machine.library.kernel_start_ns;
  const std::int32_t workgroups = kCopiesOfCu * machine.gpu.cu_count();
  kernel.workgroup_gb_per_s = machine.library.slice_copy_gb_per_s / workgroups;
  const std::int32_t id = builder.kernel(std::move(kernel));
  const std::int32_t pieces = ceil_div(workgroups, static_cast<std::int32_t>(copy.slots.size()));
  for (std::size_t from = 0; from < copy.slots.size(); ++from) {
    const Rect& slot = copy.slots[from];
    for (std::int32_t i = 0; i < pieces; ++i) {
      const Rect piece = piece_of(slot, i, pieces);
      if (piece.rows == 0) break;
      builder.workgroup(id);
      const Rect to{piece.row - slot.row, copy.columns[from] + piece.col, piece.rows, piece.cols};
      builder.copy(copy.target, to, copy.rank, copy.gathered, piece.row, piece.col, copy.rank);
    }
  }
  return id;
}

}  // namespace tritax

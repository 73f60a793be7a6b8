#include "model/workloads/all_gather/workload.hpp"

#include <algorithm>

#include "model/core/error.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

Schedule library_all_gather_schedule(const AllGather& gather, const Machine& machine, bool lists) {
  const auto rows = static_cast<std::int32_t>(gather.rows);
  const auto cols = static_cast<std::int32_t>(gather.cols);
  ScheduleBuilder builder("all-gather", gather.gpus);
  const std::int16_t shard = builder.buffer({"shard", gather.dtype, rows, cols, rows, cols});
  const std::int16_t gathered =
      builder.buffer({"gathered", gather.dtype, rows * gather.gpus, cols, rows, cols});
  const double bytes = static_cast<double>(rows) * cols * bytes_of(gather.dtype);
  const GatherNodes nodes = gather_nodes(builder, machine, gather.gpus, [&](int rank) {
    return Rect{rank * rows, 0, rows, cols};
  });
  // The tensors of the list lie one below the other.
  const std::int16_t list =
      lists ? builder.buffer({"list", gather.dtype, rows * gather.gpus, cols, rows, cols}) : std::int16_t{-1};
  std::vector<Rect> blocks;
  for (int rank = 0; rank < gather.gpus; ++rank) blocks.push_back({rank * rows, 0, rows, cols});
  // A rank that passes blocks on must finish this before the senders send again.
  const bool passes_on = nodes.passed >= 0;
  const std::int16_t arrived =
      passes_on ? builder.flags("arrived", library_channels(machine) * gather.gpus) : std::int16_t{-1};
  for (int rank = 0; rank < gather.gpus; ++rank) {
    const LibraryGather plan{"library_all_gather",         rank,  gather.gpus, shard, gathered,
                             {rank * rows, 0, rows, cols}, bytes, nodes};
    const std::vector<int> peers = peers_of(PeerOrder::rotated, gather.gpus, rank, 0);
    std::function<void(std::int32_t)> tell_all;
    if (passes_on) {
      tell_all = [&](std::int32_t channel) {
        exchange_arrivals(builder, peers, gather.gpus, rank, channel, arrived, LockProtocol::load_store);
      };
    }
    const std::int32_t kernel = add_library_gather(builder, machine, plan, tell_all);
    builder.host_work(rank, kCollectiveCall);
    builder.launch(rank, kernel);
    if (lists) {
      builder.launch(rank, add_block_copy(builder, machine, {rank, gathered, list, blocks, blocks}));
    }
    builder.host(rank, HostOpKind::device_synchronize);
  }
  builder.result(lists ? list : gathered);
  builder.expect_gathered_rows(shard, lists ? list : gathered);
  return builder.finish();
}

// A compute unit of the real kernel has the stores of a tile to all ranks in flight at once, in the given
// order; a workgroup of a schedule has one store in flight. So workgroups start at different ranks, which
// gives the links the same mix.
Schedule all_gather_schedule(const AllGather& gather, const GemmKnobs& knobs, bool multimem) {
  const std::int32_t tile_rows = knobs.comm_tile_m > 0 ? knobs.comm_tile_m : kAllGatherTile;
  const std::int32_t tile_cols = knobs.comm_tile_n > 0 ? knobs.comm_tile_n : kAllGatherTile;
  const auto rows = static_cast<std::int32_t>(gather.rows);
  const auto cols = static_cast<std::int32_t>(gather.cols);
  const std::vector<Rect> tiles = cut({0, 0, rows, cols}, tile_rows, tile_cols);  // of a shard
  const std::size_t workgroups = std::min(tiles.size(), static_cast<std::size_t>(knobs.comm_cus));

  ScheduleBuilder builder("all-gather", gather.gpus);
  const std::int16_t shard = builder.buffer({"shard", gather.dtype, rows, cols, tile_rows, tile_cols});
  const std::int16_t gathered =
      builder.buffer({"gathered", gather.dtype, rows * gather.gpus, cols, tile_rows, tile_cols});
  for (int rank = 0; rank < gather.gpus; ++rank) {
    Kernel kernel;
    kernel.name = "all-gather";
    kernel.rank = rank;
    kernel.placement = Placement::persistent;
    if (gather.posted_bytes_per_peer > 0) {
      kernel.library = {LibraryRoutine::posts, gather.gpus,
                        static_cast<double>(gather.posted_bytes_per_peer)};
    }
    const std::int32_t index = builder.kernel(std::move(kernel));
    for (std::size_t p = 0; p < workgroups; ++p) {
      builder.workgroup(index);
      const int start = knobs.peer_order == PeerOrder::fixed ? 0 : rank + 1;
      const int first = (start + static_cast<int>(p)) % gather.gpus;
      for (std::size_t t = p; t < tiles.size(); t += workgroups) {
        builder.load(shard, tiles[t], rank);
        Rect destination = tiles[t];
        destination.row += rank * rows;
        const auto store_to_all = [&] {
          for (int step = 0; step < gather.gpus; ++step)
            builder.store(gathered, destination, (first + step) % gather.gpus);
        };
        multimem ? builder.multimem(store_to_all) : store_to_all();
      }
    }
    builder.launch(rank, index);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  builder.result(gathered);
  builder.expect_gathered_rows(shard, gathered);
  return builder.finish();
}

}  // namespace tritax

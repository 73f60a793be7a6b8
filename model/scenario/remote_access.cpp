// Remote-access microbenchmarks as tile schedules.
//
// The kernels of ROCm/iris examples 00 to 05 (one- and all-peer load, store, atomic add, get, put) launch one
// workgroup of four waves a block of 512 elements. Written out:
//
//   store, atomic add:  for q in peers: store the block to q          posted in order
//   get, put:           for q in peers: copy the block from, to q     in order, the store needs the loaded
//   data load:               for q in peers: load the block from q         independent, all in flight
//   together
//
// A workgroup of a tile schedule has one load in flight, so the loads of a block become one workgroup of one
// wave a peer. Peers are visited 0 … W-1 without the own rank, on every GPU alike, as in Iris.
//
// Grids above kExactBlocks blocks are coarsened, or 4 GiB a peer would be 30 million operations a GPU. A
// coarsened workgroup stands for all blocks that a compute unit has in flight (it takes the whole LDS, so one
// is resident a unit) and starts with just their bytes; later ones are larger. Bytes in flight at the start,
// hence the convoy towards the first peer, and the rates stay what they were.
#include <algorithm>

#include "model/core/error.hpp"
#include "model/scenario/workload_schedules.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kExactBlocks = 20000;  // a GPU
constexpr int kWavesOfBlock = 4;              // Triton's default
constexpr std::int32_t kRegisters = 32;       // addresses and one vector of data a thread
constexpr std::int64_t kElementBytes = 2;

// How the blocks of one GPU are grouped into workgroups.
struct Grid {
  std::vector<std::int64_t> rows_of_block;
  Resources resources;
};

std::int64_t coarse_generations(std::int64_t slots, std::int64_t workgroups_of_block) {
  return std::max<std::int64_t>(4, kExactBlocks / (slots * workgroups_of_block) - 16);
}

Grid plan_grid(const RemoteAccess& workload, const Gpu& gpu, std::int64_t workgroups_of_block) {
  const std::int64_t rows = workload.bytes / workload.block_bytes;
  Grid grid;
  grid.resources.threads = gpu.lanes_per_wave * (workgroups_of_block == 1 ? kWavesOfBlock : 1);
  grid.resources.registers_per_thread = kRegisters;
  if (rows <= kExactBlocks) {
    grid.rows_of_block.assign(static_cast<std::size_t>(rows), 1);
    return grid;
  }
  // Blocks that the hardware keeps on a unit, and coarsened blocks that replace them.
  const std::int64_t blocks_of_cu =
      std::max<std::int64_t>(1, std::int64_t{gpu.simds_per_cu} * gpu.waves_per_simd / kWavesOfBlock);
  const double lds = std::min(gpu.lds_bytes_per_workgroup_max,
                              gpu.lds_bytes_per_cu / static_cast<double>(workgroups_of_block));
  grid.resources.lds_bytes = static_cast<std::int32_t>(lds);
  const auto residents = std::max<std::int64_t>(1, static_cast<std::int64_t>(gpu.lds_bytes_per_cu / lds));
  const std::int64_t resident_blocks = std::max<std::int64_t>(1, residents / workgroups_of_block);
  const std::int64_t slots = gpu.cu_count() * resident_blocks;
  const std::int64_t granule = std::max<std::int64_t>(1, blocks_of_cu / resident_blocks);
  grid.rows_of_block = coarsened_blocks(rows, granule, slots, coarse_generations(slots, workgroups_of_block));
  return grid;
}

std::vector<int> peers_of(const RemoteAccess& workload, int rank) {
  if (workload.peers == Peers::self) return {rank};
  std::vector<int> peers;
  for (int peer = 0; peer < workload.gpus; ++peer) {
    if (peer != rank) peers.push_back(peer);
  }
  return peers;
}

// Adds the operations that move `block`, rows of the own `data`, to or from a peer. `slot` is the first row
// of the part of `inbox` that belongs to the other side.
void move_block(ScheduleBuilder& builder, RemoteOperation operation, std::int16_t data, std::int16_t inbox,
                Rect block, int rank, int peer, std::int32_t own_slot, std::int32_t peer_slot) {
  Rect to_peer = block;
  to_peer.row += own_slot;
  Rect from_peer = block;
  from_peer.row += peer_slot;
  switch (operation) {
    case RemoteOperation::load:
      builder.load(data, block, peer);
      return;
    case RemoteOperation::store:
      builder.store(inbox, to_peer, peer);
      return;
    case RemoteOperation::atomic_add:
      builder.atomic_add(inbox, to_peer, peer);
      return;
    case RemoteOperation::get:
      builder.copy(inbox, from_peer, rank, data, block.row, block.col, peer);
      return;
    case RemoteOperation::put:
      builder.copy(inbox, to_peer, peer, data, block.row, block.col, rank);
      return;
  }
}

}  // namespace

std::vector<std::int64_t> coarsened_blocks(std::int64_t rows, std::int64_t granule, std::int64_t slots,
                                           std::int64_t generations) {
  TRITAX_ASSERT(rows >= 1 && granule >= 1 && slots >= 1 && generations >= 1, "a grid has blocks and slots");
  constexpr std::int64_t kFineGenerations = 3;
  const std::int64_t widest = std::max(granule, rows / (slots * generations));
  std::vector<std::int64_t> blocks;
  std::int64_t size = granule;
  for (std::int64_t left = rows; left > 0; left -= blocks.back()) {
    const auto generation = static_cast<std::int64_t>(blocks.size()) / slots;
    const bool starts = static_cast<std::int64_t>(blocks.size()) % slots == 0;
    if (starts && generation >= kFineGenerations) size = std::min(widest, size * 2);
    const std::int64_t share = std::max(granule, left / (2 * slots));
    blocks.push_back(std::min({size, share, left}));
  }
  return blocks;
}

Schedule remote_access_schedule(const RemoteAccess& workload, const Machine& machine) {
  const bool independent = workload.operation == RemoteOperation::load;
  const auto peer_count = static_cast<std::int64_t>(peers_of(workload, 0).size());
  const Grid grid = plan_grid(workload, machine.gpu, independent ? peer_count : 1);
  const auto rows = static_cast<std::int32_t>(workload.bytes / workload.block_bytes);
  const auto cols = static_cast<std::int32_t>(workload.block_bytes / kElementBytes);

  ScheduleBuilder builder("remote-access", workload.gpus);
  const std::int16_t data = builder.buffer({"data", DType::fp16, rows, cols, 1, cols});
  const std::int16_t inbox = builder.buffer({"inbox", DType::fp16, rows * workload.gpus, cols, 1, cols});
  const int active = workload.peers == Peers::all ? workload.gpus : 1;
  for (int rank = 0; rank < active; ++rank) {
    Kernel kernel;
    kernel.name = std::string(kRemoteOperationNames[static_cast<std::size_t>(workload.operation)]);
    kernel.rank = rank;
    kernel.resources = grid.resources;
    const std::int32_t index = builder.kernel(std::move(kernel));
    std::int32_t row = 0;
    for (const std::int64_t block_rows : grid.rows_of_block) {
      const Rect block{row, 0, static_cast<std::int32_t>(block_rows), cols};
      bool first = true;
      for (const int peer : peers_of(workload, rank)) {
        if (first || independent) builder.workgroup(index);
        first = false;
        move_block(builder, workload.operation, data, inbox, block, rank, peer, rank * rows, peer * rows);
      }
      row += block.rows;
    }
    builder.launch(rank, index);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

}  // namespace tritax

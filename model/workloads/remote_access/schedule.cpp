// Remote-access microbenchmarks as tile schedules.
//
// The kernels of ROCm/iris examples 00 to 05 (one- and all-peer load, store, atomic add, get, put) launch one
// workgroup of four waves per block of 512 elements. As operations:
//
//   store, atomic add:  for q in peers: store the block to q        posted in order
//   get, put:           for q in peers: copy the block from/to q    the store needs the loaded data
//   load:               for q in peers: load the block from q       independent, in flight together
//
// A workgroup of a tile schedule has one load in flight, so the loads of a block become one workgroup of one
// wave per peer. Peers are visited 0 … W-1 without the own rank, in the same order on every GPU, as in Iris.
//
// Large grids are coarsened, because 4 GiB per peer would be 30 million operations per GPU. A coarsened
// workgroup stands for all blocks that a compute unit has in flight (it takes the whole LDS, so that one is
// resident per unit). It starts with exactly these bytes, so that the convoy of all GPUs towards the first
// peer keeps its length; later blocks are larger. The dispatch of the many small workgroups remains as a
// limit on the rate of the few.
//
// A larger block stands for a sequence of small blocks, which by then are at different peers: it starts at
// the next peer in turn. Only arbitration can spread blocks over peers; without arbitration
// (arbitration_spread = 0) the order stays and the convoy lasts.
#include "model/workloads/remote_access/workload.hpp"

#include <algorithm>

#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kExactWorkgroups = 20000;  // per GPU
constexpr std::int64_t kGenerations = 8;          // blocks of full size in a coarsened grid
constexpr std::int64_t kMaxTilesOfBuffer = 1 << 16;
constexpr int kWavesOfBlock = 4;         // Triton's default
constexpr std::int32_t kRegisters = 32;  // addresses and one vector of data per thread
constexpr std::int64_t kElementBytes = 2;

// Grouping of the blocks of one GPU into workgroups.
struct Grid {
  std::vector<std::int64_t> rows_of_block;
  Resources resources;
  std::int64_t granule = 0;      // rows of the first blocks of a coarsened grid; 0: not coarsened
  double bytes_of_dispatch = 0;  // per block, whose workgroups a die starts one after the other; 0: no such
};

// `peers` of the access; `independent`: accesses to different peers are in flight together.
Grid plan_grid(const RemoteAccess& access, const Machine& machine, std::int64_t peers, bool independent) {
  const Gpu& gpu = machine.gpu;
  const std::int64_t rows = access.bytes / access.block_bytes;
  const std::int64_t workgroups_of_block = independent ? peers : 1;
  Grid grid;
  grid.resources.registers_per_thread = kRegisters;
  if (rows * workgroups_of_block <= kExactWorkgroups) {
    grid.resources.threads = gpu.lanes_per_wave * (workgroups_of_block > 1 ? 1 : kWavesOfBlock);
    grid.rows_of_block.assign(static_cast<std::size_t>(rows), 1);
    return grid;
  }
  grid.resources.threads = gpu.lanes_per_wave * kWavesOfBlock;
  grid.resources.lds_bytes = static_cast<std::int32_t>(gpu.lds_bytes_per_workgroup_max);
  // Blocks that the hardware keeps on a compute unit, each with all its independent accesses.
  const std::int64_t blocks_of_cu =
      std::max<std::int64_t>(1, std::int64_t{gpu.simds_per_cu} * gpu.waves_per_simd / kWavesOfBlock);
  const std::int64_t slots = std::max<std::int64_t>(1, gpu.cu_count() / workgroups_of_block);
  grid.granule = blocks_of_cu * workgroups_of_block;
  grid.rows_of_block =
      coarsened_blocks(rows, grid.granule, slots, kGenerations, machine.fabric.convoy_rounds);
  grid.bytes_of_dispatch = static_cast<double>(access.block_bytes * peers);
  return grid;
}

std::vector<int> peers_of(const RemoteAccess& access, int rank) {
  if (access.peers == Peers::self) return {rank};
  std::vector<int> peers;
  for (int peer = 0; peer < access.gpus; ++peer) {
    if (peer != rank) peers.push_back(peer);
  }
  return peers;
}

// Adds the operations that move `block`, rows of the own `data`, to or from a peer. `slot`: first row of the
// other side's part of `inbox`.
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

// The largest of granule, 2·granule, 4·granule, … up to `limit`; at least the granule.
std::int64_t doubled_up_to(std::int64_t granule, std::int64_t limit) {
  std::int64_t size = granule;
  while (size * 2 <= limit) size *= 2;
  return size;
}

}  // namespace

std::vector<std::int64_t> coarsened_blocks(std::int64_t rows, std::int64_t granule, std::int64_t slots,
                                           std::int64_t generations, std::int64_t fine_rounds) {
  TRITAX_ASSERT(rows >= 1 && granule >= 1 && slots >= 1 && generations >= 1, "a grid has blocks and slots");
  std::vector<std::int64_t> blocks;
  std::int64_t size = granule;
  for (std::int64_t left = rows; left > 0; left -= blocks.back()) {
    const auto index = static_cast<std::int64_t>(blocks.size());
    if (index % slots == 0 && index / slots >= fine_rounds) {
      size = doubled_up_to(granule, std::min(size * 2, rows / (slots * generations)));
    }
    blocks.push_back(std::min({size, doubled_up_to(granule, left / (2 * slots)), left}));
  }
  return blocks;
}

Schedule remote_access_schedule(const RemoteAccess& access, const Machine& machine) {
  const bool independent = access.operation == RemoteOperation::load;
  const auto peer_count = static_cast<std::int64_t>(peers_of(access, 0).size());
  const Grid grid = plan_grid(access, machine, peer_count, independent);
  const auto rows = static_cast<std::int32_t>(access.bytes / access.block_bytes);
  const auto cols = static_cast<std::int32_t>(access.block_bytes / kElementBytes);

  // Nothing is read twice, so that the tiles of the buffers need only tell blocks apart.
  const auto tile_rows = static_cast<std::int32_t>((rows + kMaxTilesOfBuffer - 1) / kMaxTilesOfBuffer);

  ScheduleBuilder builder("remote-access", access.gpus);
  const std::int16_t data = builder.buffer({"data", DType::fp16, rows, cols, tile_rows, cols});
  const std::int16_t inbox =
      builder.buffer({"inbox", DType::fp16, rows * access.gpus, cols, tile_rows, cols});
  const int active = access.peers == Peers::all ? access.gpus : 1;
  for (int rank = 0; rank < active; ++rank) {
    Kernel kernel;
    kernel.name = std::string(kRemoteOperationNames[static_cast<std::size_t>(access.operation)]);
    kernel.rank = rank;
    kernel.resources = grid.resources;
    if (grid.bytes_of_dispatch > 0)
      kernel.library = {.routine = LibraryRoutine::dispatches, .bytes = grid.bytes_of_dispatch};
    // The benchmarks store the contents of registers; a load before the store would be another benchmark.
    kernel.registers_filled =
        access.operation == RemoteOperation::store || access.operation == RemoteOperation::atomic_add;
    const std::int32_t index = builder.kernel(std::move(kernel));
    const bool convoy_dissolves = machine.fabric.arbitration_spread > 0;
    std::vector<int> peers = peers_of(access, rank);
    std::int32_t row = 0;
    for (const std::int64_t block_rows : grid.rows_of_block) {
      const Rect block{row, 0, static_cast<std::int32_t>(block_rows), cols};
      if (grid.granule > 0 && block_rows > grid.granule && convoy_dissolves) {
        std::rotate(peers.begin(), peers.begin() + 1, peers.end());
      }
      bool first = true;
      for (const int peer : peers) {
        if (first || independent) builder.workgroup(index);
        first = false;
        move_block(builder, access.operation, data, inbox, block, rank, peer, rank * rows, peer * rows);
      }
      row += block.rows;
    }
    builder.launch(rank, index);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

}  // namespace tritax

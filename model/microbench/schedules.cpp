#include "model/microbench/schedules.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/microbench/launch_and_wait.hpp"
#include "model/parts/grid_order.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kTileRows = 128;
constexpr std::int32_t kTileCols = 128;
constexpr std::int64_t kTileBytes = std::int64_t{kTileRows} * kTileCols * 2;
constexpr MatmulTile kMatmulTile{128, 256, 64, 8, Pipeline::overlapped};
constexpr int kProductStream = 1;  // of a product that runs beside

// `threads` == 0: with the tile of a matmul kernel.
std::int32_t plain_kernel(ScheduleBuilder& builder, const char* name, int rank, int threads) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  if (threads > 0) {
    kernel.resources.threads = threads;
    kernel.placement = Placement::persistent;
  } else {
    kernel.tile = kMatmulTile;
  }
  return builder.kernel(std::move(kernel));
}

// Buffers of `tiles` tiles, one below the other.
std::int16_t tile_column(ScheduleBuilder& builder, const char* name, std::int64_t tiles) {
  return builder.buffer(
      {name, DType::bf16, static_cast<std::int32_t>(tiles * kTileRows), kTileCols, kTileRows, kTileCols});
}

int peer_of(const MotionCase& c, int rank, std::int64_t tile) {
  if (c.traffic == TrafficPattern::local) return rank;
  if (c.traffic == TrafficPattern::one_pair) return 1 - rank;
  const auto turn = static_cast<int>(tile % (c.ranks - 1));
  if (c.traffic == TrafficPattern::all_rotated) return (rank + 1 + turn) % c.ranks;
  return turn < rank ? turn : turn + 1;
}

void move_tile(ScheduleBuilder& builder, const MotionCase& c, std::int16_t from, std::int16_t to,
               const Rect& tile, int rank, int peer) {
  switch (c.motion) {
    case Motion::store:
      builder.store(to, tile, peer);
      break;
    case Motion::load:
      builder.load(from, tile, peer);
      break;
    case Motion::copy_out:
      builder.copy(to, tile, peer, from, tile.row, tile.col, rank);
      break;
    case Motion::copy_in:
      builder.copy(to, tile, rank, from, tile.row, tile.col, peer);
      break;
    case Motion::atomic_add:
      builder.atomic_add(to, tile, peer);
      break;
  }
}

// A kernel of `rank` that computes a product of 8192³ by persistent workgroups.
struct LargeProduct {
  static constexpr std::int32_t kSize = 8192;
  std::int16_t a = -1, b = -1, c = -1;
  MatmulTile tile{128, 256, 64, 8, Pipeline::overlapped};

  LargeProduct(ScheduleBuilder& builder, std::int32_t rows, std::int32_t cols) {
    tile.m = rows;
    tile.n = cols;
    a = builder.buffer({"large A", DType::bf16, kSize, kSize, rows, tile.k});
    b = builder.buffer({"large B", DType::bf16, kSize, kSize, tile.k, cols});
    c = builder.buffer({"large C", DType::bf16, kSize, kSize, rows, cols});
  }

  std::int32_t kernel(ScheduleBuilder& builder, int rank, int workgroups) const {
    Kernel kernel;
    kernel.name = "gemm";
    kernel.rank = rank;
    kernel.tile = tile;
    const std::int32_t id = builder.kernel(std::move(kernel));
    const TileGrid grid{kSize / tile.m, kSize / tile.n};
    for (int p = 0; p < workgroups; ++p) {
      builder.workgroup(id);
      for (std::int32_t t = p; t < grid.count(); t += workgroups) {
        const TileIndex index = grouped_tile(t, grid, 8);
        const Rect rect{index.row * tile.m, index.col * tile.n, tile.m, tile.n};
        builder.matmul(a, b, rect, 0, kSize);
        builder.store(c, rect, rank);
      }
    }
    return id;
  }
};

// A kernel of `rank` sets `count` flags there, and its host waits for it.
void set_flags(ScheduleBuilder& builder, int rank, std::int16_t flag, std::int64_t count) {
  const std::int32_t signals = plain_kernel(builder, "signal", rank, 256);
  builder.workgroup(signals);
  for (std::int32_t i = 0; i < count; ++i) {
    builder.signal(flag, i, 1, rank, Scope::gpu, LockProtocol::load_store);
  }
  builder.launch(rank, signals);
  builder.host(rank, HostOpKind::device_synchronize);
}

}  // namespace

Schedule empty_kernels(int count, bool in_graph, int workgroups) {
  ScheduleBuilder builder(in_graph ? "empty kernels in a graph" : "empty kernels in a stream", 1);
  Graph graph;
  for (int i = 0; i < count; ++i) {
    const std::int32_t kernel = plain_kernel(builder, "empty", 0, 64);
    for (int w = 0; w < workgroups; ++w) builder.workgroup(kernel);
    if (in_graph) {
      graph.push_back({kernel, 0});
    } else {
      builder.launch(0, kernel);
    }
  }
  if (in_graph) builder.graph_launch(0, std::move(graph));
  builder.host(0, HostOpKind::device_synchronize);
  return builder.finish();
}

Schedule host_barriers(int ranks, int count) {
  ScheduleBuilder builder("host barriers", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int i = 0; i < count; ++i) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

Schedule idle_synchronises(int count) {
  ScheduleBuilder builder("idle synchronises", 1);
  for (int i = 0; i < count; ++i) builder.host(0, HostOpKind::device_synchronize);
  return builder.finish();
}

Schedule device_barriers(int ranks, int count) {
  ScheduleBuilder builder("device barriers", ranks);
  // Of every sender a flag of its own for every round.
  const std::int16_t arrived = builder.flags("arrived", ranks * count);
  std::vector<std::int32_t> kernels;
  for (int rank = 0; rank < ranks; ++rank) {
    kernels.push_back(plain_kernel(builder, "barriers", rank, 64));
    builder.workgroup(kernels.back());
    for (int i = 0; i < count; ++i) {
      for (int step = 1; step < ranks; ++step) {
        builder.signal(arrived, rank * count + i, 1, (rank + step) % ranks, Scope::system,
                       LockProtocol::load_store);
      }
      for (int step = 1; step < ranks; ++step) {
        builder.wait(arrived, (rank + step) % ranks * count + i, 1, Scope::system, LockProtocol::load_store);
      }
    }
  }
  launch_and_wait(builder, ranks, kernels);
  return builder.finish();
}

Schedule flag_ping_pong(bool two_gpus, int rounds, LockProtocol protocol) {
  const int ranks = two_gpus ? 2 : 1;
  const Scope scope = two_gpus ? Scope::system : Scope::gpu;
  ScheduleBuilder builder("flag ping-pong", ranks);
  // One flag a round and side, so that every signal stands alone and each protocol uses its own instruction.
  const std::int16_t ping = builder.flags("ping", rounds);
  const std::int16_t pong = builder.flags("pong", rounds);
  std::vector<std::int32_t> kernels;
  for (int side = 0; side < 2; ++side) {
    const int rank = two_gpus ? side : 0;
    const int other = two_gpus ? 1 - side : 0;
    if (side == 0 || two_gpus) kernels.push_back(plain_kernel(builder, "ping-pong", rank, 64));
    builder.workgroup(kernels.back());
    for (int i = 0; i < rounds; ++i) {
      if (side == 0) {
        builder.signal(ping, i, 1, other, scope, protocol);
        builder.wait(pong, i, 1, scope, protocol);
      } else {
        builder.wait(ping, i, 1, scope, protocol);
        builder.signal(pong, i, 1, other, scope, protocol);
      }
    }
  }
  launch_and_wait(builder, ranks, kernels);
  return builder.finish();
}

Schedule flag_costs(bool two_gpus, int count, LockProtocol protocol) {
  const Scope scope = two_gpus ? Scope::system : Scope::gpu;
  ScheduleBuilder builder("flag costs", two_gpus ? 2 : 1);
  const std::int16_t flag = builder.flags("flag", count);
  const int waiter = two_gpus ? 1 : 0;
  const std::int32_t signals = plain_kernel(builder, "signal", 0, 256);
  builder.workgroup(signals);
  for (int i = 0; i < count; ++i) builder.signal(flag, i, 1, waiter, scope, protocol);
  const std::int32_t waits = plain_kernel(builder, "wait", waiter, 256);
  builder.workgroup(waits);
  for (int i = 0; i < count; ++i) builder.wait(flag, i, 1, scope, protocol);
  builder.launch(0, signals);
  builder.host(0, HostOpKind::device_synchronize);
  for (int rank = 0; rank <= waiter && two_gpus; ++rank) builder.host(rank, HostOpKind::barrier);
  builder.launch(waiter, waits);
  builder.host(waiter, HostOpKind::device_synchronize);
  return builder.finish();
}

Schedule lone_copies(int workgroups, int tiles) {
  ScheduleBuilder builder("lone copies", 1);
  const std::int16_t from = tile_column(builder, "from", std::int64_t{workgroups} * tiles);
  const std::int16_t to = tile_column(builder, "to", std::int64_t{workgroups} * tiles);
  const std::int32_t id = plain_kernel(builder, "copy", 0, 256);
  for (int tile = 0; tile < workgroups * tiles; ++tile) {
    if (tile % tiles == 0) builder.workgroup(id);
    const Rect rect{tile * kTileRows, 0, kTileRows, kTileCols};
    builder.copy(to, rect, 0, from, rect.row, 0, 0);
  }
  launch_and_wait(builder, 1, {id});
  return builder.finish();
}

namespace {

// The schedule of a MotionCase as it grows.
class MotionDraft {
 public:
  explicit MotionDraft(const MotionCase& c)
      : c_(c), moves_(tiles_of(c.bytes)), flags_(c.flag_each ? moves_ : 1), builder_("motion", c.ranks) {
    columns_ = c.matrix_cols > 0 ? c.matrix_cols / c.tile_cols : 1;
    const std::int64_t wanted = c.footprint > 0 ? tiles_of(c.footprint) : moves_;
    rows_ = static_cast<std::int32_t>((wanted + columns_ - 1) / columns_);
    from_ = matrix("from");
    to_ = matrix("to");
    if (c.threads == 0 || c.behind_matmul) {
      const MatmulTile& m = kMatmulTile;
      a_ = builder_.buffer({"A", DType::bf16, m.m, m.k, m.m, m.k});
      b_ = builder_.buffer({"B", DType::bf16, m.k, m.n, m.k, m.n});
      product_ = builder_.buffer({"C", DType::bf16, m.m, c.workgroups * m.n, m.m, m.n});
    }
    if (c.guarded) ready_ = builder_.flags("ready", static_cast<std::int32_t>(flags_));
  }

  Schedule finish() {
    for (int rank = 0; c_.guarded && rank < c_.ranks; ++rank) {
      if (!is_idle(rank)) set_flags(builder_, rank, ready_, flags_);
    }
    std::optional<LargeProduct> beside;
    if (c_.products > 0) beside.emplace(builder_, c_.product_rows, c_.product_cols);
    std::vector<std::int32_t> kernels, before;
    for (int rank = 0; rank < c_.ranks; ++rank) {
      if (is_idle(rank)) {
        kernels.push_back(-1);
        continue;
      }
      if (c_.behind_matmul) before.push_back(short_matmuls(rank));
      if (beside) builder_.launch(rank, beside->kernel(builder_, rank, c_.products), kProductStream);
      kernels.push_back(moving_kernel(rank));
    }
    launch_and_wait(builder_, c_.ranks, kernels, before);
    return builder_.finish();
  }

 private:
  std::int64_t tiles_of(std::int64_t bytes) const {
    return std::max<std::int64_t>(c_.workgroups, bytes / (std::int64_t{c_.tile_rows} * c_.tile_cols * 2));
  }

  bool is_idle(int rank) const { return c_.traffic == TrafficPattern::one_pair && rank != 0; }

  std::int16_t matrix(const char* name) {
    return builder_.buffer({name, DType::bf16, rows_ * c_.tile_rows, c_.first_col + columns_ * c_.tile_cols,
                            c_.tile_rows, c_.tile_cols});
  }

  Rect tile(std::int64_t t) const {
    const std::int64_t tiles = std::int64_t{rows_} * columns_;
    const TileIndex at = grouped_tile(static_cast<std::int32_t>(t % tiles), {rows_, columns_}, 8);
    return {at.row * c_.tile_rows, c_.first_col + at.col * c_.tile_cols, c_.tile_rows, c_.tile_cols};
  }

  // Of the workgroup `p` that is being built.
  void short_matmul(int rank, int p) {
    const MatmulTile& m = kMatmulTile;
    builder_.matmul(a_, b_, {0, 0, m.m, m.n}, 0, m.k);
    builder_.store(product_, {0, p * m.n, m.m, m.n}, rank);
  }

  std::int32_t short_matmuls(int rank) {
    const std::int32_t kernel = plain_kernel(builder_, "matmul", rank, 0);
    for (int p = 0; p < c_.workgroups; ++p) {
      builder_.workgroup(kernel);
      short_matmul(rank, p);
    }
    return kernel;
  }

  std::int32_t moving_kernel(int rank) {
    const bool writes_accumulator = c_.motion == Motion::store || c_.motion == Motion::atomic_add;
    const std::int32_t kernel = plain_kernel(builder_, "move", rank, c_.threads);
    for (int p = 0; p < c_.workgroups; ++p) {
      builder_.workgroup(kernel);
      if (c_.threads == 0) short_matmul(rank, p);
      if (writes_accumulator) builder_.load(from_, tile(p), rank);
      for (std::int64_t t = p; t < moves_; t += c_.workgroups) {
        if (c_.guarded) {
          builder_.wait(ready_, static_cast<std::int32_t>(t % flags_), 1, Scope::gpu,
                        LockProtocol::load_store);
        }
        move_tile(builder_, c_, from_, to_, tile(t), rank, peer_of(c_, rank, t / c_.workgroups));
      }
    }
    return kernel;
  }

  const MotionCase& c_;
  std::int64_t moves_ = 0;  // of a rank
  std::int64_t flags_ = 0;
  ScheduleBuilder builder_;
  std::int32_t rows_ = 0, columns_ = 0;  // of tiles in `from` and `to`
  std::int16_t from_ = -1, to_ = -1, a_ = -1, b_ = -1, product_ = -1, ready_ = -1;
};

}  // namespace

Schedule motion(const MotionCase& c) { return MotionDraft(c).finish(); }

Schedule tile_stores(int ranks, TrafficPattern traffic, std::int32_t m, std::int32_t n, int workgroups,
                     int tiles, std::int32_t matrix_cols) {
  ScheduleBuilder builder("tile stores", ranks);
  const std::int32_t columns = matrix_cols > 0 ? matrix_cols / n : tiles;
  const std::int32_t rows = (workgroups * tiles + columns - 1) / columns;
  const auto place = [&](int p, int t) {
    const TileIndex at =
        matrix_cols > 0 ? grouped_tile(t * workgroups + p, {rows, columns}, 8) : TileIndex{p, t};
    return Rect{at.row * m, at.col * n, m, n};
  };
  const std::int16_t a = builder.buffer({"A", DType::bf16, m, 64, m, 64});
  const std::int16_t b = builder.buffer({"B", DType::bf16, 64, n, 64, n});
  const std::int16_t c = builder.buffer({"C", DType::bf16, rows * m, columns * n, m, n});
  const MotionCase peers{Motion::store, traffic, ranks, workgroups, 0, 0};
  std::vector<std::int32_t> kernels;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool idle = traffic == TrafficPattern::one_pair && rank != 0;
    Kernel kernel;
    kernel.name = "store tiles";
    kernel.rank = rank;
    kernel.tile = {m, n, 64, 8, Pipeline::overlapped};
    kernels.push_back(idle ? -1 : builder.kernel(std::move(kernel)));
    if (idle) continue;
    for (int p = 0; p < workgroups; ++p) {
      builder.workgroup(kernels.back());
      builder.matmul(a, b, {0, 0, m, n}, 0, 64);
      for (int t = 0; t < tiles; ++t) builder.store(c, place(p, t), peer_of(peers, rank, t));
    }
  }
  launch_and_wait(builder, ranks, kernels);
  return builder.finish();
}

Schedule matmul_streams(std::int32_t m, std::int32_t n, std::int32_t k, int workgroups, int products) {
  constexpr std::int32_t kStep = 64;
  ScheduleBuilder builder("matmul streams", 1);
  const std::int16_t a = builder.buffer({"A", DType::bf16, m, k, m, kStep});
  const std::int16_t b = builder.buffer({"B", DType::bf16, k, workgroups * n, kStep, n});
  const std::int16_t c = builder.buffer({"C", DType::bf16, m, workgroups * n, m, n});
  if (products > 0) {
    const LargeProduct beside(builder, 128, 256);
    builder.launch(0, beside.kernel(builder, 0, products), kProductStream);
  }
  Kernel kernel;
  kernel.name = "tiles";
  kernel.tile = {m, n, kStep, 8, Pipeline::overlapped};
  const std::int32_t id = builder.kernel(std::move(kernel));
  for (int p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    const Rect rect{0, p * n, m, n};
    builder.matmul(a, b, rect, 0, k);
    builder.store(c, rect, 0);
  }
  launch_and_wait(builder, 1, {id});
  return builder.finish();
}

Schedule gemm_beside_copies(int gemm_workgroups, int sending_workgroups, std::int64_t copy_bytes,
                            bool fetch) {
  ScheduleBuilder builder("gemm beside copies", 2);
  const LargeProduct product(builder, 128, 256);
  const std::int64_t tiles = std::max<std::int64_t>(1, copy_bytes / kTileBytes);
  const std::int16_t from = tile_column(builder, "from", tiles);
  const std::int16_t to = tile_column(builder, "to", tiles);
  for (int rank = 0; rank < 2; ++rank) {
    builder.host(rank, HostOpKind::barrier);
    if (sending_workgroups > 0) {
      const std::int32_t sender = plain_kernel(builder, "send", rank, 256);
      for (int p = 0; p < sending_workgroups; ++p) {
        builder.workgroup(sender);
        for (std::int64_t t = p; t < tiles; t += sending_workgroups) {
          const auto row = static_cast<std::int32_t>(t) * kTileRows;
          const int peer = 1 - rank;
          builder.copy(to, {row, 0, kTileRows, kTileCols}, fetch ? rank : peer, from, row, 0,
                       fetch ? peer : rank);
        }
      }
      builder.launch(rank, sender, 1);
    }
    const std::int32_t gemm = product.kernel(builder, rank, gemm_workgroups);
    builder.launch(rank, gemm, 0);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax

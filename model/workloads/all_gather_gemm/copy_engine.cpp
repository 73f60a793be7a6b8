// Copy engine: copy engines fetch the peers' slices, one piece of every peer at a time, and the host launches
// a GEMM kernel for each piece. No compute unit copies, and no flag is raised.
//
//   stream 0:      GEMM of the own slice
//                  for pieces i:  wait for event i of all peers; GEMM of piece i of all peers
//   stream 1 + p:  for pieces i:  copy piece i of peer p into A; record event i of p
//
// With A sharded by rows, a kernel computes the rows of C of its pieces. With A sharded along K, a kernel
// loads the sums of earlier kernels and adds to them, in fp32 up to the last kernel, because rounding each
// sum to the dtype of C costs digits. Slices are there from the start and are never overwritten, so no rank
// waits for a peer.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// Piece `i` of the slice of a rank: whole tiles except in the last piece; empty beyond it.
Rect piece_of_slice(const GatherDraft& draft, int rank, std::int32_t i) {
  Rect slice = slice_of(draft.problem, rank);
  const bool by_rows = draft.problem.sharding == Sharding::rows;
  std::int32_t& begin = by_rows ? slice.row : slice.col;
  std::int32_t& size = by_rows ? slice.rows : slice.cols;
  const std::int32_t step = by_rows ? draft.tile.m : draft.tile.k;
  const std::int32_t each = ceil_div(ceil_div(size, draft.knobs.chunks), step) * step;
  const std::int64_t first = std::min<std::int64_t>(std::int64_t{i} * each, size);
  begin += static_cast<std::int32_t>(first);
  size = static_cast<std::int32_t>(std::min<std::int64_t>(each, size - first));
  return slice;
}

bool is_empty(const Rect& rect) { return rect.rows == 0 || rect.cols == 0; }

// Piece `i` of every peer that has one.
std::vector<Piece> pieces_of_peers(const GatherDraft& draft, int rank, std::int32_t i) {
  std::vector<Piece> pieces;
  for (const int peer : peers_of(draft.knobs.peer_order, draft.ranks(), rank, 0)) {
    const Rect rect = piece_of_slice(draft, peer, i);
    if (!is_empty(rect)) pieces.push_back({rect, peer});
  }
  return pieces;
}

// Rows of C of a kernel, cut at the borders of tiles.
std::vector<Rect> bands_of(const GatherDraft& draft, const std::vector<Piece>& pieces) {
  std::vector<Rect> rows;
  if (draft.problem.sharding == Sharding::k) {
    rows.push_back({0, 0, static_cast<std::int32_t>(draft.problem.m), 0});
  } else {
    for (const Piece& piece : pieces) rows.push_back(piece.rect);
  }
  std::vector<Rect> bands;
  for (const Rect& part : rows) {
    for (std::int32_t row = 0; row < part.rows; row += draft.tile.m) {
      bands.push_back({part.row + row, 0, std::min(draft.tile.m, part.rows - row), 0});
    }
  }
  return bands;
}

// Buffers of the sums of earlier kernels (-1: none) and of the sums of this kernel.
struct Sums {
  std::int16_t from = -1;
  std::int16_t to = -1;
};

// Multiplies the pieces into a tile of C.
void multiply(GatherDraft& draft, int rank, const std::vector<Piece>& pieces, const Rect& tile,
              const Sums& sums) {
  if (sums.from >= 0) draft.builder.load(sums.from, tile, rank);
  if (draft.problem.sharding == Sharding::rows) {
    draft.builder.matmul(draft.a, draft.b, tile, 0, static_cast<std::int32_t>(draft.problem.k));
  } else {
    for (const Piece& piece : pieces) {
      draft.builder.matmul(draft.a, draft.b, tile, piece.rect.col, piece.rect.col + piece.rect.cols);
    }
  }
  draft.builder.store(sums.to, tile, rank);
}

std::int32_t gemm_kernel(GatherDraft& draft, int rank, const std::string& name,
                         const std::vector<Piece>& pieces, const Sums& sums) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::vector<Rect> bands = bands_of(draft, pieces);
  const TileGrid grid{static_cast<std::int32_t>(bands.size()), draft.grid().cols};
  const std::int32_t workgroups = std::min(all_cus(draft.machine.gpu, draft.knobs.gemm_cus), grid.count());
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    for (std::int32_t t = draft.first_item(p, workgroups); t < grid.count(); t += workgroups) {
      const TileIndex index = grouped_tile(t, grid, draft.knobs.group_m);
      Rect tile = bands[static_cast<std::size_t>(index.row)];
      tile.col = index.col * draft.tile.n;
      tile.cols = std::min(draft.tile.n, static_cast<std::int32_t>(draft.problem.n) - tile.col);
      multiply(draft, rank, pieces, tile, sums);
    }
  }
  return id;
}

// Posts the copies of a rank: piece by piece, one stream per peer.
void post_copies(GatherDraft& draft, int rank) {
  for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
    for (const Piece& piece : pieces_of_peers(draft, rank, i)) {
      const std::int32_t stream = 1 + piece.owner;
      const Rect& rect = piece.rect;
      draft.builder.host_copy(rank, stream, draft.a, rect, rank, draft.a, rect.row, rect.col, piece.owner);
      draft.builder.record_event(rank, i * draft.ranks() + piece.owner, stream);
    }
  }
}

// `partial`: buffer of sums along K until the last kernel; -1 where every kernel has its own rows.
void host_program_of(GatherDraft& draft, int rank, std::int16_t partial) {
  std::vector<std::vector<Piece>> fetched;
  for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
    fetched.push_back(pieces_of_peers(draft, rank, i));
    if (fetched.back().empty()) {
      fetched.pop_back();
      break;
    }
  }
  const auto sums_of = [&](std::size_t kernel) {
    if (partial < 0) return Sums{-1, draft.c};
    return Sums{kernel == 0 ? std::int16_t{-1} : partial, kernel == fetched.size() ? draft.c : partial};
  };
  if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
  const std::vector<Piece> own{{slice_of(draft.problem, rank), rank}};
  draft.builder.launch(rank, gemm_kernel(draft, rank, "gemm", own, sums_of(0)));
  post_copies(draft, rank);
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    for (const Piece& piece : fetched[i]) {
      draft.builder.wait_event(rank, static_cast<std::int32_t>(i) * draft.ranks() + piece.owner);
    }
    draft.builder.launch(rank,
                         gemm_kernel(draft, rank, "gemm-" + std::to_string(i), fetched[i], sums_of(i + 1)));
  }
  draft.builder.host(rank, HostOpKind::device_synchronize);
  if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
}

}  // namespace

namespace {

// Along K, every kernel multiplies a piece of every peer into every tile.
void check_operations(const GatherDraft& draft) {
  const bool by_k = draft.problem.sharding == Sharding::k;
  const double kernels = by_k ? 1.0 + draft.knobs.chunks : 1;
  const double of_tile = by_k ? 2.0 + draft.ranks() : 2;
  const double operations = draft.ranks() * kernels * of_tile * draft.grid().count();
  if (operations <= kMaxOperations) return;
  throw UserError(fmt::format(
      "chunks: {} pieces of {} tiles per GPU are too many to schedule (over {:.0f} tile operations); "
      "use fewer chunks or larger tiles",
      draft.knobs.chunks, draft.grid().count(), kMaxOperations));
}

}  // namespace

Schedule build_copy_engine(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  if (problem.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  GatherDraft draft("copy-engine", problem, machine, knobs);
  check_operations(draft);
  expect_product(draft, draft.a, true);
  std::int16_t partial = -1;
  if (problem.sharding == Sharding::k && problem.gpus > 1) {
    partial = draft.builder.buffer({"partial", DType::fp32, static_cast<std::int32_t>(problem.m),
                                    static_cast<std::int32_t>(problem.n), draft.tile.m, draft.tile.n});
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) host_program_of(draft, rank, partial);
  return draft.builder.finish();
}

}  // namespace tritax

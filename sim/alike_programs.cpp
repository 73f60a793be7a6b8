#include "sim/alike_programs.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kUnpaired = -1;
constexpr std::uint64_t kMostTilesInTables = std::uint64_t{1} << 22;  // over all ranks: 32 MB

// Properties of a kernel, besides its programs, that the clock depends on. The name may name a peer: left
// out.
auto form_of_kernel(const Kernel& k) {
  return std::tuple(k.resources, k.tile, k.placement, k.profile, k.cu_begin, k.cu_end, k.library,
                    k.payload_share, k.start_ns, k.clk_per_stored_byte, k.workgroups.size(), k.items.size());
}

// Properties of an operation that are equal for alike operations: kinds, buffers, sizes.
auto form_of_op(const Op& op) {
  return std::tuple(op.kind, op.scope, op.protocol, op.change, op.order, op.with_previous, op.multimem,
                    op.by_engine, op.buffer, op.src_buffer, op.b_buffer, op.flag, op.rect.rows, op.rect.cols,
                    op.k_end - op.k_begin, op.kind == OpKind::matmul ? fetches_a(op) : op.value);
}

// The other properties, for operations whose work depends on their place.
auto place_of_op(const Op& op) {
  return std::tuple(op.rect.row, op.rect.col, op.src_row, op.src_col, op.k_begin);
}

std::int32_t tiles_in(std::int32_t length, std::int32_t tile) {
  return (length + std::max(1, tile) - 1) / std::max(1, tile);
}

bool names_counter(OpKind kind) {
  return has(kind, [](auto& row) { return row.fields.contains(OpField::counter); });
}

}  // namespace

AlikePrograms::AlikePrograms(const Schedule& schedule, const Machine& machine, std::int32_t shift)
    : schedule_(schedule),
      shift_(shift),
      needs_alignment_(machine.interpreter.split_line_bytes > 0 || machine.interpreter.sector_end_bytes > 0 ||
                       machine.interpreter.ragged_end_bytes > 0 || machine.interpreter.ragged_copy_ns > 0),
      kernels_of_(static_cast<std::size_t>(schedule.ranks)),
      operands_(schedule.buffers, shift),
      regions_(schedule.buffers) {
  for (std::uint32_t k = 0; k < schedule.kernels.size(); ++k) {
    auto& kernels = kernels_of_[static_cast<std::size_t>(schedule.kernels[k].rank)];
    place_of_kernel_.push_back(static_cast<std::int32_t>(kernels.size()));
    kernels.push_back(k);
  }
  Cell tiles = 1;  // 0: no tile
  for (const Buffer& buffer : schedule.buffers) {
    first_tile_.push_back(tiles);
    tiles += static_cast<Cell>(tiles_in(buffer.rows, buffer.tile_rows)) *
             static_cast<Cell>(tiles_in(buffer.cols, buffer.tile_cols));
  }
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  tiles_.assign(ranks, TilePairs(tiles, tiles * ranks <= kMostTilesInTables));
  for (const FlagArray& array : schedule.flags) {
    first_flag_.push_back(flags_);
    flags_ += static_cast<std::size_t>(array.count);
  }
}

bool AlikePrograms::hold() {
  for (std::int32_t rank = shift_; rank < schedule_.ranks; ++rank) {
    if (!same_hosts(rank) || kernels_of(rank).size() != kernels_of(home(rank)).size()) return false;
  }
  for (std::int32_t rank = shift_; rank < schedule_.ranks; ++rank) {
    if (!same_kernels(rank)) return false;
  }
  home_flag_.assign(flags_ * static_cast<std::size_t>(schedule_.ranks), kUnpaired);
  flag_of_home_ = home_flag_;
  for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
    if (!same_counters(rank) || !same_targets(rank)) return false;
  }
  return same_overlaps();
}

bool AlikePrograms::same_cells(const Schedule& folded) const {
  const RegionCells alone = region_cells_of(folded, shift_);
  for (std::size_t buffer = 0; buffer < schedule_.buffers.size(); ++buffer) {
    const auto id = static_cast<std::int32_t>(buffer);
    if (alone.has(id) != regions_.has(id)) return false;
  }
  return true;
}

const Op& AlikePrograms::towards_home(std::int32_t rank, std::int32_t owner, std::uint32_t kernel,
                                      std::size_t program, std::uint32_t op) const {
  const std::int32_t like = moved(rank, home(owner) - owner);
  const Kernel& of_like = schedule_.kernels[kernels_of(like)[kernel]];
  return schedule_.ops[program_of(of_like, program).first_op + op];
}

const Op& AlikePrograms::transfer_towards_home(std::int32_t rank, std::int32_t owner,
                                               std::size_t host_op) const {
  const std::int32_t like = moved(rank, home(owner) - owner);
  const HostOp& posts = schedule_.host[static_cast<std::size_t>(like)][host_op];
  return schedule_.transfers[static_cast<std::size_t>(posts.transfer)];
}

bool AlikePrograms::same_launch(std::int32_t rank, std::int32_t a, std::int32_t b) const {
  if ((a < 0) != (b < 0)) return false;
  if (a < 0) return true;
  const auto first = static_cast<std::size_t>(a), second = static_cast<std::size_t>(b);
  return schedule_.kernels[first].rank == home(rank) && schedule_.kernels[second].rank == rank &&
         place_of_kernel_[first] == place_of_kernel_[second];
}

bool AlikePrograms::same_host_op(std::int32_t rank, const HostOp& a, const HostOp& b,
                                 HostNames& names) const {
  if (std::tie(a.kind, a.label, a.duration_ns) != std::tie(b.kind, b.label, b.duration_ns) ||
      !names.streams.pair(a.stream, b.stream) || !names.events.pair(a.event, b.event)) {
    return false;
  }
  if (a.kind == HostOpKind::launch) return same_launch(rank, a.kernel, b.kernel);
  if (a.kind == HostOpKind::graph_launch) {
    const Graph& first = schedule_.graphs[static_cast<std::size_t>(a.graph)];
    const Graph& second = schedule_.graphs[static_cast<std::size_t>(b.graph)];
    return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                      [&](const GraphNode& x, const GraphNode& y) {
                        return names.streams.pair(x.stream, y.stream) &&
                               same_launch(rank, x.kernel, y.kernel);
                      });
  }
  if (a.kind != HostOpKind::copy) return true;
  return same_op(schedule_.transfers[static_cast<std::size_t>(a.transfer)],
                 schedule_.transfers[static_cast<std::size_t>(b.transfer)], rank - home(rank));
}

// Hosts may number streams and events by peers.
bool AlikePrograms::same_hosts(std::int32_t rank) const {
  HostNames names;
  const auto& like = schedule_.host[static_cast<std::size_t>(home(rank))];
  const auto& own = schedule_.host[static_cast<std::size_t>(rank)];
  return std::equal(like.begin(), like.end(), own.begin(), own.end(),
                    [&](const HostOp& a, const HostOp& b) { return same_host_op(rank, a, b, names); });
}

bool AlikePrograms::same_kernels(std::int32_t rank) {
  operands_.begin(home(rank));
  const std::vector<std::uint32_t>& like = kernels_of(home(rank));
  const std::vector<std::uint32_t>& own = kernels_of(rank);
  for (std::size_t k = 0; k < own.size(); ++k) {
    const Kernel& a = schedule_.kernels[like[k]];
    const Kernel& b = schedule_.kernels[own[k]];
    if (form_of_kernel(a) != form_of_kernel(b) || !same_programs(a, b)) return false;
  }
  return operands_.finish();
}

bool AlikePrograms::same_programs(const Kernel& a, const Kernel& b) {
  last_cells_ = {};
  for (std::size_t p = 0; p < program_count(a); ++p) {
    const Workgroup& first = program_of(a, p);
    const Workgroup& second = program_of(b, p);
    if (first.op_count != second.op_count) return false;
    for (std::uint32_t i = 0; i < first.op_count; ++i) {
      const Op& x = schedule_.ops[first.first_op + i];
      const Op& y = schedule_.ops[second.first_op + i];
      if (!same_op(x, y, b.rank - a.rank) || !same_tiles(x, y, b.rank)) return false;
      if (x.kind == OpKind::matmul && !operands_.same(x, y)) return false;
    }
  }
  return true;
}

bool AlikePrograms::same_op(const Op& a, const Op& b, std::int32_t by) const {
  if (form_of_op(a) != form_of_op(b)) return false;
  if (names_rank(a.kind) && b.rank != moved(a.rank, by)) return false;
  if (fetches_a(a)) return owner_of_a(b, b.rank) == moved(owner_of_a(a, a.rank), by);
  if (a.kind == OpKind::copy) {
    return b.src_rank == moved(a.src_rank, by) && same_alignment(a.buffer, a.rect.col, b.rect.col);
  }
  if (is_asynchronous(a.kind)) return same_alignment(a.buffer, a.rect.col, b.rect.col);
  if (attends(a.kind) || a.kind == OpKind::sparse_product) {
    return place_of_op(a) == place_of_op(b) && a.index == b.index;
  }
  return a.kind != OpKind::claim || place_of_op(a) == place_of_op(b);
}

bool AlikePrograms::same_alignment(std::int16_t buffer, std::int32_t a_col, std::int32_t b_col) const {
  constexpr std::int64_t kLine = 128;
  const Buffer& of = schedule_.buffers[static_cast<std::size_t>(buffer)];
  return !needs_alignment_ ||
         static_cast<std::int64_t>(row_bytes(of, b_col) - row_bytes(of, a_col)) % kLine == 0;
}

AlikePrograms::Cell AlikePrograms::cell_of(std::int32_t buffer, std::int32_t row, std::int32_t col) const {
  const Buffer& b = schedule_.buffers[static_cast<std::size_t>(buffer)];
  const auto cols = static_cast<Cell>(tiles_in(b.cols, b.tile_cols));
  return first_tile_[static_cast<std::size_t>(buffer)] +
         static_cast<Cell>(row / std::max(1, b.tile_rows)) * cols +
         static_cast<Cell>(col / std::max(1, b.tile_cols));
}

bool AlikePrograms::pair_tiles(std::int32_t rank, std::int32_t buffer, std::int32_t a_row, std::int32_t a_col,
                               std::int32_t b_row, std::int32_t b_col) {
  const std::array<Cell, 2> pair{cell_of(buffer, a_row, a_col), cell_of(buffer, b_row, b_col)};
  if (pair == last_cells_) return true;  // one tile often goes to many ranks
  last_cells_ = pair;
  return tiles_[static_cast<std::size_t>(rank)].pair(pair[0], pair[1]);
}

// Tiles of the own rank that an operation reads or writes; tiles of other ranks matter to the clock only as
// bytes.
bool AlikePrograms::same_tiles(const Op& a, const Op& b, std::int32_t rank) {
  if (!moves_data(a.kind)) return true;
  if (b.rank == rank && !pair_tiles(rank, a.buffer, a.rect.row, a.rect.col, b.rect.row, b.rect.col)) {
    return false;
  }
  return a.kind != OpKind::copy || b.src_rank != rank ||
         pair_tiles(rank, a.src_buffer, a.src_row, a.src_col, b.src_row, b.src_col);
}

// Every counter of a rank has one name at its home rank: the name in the home's own operations, or in
// operations of a peer's alike rank on the home.
bool AlikePrograms::same_counters(std::int32_t rank) {
  const std::vector<std::uint32_t>& kernels = kernels_of(rank);
  for (std::uint32_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = schedule_.kernels[kernels[k]];
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      for (std::uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = schedule_.ops[program.first_op + i];
        if (!names_counter(op.kind)) continue;
        const std::int32_t owner = op.kind == OpKind::signal ? op.rank : rank;
        const std::int32_t name = towards_home(rank, owner, k, p, i).index;
        const std::size_t first =
            static_cast<std::size_t>(owner) * flags_ + first_flag_[static_cast<std::size_t>(op.flag)];
        std::int32_t& there = home_flag_[first + static_cast<std::size_t>(op.index)];
        std::int32_t& back = flag_of_home_[first + static_cast<std::size_t>(name)];
        if (there == kUnpaired && back == kUnpaired) {
          there = name;
          back = op.index;
        } else if (there != name || back != op.index) {
          return false;
        }
      }
    }
  }
  return true;
}

// The same for the tiles that copy engines write.
bool AlikePrograms::same_targets(std::int32_t rank) {
  const std::vector<HostOp>& program = schedule_.host[static_cast<std::size_t>(rank)];
  last_cells_ = {};
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i].kind != HostOpKind::copy) continue;
    const Op& op = schedule_.transfers[static_cast<std::size_t>(program[i].transfer)];
    if (op.rank < shift_) continue;  // a home keeps its own names
    const Op& like = transfer_towards_home(rank, op.rank, i);
    const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(op.buffer)];
    const std::int32_t rows = std::max(1, buffer.tile_rows), cols = std::max(1, buffer.tile_cols);
    if (like.rect.row % rows != op.rect.row % rows || like.rect.col % cols != op.rect.col % cols)
      return false;
    for (std::int32_t row = -(op.rect.row % rows); row < op.rect.rows; row += rows) {
      for (std::int32_t col = -(op.rect.col % cols); col < op.rect.cols; col += cols) {
        last_cells_ = {};
        if (!pair_tiles(op.rank, op.buffer, like.rect.row + row, like.rect.col + col, op.rect.row + row,
                        op.rect.col + col)) {
          return false;
        }
      }
    }
  }
  return true;
}

// Regions that overlap in part lie in the cells of a grid (region_cells.hpp), whatever tile they begin in.
// One bijection of the cells of two ranks, between cells of equal bytes, maps every region of one rank to the
// region of the other. So it also maps the common parts of two regions.
bool AlikePrograms::same_overlaps() {
  regions_ = region_cells_of(schedule_, schedule_.ranks);
  if (regions_.empty()) return true;
  paired_cells_.assign(static_cast<std::size_t>(schedule_.ranks), {});
  for (std::int32_t rank = shift_; rank < schedule_.ranks; ++rank) {
    if (!same_regions(rank)) return false;
  }
  for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
    if (!same_copied_regions(rank)) return false;
  }
  return true;
}

// Regions of its own memory that the workgroups of a rank read and write.
bool AlikePrograms::same_regions(std::int32_t rank) {
  const std::vector<std::uint32_t>& like = kernels_of(home(rank));
  const std::vector<std::uint32_t>& own = kernels_of(rank);
  for (std::size_t k = 0; k < own.size(); ++k) {
    const Kernel& a = schedule_.kernels[like[k]];
    const Kernel& b = schedule_.kernels[own[k]];
    for (std::size_t p = 0; p < program_count(b); ++p) {
      const std::span<const Op> first = ops_of(schedule_, program_of(a, p));
      const std::span<const Op> second = ops_of(schedule_, program_of(b, p));
      for (std::size_t i = 0; i < second.size(); ++i) {
        const Op& x = first[i];
        const Op& y = second[i];
        if (!moves_data(y.kind)) continue;
        if (y.rank == rank && !pair_regions(tile_of(x), tile_of(y))) return false;
        const bool reads_own = y.kind == OpKind::copy && y.src_rank == rank;
        if (reads_own && !pair_regions(source_of(x), source_of(y))) return false;
      }
    }
  }
  return true;
}

// Regions that the copy engines of a rank write.
bool AlikePrograms::same_copied_regions(std::int32_t rank) {
  const std::vector<HostOp>& program = schedule_.host[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i].kind != HostOpKind::copy) continue;
    const Op& op = schedule_.transfers[static_cast<std::size_t>(program[i].transfer)];
    if (op.rank < shift_) continue;
    if (!pair_regions(tile_of(transfer_towards_home(rank, op.rank, i)), tile_of(op))) return false;
  }
  return true;
}

// `b` belongs to any rank, `a` to its home.
bool AlikePrograms::pair_regions(const Region& a, const Region& b) {
  if (!regions_.has(b.buffer)) return true;
  first_cells_.clear();
  regions_.for_each(a.rank, a.buffer, a.rect,
                    [&](std::size_t cell, double bytes) { first_cells_.emplace_back(cell, bytes); });
  std::size_t next = 0;
  bool alike = true;
  GrowingBijection<Cell>& pairs = paired_cells_[static_cast<std::size_t>(b.rank)];
  const auto name_of_cell = [&](std::size_t cell) { return static_cast<Cell>(b.buffer) << 48 | cell; };
  regions_.for_each(b.rank, b.buffer, b.rect, [&](std::size_t cell, double bytes) {
    alike = alike && next < first_cells_.size() && first_cells_[next].second == bytes &&
            pairs.pair(name_of_cell(first_cells_[next].first), name_of_cell(cell));
    ++next;
  });
  return alike && next == first_cells_.size();
}

}  // namespace tritax

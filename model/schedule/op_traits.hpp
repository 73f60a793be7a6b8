// What every kind of operation is, for all who build, check, print, run, lower and bound schedules: one row a
// kind. Whoever needs to know what an operation reads, writes, waits for or is written as asks here; what it
// does and what it costs is a branch of the functional executor, of the engine and of the interpreter.
//
// Example: `copy` reads its source and overwrites its tile, so it drains beside what follows; it waits for
// the store that its workgroup has in flight, and its JSON form has the keys of `to`, `tile` and `source`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// A few fields in the order of the JSON form.
template <typename Field>
class FieldList {
 public:
  constexpr FieldList() = default;
  constexpr FieldList(std::initializer_list<Field> fields) : size_(fields.size()) {
    std::copy(fields.begin(), fields.end(), fields_.begin());
  }
  constexpr const Field* begin() const { return fields_.data(); }
  constexpr const Field* end() const { return fields_.data() + size_; }
  constexpr bool contains(Field field) const { return std::find(begin(), end(), field) != end(); }

 private:
  std::array<Field, 6> fields_{};
  std::size_t size_ = 0;
};

// Members of Op that come together. A rank has three names, for who owns the other side of what.
enum class OpField : std::uint8_t {
  operands,  // src_buffer (A) and b_buffer (B), of the own rank
  from,      // rank
  to,        // rank
  tile,      // buffer and rect
  rect,      // of no buffer
  k,         // k_begin, k_end
  source,    // src_rank, src_buffer, src_row, src_col
  counter,   // flag and index, of the own rank unless `home` says which
  value,
  home,      // rank
  ordering,  // scope, protocol
  items,     // k_begin, k_end; without them:
  limit,     // value
  skip,      // rect.rows
};

enum class Reads : std::uint8_t { nothing, operands, tile, source };
enum class Writes : std::uint8_t { nothing, over, onto };  // the tile is replaced, or added to

// What becomes of the accumulator.
enum class AccumulatorUse : std::uint8_t {
  none,
  replaced,
  added_to,
  multiplied_into,  // added to, but from zero behind a store
  written_out,
};

struct OpTraits {
  OpKind kind = OpKind::barrier;
  std::string_view name;
  FieldList<OpField> fields{};
  Reads reads = Reads::nothing;
  Writes writes = Writes::nothing;
  AccumulatorUse accumulator = AccumulatorUse::none;
  bool drains = false;  // the store that the workgroup has in flight comes first
  bool loads = false;   // the workgroup waits for what it loads: data, or the flag that it polls
  bool sent = false;    // waves of their own carry it out where the GPU has asynchronous tile stores
};

// By OpKind.
inline constexpr std::array<OpTraits, 11> kOpTraits{{
    {.kind = OpKind::matmul,
     .name = "matmul",
     .fields = {OpField::operands, OpField::rect, OpField::k},
     .reads = Reads::operands,
     .accumulator = AccumulatorUse::multiplied_into,
     .loads = true},
    {.kind = OpKind::load,
     .name = "load",
     .fields = {OpField::from, OpField::tile},
     .reads = Reads::tile,
     .accumulator = AccumulatorUse::replaced,
     .loads = true},
    {.kind = OpKind::store,
     .name = "store",
     .fields = {OpField::to, OpField::tile},
     .writes = Writes::over,
     .accumulator = AccumulatorUse::written_out,
     .drains = true,
     .sent = true},
    {.kind = OpKind::copy,
     .name = "copy",
     .fields = {OpField::to, OpField::tile, OpField::source},
     .reads = Reads::source,
     .writes = Writes::over,
     .drains = true},
    {.kind = OpKind::reduce,
     .name = "reduce",
     .fields = {OpField::from, OpField::tile},
     .reads = Reads::tile,
     .accumulator = AccumulatorUse::added_to,
     .loads = true},
    {.kind = OpKind::atomic_add,
     .name = "atomic_add",
     .fields = {OpField::to, OpField::tile},
     .writes = Writes::onto,
     .accumulator = AccumulatorUse::written_out,
     .drains = true},
    {.kind = OpKind::attend, .name = "attend", .fields = {OpField::rect}},
    {.kind = OpKind::signal,
     .name = "signal",
     .fields = {OpField::counter, OpField::value, OpField::home, OpField::ordering},
     .drains = true,
     .sent = true},
    {.kind = OpKind::wait,
     .name = "wait",
     .fields = {OpField::counter, OpField::value, OpField::ordering},
     .loads = true},
    {.kind = OpKind::barrier, .name = "barrier", .drains = true},
    {.kind = OpKind::claim,
     .name = "claim",
     .fields = {OpField::counter, OpField::items, OpField::limit, OpField::skip}},
}};

enum class HostField : std::uint8_t { kernel, graph, stream, event, transfer, label, duration };

struct HostOpTraits {
  HostOpKind kind = HostOpKind::barrier;
  std::string_view name;
  FieldList<HostField> fields{};  // `stream`: it takes its turn in a stream, or waits for one
};

// By HostOpKind.
inline constexpr std::array<HostOpTraits, 9> kHostOpTraits{{
    {HostOpKind::launch, "launch", {HostField::kernel, HostField::stream}},
    {HostOpKind::graph_launch, "graph_launch", {HostField::graph}},
    {HostOpKind::stream_synchronize, "stream_synchronize", {HostField::stream}},
    {HostOpKind::device_synchronize, "device_synchronize"},
    {HostOpKind::barrier, "barrier"},
    {HostOpKind::event_record, "event_record", {HostField::event, HostField::stream}},
    {HostOpKind::event_wait, "event_wait", {HostField::event, HostField::stream}},
    {HostOpKind::copy, "copy", {HostField::stream, HostField::transfer}},
    {HostOpKind::host_work, "host_work", {HostField::label, HostField::duration}},
}};

// Whether every row stands in the place of its kind.
template <typename Rows>
constexpr bool in_order_of_kinds(const Rows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].kind) != i) return false;
  }
  return true;
}
static_assert(in_order_of_kinds(kOpTraits) && in_order_of_kinds(kHostOpTraits));

constexpr const OpTraits& traits_of(OpKind kind) { return kOpTraits[static_cast<std::size_t>(kind)]; }
constexpr const HostOpTraits& traits_of(HostOpKind kind) {
  return kHostOpTraits[static_cast<std::size_t>(kind)];
}

template <typename Row, std::size_t rows>
constexpr std::array<std::string_view, rows> names_of(const std::array<Row, rows>& table) {
  std::array<std::string_view, rows> names;
  for (std::size_t i = 0; i < rows; ++i) names[i] = table[i].name;
  return names;
}
inline constexpr auto kOpKindNames = names_of(kOpTraits);
inline constexpr auto kHostOpKindNames = names_of(kHostOpTraits);

constexpr std::string_view name_of(OpKind kind) { return traits_of(kind).name; }
constexpr std::string_view name_of(HostOpKind kind) { return traits_of(kind).name; }

// A bit for every kind that has the property: hot loops ask without touching the table.
template <typename Property>
constexpr std::uint32_t kinds_with(Property property) {
  std::uint32_t kinds = 0;
  for (const OpTraits& row : kOpTraits) {
    if (property(row)) kinds |= 1u << static_cast<unsigned>(row.kind);
  }
  return kinds;
}
constexpr bool is_among(OpKind kind, std::uint32_t kinds) {
  return (kinds >> static_cast<unsigned>(kind) & 1u) != 0;
}

constexpr bool drains(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) { return row.drains; }));
}
constexpr bool loads(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) { return row.loads; }));
}
constexpr bool is_sent(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) { return row.sent; }));
}
// Stores, copies and atomic adds: they drain beside the operations that follow them in their workgroup.
constexpr bool is_asynchronous(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) { return row.writes != Writes::nothing; }));
}
// Loads and reductions: they move a tile into the accumulator.
constexpr bool loads_tile(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) { return row.reads == Reads::tile; }));
}
// Stores and atomic adds.
constexpr bool writes_out(OpKind kind) {
  return is_among(
      kind, kinds_with([](const OpTraits& row) { return row.accumulator == AccumulatorUse::written_out; }));
}
constexpr bool fills_accumulator(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) {
                    return row.accumulator != AccumulatorUse::none &&
                           row.accumulator != AccumulatorUse::written_out;
                  }));
}
// A tile goes between memory and the accumulator, or from memory to memory.
constexpr bool moves_data(OpKind kind) { return is_asynchronous(kind) || loads_tile(kind); }

// Which may be another than the own one.
constexpr bool names_rank(OpKind kind) {
  return is_among(kind, kinds_with([](const OpTraits& row) {
                    return row.fields.contains(OpField::from) || row.fields.contains(OpField::to) ||
                           row.fields.contains(OpField::home);
                  }));
}

constexpr bool has_stream(HostOpKind kind) { return traits_of(kind).fields.contains(HostField::stream); }

// Rectangles of operations that have them.
inline Region tile_of(const Op& op) { return {op.buffer, op.rank, op.rect}; }
inline Region source_of(const Op& op) {
  return {op.src_buffer, op.src_rank, {op.src_row, op.src_col, op.rect.rows, op.rect.cols}};
}
inline Region a_of(const Op& op, std::int32_t own_rank) {
  return {op.src_buffer, own_rank, {op.rect.row, op.k_begin, op.rect.rows, op.k_end - op.k_begin}};
}
inline Region b_of(const Op& op, std::int32_t own_rank) {
  return {op.b_buffer, own_rank, {op.k_begin, op.rect.col, op.k_end - op.k_begin, op.rect.cols}};
}

// Calls `visit(region)` for all that an operation of a rank reads.
template <typename Visit>
void for_each_read(const Op& op, std::int32_t own_rank, Visit&& visit) {
  switch (traits_of(op.kind).reads) {
    case Reads::nothing:
      return;
    case Reads::operands:
      visit(a_of(op, own_rank));
      visit(b_of(op, own_rank));
      return;
    case Reads::tile:
      return visit(tile_of(op));
    case Reads::source:
      return visit(source_of(op));
  }
}

// Calls `visit(region, adds)` for what an operation writes.
template <typename Visit>
void for_each_write(const Op& op, Visit&& visit) {
  const Writes writes = traits_of(op.kind).writes;
  if (writes != Writes::nothing) visit(tile_of(op), writes == Writes::onto);
}

// The operations of a workgroup.
inline std::span<const Op> ops_of(const Schedule& schedule, const Workgroup& workgroup) {
  return std::span(schedule.ops).subspan(workgroup.first_op, workgroup.op_count);
}

// Bytes of the tile of an operation that moves data.
inline double tile_bytes(const Schedule& schedule, const Op& op) {
  return bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
}

// Calls `visit(node)` for every kernel that a host operation, or a host program, launches.
template <typename Visit>
void for_each_launch(const Schedule& schedule, const HostOp& op, Visit&& visit) {
  if (op.kind == HostOpKind::launch) visit(GraphNode{op.kernel, op.stream});
  if (op.kind != HostOpKind::graph_launch) return;
  for (const GraphNode& node : schedule.graphs[static_cast<std::size_t>(op.graph)]) visit(node);
}
template <typename Visit>
void for_each_launch(const Schedule& schedule, const std::vector<HostOp>& program, Visit&& visit) {
  for (const HostOp& op : program) for_each_launch(schedule, op, visit);
}

}  // namespace tritax

// Properties of every kind of operation, for code that builds, checks, prints, runs, lowers and bounds
// schedules: one row per kind. The table says what an operation reads, writes and waits for, and how JSON
// writes it. Its effect and its cost are branches in the functional executor, the engine and the interpreter.
//
// Example: `copy` reads its source and overwrites its tile, so it drains while later operations run. It waits
// for its workgroup's store in flight, and its JSON form has the keys of `to`, `tile` and `source`.
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

// Groups of members of Op. The member `rank` has three names (from, to, home), by the role of that rank.
enum class OpField : std::uint8_t {
  operands,  // src_buffer (A) and b_buffer (B)
  heads,     // buffer (Q), src_buffer (K), b_buffer (V), src_col, of the own rank
  mask,      // value, index
  backward,  // buffer (K | V), src_buffer (Q), b_buffer (dO), index, src_row, src_col, value, of the own rank
  from,      // rank
  to,        // rank
  tile,      // buffer and rect
  rect,      // of no buffer
  k,         // k_begin, k_end
  source,    // src_rank, src_buffer, src_row, src_col
  counter,   // flag and index, of the own rank without `home`
  value,
  home,      // rank
  ordering,  // scope, protocol
  form,      // change, order
  items,     // k_begin, k_end; without them:
  limit,     // value
  skip,      // rect.rows
  sparse,    // index, src_buffer (values), b_buffer (x), src_col, of the own rank
  lanes,     // src_row, value
  group,     // with_previous
  multimem,
  engine,  // by_engine
  owner,   // of A: value
};
enum class HostField : std::uint8_t { kernel, graph, stream, event, transfer, label, duration };

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

enum class Reads : std::uint8_t { nothing, operands, heads, tile, source, sparse, backward };
enum class Writes : std::uint8_t { nothing, over, onto };  // `over` replaces the tile, `onto` adds to it

// Effect on the accumulator; `multiplied_into` adds, but starts from zero after a store.
enum class AccumulatorUse : std::uint8_t { none, replaced, added_to, multiplied_into, written_out };

struct OpOrder {
  bool drains = false;  // waits for the workgroup's store in flight
  bool loads = false;   // the workgroup waits for loaded data, or for the flag that it polls
  bool sent = false;    // sending waves execute it on GPUs with asynchronous tile stores
};

struct OpTraits {
  OpKind kind = OpKind::barrier;
  std::string_view name;
  FieldList<OpField> fields{};
  Reads reads = Reads::nothing;
  Writes writes = Writes::nothing;
  AccumulatorUse accumulator = AccumulatorUse::none;
  OpOrder order{};
};

struct HostOpTraits {
  HostOpKind kind = HostOpKind::barrier;
  std::string_view name;
  FieldList<HostField> fields{};  // `stream`: runs in stream order, or waits for a stream
};

constexpr auto op_traits_table() {
  using K = OpKind;
  using F = OpField;
  using W = Writes;
  using A = AccumulatorUse;
  constexpr OpOrder drains{.drains = true}, loads{.loads = true}, sent{.drains = true, .sent = true};
  return std::array{
      OpTraits{K::matmul,
               "matmul",
               {F::operands, F::rect, F::k, F::owner},
               Reads::operands,
               {},
               A::multiplied_into,
               loads},
      OpTraits{K::load, "load", {F::from, F::tile, F::multimem}, Reads::tile, {}, A::replaced, loads},
      OpTraits{K::store, "store", {F::to, F::tile, F::group, F::multimem}, {}, W::over, A::written_out, sent},
      OpTraits{K::copy,
               "copy",
               {F::to, F::tile, F::source, F::group, F::engine},
               Reads::source,
               W::over,
               {},
               drains},
      OpTraits{K::reduce,
               "reduce",
               {F::from, F::tile, F::group, F::multimem},
               Reads::tile,
               {},
               A::added_to,
               loads},
      OpTraits{K::atomic_add, "atomic_add", {F::to, F::tile, F::group}, {}, W::onto, A::written_out, drains},
      OpTraits{K::attend,
               "attend",
               {F::heads, F::rect, F::k, F::mask},
               Reads::heads,
               {},
               A::multiplied_into,
               loads},
      OpTraits{K::combine, "combine", {F::from, F::tile, F::group}, Reads::tile, {}, A::added_to, loads},
      OpTraits{K::signal,
               "signal",
               {F::counter, F::value, F::home, F::ordering, F::form, F::group},
               {},
               {},
               {},
               sent},
      OpTraits{K::wait, "wait", {F::counter, F::value, F::ordering, F::group}, {}, {}, {}, loads},
      OpTraits{K::barrier, "barrier", {}, {}, {}, {}, drains},
      OpTraits{K::claim, "claim", {F::counter, F::items, F::limit, F::skip}},
      OpTraits{K::sparse_product,
               "sparse_product",
               {F::sparse, F::rect, F::k, F::lanes},
               Reads::sparse,
               {},
               A::replaced,
               loads},
      OpTraits{K::rms_norm, "rms_norm", {F::from, F::tile}, Reads::tile, {}, A::added_to, loads},
      OpTraits{K::row_dot, "row_dot", {F::from, F::tile}, Reads::tile, {}, A::added_to, loads},
      OpTraits{K::attend_backward,
               "attend_backward",
               {F::backward, F::rect, F::k},
               Reads::backward,
               W::onto,
               A::multiplied_into,
               {.drains = true, .loads = true}},
  };
}
inline constexpr auto kOpTraits = op_traits_table();  // by OpKind

inline constexpr std::array<HostOpTraits, 9> kHostOpTraits{{
    // by HostOpKind
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

template <typename Rows>
constexpr bool in_order_of_kinds(const Rows& rows) {
  std::size_t place = 0;
  return std::all_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return static_cast<std::size_t>(row.kind) == place++; });
}
static_assert(in_order_of_kinds(kOpTraits) && in_order_of_kinds(kHostOpTraits));

template <typename Row, std::size_t rows>
constexpr std::array<std::string_view, rows> names_of(const std::array<Row, rows>& table) {
  std::array<std::string_view, rows> names;
  for (std::size_t i = 0; i < rows; ++i) names[i] = table[i].name;
  return names;
}
inline constexpr auto kOpKindNames = names_of(kOpTraits);
inline constexpr auto kHostOpKindNames = names_of(kHostOpTraits);

constexpr const OpTraits& traits_of(OpKind kind) { return kOpTraits[static_cast<std::size_t>(kind)]; }
constexpr const HostOpTraits& traits_of(HostOpKind kind) {
  return kHostOpTraits[static_cast<std::size_t>(kind)];
}
constexpr std::string_view name_of(OpKind kind) { return traits_of(kind).name; }
constexpr std::string_view name_of(HostOpKind kind) { return traits_of(kind).name; }

// Whether the row of a kind has a property. Tests a bit of a constant, so that hot loops do not read the
// table.
template <typename Property>
constexpr bool has(OpKind kind, Property) {
  constexpr std::uint32_t kinds = [] {
    std::uint32_t found = 0;
    for (const OpTraits& row : kOpTraits)
      found |= std::uint32_t{Property{}(row)} << static_cast<int>(row.kind);
    return found;
  }();
  return (kinds >> static_cast<int>(kind) & 1u) != 0;
}

constexpr bool drains(OpKind kind) {
  return has(kind, [](auto& row) { return row.order.drains; });
}
constexpr bool loads(OpKind kind) {
  return has(kind, [](auto& row) { return row.order.loads; });
}
constexpr bool is_sent(OpKind kind) {
  return has(kind, [](auto& row) { return row.order.sent; });
}
// A relaxed signal waits for no store. Sending waves execute neither that nor what the switch carries out.
inline bool is_relaxed(const Op& op) { return op.kind == OpKind::signal && op.order == MemoryOrder::relaxed; }
inline bool drains(const Op& op) { return drains(op.kind) && !is_relaxed(op); }
inline bool is_sent(const Op& op) { return is_sent(op.kind) && !is_relaxed(op) && !op.multimem; }
inline bool sets_flag(const Op& op) { return op.kind == OpKind::signal && op.change == FlagChange::set; }
// Matmuls and attention: matrix cores work on streaming operands.
constexpr bool multiplies(OpKind kind) {
  return has(kind, [](auto& row) { return row.accumulator == AccumulatorUse::multiplied_into; });
}
// Attention forward and backward.
constexpr bool attends(OpKind kind) { return kind == OpKind::attend || kind == OpKind::attend_backward; }
constexpr bool writes_memory(OpKind kind) {
  return has(kind, [](auto& row) { return row.writes != Writes{}; });
}
// Stores, copies and atomic adds: writes drain while later operations run. The additions of attend_backward
// end with it.
constexpr bool is_asynchronous(OpKind kind) { return writes_memory(kind) && !multiplies(kind); }
// Operations with log-sum-exps beside the accumulator.
constexpr bool merges(OpKind kind) { return kind == OpKind::attend || kind == OpKind::combine; }
// Loads, reductions, combinations, normalisations and row products: a tile enters the accumulator.
constexpr bool loads_tile(OpKind kind) {
  return has(kind, [](auto& row) { return row.reads == Reads::tile; });
}
// A tile moves between memory and the accumulator, or from memory to memory.
constexpr bool moves_data(OpKind kind) { return is_asynchronous(kind) || loads_tile(kind); }
// Stores and atomic adds.
constexpr bool writes_out(OpKind kind) {
  return has(kind, [](auto& row) { return row.accumulator == AccumulatorUse::written_out; });
}
constexpr bool fills_accumulator(OpKind kind) {
  return has(kind, [](auto& row) { return row.accumulator != AccumulatorUse::none; }) && !writes_out(kind);
}
// Whether the operation names a rank.
constexpr bool names_rank(OpKind kind) {
  using F = OpField;
  return has(kind, [](auto& row) {
    return row.fields.contains(F::from) || row.fields.contains(F::to) || row.fields.contains(F::home);
  });
}
// Whether a matmul reads A from the memory of a peer.
inline bool fetches_a(const Op& op) { return op.kind == OpKind::matmul && op.value > 0; }
// Op::value of a matmul of a rank that reads A of `owner`.
constexpr std::int32_t owner_value(std::int32_t owner, std::int32_t own_rank) {
  return owner == own_rank ? 0 : owner + 1;
}
// The rank whose A a matmul reads.
inline std::int32_t owner_of_a(const Op& op, std::int32_t own_rank) {
  return fetches_a(op) ? op.value - 1 : own_rank;
}
// The other side of an operation of a rank; the own rank if there is no other side.
inline std::int32_t peer_of(const Op& op, std::int32_t own_rank) {
  if (fetches_a(op)) return owner_of_a(op, own_rank);
  if (!names_rank(op.kind)) return own_rank;
  const bool fetches = traits_of(op.kind).reads == Reads::source && op.rank == own_rank;
  return fetches ? op.src_rank : op.rank;
}

// Regions of operations that have them.
inline Region tile_of(const Op& op) { return {op.buffer, op.rank, op.rect}; }
inline Region source_of(const Op& op) {
  return {op.src_buffer, op.src_rank, {op.src_row, op.src_col, op.rect.rows, op.rect.cols}};
}
inline Region a_of(const Op& op, std::int32_t own_rank) {
  return {op.src_buffer,
          owner_of_a(op, own_rank),
          {op.rect.row, op.k_begin, op.rect.rows, op.k_end - op.k_begin}};
}
inline Region b_of(const Op& op, std::int32_t own_rank) {
  return {op.b_buffer, own_rank, {op.k_begin, op.rect.col, op.k_end - op.k_begin, op.rect.cols}};
}

// The load of A that a matmul of a peer's A makes, as an operation of its own.
inline Op load_of_a(const Op& op, std::int32_t own_rank) {
  const Region a = a_of(op, own_rank);
  Op load;
  load.kind = OpKind::load;
  load.rank = static_cast<std::int16_t>(a.rank);
  load.buffer = a.buffer;
  load.rect = a.rect;
  return load;
}

inline Region keys_of(const Op& op, std::int32_t own_rank) {
  return {op.src_buffer, own_rank, {op.k_begin, op.src_col, op.k_end - op.k_begin, op.rect.cols}};
}
inline Region values_of(const Op& op, std::int32_t own_rank) {
  Region values = keys_of(op, own_rank);
  values.buffer = op.b_buffer;
  return values;
}

// Regions of an attend_backward, which has the keys and values of a head in `rect`: the queries, the
// gradients of their results, their statistics, and the gradients of the queries.
inline std::int32_t depth_of_backward(const Op& op) { return std::max(1, op.rect.cols / 2); }
inline Region queries_of_backward(const Op& op, std::int32_t own_rank, std::int16_t buffer) {
  return {buffer, own_rank, {op.k_begin, op.src_col, op.k_end - op.k_begin, depth_of_backward(op)}};
}
inline Region statistics_of(const Op& op, std::int32_t own_rank) {
  const std::int32_t head = op.src_col / depth_of_backward(op);
  return {static_cast<std::int16_t>(op.index), own_rank, {op.k_begin, 2 * head, op.k_end - op.k_begin, 2}};
}
inline Region query_gradients_of(const Op& op, std::int32_t own_rank) {
  return queries_of_backward(op, own_rank, static_cast<std::int16_t>(op.src_row));
}

// Regions of a sparse_product: all of x, and the values of its nonzeros, possibly none.
inline Region x_of(const Op& op, std::int32_t own_rank) {
  return {op.b_buffer, own_rank, {0, 0, op.src_col, 1}};
}
inline Region nonzeros_of(const Op& op, std::int32_t own_rank) {
  return {op.src_buffer, own_rank, {0, op.k_begin, 1, op.k_end - op.k_begin}};
}

// Calls `visit(region)` for every region that an operation of a rank reads.
template <typename Visit>
void for_each_read(const Op& op, std::int32_t own_rank, Visit&& visit) {
  switch (traits_of(op.kind).reads) {
    case Reads::nothing:
      return;
    case Reads::operands:
      visit(a_of(op, own_rank));
      visit(b_of(op, own_rank));
      return;
    case Reads::heads:
      visit({op.buffer, own_rank, op.rect});
      visit(keys_of(op, own_rank));
      visit(values_of(op, own_rank));
      return;
    case Reads::backward:
      visit({op.buffer, own_rank, op.rect});
      visit(queries_of_backward(op, own_rank, op.src_buffer));
      visit(queries_of_backward(op, own_rank, op.b_buffer));
      visit(statistics_of(op, own_rank));
      return;
    case Reads::sparse:
      visit(x_of(op, own_rank));
      if (op.k_end > op.k_begin) visit(nonzeros_of(op, own_rank));
      return;
    case Reads::tile:
      return visit(tile_of(op));
    case Reads::source:
      return visit(source_of(op));
  }
}

// Calls `visit(region, adds)` for the region that an operation writes, if any.
template <typename Visit>
void for_each_write(const Op& op, Visit&& visit) {
  const Writes writes = traits_of(op.kind).writes;
  if (writes == Writes::nothing) return;
  visit(op.kind == OpKind::attend_backward ? query_gradients_of(op, op.rank) : tile_of(op),
        writes == Writes::onto);
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

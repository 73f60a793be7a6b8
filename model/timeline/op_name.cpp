#include "model/timeline/op_name.hpp"
#include "model/schedule/op_traits.hpp"

#include <fmt/format.h>

#include "model/schedule/items.hpp"

namespace tritax {

namespace {

// " -> GPU 2" or " <- GPU 2" for the other side, nothing for the own GPU.
std::string other_side(const char* arrow, int other, int rank) {
  return other == rank ? std::string() : fmt::format(" {} GPU {}", arrow, other);
}

}  // namespace

std::string tile_name(const Buffer& buffer, const Rect& rect) {
  if (buffer.tile_rows <= 0 || buffer.tile_cols <= 0) {
    return buffer.name;
  }
  const bool aligned = rect.row % buffer.tile_rows == 0 && rect.col % buffer.tile_cols == 0;
  return fmt::format("{}[{},{}]{}", buffer.name, rect.row / buffer.tile_rows, rect.col / buffer.tile_cols,
                     aligned ? "" : "+");
}

std::string region_name(const Buffer& buffer, const Rect& rect) {
  return fmt::format("{}[{}:{}, {}:{}]", buffer.name, rect.row, rect.row + rect.rows, rect.col,
                     rect.col + rect.cols);
}

std::vector<std::int32_t> accumulator_sinks(const Schedule& schedule) {
  std::vector<std::int32_t> sinks(schedule.ops.size(), -1);
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      std::int32_t sink = -1;
      for (std::uint32_t op = program.first_op + program.op_count; op-- > program.first_op;) {
        if (writes_out(schedule.ops[op].kind)) sink = static_cast<std::int32_t>(op);
        sinks[op] = sink;
      }
    }
  }
  return sinks;
}

std::string host_op_name(const Schedule& schedule, const HostOp& op) {
  if (op.kind == HostOpKind::host_work) return op.label;
  std::string name(name_of(op.kind));
  if (op.kind == HostOpKind::launch) name += ' ' + schedule.kernels[static_cast<std::size_t>(op.kernel)].name;
  return name;
}

std::string transfer_name(const Schedule& schedule, const Op& transfer) {
  const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(transfer.buffer)];
  return fmt::format("copy {} GPU {} -> GPU {}", region_name(buffer, transfer.rect), transfer.src_rank,
                     transfer.rank);
}

std::string op_name(const Schedule& schedule, const std::vector<std::int32_t>& sinks, std::size_t index,
                    int rank) {
  const Op& op = schedule.ops[index];
  const FieldList<OpField>& fields = traits_of(op.kind).fields;
  std::string text(name_of(op.kind));
  const auto add_tile = [&](const Op& of) {
    text += ' ';
    text += tile_name(schedule.buffers[static_cast<std::size_t>(of.buffer)], of.rect);
  };
  if (multiplies(op.kind) && sinks[index] >= 0) {
    add_tile(schedule.ops[static_cast<std::size_t>(sinks[index])]);
  }
  if (fields.contains(OpField::tile)) add_tile(op);
  if (fields.contains(OpField::counter)) {
    text += fmt::format(" {}[{}]", schedule.flags[static_cast<std::size_t>(op.flag)].name, op.index);
  }
  if (fetches_a(op)) text += other_side("<-", owner_of_a(op, rank), rank);
  if (fields.contains(OpField::from)) text += other_side("<-", op.rank, rank);
  if (fields.contains(OpField::source)) text += other_side("<-", op.src_rank, rank);
  if (fields.contains(OpField::to) || fields.contains(OpField::home)) text += other_side("->", op.rank, rank);
  if (op.kind == OpKind::wait) text += fmt::format(" >= {}", op.value);
  if (draws_items(op)) text += fmt::format(" of {} items", item_count(op));
  return text;
}

}  // namespace tritax

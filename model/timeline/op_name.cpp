#include "model/timeline/op_name.hpp"
#include "model/schedule/op_traits.hpp"

#include <fmt/format.h>

#include "model/schedule/items.hpp"

namespace tritax {

namespace {

const Buffer& buffer_of(const Schedule& schedule, std::int16_t buffer) {
  return schedule.buffers[static_cast<std::size_t>(buffer)];
}

std::string flag_name(const Schedule& schedule, const Op& op) {
  return fmt::format("{}[{}]", schedule.flags[static_cast<std::size_t>(op.flag)].name, op.index);
}

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

std::string op_name(const Schedule& schedule, const std::vector<std::int32_t>& sinks, std::size_t index,
                    int rank) {
  const Op& op = schedule.ops[index];
  const std::string_view kind = name_of(op.kind);
  switch (op.kind) {
    case OpKind::matmul: {
      if (sinks[index] < 0) {
        return std::string(kind);
      }
      const Op& sink = schedule.ops[static_cast<std::size_t>(sinks[index])];
      return fmt::format("{} {}", kind, tile_name(buffer_of(schedule, sink.buffer), sink.rect));
    }
    case OpKind::load:
    case OpKind::reduce:
      return fmt::format("{} {}{}", kind, tile_name(buffer_of(schedule, op.buffer), op.rect),
                         other_side("<-", op.rank, rank));
    case OpKind::store:
    case OpKind::atomic_add:
      return fmt::format("{} {}{}", kind, tile_name(buffer_of(schedule, op.buffer), op.rect),
                         other_side("->", op.rank, rank));
    case OpKind::copy:
      return fmt::format("{} {}{}{}", kind, tile_name(buffer_of(schedule, op.buffer), op.rect),
                         other_side("<-", op.src_rank, rank), other_side("->", op.rank, rank));
    case OpKind::signal:
      return fmt::format("{} {}{}", kind, flag_name(schedule, op), other_side("->", op.rank, rank));
    case OpKind::wait:
      return fmt::format("{} {} >= {}", kind, flag_name(schedule, op), op.value);
    case OpKind::claim:
      return fmt::format("{} {}{}", kind, flag_name(schedule, op),
                         draws_items(op) ? fmt::format(" of {} items", item_count(op)) : "");
    case OpKind::attend:
    case OpKind::barrier:
      return std::string(kind);
  }
  return std::string(kind);
}

}  // namespace tritax

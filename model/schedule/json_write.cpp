// Writes the JSON form of a schedule directly, without a JSON tree: one operation per line is more readable
// than one key per line, and schedules of 10^5 operations are common.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/json_fields.hpp"
#include "model/schedule/names.hpp"

namespace tritax {

namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A reference is the name if it is unique, otherwise the number.
template <typename Items>
std::vector<std::string> references(const Items& items) {
  const UniqueNames names(items);
  std::vector<std::string> result;
  result.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool unique = names.find(items[i].name) == static_cast<std::int64_t>(i);
    result.push_back(unique ? json_string(items[i].name) : fmt::to_string(i));
  }
  return result;
}

class Writer {
 public:
  Writer(const Schedule& schedule, bool pretty)
      : schedule_(schedule),
        pretty_(pretty),
        buffers_(references(schedule.buffers)),
        flags_(references(schedule.flags)),
        kernel_names_(schedule) {}

  std::string write() {
    raw("{");
    line(1, R"("schema": "tritax.schedule/1",)");
    line(1, fmt::format(R"("name": {},)", json_string(schedule_.name)));
    line(1, fmt::format(R"("ranks": {},)", schedule_.ranks));
    if (schedule_.one_process) line(1, fmt::format(R"("processes": "{}",)", kOneProcess));
    if (schedule_.result_buffer >= 0) {
      line(1, fmt::format(R"("result": {},)", reference(buffers_, schedule_.result_buffer)));
    }
    list(1, "buffers", schedule_.buffers, [this](const Buffer& buffer) { write_buffer(buffer); });
    if (!schedule_.sparse.empty()) {
      list(1, "sparse", schedule_.sparse, [this](const auto& matrix) { write_sparse(*matrix); });
    }
    write_reference();
    list(1, "flags", schedule_.flags, [this](const FlagArray& flag) {
      put(R"({{"name": {}, "count": {}}})", json_string(flag.name), flag.count);
    });
    list(1, "kernels", schedule_.kernels, [this](const Kernel& kernel) { write_kernel(kernel); });
    if (!schedule_.graphs.empty()) {
      list(1, "graphs", schedule_.graphs, [this](const Graph& graph) { write_graph(graph); });
    }
    line(1, R"("host": [)");
    for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) {
      line(2, "[");
      write_items(3, schedule_.host[rank],
                  [this, rank](const HostOp& op) { write_host_op(op, static_cast<std::int32_t>(rank)); });
      line(2, rank + 1 < schedule_.host.size() ? "]," : "]");
    }
    line(1, "]");
    line(0, "}");
    if (pretty_) {
      raw("\n");
    }
    return fmt::to_string(out_);
  }

 private:
  void raw(std::string_view text) { out_.append(text.data(), text.data() + text.size()); }

  void newline(int depth) {
    if (pretty_) {
      out_.push_back('\n');
      for (int i = 0; i < depth; ++i) {
        raw("  ");
      }
    }
  }

  void line(int depth, std::string_view text) {
    newline(depth);
    raw(text);
  }

  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  template <typename Items, typename WriteItem>
  void write_items(int depth, const Items& items, WriteItem write_item) {
    bool first = true;
    for (const auto& item : items) {
      if (!first) {
        raw(",");
      }
      first = false;
      newline(depth);
      write_item(item);
    }
  }

  template <typename Items, typename WriteItem>
  void list(int depth, std::string_view key, const Items& items, WriteItem write_item) {
    line(depth, fmt::format(R"("{}": [)", key));
    write_items(depth + 1, items, write_item);
    line(depth, "],");
  }

  static std::string reference(const std::vector<std::string>& names, std::int64_t index) {
    const bool known = index >= 0 && index < static_cast<std::int64_t>(names.size());
    return known ? names[static_cast<std::size_t>(index)] : fmt::to_string(index);
  }

  std::string kernel_reference(std::int32_t kernel, std::int32_t rank) const {
    if (kernel >= 0 && static_cast<std::size_t>(kernel) < schedule_.kernels.size()) {
      const std::string& name = schedule_.kernels[static_cast<std::size_t>(kernel)].name;
      if (kernel_names_.find(name, rank) == kernel) {
        return json_string(name);
      }
    }
    return fmt::to_string(kernel);
  }

  void write_buffer(const Buffer& buffer) {
    put(R"({{"name": {}, "dtype": "{}", "shape": [{}, {}], "tile": [{}, {}])", json_string(buffer.name),
        name_of(buffer.dtype), buffer.rows, buffer.cols, buffer.tile_rows, buffer.tile_cols);
    if (buffer.codec != Codec::same) put(R"(, "codec": "{}")", name_of(buffer.codec));
    put("}}");
  }

  void write_sparse(const SparseMatrix& matrix) {
    put(R"({{"name": {}, "shape": [{}, {}], "offsets": [{}], "columns": [{}]}})", json_string(matrix.name),
        matrix.rows, matrix.cols, fmt::join(matrix.offsets, ", "), fmt::join(matrix.columns, ", "));
  }

  // Also writes empty lists, because a reader would infer missing lists.
  void write_reference() {
    if (schedule_.inputs.empty() && schedule_.reference.empty() && schedule_.result_buffer < 0) return;
    list(1, "inputs", schedule_.inputs, [this](const Input& input) {
      raw("{");
      write_region(input.region);
      put(R"(, "group": {})", input.group);
      if (input.values != InputValues::own) {
        put(R"(, "values": "{}")", kInputValuesNames[static_cast<std::size_t>(input.values)]);
      }
      raw("}");
    });
    list(1, "reference", schedule_.reference, [this](const ReferenceOp& op) {
      put(R"({{"op": "{}")", kReferenceKindNames[static_cast<std::size_t>(op.kind)]);
      const auto region = [this](std::string_view key, const Region& it) {
        put(R"(, "{}": {{)", key);
        write_region(it);
        raw("}");
      };
      region("to", op.to);
      region("a", op.a);
      if (has_b(op.kind)) region("b", op.b);
      if (op.kind == ReferenceKind::sparse_product) put(R"(, "sparse": {})", op.index);
      if (has_c(op.kind)) region("c", op.c);
      if (op.kind == ReferenceKind::attention_backward) region("d", op.d);
      if (has_c(op.kind)) write_unless("limit", op.limit, 0);
      if (op.kind == ReferenceKind::attention) write_unless("group", op.group, 1);
      write_unless("add", op.add, false);
      raw("}");
    });
  }

  void write_region(const Region& region) {
    put(R"("buffer": {})", reference(buffers_, region.buffer));
    write_unless("rank", region.rank, kEveryRank);
    write_rect(region.rect);
  }

  void write_kernel(const Kernel& kernel) {
    const Resources usual;
    put(R"({{"name": {}, "rank": {})", json_string(kernel.name), kernel.rank);
    if (kernel.profile != KernelProfile::interpreter) {
      put(R"(, "profile": "{}")", kKernelProfileNames[static_cast<std::size_t>(kernel.profile)]);
    }
    write_unless("threads", kernel.resources.threads, usual.threads);
    write_unless("registers_per_thread", kernel.resources.registers_per_thread, usual.registers_per_thread);
    write_unless("lds_bytes", kernel.resources.lds_bytes, usual.lds_bytes);
    const MatmulTile& tile = kernel.tile;
    if (tile.m != 0 || tile.n != 0 || tile.k != 0 || tile.waves != 0 || tile.pipeline != Pipeline::serial) {
      put(R"(, "tile": {{"m": {}, "n": {}, "k": {}, "waves": {}, "pipeline": "{}")", tile.m, tile.n, tile.k,
          tile.waves, kPipelineNames[static_cast<std::size_t>(tile.pipeline)]);
      write_unless("producers", tile.producers, 0);
      raw("}");
    }
    if (kernel.placement != Placement::dispatch) {
      put(R"(, "placement": "{}")", kPlacementNames[static_cast<std::size_t>(kernel.placement)]);
    }
    if (kernel.cu_begin != 0 || kernel.cu_end != 0) {
      put(R"(, "cus": [{}, {}])", kernel.cu_begin, kernel.cu_end);
    }
    if (kernel.library.routine != LibraryRoutine::none) write_library(kernel.library);
    write_unless("payload_share", kernel.payload_share, 1.0);
    write_unless("start_ns", kernel.start_ns, 0.0);
    write_unless("clk_per_stored_byte", kernel.clk_per_stored_byte, 0.0);
    write_unless("registers_filled", kernel.registers_filled, false);
    raw(R"(, "workgroups": [)");
    write_items(3, kernel.workgroups,
                [this, &kernel](const Workgroup& workgroup) { write_program(kernel, workgroup); });
    if (!kernel.items.empty()) {
      line(2, R"(], "items": [)");
      write_items(3, kernel.items, [this, &kernel](const Item& item) { write_program(kernel, item); });
    }
    line(2, "]}");
  }

  void write_library(const LibraryKernel& library) {
    put(R"(, "library": {{"routine": "{}")", kLibraryRoutineNames[static_cast<std::size_t>(library.routine)]);
    write_unless("bytes", library.bytes, 0.0);
    for (const LibraryKernelCount& count : kLibraryKernelCounts)
      write_unless(count.name, library.*count.member, 0);
    if (library.rows > 0) put(R"(, "dtype": "{}")", kDTypeNames[static_cast<std::size_t>(library.dtype)]);
    raw("}");
  }

  template <typename Value>
  void write_unless(std::string_view key, Value value, Value usual) {
    if (value != usual) {
      put(R"(, "{}": {})", key, value);
    }
  }

  void write_program(const Kernel& kernel, const Workgroup& program) {
    TRITAX_ASSERT(std::uint64_t{program.first_op} + program.op_count <= schedule_.ops.size(),
                  "the operations of a workgroup lie inside the schedule");
    raw(R"({"ops": [)");
    for (std::uint32_t i = 0; i < program.op_count; ++i) {
      if (i > 0) {
        raw(",");
      }
      newline(4);
      write_op(schedule_.ops[program.first_op + i], kernel.rank);
    }
    raw("]}");
  }

  void write_op(const Op& op, std::int32_t own) {
    put(R"({{"op": "{}")", name_of(op.kind));
    write_fields(op, own);
    raw("}");
  }

  void write_fields(const Op& op, std::int32_t own) {
    for (const OpField field : traits_of(op.kind).fields) write_field(field, op, own);
  }

  void write_field(OpField field, const Op& op, std::int32_t own) {
    switch (field) {
      case OpField::operands:
        return put(R"(, "a": {}, "b": {})", reference(buffers_, op.src_buffer),
                   reference(buffers_, op.b_buffer));
      case OpField::heads:
        put(R"(, "queries": {}, "keys": {}, "values": {})", reference(buffers_, op.buffer),
            reference(buffers_, op.src_buffer), reference(buffers_, op.b_buffer));
        return write_unless("column", op.src_col, 0);
      case OpField::mask:
        write_unless("limit", op.value, 0);
        return write_unless("group", op.index, 1);
      case OpField::backward:
        put(R"(, "queries": {}, "keys_values": {}, "result_gradients": {}, "statistics": {})",
            reference(buffers_, op.src_buffer), reference(buffers_, op.buffer),
            reference(buffers_, op.b_buffer), reference(buffers_, op.index));
        put(R"(, "query_gradients": {})", reference(buffers_, op.src_row));
        write_unless("column", op.src_col, 0);
        return write_unless("limit", op.value, 0);
      case OpField::from:
      case OpField::to:
      case OpField::home:
        return write_unless<std::int32_t>(kOpFieldKeys[static_cast<std::size_t>(field)], op.rank, own);
      case OpField::tile:
        put(R"(, "buffer": {})", reference(buffers_, op.buffer));
        [[fallthrough]];
      case OpField::rect:
        return write_rect(op.rect);
      case OpField::k:
        return put(R"(, "k": [{}, {}])", op.k_begin, op.k_end);
      case OpField::source:
        return put(R"(, "from": {{"rank": {}, "buffer": {}, "at": [{}, {}]}})", op.src_rank,
                   reference(buffers_, op.src_buffer), op.src_row, op.src_col);
      case OpField::counter:
        return put(R"(, "flag": {}, "index": {})", reference(flags_, op.flag), op.index);
      case OpField::value:
        return put(R"(, "value": {})", op.value);
      case OpField::ordering:
        if (op.scope != Scope::gpu) {
          put(R"(, "scope": "{}")", kScopeNames[static_cast<std::size_t>(op.scope)]);
        }
        if (op.protocol != LockProtocol::load_store) {
          put(R"(, "protocol": "{}")", kLockProtocolNames[static_cast<std::size_t>(op.protocol)]);
        }
        return;
      case OpField::form:
        if (op.change != FlagChange::add) {
          put(R"(, "change": "{}")", kFlagChangeNames[static_cast<std::size_t>(op.change)]);
        }
        if (op.order != MemoryOrder::release) {
          put(R"(, "order": "{}")", kMemoryOrderNames[static_cast<std::size_t>(op.order)]);
        }
        return;
      case OpField::items:
        if (draws_items(op)) put(R"(, "items": [{}, {}])", op.k_begin, op.k_end);
        return;
      case OpField::limit:
        if (!draws_items(op)) put(R"(, "limit": {})", op.value);
        return;
      case OpField::skip:
        if (!draws_items(op)) put(R"(, "skip": {})", op.rect.rows);
        return;
      case OpField::sparse:
        return put(R"(, "sparse": {}, "values": {}, "x": {}, "columns": {})", op.index,
                   reference(buffers_, op.src_buffer), reference(buffers_, op.b_buffer), op.src_col);
      case OpField::lanes:
        return put(R"(, "sharing": "{}", "lanes": {})",
                   kLaneSharingNames[static_cast<std::size_t>(op.src_row)], op.value);
      case OpField::group:
        if (op.with_previous) put(R"(, "with_previous": true)");
        return;
      case OpField::engine:
        if (op.by_engine) put(R"(, "by_engine": true)");
        return;
      case OpField::owner:
        return write_unless("owner", owner_of_a(op, own), own);
      case OpField::multimem:
        if (op.multimem) put(R"(, "multimem": true)");
        return;
    }
  }

  void write_rect(const Rect& rect) {
    put(R"(, "at": [{}, {}], "shape": [{}, {}])", rect.row, rect.col, rect.rows, rect.cols);
  }

  // Kernel names are looked up on one rank; a graph has the rank of its first kernel.
  void write_graph(const Graph& graph) {
    std::int32_t rank = 0;
    if (!graph.empty() && graph[0].kernel >= 0 &&
        static_cast<std::size_t>(graph[0].kernel) < schedule_.kernels.size()) {
      rank = schedule_.kernels[static_cast<std::size_t>(graph[0].kernel)].rank;
    }
    put(R"({{"rank": {}, "nodes": [)", rank);
    write_items(3, graph, [this, rank](const GraphNode& node) {
      put(R"({{"kernel": {})", kernel_reference(node.kernel, rank));
      write_unless("stream", node.stream, 0);
      raw("}");
    });
    raw("]}");
  }

  void write_host_op(const HostOp& op, std::int32_t rank) {
    put(R"({{"op": "{}")", name_of(op.kind));
    for (const HostField field : traits_of(op.kind).fields) write_host_field(field, op, rank);
    raw("}");
  }

  void write_host_field(HostField field, const HostOp& op, std::int32_t rank) {
    switch (field) {
      case HostField::kernel:
        return put(R"(, "kernel": {})", kernel_reference(op.kernel, rank));
      case HostField::graph:
        return put(R"(, "graph": {})", op.graph);
      case HostField::stream:
        return write_unless("stream", op.stream, 0);
      case HostField::event:
        return put(R"(, "event": {})", op.event);
      case HostField::transfer:
        TRITAX_ASSERT(static_cast<std::size_t>(op.transfer) < schedule_.transfers.size(),
                      "the transfer of a copy lies inside the schedule");
        return write_fields(schedule_.transfers[static_cast<std::size_t>(op.transfer)], rank);
      case HostField::label:
        return put(R"(, "label": {})", json_string(op.label));
      case HostField::duration:
        if (op.duration_ns >= 0) put(R"(, "duration_ns": {})", op.duration_ns);
        return;
    }
  }

  const Schedule& schedule_;
  bool pretty_;
  std::vector<std::string> buffers_;
  std::vector<std::string> flags_;
  KernelNames kernel_names_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string schedule_to_json(const Schedule& schedule, bool pretty) {
  return Writer(schedule, pretty).write();
}

}  // namespace tritax

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/json_fields.hpp"
#include "model/schedule/json_reader.hpp"
#include "model/schedule/names.hpp"
#include "model/schedule/relax.hpp"

namespace tritax {

namespace {

constexpr std::string_view kSchema = "tritax.schedule/1";

// The keys of every HostField.
constexpr std::array<std::string_view, 7> kHostFieldKeys{
    "kernel", "graph", "stream", "event", "to buffer at shape from", "label", "duration_ns"};

// By kind: "op" and the keys of its fields.
template <typename Rows, typename FieldKeys>
std::vector<std::vector<std::string_view>> keys_of(const Rows& rows, const FieldKeys& field_keys) {
  std::vector<std::vector<std::string_view>> keys;
  for (const auto& row : rows) {
    keys.push_back({"op"});
    for (const auto field : row.fields) {
      std::string_view rest = field_keys[static_cast<std::size_t>(field)];
      for (std::size_t end = 0; end != rest.npos; rest.remove_prefix(std::min(end + 1, rest.size()))) {
        end = rest.find(' ');
        keys.back().push_back(rest.substr(0, end));
      }
    }
  }
  return keys;
}

Rect rect_of(const JsonValue& op) {
  const JsonPair at = pair_or_zero(op, "at", "[row, column]");
  const JsonPair shape = pair_of(op.at("shape"), "[rows, columns]", 1);
  return {at.first, at.second, shape.first, shape.second};
}

class Reader {
 public:
  explicit Reader(const JsonValue& root) : root_(root) {}

  Schedule read() {
    static constexpr std::array<std::string_view, 14> keys{
        "schema", "name",      "ranks",   "processes", "vendor",  "sparse", "result",
        "inputs", "reference", "buffers", "flags",     "kernels", "graphs", "host"};
    root_.expect_object(keys);
    if (root_.at("schema").string() != kSchema) {
      root_.at("schema").refuse(fmt::format("give \"{}\"", kSchema));
    }
    schedule_.name = root_.has("name") ? root_.at("name").string() : "";
    schedule_.ranks = static_cast<std::int32_t>(root_.at("ranks").integer(1, kMaxInt16));
    if (root_.has("processes")) {
      const JsonValue& processes = root_.at("processes");
      schedule_.one_process = processes.string() == kOneProcess;
      if (!schedule_.one_process && processes.string() != kProcessPerGpu)
        processes.refuse(fmt::format("give \"{}\" or \"{}\"", kProcessPerGpu, kOneProcess));
    }
    if (root_.has("vendor") && root_.at("vendor").boolean()) usual_profile_ = KernelProfile::vendor;
    each("buffers", [this](const JsonValue& value) { read_buffer(value); });
    each("flags", [this](const JsonValue& value) { read_flags(value); });
    each("sparse", [this](const JsonValue& value) { read_sparse(value); });
    if (root_.has("result")) {
      schedule_.result_buffer = number_of(root_.at("result"), buffers_, "buffer");
    }
    each("kernels", [this](const JsonValue& value) { read_kernel(value); });
    kernel_names_ = KernelNames(schedule_);
    each("graphs", [this](const JsonValue& value) { read_graph(value); });
    read_host();
    read_reference(root_, buffers_, schedule_);
    return std::move(schedule_);
  }

 private:
  template <typename ReadItem>
  void each(const char* key, ReadItem read_item) {
    if (root_.has(key)) {
      each_of(root_.at(key), read_item);
    }
  }

  void read_buffer(const JsonValue& value) {
    static constexpr std::array<std::string_view, 5> keys{"name", "dtype", "shape", "tile", "codec"};
    value.expect_object(keys);
    Buffer buffer;
    buffer.name = value.at("name").string();
    buffer.dtype = static_cast<DType>(value.at("dtype").one_of(kDTypeNames));
    const JsonPair shape = pair_of(value.at("shape"), "[rows, columns]", 1);
    buffer.rows = shape.first;
    buffer.cols = shape.second;
    const JsonPair tile = value.has("tile") ? pair_of(value.at("tile"), "[rows, columns]", 1) : shape;
    buffer.tile_rows = tile.first;
    buffer.tile_cols = tile.second;
    if (value.has("codec")) buffer.codec = static_cast<Codec>(value.at("codec").one_of(kCodecNames));
    buffers_.add(buffer.name);
    schedule_.buffers.push_back(std::move(buffer));
  }

  void read_sparse(const JsonValue& value) {
    static constexpr std::array<std::string_view, 4> keys{"name", "shape", "offsets", "columns"};
    value.expect_object(keys);
    SparseMatrix matrix;
    matrix.name = value.has("name") ? value.at("name").string() : "";
    const JsonPair shape = pair_of(value.at("shape"), "[rows, columns]", 1);
    matrix.rows = shape.first;
    matrix.cols = shape.second;
    const auto numbers = [&value](const char* key, std::vector<std::int32_t>& into) {
      each_of(value.at(key), [&into](const JsonValue& number) {
        into.push_back(static_cast<std::int32_t>(number.integer(0, kMaxInt32)));
      });
    };
    numbers("offsets", matrix.offsets);
    numbers("columns", matrix.columns);
    schedule_.sparse.push_back(std::make_shared<const SparseMatrix>(std::move(matrix)));
  }

  void read_flags(const JsonValue& value) {
    static constexpr std::array<std::string_view, 2> keys{"name", "count"};
    value.expect_object(keys);
    const std::string& name = value.at("name").string();
    if (name == kTileDependences) {
      value.at("name").refuse("this name is kept for flags that the simulator adds; give another");
    }
    flags_.add(name);
    schedule_.flags.push_back({name, static_cast<std::int32_t>(value.at("count").integer(1, kMaxInt32))});
  }

  void read_kernel(const JsonValue& value) {
    static constexpr std::array<std::string_view, 16> keys{"name",
                                                           "rank",
                                                           "profile",
                                                           "threads",
                                                           "registers_per_thread",
                                                           "lds_bytes",
                                                           "tile",
                                                           "cus",
                                                           "library",
                                                           "payload_share",
                                                           "start_ns",
                                                           "registers_filled",
                                                           "placement",
                                                           "items",
                                                           "workgroups",
                                                           "clk_per_stored_byte"};
    refuse_rates(value);
    value.expect_object(keys);
    Kernel kernel;
    kernel.name = value.at("name").string();
    kernel.rank = rank_or(value, "rank", 0);
    kernel.profile = usual_profile_;
    if (value.has("profile")) {
      kernel.profile = static_cast<KernelProfile>(value.at("profile").one_of(kKernelProfileNames));
    }
    Resources& resources = kernel.resources;
    resources.threads = int32_or(value, "threads", 1, resources.threads);
    resources.registers_per_thread =
        int32_or(value, "registers_per_thread", 0, resources.registers_per_thread);
    resources.lds_bytes = int32_or(value, "lds_bytes", 0, resources.lds_bytes);
    if (value.has("tile")) {
      kernel.tile = matmul_tile(value.at("tile"));
    }
    if (value.has("placement")) {
      kernel.placement = static_cast<Placement>(value.at("placement").one_of(kPlacementNames));
    }
    const JsonPair cus = pair_or_zero(value, "cus", "[first compute unit, one past the last]");
    kernel.cu_begin = cus.first;
    kernel.cu_end = cus.second;
    if (value.has("library")) kernel.library = library_kernel(value.at("library"));
    if (value.has("payload_share")) kernel.payload_share = value.at("payload_share").number(0);
    if (value.has("start_ns")) kernel.start_ns = value.at("start_ns").number(0);
    if (value.has("clk_per_stored_byte")) {
      kernel.clk_per_stored_byte = value.at("clk_per_stored_byte").number(0);
    }
    if (value.has("registers_filled")) kernel.registers_filled = value.at("registers_filled").boolean();
    each_of(value.at("workgroups"), [&](const JsonValue& workgroup) {
      kernel.workgroups.push_back(read_program(workgroup, kernel.rank));
    });
    if (value.has("items")) {
      each_of(value.at("items"),
              [&](const JsonValue& item) { kernel.items.push_back(read_program(item, kernel.rank)); });
    }
    schedule_.kernels.push_back(std::move(kernel));
  }

  // Refuses rates of a machine, which schedules of earlier versions contain.
  static void refuse_rates(const JsonValue& kernel) {
    for (const char* key : {"workgroup_gb_per_s", "remote_store_gb_per_s", "matmul_share"}) {
      if (!kernel.has(key)) continue;
      kernel.at(key).refuse(fmt::format(
          "a schedule has no {}; name what the kernel stands for by \"library\", or write the schedule again",
          key));
    }
  }

  static LibraryKernel library_kernel(const JsonValue& value) {
    std::vector<std::string_view> keys{"routine", "bytes", "dtype"};
    for (const LibraryKernelCount& count : kLibraryKernelCounts) keys.emplace_back(count.name);
    value.expect_object(keys);
    LibraryKernel kernel;
    kernel.routine = static_cast<LibraryRoutine>(value.at("routine").one_of(kLibraryRoutineNames));
    if (value.has("bytes")) kernel.bytes = value.at("bytes").number(0);
    if (value.has("dtype")) kernel.dtype = static_cast<DType>(value.at("dtype").one_of(kDTypeNames));
    for (const LibraryKernelCount& count : kLibraryKernelCounts)
      kernel.*count.member = int32_or(value, count.name, 0, 0);
    return kernel;
  }

  static MatmulTile matmul_tile(const JsonValue& value) {
    static constexpr std::array<std::string_view, 6> keys{"m", "n", "k", "waves", "pipeline", "producers"};
    value.expect_object(keys);
    MatmulTile tile;
    tile.m = int32_or(value, "m", 0, 0);
    tile.n = int32_or(value, "n", 0, 0);
    tile.k = int32_or(value, "k", 0, 0);
    tile.waves = int32_or(value, "waves", 0, 0);
    if (value.has("pipeline")) {
      tile.pipeline = static_cast<Pipeline>(value.at("pipeline").one_of(kPipelineNames));
    }
    tile.producers = int32_or(value, "producers", 0, 0);
    return tile;
  }

  // A workgroup or an item.
  Workgroup read_program(const JsonValue& value, std::int32_t own) {
    static constexpr std::array<std::string_view, 1> keys{"ops"};
    value.expect_object(keys);
    const auto first = static_cast<std::uint32_t>(schedule_.ops.size());
    each_of(value.at("ops"), [&](const JsonValue& op) { schedule_.ops.push_back(read_op(op, own)); });
    return {first, static_cast<std::uint32_t>(schedule_.ops.size()) - first};
  }

  std::int16_t buffer_of(const JsonValue& value) const { return number_of(value, buffers_, "buffer"); }

  Op read_op(const JsonValue& value, std::int32_t own) const {
    Op op;
    op.kind = static_cast<OpKind>(value.at("op").one_of(kOpKindNames));
    value.expect_object(op_keys_[static_cast<std::size_t>(op.kind)]);
    op.rank = static_cast<std::int16_t>(own);
    read_fields(value, op, own);
    return op;
  }

  void read_fields(const JsonValue& value, Op& op, std::int32_t own) const {
    for (const OpField field : traits_of(op.kind).fields) read_field(field, value, op, own);
  }

  void read_field(OpField field, const JsonValue& value, Op& op, std::int32_t own) const {
    switch (field) {
      case OpField::operands:
        op.src_buffer = buffer_of(value.at("a"));
        op.b_buffer = buffer_of(value.at("b"));
        return;
      case OpField::heads:
        op.buffer = buffer_of(value.at("queries"));
        op.src_buffer = buffer_of(value.at("keys"));
        op.b_buffer = buffer_of(value.at("values"));
        op.src_col = int32_or(value, "column", 0, 0);
        return;
      case OpField::mask:
        op.value = int32_or(value, "limit", 0, 0);
        op.index = int32_or(value, "group", 0, 1);
        return;
      case OpField::backward:
        op.buffer = buffer_of(value.at("keys_values"));
        op.src_buffer = buffer_of(value.at("queries"));
        op.b_buffer = buffer_of(value.at("result_gradients"));
        op.index = buffer_of(value.at("statistics"));
        op.src_row = buffer_of(value.at("query_gradients"));
        op.src_col = int32_or(value, "column", 0, 0);
        op.value = int32_or(value, "limit", 0, 0);
        return;
      case OpField::from:
      case OpField::to:
      case OpField::home:
        op.rank = rank_or(value, kOpFieldKeys[static_cast<std::size_t>(field)].data(), own);
        return;
      case OpField::tile:
        op.buffer = buffer_of(value.at("buffer"));
        [[fallthrough]];
      case OpField::rect:
        op.rect = rect_of(value);
        return;
      case OpField::k: {
        const JsonPair k = pair_of(value.at("k"), "[first k, one past the last k]", 0);
        op.k_begin = k.first;
        op.k_end = k.second;
        return;
      }
      case OpField::source:
        return read_source(value.at("from"), op, own);
      case OpField::counter:
        op.flag = number_of(value.at("flag"), flags_, "flag");
        op.index = int32_or(value, "index", 0, 0);
        return;
      case OpField::value:
        op.value = int32_or(value, "value", 0, 1);
        return;
      case OpField::ordering:
        if (value.has("scope")) op.scope = static_cast<Scope>(value.at("scope").one_of(kScopeNames));
        if (value.has("protocol")) {
          op.protocol = static_cast<LockProtocol>(value.at("protocol").one_of(kLockProtocolNames));
        }
        return;
      case OpField::form:
        if (value.has("change")) {
          op.change = static_cast<FlagChange>(value.at("change").one_of(kFlagChangeNames));
        }
        if (value.has("order"))
          op.order = static_cast<MemoryOrder>(value.at("order").one_of(kMemoryOrderNames));
        return;
      case OpField::items:
        return read_items(value, op);
      case OpField::limit:
        if (!value.has("items"))
          op.value = static_cast<std::int32_t>(value.at("limit").integer(0, kMaxInt32));
        return;
      case OpField::skip:
        if (!value.has("items"))
          op.rect.rows = static_cast<std::int32_t>(value.at("skip").integer(0, kMaxInt32));
        return;
      case OpField::sparse:
        op.index = int32_or(value, "sparse", 0, 0);
        op.src_buffer = buffer_of(value.at("values"));
        op.b_buffer = buffer_of(value.at("x"));
        op.src_col = static_cast<std::int32_t>(value.at("columns").integer(1, kMaxInt32));
        return;
      case OpField::lanes:
        op.src_row = static_cast<std::int32_t>(value.at("sharing").one_of(kLaneSharingNames));
        op.value = int32_or(value, "lanes", 1, 1);
        return;
      case OpField::group:
        op.with_previous = value.has("with_previous") && value.at("with_previous").boolean();
        return;
      case OpField::engine:
        op.by_engine = value.has("by_engine") && value.at("by_engine").boolean();
        return;
      case OpField::owner:
        op.value = value.has("owner") ? owner_value(rank_or(value, "owner", own), own) : 0;
        return;
      case OpField::multimem:
        op.multimem = value.has("multimem") && value.at("multimem").boolean();
        return;
    }
  }

  static void read_items(const JsonValue& value, Op& op) {
    if (!value.has("items")) return;
    const JsonPair items = pair_of(value.at("items"), "[first item, one past the last item]", 0);
    if (items.second <= items.first) value.at("items").refuse("a claim names at least one item");
    for (const char* key : {"limit", "skip"}) {
      if (value.has(key))
        value.at(key).refuse("a claim of items skips nothing; leave this out, or the items");
    }
    op.k_begin = items.first;
    op.k_end = items.second;
  }

  // The source of a copy is the same tile of the same buffer unless it says otherwise.
  void read_source(const JsonValue& value, Op& op, std::int32_t own) const {
    static constexpr std::array<std::string_view, 3> keys{"rank", "buffer", "at"};
    value.expect_object(keys);
    op.src_rank = rank_or(value, "rank", own);
    op.src_buffer = value.has("buffer") ? buffer_of(value.at("buffer")) : op.buffer;
    const JsonPair at =
        value.has("at") ? pair_of(value.at("at"), "[row, column]", 0) : JsonPair{op.rect.row, op.rect.col};
    op.src_row = at.first;
    op.src_col = at.second;
  }

  std::int32_t kernel_of(const JsonValue& value, std::int32_t rank) const {
    if (!value.is_string()) {
      return static_cast<std::int32_t>(value.integer(0, kMaxInt32));
    }
    const std::int64_t index = kernel_names_.find(value.string(), rank);
    if (index == kNoSuchName) {
      value.refuse_name(fmt::format("kernel of rank {}", rank), kernel_names_.on_rank(rank));
    }
    if (index < 0) {
      value.refuse(fmt::format("several kernels of rank {} have this name; give its number", rank));
    }
    return static_cast<std::int32_t>(index);
  }

  void read_graph(const JsonValue& value) {
    static constexpr std::array<std::string_view, 2> keys{"rank", "nodes"};
    static constexpr std::array<std::string_view, 2> node_keys{"kernel", "stream"};
    value.expect_object(keys);
    const std::int16_t rank = rank_or(value, "rank", 0);
    Graph graph;
    each_of(value.at("nodes"), [&](const JsonValue& node) {
      node.expect_object(node_keys);
      graph.push_back({kernel_of(node.at("kernel"), rank), int32_or(node, "stream", 0, 0)});
    });
    schedule_.graphs.push_back(std::move(graph));
  }

  void read_host() {
    const JsonValue host = root_.at("host");
    host.expect_array_of(static_cast<std::size_t>(schedule_.ranks),
                         "one host program a rank, as an array of arrays");
    for (std::size_t rank = 0; rank < host.size(); ++rank) {
      std::vector<HostOp>& program = schedule_.host.emplace_back();
      each_of(host.item(rank), [&](const JsonValue& op) {
        program.push_back(read_host_op(op, static_cast<std::int32_t>(rank)));
      });
    }
  }

  // Old schedules have separate operations for host work, without a duration. They are read as host work with
  // that label; the machine gives the duration.
  static bool is_former_work(const JsonValue& value) {
    if (!value.is_string()) return false;
    const std::string& name = value.string();
    return name == kCollectiveCall || name == kFrameworkSync || name == kFrameworkGather;
  }

  HostOp read_host_op(const JsonValue& value, std::int32_t rank) {
    HostOp op;
    if (is_former_work(value.at("op"))) {
      value.expect_object(host_keys_[static_cast<std::size_t>(HostOpKind::barrier)]);
      op.kind = HostOpKind::host_work;
      op.label = value.at("op").string();
      return op;
    }
    op.kind = static_cast<HostOpKind>(value.at("op").one_of(kHostOpKindNames));
    value.expect_object(host_keys_[static_cast<std::size_t>(op.kind)]);
    for (const HostField field : traits_of(op.kind).fields) read_host_field(field, value, op, rank);
    return op;
  }

  void read_host_field(HostField field, const JsonValue& value, HostOp& op, std::int32_t rank) {
    switch (field) {
      case HostField::kernel:
        op.kernel = kernel_of(value.at("kernel"), rank);
        return;
      case HostField::graph:
        op.graph = static_cast<std::int32_t>(value.at("graph").integer(0, kMaxInt32));
        return;
      case HostField::stream:
        op.stream = int32_or(value, "stream", 0, 0);
        return;
      case HostField::event:
        op.event = static_cast<std::int32_t>(value.at("event").integer(0, kMaxInt32));
        return;
      case HostField::transfer: {
        op.transfer = static_cast<std::int32_t>(schedule_.transfers.size());
        Op& transfer = schedule_.transfers.emplace_back();
        transfer.kind = OpKind::copy;
        return read_fields(value, transfer, rank);
      }
      case HostField::label:
        op.label = value.at("label").string();
        return;
      case HostField::duration:
        if (value.has("duration_ns")) op.duration_ns = value.at("duration_ns").number(0);
        return;
    }
  }

  const JsonValue& root_;
  const std::vector<std::vector<std::string_view>> op_keys_ = keys_of(kOpTraits, kOpFieldKeys);
  const std::vector<std::vector<std::string_view>> host_keys_ = keys_of(kHostOpTraits, kHostFieldKeys);
  Schedule schedule_;
  // Profile of kernels without one: old schedules give one profile for all kernels with "vendor".
  KernelProfile usual_profile_ = KernelProfile::interpreter;
  UniqueNames buffers_;
  UniqueNames flags_;
  KernelNames kernel_names_{Schedule{}};
};

}  // namespace

Schedule schedule_from_json(std::string_view json, const std::string& origin) {
  return schedule_from_tree(parse_json(json, origin), origin);
}

Schedule schedule_from_tree(const nlohmann::json& tree, const std::string& origin) {
  const JsonValue root(tree, origin);
  return Reader(root).read();
}

Schedule read_schedule(const std::string& path) {
  constexpr std::size_t kLargestFileBytes = std::size_t{2} << 30;  // twice the largest that a pattern builds
  return schedule_from_json(read_file(path, "the path of a schedule (JSON)", kLargestFileBytes), path);
}

}  // namespace tritax

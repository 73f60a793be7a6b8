#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/json_fields.hpp"
#include "model/schedule/json_reader.hpp"
#include "model/schedule/names.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/relax.hpp"

namespace tritax {

namespace {

constexpr std::string_view kSchema = "tritax.schedule/1";

using Keys = std::span<const std::string_view>;

Keys keys_of(OpKind kind) {
  static constexpr std::array<std::string_view, 6> matmul{"op", "a", "b", "at", "shape", "k"};
  static constexpr std::array<std::string_view, 5> read{"op", "from", "buffer", "at", "shape"};
  static constexpr std::array<std::string_view, 5> write{"op", "to", "buffer", "at", "shape"};
  static constexpr std::array<std::string_view, 6> copy{"op", "to", "buffer", "at", "shape", "from"};
  static constexpr std::array<std::string_view, 3> attend{"op", "at", "shape"};
  static constexpr std::array<std::string_view, 7> signal{"op",   "flag",  "index",   "value",
                                                          "rank", "scope", "protocol"};
  static constexpr std::array<std::string_view, 6> wait{"op", "flag", "index", "value", "scope", "protocol"};
  static constexpr std::array<std::string_view, 1> barrier{"op"};
  static constexpr std::array<std::string_view, 6> claim{"op", "flag", "index", "items", "limit", "skip"};
  switch (kind) {
    case OpKind::matmul:
      return matmul;
    case OpKind::load:
    case OpKind::reduce:
      return read;
    case OpKind::store:
    case OpKind::atomic_add:
      return write;
    case OpKind::copy:
      return copy;
    case OpKind::attend:
      return attend;
    case OpKind::signal:
      return signal;
    case OpKind::wait:
      return wait;
    case OpKind::barrier:
      return barrier;
    case OpKind::claim:
      return claim;
  }
  return {};
}

Keys keys_of(HostOpKind kind) {
  static constexpr std::array<std::string_view, 3> launch{"op", "kernel", "stream"};
  static constexpr std::array<std::string_view, 2> graph_launch{"op", "graph"};
  static constexpr std::array<std::string_view, 2> stream{"op", "stream"};
  static constexpr std::array<std::string_view, 3> event{"op", "event", "stream"};
  static constexpr std::array<std::string_view, 7> copy{"op", "stream", "to",  "buffer",
                                                        "at", "shape",  "from"};
  static constexpr std::array<std::string_view, 3> work{"op", "label", "duration_ns"};
  static constexpr std::array<std::string_view, 1> other{"op"};
  switch (kind) {
    case HostOpKind::launch:
      return launch;
    case HostOpKind::graph_launch:
      return graph_launch;
    case HostOpKind::stream_synchronize:
      return stream;
    case HostOpKind::event_record:
    case HostOpKind::event_wait:
      return event;
    case HostOpKind::copy:
      return copy;
    case HostOpKind::host_work:
      return work;
    default:
      return other;
  }
}

// Rates so low that times overflow are refused.
double none_or_rate(const JsonValue& value) {
  constexpr double kLowestGbPerS = 1e-9;  // a byte a second
  const double rate = value.number(0);
  if (rate != 0 && rate < kLowestGbPerS) {
    value.refuse(fmt::format("give 0 for no limit, or a number of at least {}", kLowestGbPerS));
  }
  return rate;
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
    static constexpr std::array<std::string_view, 12> keys{"schema", "name",    "ranks",     "vendor",
                                                           "result", "inputs",  "reference", "buffers",
                                                           "flags",  "kernels", "graphs",    "host"};
    root_.expect_object(keys);
    if (root_.at("schema").string() != kSchema) {
      root_.at("schema").refuse(fmt::format("give \"{}\"", kSchema));
    }
    schedule_.name = root_.has("name") ? root_.at("name").string() : "";
    schedule_.ranks = static_cast<std::int32_t>(root_.at("ranks").integer(1, kMaxInt16));
    if (root_.has("vendor") && root_.at("vendor").boolean()) usual_profile_ = KernelProfile::vendor;
    each("buffers", [this](const JsonValue& value) { read_buffer(value); });
    each("flags", [this](const JsonValue& value) { read_flags(value); });
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
    static constexpr std::array<std::string_view, 4> keys{"name", "dtype", "shape", "tile"};
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
    buffers_.add(buffer.name);
    schedule_.buffers.push_back(std::move(buffer));
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
                                                           "placement",
                                                           "cus",
                                                           "workgroup_gb_per_s",
                                                           "remote_store_gb_per_s",
                                                           "start_ns",
                                                           "matmul_share",
                                                           "registers_filled",
                                                           "workgroups",
                                                           "items"};
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
    if (value.has("workgroup_gb_per_s")) {
      kernel.workgroup_gb_per_s = none_or_rate(value.at("workgroup_gb_per_s"));
    }
    if (value.has("remote_store_gb_per_s")) {
      kernel.remote_store_gb_per_s = none_or_rate(value.at("remote_store_gb_per_s"));
    }
    if (value.has("matmul_share")) kernel.matmul_share = value.at("matmul_share").number(0);
    if (value.has("start_ns")) kernel.start_ns = value.at("start_ns").number(0);
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

  static MatmulTile matmul_tile(const JsonValue& value) {
    static constexpr std::array<std::string_view, 5> keys{"m", "n", "k", "waves", "pipeline"};
    value.expect_object(keys);
    MatmulTile tile;
    tile.m = int32_or(value, "m", 0, 0);
    tile.n = int32_or(value, "n", 0, 0);
    tile.k = int32_or(value, "k", 0, 0);
    tile.waves = int32_or(value, "waves", 0, 0);
    if (value.has("pipeline")) {
      tile.pipeline = static_cast<Pipeline>(value.at("pipeline").one_of(kPipelineNames));
    }
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
    value.expect_object(keys_of(op.kind));
    op.rank = static_cast<std::int16_t>(own);
    switch (op.kind) {
      case OpKind::matmul:
        read_matmul(value, op);
        break;
      case OpKind::load:
      case OpKind::reduce:
        op.rank = rank_or(value, "from", own);
        read_tile(value, op);
        break;
      case OpKind::store:
      case OpKind::atomic_add:
        op.rank = rank_or(value, "to", own);
        read_tile(value, op);
        break;
      case OpKind::copy:
        read_copy(value, op, own);
        break;
      case OpKind::attend:
        op.rect = rect_of(value);
        break;
      case OpKind::signal:
        op.rank = rank_or(value, "rank", own);
        read_flag_op(value, op);
        break;
      case OpKind::wait:
        read_flag_op(value, op);
        break;
      case OpKind::barrier:
        break;
      case OpKind::claim:
        read_claim(value, op);
        break;
    }
    return op;
  }

  void read_claim(const JsonValue& value, Op& op) const {
    op.flag = number_of(value.at("flag"), flags_, "flag");
    op.index = int32_or(value, "index", 0, 0);
    if (!value.has("items")) {
      op.value = static_cast<std::int32_t>(value.at("limit").integer(0, kMaxInt32));
      op.rect.rows = static_cast<std::int32_t>(value.at("skip").integer(0, kMaxInt32));
      return;
    }
    const JsonPair items = pair_of(value.at("items"), "[first item, one past the last item]", 0);
    if (items.second <= items.first) value.at("items").refuse("a claim names at least one item");
    for (const char* key : {"limit", "skip"}) {
      if (value.has(key))
        value.at(key).refuse("a claim of items skips nothing; leave this out, or the items");
    }
    op.k_begin = items.first;
    op.k_end = items.second;
  }

  void read_matmul(const JsonValue& value, Op& op) const {
    op.src_buffer = buffer_of(value.at("a"));
    op.b_buffer = buffer_of(value.at("b"));
    op.rect = rect_of(value);
    const JsonPair k = pair_of(value.at("k"), "[first k, one past the last k]", 0);
    op.k_begin = k.first;
    op.k_end = k.second;
  }

  void read_tile(const JsonValue& value, Op& op) const {
    op.buffer = buffer_of(value.at("buffer"));
    op.rect = rect_of(value);
  }

  void read_copy(const JsonValue& value, Op& op, std::int32_t own) const {
    op.kind = OpKind::copy;
    op.rank = rank_or(value, "to", own);
    read_tile(value, op);
    read_source(value.at("from"), op, own);
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

  void read_flag_op(const JsonValue& value, Op& op) const {
    op.flag = number_of(value.at("flag"), flags_, "flag");
    op.index = int32_or(value, "index", 0, 0);
    op.value = int32_or(value, "value", 0, 1);
    if (value.has("scope")) {
      op.scope = static_cast<Scope>(value.at("scope").one_of(kScopeNames));
    }
    if (value.has("protocol")) {
      op.protocol = static_cast<LockProtocol>(value.at("protocol").one_of(kLockProtocolNames));
    }
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

  // Host work had operations of its own once, without a duration: the machine said how long each takes. They
  // are read as work of that label, and the machine still says.
  static bool is_former_work(const JsonValue& value) {
    if (!value.is_string()) return false;
    const std::string& name = value.string();
    return name == kCollectiveCall || name == kFrameworkSync || name == kFrameworkGather;
  }

  HostOp read_host_op(const JsonValue& value, std::int32_t rank) {
    HostOp op;
    if (is_former_work(value.at("op"))) {
      value.expect_object(keys_of(HostOpKind::barrier));
      op.kind = HostOpKind::host_work;
      op.label = value.at("op").string();
      return op;
    }
    op.kind = static_cast<HostOpKind>(value.at("op").one_of(kHostOpKindNames));
    value.expect_object(keys_of(op.kind));
    if (op.kind == HostOpKind::launch) {
      op.kernel = kernel_of(value.at("kernel"), rank);
    }
    if (op.kind == HostOpKind::graph_launch) {
      op.graph = static_cast<std::int32_t>(value.at("graph").integer(0, kMaxInt32));
    }
    if (op.kind == HostOpKind::event_record || op.kind == HostOpKind::event_wait) {
      op.event = static_cast<std::int32_t>(value.at("event").integer(0, kMaxInt32));
    }
    if (op.kind == HostOpKind::copy) {
      op.transfer = static_cast<std::int32_t>(schedule_.transfers.size());
      read_copy(value, schedule_.transfers.emplace_back(), rank);
    }
    if (op.kind == HostOpKind::host_work) {
      op.label = value.at("label").string();
      if (value.has("duration_ns")) op.duration_ns = value.at("duration_ns").number(0);
    }
    op.stream = int32_or(value, "stream", 0, 0);
    return op;
  }

  const JsonValue& root_;
  Schedule schedule_;
  // Of kernels that say nothing: schedules saved before kernels had one say it of all with "vendor".
  KernelProfile usual_profile_ = KernelProfile::interpreter;
  UniqueNames buffers_;
  UniqueNames flags_;
  KernelNames kernel_names_{Schedule{}};
};

}  // namespace

Schedule schedule_from_json(std::string_view json, const std::string& origin) {
  const nlohmann::json tree = parse_json(json, origin);
  const JsonValue root(tree, origin);
  return Reader(root).read();
}

Schedule read_schedule(const std::string& path) {
  constexpr std::size_t kLargestFileBytes = std::size_t{2} << 30;  // twice the largest that a pattern builds
  return schedule_from_json(read_file(path, "the path of a schedule (JSON)", kLargestFileBytes), path);
}

}  // namespace tritax

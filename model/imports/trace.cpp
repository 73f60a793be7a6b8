#include "model/imports/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "model/core/error.hpp"
#include "model/core/json_nesting.hpp"
#include "model/core/printable.hpp"
#include "model/core/read_file.hpp"

namespace tritax {

namespace {

using TraceJson = nlohmann::json;

constexpr std::size_t kLargestTrace = std::size_t{2} << 30;
constexpr std::size_t kDeepestTrace = 64;

// Which inputs of an operator are multiplied.
struct ProductOperator {
  std::string_view name;
  std::size_t left;
  std::size_t right;
};
constexpr std::array<ProductOperator, 3> kProductOperators{
    {{"aten::mm", 0, 1}, {"aten::addmm", 1, 2}, {"aten::_scaled_mm", 0, 1}}};

constexpr std::array<std::string_view, 3> kBatchedOperators{"aten::bmm", "aten::baddbmm",
                                                            "aten::_grouped_mm"};

struct NamedCollective {
  std::string_view name;
  TracedCollective collective;
};
// Names that torch.distributed gives its calls; "wait" and the like move nothing.
constexpr std::array<NamedCollective, 18> kCollectiveNames{{
    {"allreduce", TracedCollective::all_reduce},
    {"all_reduce", TracedCollective::all_reduce},
    {"allreduce_coalesced", TracedCollective::all_reduce},
    {"allgather", TracedCollective::all_gather},
    {"all_gather", TracedCollective::all_gather},
    {"_allgather_base", TracedCollective::all_gather},
    {"allgather_into_tensor_coalesced", TracedCollective::all_gather},
    {"all_gather_into_tensor", TracedCollective::all_gather},
    {"reduce_scatter", TracedCollective::reduce_scatter},
    {"_reduce_scatter_base", TracedCollective::reduce_scatter},
    {"reduce_scatter_tensor", TracedCollective::reduce_scatter},
    {"reduce_scatter_tensor_coalesced", TracedCollective::reduce_scatter},
    {"alltoall", TracedCollective::all_to_all},
    {"all_to_all", TracedCollective::all_to_all},
    {"alltoall_base", TracedCollective::all_to_all},
    {"all_to_allv", TracedCollective::all_to_all},
    {"broadcast", TracedCollective::broadcast},
    {"broadcast_oop", TracedCollective::broadcast},
}};
constexpr std::array<std::string_view, 5> kMoveNothing{"wait", "barrier", "init", "pg_config",
                                                       "monitored_barrier"};

const ProductOperator* find_product_operator(std::string_view name) {
  const auto found = std::find_if(kProductOperators.begin(), kProductOperators.end(),
                                  [name](const ProductOperator& one) { return one.name == name; });
  return found == kProductOperators.end() ? nullptr : &*found;
}

bool is_batched(std::string_view name) {
  return std::find(kBatchedOperators.begin(), kBatchedOperators.end(), name) != kBatchedOperators.end();
}

// "c10::BFloat16", "Tensor(c10::BFloat16)", "BFloat16"; nothing for what is simulated by no machine.
std::optional<DType> dtype_of_trace(std::string name) {
  if (name.starts_with("Tensor(") && name.ends_with(")")) name = name.substr(7, name.size() - 8);
  if (name.starts_with("c10::")) name = name.substr(5);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "bfloat16") return DType::bf16;
  if (name == "half" || name == "float16") return DType::fp16;
  if (name == "float" || name == "float32") return DType::fp32;
  if (name.starts_with("float8_")) return DType::fp8;
  return std::nullopt;
}

const TraceJson& member(const TraceJson& object, const char* key) {
  static const TraceJson none;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::string text_member(const TraceJson& object, const char* key) {
  const TraceJson& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// What a double tells apart from its neighbours.
constexpr double kMostWhole = 9007199254740992.0;  // 2^53

// A whole number, also as text: protobuf writes 64 bits so.
std::optional<std::int64_t> whole(const TraceJson& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float() && std::abs(value.get<double>()) < kMostWhole &&
      value.get<double>() == static_cast<double>(static_cast<std::int64_t>(value.get<double>()))) {
    return static_cast<std::int64_t>(value.get<double>());
  }
  if (!value.is_string()) return std::nullopt;
  const std::string text = value.get<std::string>();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// So that products of two sizes, or of a size and a number of GPUs, are numbers still.
constexpr std::int64_t kMostRows = std::int64_t{1} << 31;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

// Builds the calls of a trace from what all forms have, under whatever names.
class TraceBuilder {
 public:
  TraceBuilder(Trace& trace, std::string shapes_key, std::string types_key)
      : trace_(trace), shapes_key_(std::move(shapes_key)), types_key_(std::move(types_key)) {}

  // Nothing for what is counted as left out.
  std::optional<TracedCall> product(const ProductOperator& op, const TraceJson& shapes,
                                    const TraceJson& types, const std::string& place) {
    if (shapes.is_null()) {
      ++without_shapes_;
      return std::nullopt;
    }
    const TraceJson left = entry(shapes, op.left, shapes_key_, place);
    const TraceJson right = entry(shapes, op.right, shapes_key_, place);
    if (is_empty(left) || is_empty(right)) {
      left_out(fmt::format("{} of no elements", op.name));
      return std::nullopt;
    }
    TracedCall call;
    call.place = place;
    const std::array<std::int64_t, 4> sizes{size(left, 0, place), size(left, 1, place), size(right, 0, place),
                                            size(right, 1, place)};
    if (sizes[1] != sizes[2]) {
      refuse(place, shapes_key_, shapes,
             "the columns of the left matrix must be as many as the rows of the right one");
    }
    call.product = {sizes[0], sizes[3], sizes[1]};
    const TraceJson type = entry(types, op.left, types_key_, place);
    const std::optional<DType> dtype =
        type.is_string() ? dtype_of_trace(type.get<std::string>()) : std::nullopt;
    if (!dtype) {
      left_out(
          fmt::format("{} of {}", op.name, type.is_string() ? type.get<std::string>() : "an unknown type"));
      return std::nullopt;
    }
    call.dtype = *dtype;
    return call;
  }

  std::optional<TracedCall> collective(const std::string& name, const std::string& type,
                                       const TraceJson& given, const TraceJson& received,
                                       const TraceJson& gpus, const std::string& place) {
    if (std::find(kMoveNothing.begin(), kMoveNothing.end(), name) != kMoveNothing.end()) return std::nullopt;
    const auto known = std::find_if(kCollectiveNames.begin(), kCollectiveNames.end(),
                                    [&](const NamedCollective& one) { return one.name == name; });
    const std::optional<DType> dtype = dtype_of_trace(type);
    if (known == kCollectiveNames.end() || !dtype) {
      left_out(fmt::format("collective {}{}", name, known == kCollectiveNames.end() ? "" : " of " + type));
      return std::nullopt;
    }
    if (whole(given) == 0) {
      left_out(fmt::format("collective {} of no elements", name));
      return std::nullopt;
    }
    TracedCall call;
    call.collective = known->collective;
    call.dtype = *dtype;
    call.place = place;
    call.given = positive(given, "elements given (In msg nelems, in_msg_nelems)", place);
    call.received = received.is_null()
                        ? 0
                        : positive(received, "elements received (Out msg nelems, out_msg_nelems)", place);
    if (!gpus.is_null())
      call.gpus = static_cast<int>(
          std::min<std::int64_t>(positive(gpus, "GPUs (Group size, pg_size)", place), 1 << 20));
    if (call.gpus == 1) {
      left_out(fmt::format("collective {} of one GPU", name));
      return std::nullopt;
    }
    return call;
  }

  void left_out(const std::string& what) { ++trace_.left_out[without_controls(what)]; }

  void finish() const {
    if (!trace_.calls.empty()) return;
    if (without_shapes_ > 0) {
      throw UserError(fmt::format("{}: {} products have no \"{}\"; profile with record_shapes=True",
                                  trace_.file, without_shapes_, shapes_key_));
    }
    throw UserError(
        fmt::format("{}: no product (aten::mm, aten::addmm, aten::_scaled_mm) and no collective "
                    "(\"Collective name\", collective_name, comm_type) that can be simulated is in it",
                    trace_.file));
  }

 private:
  [[noreturn]] void refuse(const std::string& place, std::string_view key, const TraceJson& value,
                           std::string_view allowed) const {
    throw UserError(fmt::format("{}: {}: {}: {} is not allowed; {}", trace_.file, place, key,
                                value.dump(-1, ' ', true, TraceJson::error_handler_t::replace).substr(0, 120),
                                allowed));
  }

  const TraceJson& entry(const TraceJson& list, std::size_t index, const std::string& key,
                         const std::string& place) const {
    if (!list.is_array() || list.size() <= index) {
      refuse(place, key, list, fmt::format("a list with an entry for each input, {} at least", index + 1));
    }
    return list[index];
  }

  std::int64_t size(const TraceJson& shape, std::size_t index, const std::string& place) const {
    const std::optional<std::int64_t> number =
        shape.is_array() && shape.size() == 2 ? whole(shape[index]) : std::nullopt;
    if (!number || *number < 1 || *number > kMostRows) {
      refuse(place, shapes_key_, shape, fmt::format("a matrix has two sizes of 1 to {}", kMostRows));
    }
    return *number;
  }

  std::int64_t positive(const TraceJson& value, std::string_view key, const std::string& place) const {
    const std::optional<std::int64_t> number = whole(value);
    if (!number || *number < 1 || *number > kMostElements) {
      refuse(place, key, value, fmt::format("give a whole number of 1 to {}", kMostElements));
    }
    return *number;
  }

  // An expert without tokens, or who has nothing for the others.
  static bool is_empty(const TraceJson& shape) {
    return shape.is_array() && shape.size() == 2 && (whole(shape[0]) == 0 || whole(shape[1]) == 0);
  }

  Trace& trace_;
  std::string shapes_key_;
  std::string types_key_;
  std::int64_t without_shapes_ = 0;
};

struct OrderedCall {
  double time = 0;
  TracedCall call;
};

void take_in_order(std::vector<OrderedCall> calls, Trace& trace) {
  std::stable_sort(calls.begin(), calls.end(),
                   [](const OrderedCall& a, const OrderedCall& b) { return a.time < b.time; });
  for (OrderedCall& one : calls) trace.calls.push_back(std::move(one.call));
}

double number_or_0(const TraceJson& value) { return value.is_number() ? value.get<double>() : 0; }

// Host operators, by time of the host; where collectives stand at kernels alone, all by time of the device.
class KinetoReader {
 public:
  explicit KinetoReader(Trace& trace) : builder_(trace, "Input Dims", "Input type"), trace_(trace) {}

  void read(const TraceJson& events) {
    bool on_host = false;
    for (const TraceJson& event : events) {
      const TraceJson& args = member(event, "args");
      const std::string name = text_member(event, "name");
      const bool kernel = text_member(event, "cat") == "kernel";
      on_host =
          on_host || (!kernel && name == "record_param_comms" && !member(args, "Collective name").is_null());
      if (const auto id = whole(member(args, "External id")); kernel && id)
        note_start(*id, number_or_0(member(event, "ts")));
    }
    std::vector<OrderedCall> calls;
    for (const TraceJson& event : events) {
      const TraceJson& args = member(event, "args");
      const std::string name = text_member(event, "name");
      const bool kernel = text_member(event, "cat") == "kernel";
      const double time = number_or_0(member(event, "ts"));
      const std::string place = fmt::format("{} at ts {}", without_controls(name), time);
      std::optional<TracedCall> call;
      double at = time;
      if (const ProductOperator* op = kernel ? nullptr : find_product_operator(name)) {
        call = builder_.product(*op, member(args, "Input Dims"), member(args, "Input type"), place);
        if (!on_host) at = started(member(args, "External id"), time);
      } else if (!kernel && is_batched(name)) {
        builder_.left_out(name + ", batched");
      } else if (kernel != on_host && (kernel || name == "record_param_comms")) {
        if (const std::string collective = text_member(args, "Collective name"); !collective.empty()) {
          call = builder_.collective(collective, text_member(args, "dtype"), member(args, "In msg nelems"),
                                     member(args, "Out msg nelems"), member(args, "Group size"), place);
        }
      }
      if (call) calls.push_back({at, std::move(*call)});
    }
    take_in_order(std::move(calls), trace_);
    builder_.finish();
  }

 private:
  // Of several kernels the first counts; files have them stream by stream.
  void note_start(std::int64_t id, double time) {
    const auto [at, fresh] = started_.try_emplace(id, time);
    if (!fresh) at->second = std::min(at->second, time);
  }
  double started(const TraceJson& id, double otherwise) const {
    const std::optional<std::int64_t> number = whole(id);
    const auto found = number ? started_.find(*number) : started_.end();
    return found == started_.end() ? otherwise : found->second;
  }

  TraceBuilder builder_;
  Trace& trace_;
  std::unordered_map<std::int64_t, double> started_;  // first kernel of an operator, by its external id
};

// {"name": value} of a list of attributes, whatever their type.
TraceJson attributes_of(const TraceJson& list) {
  TraceJson all = TraceJson::object();
  if (!list.is_array()) return all;
  for (const TraceJson& one : list) {
    const std::string name = text_member(one, "name");
    if (name.empty()) continue;
    for (const auto& [key, value] : one.items()) {
      if (key == "value" || key.ends_with("Val")) all[name] = value;
    }
  }
  return all;
}

void read_execution_trace(const TraceJson& nodes, Trace& trace) {
  TraceBuilder builder(trace, "shapes", "types");
  std::vector<OrderedCall> calls;
  for (const TraceJson& node : nodes) {
    const std::string name = text_member(node, "name");
    const TraceJson& id = member(node, "id");
    const std::string place =
        fmt::format("node {} ({})", id.is_number() ? id.dump() : "?", without_controls(name));
    std::optional<TracedCall> call;
    if (const ProductOperator* op = find_product_operator(name)) {
      const TraceJson& inputs = member(node, "inputs");
      const bool old = !member(node, "input_shapes").is_null();  // before schema 1.0.3
      call = builder.product(*op, old ? member(node, "input_shapes") : member(inputs, "shapes"),
                             old ? member(node, "input_types") : member(inputs, "types"), place);
    } else if (is_batched(name)) {
      builder.left_out(name + ", batched");
    } else if (name == "record_param_comms") {
      const TraceJson attributes = attributes_of(member(node, "attrs"));
      if (const std::string collective = text_member(attributes, "collective_name"); !collective.empty()) {
        call = builder.collective(collective, text_member(attributes, "dtype"),
                                  member(attributes, "in_msg_nelems"), member(attributes, "out_msg_nelems"),
                                  member(attributes, "pg_size"), place);
      }
    }
    if (call) calls.push_back({number_or_0(id), std::move(*call)});
  }
  take_in_order(std::move(calls), trace);
  builder.finish();
}

// mlcommons/chakra, schema/protobuf/et_def.proto, CollectiveCommType.
constexpr std::array<std::string_view, 10> kChakraCollectives{
    "allreduce", "reduce",   "allgather",      "gather",         "scatter",
    "broadcast", "alltoall", "reduce_scatter", "reduce_scatter", "barrier"};

// Shapes and types are text there, as Python writes them.
TraceJson from_python(const TraceJson& value) {
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  std::replace(text.begin(), text.end(), '\'', '"');
  TraceJson parsed = TraceJson::parse(text, nullptr, false);
  return parsed.is_discarded() ? value : parsed;
}

// Its collectives have bytes and no type: they are taken to be of the type of the product before, bf16 if
// there is none.
void read_chakra(const std::vector<TraceJson>& nodes, Trace& trace) {
  TraceBuilder builder(trace, "shapes", "types");
  std::vector<OrderedCall> calls;
  DType last = DType::bf16;
  std::vector<TraceJson> in_order = nodes;
  std::stable_sort(in_order.begin(), in_order.end(), [](const TraceJson& one, const TraceJson& other) {
    return whole(member(one, "id")).value_or(0) < whole(member(other, "id")).value_or(0);
  });
  for (const TraceJson& node : in_order) {
    const std::string name = text_member(node, "name");
    const std::optional<std::int64_t> id = whole(member(node, "id"));
    const std::string place = fmt::format("node {} ({})", id.value_or(-1), without_controls(name));
    std::optional<TracedCall> call;
    const TraceJson attributes = attributes_of(member(node, "attr"));
    if (const ProductOperator* op = find_product_operator(name)) {
      const TraceJson& inputs = member(node, "inputs");
      call = builder.product(*op, from_python(member(inputs, "shapes")), from_python(member(inputs, "types")),
                             place);
      if (call) last = call->dtype;
    } else if (is_batched(name)) {
      builder.left_out(name + ", batched");
    } else if (text_member(node, "type") == "COMM_COLL_NODE") {
      const std::optional<std::int64_t> kind = whole(member(attributes, "comm_type"));
      if (!kind || *kind < 0 || *kind >= static_cast<std::int64_t>(kChakraCollectives.size())) {
        throw UserError(fmt::format("{}: {}: comm_type: give 0 to {}, as in Chakra's et_def.proto",
                                    trace.file, place, kChakraCollectives.size() - 1));
      }
      const std::optional<std::int64_t> bytes = whole(member(attributes, "comm_size"));
      const bool moves = kChakraCollectives[static_cast<std::size_t>(*kind)] != "barrier";
      if (moves && (!bytes || *bytes < 0)) {
        throw UserError(
            fmt::format("{}: {}: comm_size: give the number of bytes, a whole number", trace.file, place));
      }
      const std::int64_t elements = bytes.value_or(0) / static_cast<std::int64_t>(bytes_of(last));
      const TraceJson given = elements > 0 ? TraceJson(elements) : TraceJson(bytes.value_or(0));
      const std::string type = last == DType::fp32   ? "float"
                               : last == DType::fp16 ? "half"
                               : last == DType::fp8  ? "float8_"
                                                     : "bfloat16";
      call = builder.collective(std::string(kChakraCollectives[static_cast<std::size_t>(*kind)]), type, given,
                                {}, {}, place);
    }
    if (call) calls.push_back({static_cast<double>(id.value_or(0)), std::move(*call)});
  }
  take_in_order(std::move(calls), trace);
  builder.finish();
}

// What no reader looks at is dropped while it is parsed: traces are large.
bool keeps_event(int depth, TraceJson::parse_event_t event, TraceJson& parsed) {
  if (event != TraceJson::parse_event_t::object_end || depth != 2 || !parsed.is_object()) return true;
  if (parsed.find("ph") == parsed.end()) return true;  // a node of an execution trace
  const std::string name = text_member(parsed, "name");
  return text_member(parsed, "cat") == "kernel" || name == "record_param_comms" ||
         find_product_operator(name) != nullptr || is_batched(name);
}

std::vector<TraceJson> one_behind_the_other(std::string_view text, const std::string& origin) {
  std::vector<TraceJson> all;
  std::istringstream in{std::string(text)};
  try {
    while (in >> std::ws && in.peek() != std::istringstream::traits_type::eof()) {
      in >> all.emplace_back();
    }
  } catch (const TraceJson::exception& error) {
    throw UserError(fmt::format("{}: not valid JSON: {}", origin, without_controls(error.what())));
  }
  return all;
}

}  // namespace

Trace parse_trace(std::string_view text, const std::string& origin) {
  Trace trace;
  trace.file = origin;
  text = without_byte_order_mark(text);
  if (find_json_deeper_than(text, kDeepestTrace) != std::string_view::npos) {
    throw UserError(fmt::format("{}: arrays and objects are nested more than {} deep; no trace is", origin,
                                kDeepestTrace));
  }
  TraceJson whole_file = TraceJson::parse(text, keeps_event, false);
  if (const TraceJson& events = member(whole_file, "traceEvents"); events.is_array()) {
    trace.form = "Kineto";
    KinetoReader(trace).read(events);
  } else if (const TraceJson& nodes = member(whole_file, "nodes"); nodes.is_array()) {
    trace.form = "execution trace";
    read_execution_trace(nodes, trace);
  } else {
    const std::vector<TraceJson> all = one_behind_the_other(text, origin);
    const bool chakra = std::any_of(all.begin(), all.end(),
                                    [](const TraceJson& one) { return member(one, "attr").is_array(); });
    if (!chakra) {
      throw UserError(
          fmt::format("{}: not a trace: give JSON with \"traceEvents\" (torch.profiler), \"nodes\" (its "
                      "ExecutionTraceObserver), or nodes with \"attr\" (chakra_jsonizer)",
                      origin));
    }
    trace.form = "Chakra";
    read_chakra(all, trace);
  }
  return trace;
}

Trace read_trace(const std::string& path) {
  return parse_trace(read_file(path, "a trace of PyTorch (JSON)", kLargestTrace), path);
}

}  // namespace tritax

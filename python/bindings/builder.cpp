#include "model/schedule/builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/parse_value.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/schedules.hpp"

namespace tritax::python {

namespace py = pybind11;
using namespace py::literals;

namespace {

using Integer = std::int64_t;  // from Python, before its range is checked
using Sides = std::tuple<Integer, Integer, Integer, Integer>;
using Corner = std::tuple<Integer, Integer>;

constexpr Integer kMaxNumber = std::numeric_limits<std::int32_t>::max();
constexpr Integer kMaxPlace = std::numeric_limits<std::int16_t>::max();

std::int32_t number(Integer value, const char* what, Integer low = 0, Integer high = kMaxNumber) {
  if (value < low || value > high) {
    throw UserError(fmt::format("{}: {} is out of range; give {} to {}", what, value, low, high));
  }
  return static_cast<std::int32_t>(value);
}

double rate(double value, const char* what) {
  if (!std::isfinite(value) || value < 0) {
    throw UserError(fmt::format("{}: {} is not allowed; give a number from 0 on", what, value));
  }
  return value;
}

template <typename Name, std::size_t count>
Name name_in(const std::string& word, const char* what, const std::array<std::string_view, count>& names) {
  return static_cast<Name>(parse_name(word, what, names));
}

Rect rect_of(const Sides& sides) {
  const auto& [row, col, rows, cols] = sides;
  return {number(row, "row"), number(col, "col"), number(rows, "rows", 1), number(cols, "cols", 1)};
}

// Checks at once the preconditions of the C++ builder; the schedule checker finds other faults.
class PythonBuilder {
 public:
  PythonBuilder(const std::string& name, Integer ranks)
      : ranks_(number(ranks, "ranks", 1, kMaxPlace)), builder_(name, ranks_) {}

  int buffer(const std::string& name, const std::string& dtype, Integer rows, Integer cols,
             std::optional<Integer> tile_rows, std::optional<Integer> tile_cols) {
    require_place(buffers_, "buffers");
    const std::int32_t all_rows = number(rows, "rows", 1);
    const std::int32_t all_cols = number(cols, "cols", 1);
    builder().buffer({name, parse_dtype(dtype, "dtype"), all_rows, all_cols,
                      number(tile_rows.value_or(rows), "tile_rows", 1),
                      number(tile_cols.value_or(cols), "tile_cols", 1)});
    return buffers_++;
  }
  int flags(const std::string& name, Integer count) {
    require_place(flags_, "flag arrays");
    builder().flags(name, number(count, "count", 1));
    return flags_++;
  }
  void result(Integer buffer) { builder().result(known_buffer(buffer)); }

  Region region(Integer buffer, const std::optional<Sides>& rect, std::optional<Integer> rank) {
    const int on = rank ? rank_in(*rank) : kEveryRank;
    const std::int16_t place = known_buffer(buffer);
    return rect ? Region{place, on, rect_of(*rect)} : builder().whole(place, on);
  }
  void input(const Region& region, const std::string& values) {
    builder().input(region, name_in<InputValues>(values, "values", kInputValuesNames));
  }
  void expect_product(const Region& to, const Region& a, const Region& b, bool add) {
    builder().expect_product(to, a, b, add);
  }
  void expect_copy(const Region& to, const Region& from, bool add) { builder().expect_copy(to, from, add); }
  void expect_sum(const Region& to, const Region& of, bool add) { builder().expect_sum(to, of, add); }

  void expect_rms_norm(const Region& to, const Region& a, const Region& weights) {
    builder().expect_rms_norm(to, a, weights);
  }
  void expect_row_dot(const Region& to, const Region& a, const Region& b) {
    builder().expect_row_dot(to, a, b);
  }
  void expect_attention_backward(const Region& to, const Region& q, const Region& kv, const Region& d_out,
                                 const Region& statistics, Integer limit, bool add) {
    builder().expect_attention_backward(to, q, kv, d_out, statistics, number(limit, "limit"), add);
  }
  void expect_attention(const Region& to, const Region& q, const Region& k, const Region& v, Integer limit,
                        Integer group) {
    builder().expect_attention(to, q, k, v, number(limit, "limit"), number(group, "group", 1));
  }

  int kernel(const std::string& name, Integer rank, const py::kwargs& options);
  void workgroup(Integer kernel) {
    builder().workgroup(known_kernel(kernel));
    open_ = true;
  }
  int item(Integer kernel) {
    const int item = builder().item(known_kernel(kernel));
    open_ = true;
    return item;
  }

  void matmul(Integer a, Integer b, const Sides& rect, const Corner& k, std::optional<Integer> owner) {
    ScheduleBuilder& to = open();
    const std::int32_t begin = number(std::get<0>(k), "k"), end = number(std::get<1>(k), "k");
    if (owner)
      return to.matmul_of(rank_in(*owner), known_buffer(a), known_buffer(b), rect_of(rect), begin, end);
    to.matmul(known_buffer(a), known_buffer(b), rect_of(rect), begin, end);
  }
  void attend(Integer q, const Sides& rect, Integer k, Integer v, Integer column, const Corner& keys,
              Integer limit, Integer group) {
    open().attend(known_buffer(q), rect_of(rect), known_buffer(k), known_buffer(v), number(column, "column"),
                  number(std::get<0>(keys), "keys"), number(std::get<1>(keys), "keys"),
                  {number(limit, "limit"), number(group, "group", 1)});
  }
  void attend_backward(Integer kv, const Sides& rect, Integer q, Integer d_out, Integer statistics,
                       Integer d_q, Integer column, const Corner& queries, Integer limit) {
    open().attend_backward(
        {known_buffer(q), known_buffer(kv), known_buffer(d_out), known_buffer(statistics), known_buffer(d_q)},
        rect_of(rect), number(column, "column"), number(std::get<0>(queries), "queries"),
        number(std::get<1>(queries), "queries"), number(limit, "limit"));
  }
  using TileCall = void (ScheduleBuilder::*)(std::int16_t, Rect, int);
  template <TileCall call>
  void move_tile(Integer buffer, const Sides& rect, Integer rank) {
    (open().*call)(known_buffer(buffer), rect_of(rect), rank_in(rank));
  }
  void copy(Integer buffer, const Sides& rect, Integer rank, Integer src_buffer, const Corner& src,
            Integer src_rank) {
    open().copy(known_buffer(buffer), rect_of(rect), rank_in(rank), known_buffer(src_buffer),
                number(std::get<0>(src), "src"), number(std::get<1>(src), "src"), rank_in(src_rank));
  }
  void post(Integer buffer, const Sides& rect, Integer rank, Integer src_buffer, const Corner& src,
            Integer src_rank) {
    open().post(known_buffer(buffer), rect_of(rect), rank_in(rank), known_buffer(src_buffer),
                number(std::get<0>(src), "src"), number(std::get<1>(src), "src"), rank_in(src_rank));
  }
  using FlagCall = void (ScheduleBuilder::*)(std::int16_t, std::int32_t, std::int32_t, int, Scope,
                                             LockProtocol, MemoryOrder);
  template <FlagCall call>
  void change_flag(Integer flag, Integer index, Integer rank, Integer value, const std::string& scope,
                   const std::string& protocol, const std::string& order) {
    (open().*call)(known_flag(flag), number(index, "index"), number(value, "value"), rank_in(rank),
                   name_in<Scope>(scope, "scope", kScopeNames),
                   name_in<LockProtocol>(protocol, "protocol", kLockProtocolNames),
                   name_in<MemoryOrder>(order, "order", kMemoryOrderNames));
  }
  void wait(Integer flag, Integer index, Integer value, const std::string& scope,
            const std::string& protocol) {
    open().wait(known_flag(flag), number(index, "index"), number(value, "value"),
                name_in<Scope>(scope, "scope", kScopeNames),
                name_in<LockProtocol>(protocol, "protocol", kLockProtocolNames));
  }
  void barrier() { open().barrier(); }
  void together(const py::function& add) {
    open().together([&] { add(); });
  }
  void multimem(const py::function& add) {
    open().multimem([&] { add(); });
  }
  void claim_items(Integer flag, Integer index, Integer first, Integer count) {
    const std::int32_t begin = number(first, "first");
    open().claim_items(known_flag(flag), number(index, "index"), begin,
                       number(count, "count", 1, kMaxNumber - begin));
  }

  void launch(Integer rank, Integer kernel, Integer stream) {
    builder().launch(rank_in(rank), known_kernel(kernel), number(stream, "stream"));
  }
  void graph_launch(Integer rank, const std::vector<Corner>& nodes) {
    Graph graph;
    for (const auto& [kernel, stream] : nodes) {
      graph.push_back({known_kernel(kernel), number(stream, "stream")});
    }
    builder().graph_launch(rank_in(rank), std::move(graph));
  }
  template <HostOpKind kind>
  void host(Integer rank) {
    builder().host(rank_in(rank), kind);
  }
  void stream_synchronize(Integer rank, Integer stream) {
    builder().host(rank_in(rank), HostOpKind::stream_synchronize, number(stream, "stream"));
  }
  void host_copy(Integer rank, Integer stream, Integer buffer, const Sides& rect, Integer to_rank,
                 Integer src_buffer, const Corner& src, Integer from_rank) {
    builder().host_copy(rank_in(rank), number(stream, "stream"), known_buffer(buffer), rect_of(rect),
                        rank_in(to_rank), known_buffer(src_buffer), number(std::get<0>(src), "src"),
                        number(std::get<1>(src), "src"), rank_in(from_rank));
  }
  void record_event(Integer rank, Integer event, Integer stream) {
    builder().record_event(rank_in(rank), number(event, "event"), number(stream, "stream"));
  }
  void wait_event(Integer rank, Integer event, Integer stream) {
    builder().wait_event(rank_in(rank), number(event, "event"), number(stream, "stream"));
  }
  void host_work(Integer rank, const std::string& label, std::optional<double> duration_ns) {
    builder().host_work(rank_in(rank), label, duration_ns ? rate(*duration_ns, "duration_ns") : -1);
  }

  BoundSchedule finish() {
    ScheduleBuilder& all = builder();
    finished_ = true;
    return BoundSchedule(all.finish());
  }

 private:
  ScheduleBuilder& builder() {
    if (finished_)
      throw UserError("the schedule is finished; begin another with ScheduleBuilder(name, ranks)");
    return builder_;
  }
  ScheduleBuilder& open() {
    if (!open_)
      throw UserError("operations belong to a workgroup; call workgroup(kernel) or item(kernel) first");
    return builder();
  }
  static void require_place(int count, const char* what) {
    if (count > kMaxPlace) throw UserError(fmt::format("a schedule has at most {} {}", kMaxPlace + 1, what));
  }
  int rank_in(Integer rank) const { return number(rank, "rank", 0, ranks_ - 1); }
  std::int16_t known_buffer(Integer buffer) const { return known(buffer, buffers_, "buffer"); }
  std::int16_t known_flag(Integer flag) const { return known(flag, flags_, "flags"); }
  std::int32_t known_kernel(Integer kernel) const { return known_of(kernel, kernels_, "kernel"); }
  static std::int16_t known(Integer place, int count, const char* what) {
    return static_cast<std::int16_t>(known_of(place, count, what));
  }
  static std::int32_t known_of(Integer place, int count, const char* what) {
    if (place >= 0 && place < count) return static_cast<std::int32_t>(place);
    throw UserError(fmt::format("{0}: there is no number {1}; give what {0}() returned", what, place));
  }

  int ranks_;
  ScheduleBuilder builder_;
  int buffers_ = 0;
  int flags_ = 0;
  int kernels_ = 0;
  bool open_ = false;
  bool finished_ = false;
};

MatmulTile tile_of_option(const py::handle& value) {
  const auto [m, n, k] = value.cast<std::tuple<Integer, Integer, Integer>>();
  MatmulTile tile;
  tile.m = number(m, "tile", 1, kMaxGemmTile);
  tile.n = number(n, "tile", 1, kMaxGemmTile);
  tile.k = number(k, "tile", 1, kMaxGemmTile);
  return tile;
}

// An option of a kernel, from Python.
struct OptionValue {
  const char* name;
  py::handle value;

  std::int32_t integer(Integer low = 0) const { return number(value.cast<Integer>(), name, low); }
  double real() const { return rate(value.cast<double>(), name); }
  template <typename Name, std::size_t count>
  Name one_of(const std::array<std::string_view, count>& names) const {
    return name_in<Name>(value.cast<std::string>(), name, names);
  }
};

// A dict with the keys of a schedule's JSON.
LibraryKernel library_of_option(const py::handle& value) {
  LibraryKernel library;
  for (const auto& [key, given] : value.cast<py::dict>()) {
    const auto name = key.cast<std::string>();
    if (name == "routine") {
      library.routine = name_in<LibraryRoutine>(given.cast<std::string>(), "library", kLibraryRoutineNames);
      continue;
    }
    if (name == "bytes") {
      library.bytes = rate(given.cast<double>(), "library");
      continue;
    }
    const auto* count = std::find_if(kLibraryKernelCounts.begin(), kLibraryKernelCounts.end(),
                                     [&](const LibraryKernelCount& one) { return name == one.name; });
    if (count == kLibraryKernelCounts.end()) {
      std::string names = "routine, bytes";
      for (const LibraryKernelCount& one : kLibraryKernelCounts) names += fmt::format(", {}", one.name);
      throw UserError(fmt::format("library: it has no '{}'; it has {}", name, names));
    }
    library.*count->member = number(given.cast<Integer>(), count->name, 0, count->most);
  }
  return library;
}

struct KernelOption {
  const char* name;
  void (*set)(Kernel& kernel, const OptionValue& given);
};

constexpr std::array<KernelOption, 16> kKernelOptions{{
    {"threads", [](Kernel& k, const OptionValue& v) { k.resources.threads = v.integer(1); }},
    {"registers_per_thread",
     [](Kernel& k, const OptionValue& v) { k.resources.registers_per_thread = v.integer(); }},
    {"lds_bytes", [](Kernel& k, const OptionValue& v) { k.resources.lds_bytes = v.integer(); }},
    {"tile",
     [](Kernel& k, const OptionValue& v) {
       const MatmulTile tile = tile_of_option(v.value);
       k.tile.m = tile.m;
       k.tile.n = tile.n;
       k.tile.k = tile.k;
     }},
    {"waves", [](Kernel& k, const OptionValue& v) { k.tile.waves = v.integer(); }},
    {"pipeline",
     [](Kernel& k, const OptionValue& v) { k.tile.pipeline = v.one_of<Pipeline>(kPipelineNames); }},
    {"producers", [](Kernel& k, const OptionValue& v) { k.tile.producers = v.integer(); }},
    {"placement",
     [](Kernel& k, const OptionValue& v) { k.placement = v.one_of<Placement>(kPlacementNames); }},
    {"profile",
     [](Kernel& k, const OptionValue& v) { k.profile = v.one_of<KernelProfile>(kKernelProfileNames); }},
    {"cu_begin", [](Kernel& k, const OptionValue& v) { k.cu_begin = v.integer(); }},
    {"cu_end", [](Kernel& k, const OptionValue& v) { k.cu_end = v.integer(); }},
    {"library", [](Kernel& k, const OptionValue& v) { k.library = library_of_option(v.value); }},
    {"payload_share", [](Kernel& k, const OptionValue& v) { k.payload_share = v.real(); }},
    {"start_ns", [](Kernel& k, const OptionValue& v) { k.start_ns = v.real(); }},
    {"clk_per_stored_byte", [](Kernel& k, const OptionValue& v) { k.clk_per_stored_byte = v.real(); }},
    {"registers_filled", [](Kernel& k, const OptionValue& v) { k.registers_filled = v.value.cast<bool>(); }},
}};

void set_option(Kernel& kernel, const std::string& key, const py::handle& value) {
  const auto* option = std::find_if(kKernelOptions.begin(), kKernelOptions.end(),
                                    [&](const KernelOption& one) { return one.name == key; });
  if (option == kKernelOptions.end()) {
    std::vector<std::string_view> names;
    for (const KernelOption& one : kKernelOptions) names.emplace_back(one.name);
    throw UserError(fmt::format("kernel '{}': it has no option '{}'; it has {}", kernel.name, key,
                                fmt::join(names, ", ")));
  }
  try {
    option->set(kernel, {option->name, value});
  } catch (const py::cast_error&) {
    throw UserError(
        fmt::format("kernel '{}': {}: {} is not allowed", kernel.name, key, std::string(py::repr(value))));
  }
}

int PythonBuilder::kernel(const std::string& name, Integer rank, const py::kwargs& options) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank_in(rank);
  for (const auto& [key, value] : options) {
    if (!value.is_none()) set_option(kernel, py::str(key), value);
  }
  builder().kernel(std::move(kernel));
  return kernels_++;
}

py::dict dict_of(const Resources& resources) {
  return py::dict("threads"_a = resources.threads, "registers_per_thread"_a = resources.registers_per_thread,
                  "lds_bytes"_a = resources.lds_bytes);
}

py::dict resources_of_matmul(const Machine& machine, const py::object& tile, Integer waves,
                             const std::string& dtype, const std::string& pipeline) {
  MatmulTile shape = tile_of_option(tile);
  shape.waves = number(waves, "waves", 1, kMaxWaves);
  shape.pipeline = name_in<Pipeline>(pipeline, "pipeline", kPipelineNames);
  return dict_of(matmul_resources(machine.gpu, machine.interpreter, parse_dtype(dtype, "dtype"), shape));
}

py::dict resources_of_copy(const Machine& machine, Integer elements) {
  if (elements < 1) throw UserError(fmt::format("elements: {} is not allowed; give 1 or more", elements));
  return dict_of(tile_copy_resources(machine.gpu, copy_resources().threads, elements));
}

using PyBuilder = py::class_<PythonBuilder>;

void add_data(PyBuilder& builder) {
  builder
      .def("buffer", &PythonBuilder::buffer, "name"_a, "dtype"_a, "rows"_a, "cols"_a,
           "tile_rows"_a = py::none(), "tile_cols"_a = py::none(),
           "A matrix on every rank; returns its number")
      .def("flags", &PythonBuilder::flags, "name"_a, "count"_a, "Counters on every rank, 0 at the start")
      .def("result", &PythonBuilder::result, "buffer"_a)
      .def("region", &PythonBuilder::region, "buffer"_a, "rect"_a = py::none(), "rank"_a = py::none(),
           "A rectangle of a buffer, or all of it, on one rank or on every")
      .def("input", &PythonBuilder::input, "region"_a, "values"_a = "own",
           "What the run starts from: random numbers, \"own\" of each rank or \"same\" on all, or \"zero\"")
      .def("expect_product", &PythonBuilder::expect_product, "to"_a, "a"_a, "b"_a, "add"_a = false,
           "What the run must end with")
      .def("expect_copy", &PythonBuilder::expect_copy, "to"_a, "a"_a, "add"_a = false)
      .def("expect_sum", &PythonBuilder::expect_sum, "to"_a, "a"_a, "add"_a = false, "Over the ranks of `a`")
      .def("expect_rms_norm", &PythonBuilder::expect_rms_norm, "to"_a, "a"_a, "weights"_a)
      .def("expect_row_dot", &PythonBuilder::expect_row_dot, "to"_a, "a"_a, "b"_a)
      .def("expect_attention_backward", &PythonBuilder::expect_attention_backward, "to"_a, "q"_a, "kv"_a,
           "d_out"_a, "statistics"_a, "limit"_a = 0, "add"_a = false)
      .def("expect_attention", &PythonBuilder::expect_attention, "to"_a, "q"_a, "k"_a, "v"_a, "limit"_a = 0,
           "group"_a = 1);
}

void add_operations(PyBuilder& builder) {
  using B = PythonBuilder;
  using S = ScheduleBuilder;
  builder
      .def("kernel", &B::kernel, "name"_a, "rank"_a,
           "Options are the fields of Kernel, tile=(m, n, k); returns its number")
      .def("workgroup", &B::workgroup, "kernel"_a,
           "Starts the next workgroup; operations that follow are its own")
      .def("item", &B::item, "kernel"_a, "Starts the next item of work that workgroups claim")
      .def("matmul", &B::matmul, "a"_a, "b"_a, "rect"_a, "k"_a, "owner"_a = py::none())
      .def("attend", &B::attend, "q"_a, "rect"_a, "k"_a, "v"_a, "column"_a, "keys"_a, "limit"_a = 0,
           "group"_a = 1)
      .def("attend_backward", &B::attend_backward, "kv"_a, "rect"_a, "q"_a, "d_out"_a, "statistics"_a,
           "d_q"_a, "column"_a, "queries"_a, "limit"_a = 0)
      .def("row_dot", &B::move_tile<&S::row_dot>, "buffer"_a, "rect"_a, "rank"_a)
      .def("combine", &B::move_tile<&S::combine>, "buffer"_a, "rect"_a, "rank"_a)
      .def("load", &B::move_tile<&S::load>, "buffer"_a, "rect"_a, "rank"_a)
      .def("store", &B::move_tile<&S::store>, "buffer"_a, "rect"_a, "rank"_a)
      .def("reduce", &B::move_tile<&S::reduce>, "buffer"_a, "rect"_a, "rank"_a)
      .def("rms_norm", &B::move_tile<&S::rms_norm>, "weights"_a, "rect"_a, "rank"_a)
      .def("atomic_add", &B::move_tile<&S::atomic_add>, "buffer"_a, "rect"_a, "rank"_a)
      .def("copy", &B::copy, "buffer"_a, "rect"_a, "rank"_a, "src_buffer"_a, "src"_a, "src_rank"_a)
      .def("post", &B::post, "buffer"_a, "rect"_a, "rank"_a, "src_buffer"_a, "src"_a, "src_rank"_a,
           "As copy(), by a copy engine of the GPU, to which the workgroup posts it.")
      .def("signal", &B::change_flag<&S::signal>, "flag"_a, "index"_a, "rank"_a, "value"_a = 1,
           "scope"_a = "gpu", "protocol"_a = "load-store", "order"_a = "release")
      .def("set_flag", &B::change_flag<&S::set_flag>, "flag"_a, "index"_a, "rank"_a, "value"_a = 0,
           "scope"_a = "gpu", "protocol"_a = "load-store", "order"_a = "release")
      .def("wait", &B::wait, "flag"_a, "index"_a, "value"_a = 1, "scope"_a = "gpu",
           "protocol"_a = "load-store")
      .def("barrier", &B::barrier)
      .def("multimem", &B::multimem, "add"_a,
           "Calls add(); the operations that it adds are one operation of the switch between the GPUs: "
           "stores, or a load and reduces, of one rectangle of several ranks, the own one among them.")
      .def("together", &B::together, "add"_a,
           "Calls add(); the operations that it adds start together: signals, waits, stores, copies, or "
           "loads of "
           "which all but the first are reduces")
      .def("claim_items", &B::claim_items, "flag"_a, "index"_a, "first"_a, "count"_a);
}

void add_host_program(PyBuilder& builder) {
  using B = PythonBuilder;
  builder.def("launch", &B::launch, "rank"_a, "kernel"_a, "stream"_a = 0)
      .def("graph_launch", &B::graph_launch, "rank"_a, "nodes"_a, "[(kernel, stream), …] by one host call")
      .def("device_synchronize", &B::host<HostOpKind::device_synchronize>, "rank"_a)
      .def("stream_synchronize", &B::stream_synchronize, "rank"_a, "stream"_a = 0)
      .def("host_barrier", &B::host<HostOpKind::barrier>, "rank"_a)
      .def("host_copy", &B::host_copy, "rank"_a, "stream"_a, "buffer"_a, "rect"_a, "to_rank"_a,
           "src_buffer"_a, "src"_a, "from_rank"_a, "By a copy engine of `rank`")
      .def("record_event", &B::record_event, "rank"_a, "event"_a, "stream"_a = 0)
      .def("wait_event", &B::wait_event, "rank"_a, "event"_a, "stream"_a = 0)
      .def("host_work", &B::host_work, "rank"_a, "label"_a, "duration_ns"_a = py::none())
      .def("finish", &B::finish, "The schedule; the builder is done then");
}

}  // namespace

void add_builder(py::module_& module) {
  py::class_<Region>(module, "Region", "A rectangle of a buffer, on one rank or on every");
  PyBuilder builder(module, "ScheduleBuilder", "Makes a tile schedule, one operation after the other");
  builder.def(py::init<const std::string&, Integer>(), "name"_a, "ranks"_a);
  add_data(builder);
  add_operations(builder);
  add_host_program(builder);
  module.def("matmul_resources", &resources_of_matmul, "machine"_a, "tile"_a, "waves"_a, "dtype"_a = "fp16",
             "pipeline"_a = "overlapped",
             "What a workgroup that multiplies tiles takes, as options of kernel()");
  module.def("copy_resources", &resources_of_copy, "machine"_a, "elements"_a,
             "… and one that copies tiles of so many elements");
}

}  // namespace tritax::python

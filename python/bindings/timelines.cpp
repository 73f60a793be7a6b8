#include "python/bindings/timelines.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "model/machine/topology.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/timeline/op_times.hpp"
#include "model/timeline/perfetto.hpp"
#include "python/bindings/module.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

// The columns of the arrays. `peer`: the other side, or the own rank for local operations; `bytes`: bytes of
// the tile that an operation moves.
struct OpColumns {
  std::uint8_t kind;
  std::int32_t rank;
  std::int32_t cu;
  std::uint32_t kernel;
  std::uint32_t workgroup;
  std::uint32_t op;
  std::uint32_t launch;
  std::int32_t peer;
  std::int32_t buffer;  // -1: none
  std::int32_t row, col, rows, cols;
  double bytes;
  double begin_ns;
  double service_begin_ns;  // starts at the end of the asynchronous operation before it (op_times.hpp)
  double end_ns;
};

struct KernelColumns {
  std::uint32_t kernel;
  std::int32_t rank;
  std::int32_t stream;
  double begin_ns;
  double end_ns;
};

struct HostColumns {
  std::uint8_t kind;
  std::int32_t rank;
  std::uint32_t host_op;
  double begin_ns;
  double end_ns;
};

struct CopyColumns {
  std::int32_t rank;
  std::int32_t engine;
  std::int32_t from_rank, to_rank;
  double bytes;
  double begin_ns;
  double end_ns;
};

struct LinkColumns {
  std::int32_t link;
  double time_ns;
  double gb_per_s;
};

struct TimelineArrays {
  std::shared_ptr<const Recorded> recorded;
  BoundSchedule schedule;
  Topology topology;
  py::array ops, kernels, host, copies, links;
};

// `columns_of(i)` makes the row of item i.
template <typename Columns, typename ColumnsOf>
py::array array_of(std::size_t count, const ColumnsOf& columns_of) {
  py::array_t<Columns> array(static_cast<py::ssize_t>(count));
  Columns* row = array.mutable_data();
  for (std::size_t i = 0; i < count; ++i) row[i] = columns_of(i);
  return array;
}

OpColumns columns_of(const OpInterval& interval, double service_begin_ns, const Schedule& schedule) {
  const OpPlace& place = interval.place;
  const Op& op = op_of(schedule, place);
  OpColumns row{};
  row.kind = static_cast<std::uint8_t>(interval.kind);
  row.rank = place.rank;
  row.cu = place.cu;
  row.kernel = place.kernel;
  row.workgroup = place.workgroup;
  row.op = place.op;
  row.launch = interval.launch;
  row.peer = peer_of(op, place.rank);
  const bool moves = moves_data(op.kind);
  row.buffer = moves ? op.buffer : -1;
  row.row = op.rect.row;
  row.col = op.rect.col;
  row.rows = op.rect.rows;
  row.cols = op.rect.cols;
  row.bytes = moves ? tile_bytes(schedule, op) : 0;
  row.begin_ns = interval.begin_ns;
  row.service_begin_ns = service_begin_ns;
  row.end_ns = interval.end_ns;
  return row;
}

py::array ops_of(const Timeline& timeline, const Schedule& schedule) {
  const std::vector<double> begins = service_begins(timeline);
  return array_of<OpColumns>(timeline.ops.size(),
                             [&](std::size_t i) { return columns_of(timeline.ops[i], begins[i], schedule); });
}

py::array kernels_of(const Timeline& timeline, const Schedule& schedule) {
  return array_of<KernelColumns>(timeline.kernels.size(), [&](std::size_t i) {
    const KernelInterval& one = timeline.kernels[i];
    return KernelColumns{one.kernel, schedule.kernels[one.kernel].rank, one.stream, one.begin_ns, one.end_ns};
  });
}

const HostOp& host_op_of(const Schedule& schedule, std::int32_t rank, std::uint32_t host_op) {
  return schedule.host[static_cast<std::size_t>(rank)][host_op];
}

py::array host_of(const Timeline& timeline, const Schedule& schedule) {
  return array_of<HostColumns>(timeline.host_ops.size(), [&](std::size_t i) {
    const HostInterval& one = timeline.host_ops[i];
    const auto kind = static_cast<std::uint8_t>(host_op_of(schedule, one.rank, one.host_op).kind);
    return HostColumns{kind, one.rank, one.host_op, one.begin_ns, one.end_ns};
  });
}

py::array copies_of(const Timeline& timeline, const Schedule& schedule) {
  return array_of<CopyColumns>(timeline.copies.size(), [&](std::size_t i) {
    const CopyInterval& one = timeline.copies[i];
    const HostOp& posted = host_op_of(schedule, one.rank, one.host_op);
    const Op& copy = schedule.transfers[static_cast<std::size_t>(posted.transfer)];
    return CopyColumns{one.rank,     one.engine, copy.src_rank, copy.rank, tile_bytes(schedule, copy),
                       one.begin_ns, one.end_ns};
  });
}

py::array links_of(const Timeline& timeline) {
  return array_of<LinkColumns>(timeline.links.size(), [&](std::size_t i) {
    const LinkSample& one = timeline.links[i];
    return LinkColumns{one.edge, one.time_ns, one.gb_per_s};
  });
}

std::vector<std::string> link_names(const TimelineArrays& arrays) {
  std::vector<std::string> names;
  for (const TopologyEdge& edge : arrays.topology.edges) names.push_back(edge.name);
  return names;
}

std::string perfetto_json(const TimelineArrays& arrays) {
  const py::gil_scoped_release without_lock;
  return timeline_to_perfetto_json(arrays.recorded->timeline, *arrays.schedule, arrays.topology, "",
                                   arrays.recorded->counters);
}

template <std::size_t count>
std::vector<std::string> list_of(const std::array<std::string_view, count>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

py::object to_python(Recorded recorded, const BoundSchedule& schedule, const Machine& machine) {
  const auto shared = std::make_shared<const Recorded>(std::move(recorded));
  const Timeline& timeline = shared->timeline;
  return py::cast(TimelineArrays{shared, schedule, build_topology(machine, schedule->ranks),
                                 ops_of(timeline, *schedule), kernels_of(timeline, *schedule),
                                 host_of(timeline, *schedule), copies_of(timeline, *schedule),
                                 links_of(timeline)});
}

void add_timelines(py::module_& module) {
  PYBIND11_NUMPY_DTYPE(OpColumns, kind, rank, cu, kernel, workgroup, op, launch, peer, buffer, row, col, rows,
                       cols, bytes, begin_ns, service_begin_ns, end_ns);
  PYBIND11_NUMPY_DTYPE(KernelColumns, kernel, rank, stream, begin_ns, end_ns);
  PYBIND11_NUMPY_DTYPE(HostColumns, kind, rank, host_op, begin_ns, end_ns);
  PYBIND11_NUMPY_DTYPE(CopyColumns, rank, engine, from_rank, to_rank, bytes, begin_ns, end_ns);
  PYBIND11_NUMPY_DTYPE(LinkColumns, link, time_ns, gb_per_s);
  module.attr("op_kinds") = list_of(kOpKindNames);
  module.attr("host_op_kinds") = list_of(kHostOpKindNames);
  py::class_<TimelineArrays>(module, "Timeline", "What ran when, as numpy arrays with named columns")
      .def_readonly("ops", &TimelineArrays::ops,
                    "Tile operations, by their begin; `kind` is a number of OpKind")
      .def_readonly("kernels", &TimelineArrays::kernels)
      .def_readonly("host", &TimelineArrays::host, "Host operations; `kind` is a number of HostOpKind")
      .def_readonly("copies", &TimelineArrays::copies, "By copy engines")
      .def_readonly("links", &TimelineArrays::links,
                    "Load of link directions from a time on, headers included")
      .def_property_readonly("link_names", &link_names, "By the number in `links`")
      .def("perfetto_json", &perfetto_json, "A trace for ui.perfetto.dev");
}

}  // namespace tritax::python

#include "model/parts/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/sum_workload.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostWorkgroups = std::int64_t{1} << 16;

// A function-local static, because tables of workloads read it before main() begins.
const std::array<Spec, 8>& all_knobs() {
  static const std::array<Spec, 8> knobs{{
      {.name = "comm_tile",
       .help = "piece that a workgroup moves per step, for example 64x256 (default: 128x128)",
       .low = kTileStep,
       .high = kMaxCommTile,
       .parts = {"m", "n"},
       .step = kTileStep,
       .varies_by_doubling = true,
       .shown = "pieces of {}",
       .not_shown = 0},
      {.name = "comm_cus",
       .help = "workgroups per GPU (default: one per compute unit)",
       .high = kMostWorkgroups,
       .allowed = kAllowedCus,
       .varies_by_doubling = true,
       .shown = "{} workgroups",
       .not_shown = 0},
      {.name = "transport",
       .help =
           "who moves data: the GPU that has them stores them (push), or the GPU that needs them loads them "
           "(pull)",
       .kind = ValueKind::name,
       .names = kTransportNames,
       .shown = "{}"},
      sum_knob("rings"),
      gemm_knob("peer_order"),
      sum_knob("peers"),
      gemm_knob("lock"),
      gemm_knob("host_barriers"),
  }};
  return knobs;
}

// Number of strides that reach all ranks.
std::int64_t most_rings(int gpus) {
  std::int64_t strides = 0;
  for (int stride = 1; stride < gpus; ++stride) strides += std::gcd(stride, gpus) == 1 ? 1 : 0;
  return std::max<std::int64_t>(1, strides);
}

std::int64_t usual_rings(const Problem& problem, const Machine& machine) {
  return machine.fabric.kind == LinkKind::mesh ? most_rings(problem.gpus()) : 1;
}

Axis workgroup_axis(const Machine& machine) {
  constexpr std::array<std::int64_t, 9> fewer{8, 16, 24, 32, 48, 64, 96, 128, 192};
  const std::int64_t cus = machine.gpu.cu_count();
  Axis axis;
  axis.name = "comm_cus";
  axis.near = Axis::Near::next;
  for (const std::int64_t count : fewer) {
    if (count < cus) axis.values.push_back(column_value("comm_cus", count));
  }
  axis.values.push_back(column_value("comm_cus", cus));
  axis.start = axis.values.size() - 1;
  for (std::size_t i = 0; i < axis.values.size(); ++i) axis.coarse.push_back(i);
  return axis;
}

// Shapes of pieces that fit the accumulator of a workgroup.
Axis piece_axis() {
  constexpr std::array<std::array<std::int64_t, 2>, 7> shapes{
      {{128, 128}, {64, 256}, {64, 128}, {32, 128}, {32, 64}, {16, 64}, {16, 512}}};
  Axis axis;
  axis.name = "comm_tile";
  for (const std::array<std::int64_t, 2>& shape : shapes) {
    axis.values.push_back({{shape[0], shape[1]}, 0, [shape](Values& knobs) {
                             knobs.assume("comm_tile_m", shape[0]);
                             knobs.assume("comm_tile_n", shape[1]);
                             return true;
                           }});
  }
  return axis;
}

Axis name_axis(std::string_view column, std::span<const std::string_view> names, std::int64_t usual) {
  std::vector<std::int64_t> values{usual};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(names.size()); ++i) {
    if (i != usual) values.push_back(i);
  }
  return column_axis(column, values);
}

}  // namespace

Collective collective_of(const Problem& problem) {
  return {problem["rows"], problem["cols"], static_cast<DType>(problem["dtype"]), problem.gpus()};
}

std::array<Spec, 4> collective_fields(std::string_view rows_help, std::string_view cols_help, int least) {
  return {size_field("rows", "--rows", rows_help), size_field("cols", "--cols", cols_help),
          dtype_field(DType::fp16, "element type"), gpus_field(least)};
}

const Spec& collective_knob(std::string_view name) {
  const Spec* found = find_spec(all_knobs(), name);
  TRITAX_ASSERT(found != nullptr, "no such knob of collectives");
  return *found;
}

std::array<Spec, 10> moving_knobs() {
  return {{
      collective_knob("comm_tile"),
      collective_knob("comm_cus"),
      collective_knob("transport"),
      collective_knob("peer_order"),
      collective_knob("lock"),
      form_knob(),
      call_knob(),
      kernels_knob(),
      processes_knob(),
      collective_knob("host_barriers"),
  }};
}

SumKnobs collective_knobs_of(const Values& values) {
  SumKnobs knobs = sum_knobs_of(values);
  knobs.gemm_cus = knobs.comm_cus;  // the kernel has a single role in every pattern
  knobs.xcd_remap = false;
  return knobs;
}

void check_collective(const Collective& collective, const Machine& machine, const SumKnobs& knobs,
                      double needed_bytes) {
  check_cus(knobs.comm_cus, "comm_cus", machine.gpu);
  check(knobs, machine.gpu);
  check_sum_knobs(knobs);
  check_transport(knobs.transport, machine, collective.gpus, collective.dtype);
  check_memory("this collective", needed_bytes, machine.gpu);
  const TileIndex piece = piece_size(knobs);
  const auto pieces = [&](std::int64_t size, std::int32_t of) {
    return std::ceil(static_cast<double>(size) / of);
  };
  const double all =
      (pieces(collective.rows, piece.row) + collective.gpus) * pieces(collective.cols, piece.col);
  if (all * collective.gpus <= kMaxOperations) return;
  throw UserError(fmt::format(
      "comm_tile: {:.0f} pieces of {}x{} per GPU are too many to schedule (over {:.0f} tile operations); use "
      "larger ones",
      all, piece.row, piece.col, kMaxOperations));
}

void require_rows(Problem& problem, const FieldPlace& place) {
  if (problem["rows"] >= problem.gpus()) return;
  throw UserError(fmt::format("{}: rows = {} is less than there are GPUs ({}); every GPU must have a row",
                              place("rows"), problem["rows"], problem.gpus()));
}

void require_rows_or_columns(Problem& problem, const FieldPlace& place) {
  if (std::max(problem["rows"], problem["cols"]) >= problem.gpus()) return;
  throw UserError(fmt::format(
      "{}: rows = {} and cols = {} are both less than there are GPUs ({}); every GPU must own a part",
      place("rows"), problem["rows"], problem["cols"], problem.gpus()));
}

PartialSums array_of(const Collective& collective) {
  const Blocks owned = collective.rows >= collective.gpus ? Blocks::rows : Blocks::columns;
  return {collective.rows, collective.cols, 0, collective.dtype, owned, collective.gpus};
}

Work all_reduce_work(const Problem& problem) {
  const Collective collective = collective_of(problem);
  return {.bytes_per_gpu = 2 * collective.bytes() * (collective.gpus - 1) / collective.gpus,
          .peers = collective.gpus - 1};
}

std::string collective_size_text(const Problem& problem) {
  return fmt::format("{}x{} {}", problem["rows"], problem["cols"],
                     name_of(static_cast<DType>(problem["dtype"])));
}

Values default_collective_knobs(const Values& table, const Problem& problem, const Machine& machine) {
  Values knobs = table;
  if (knobs.has("rings")) knobs.assume("rings", usual_rings(problem, machine));
  knobs.assume("host_barriers", 0);
  return knobs;
}

KnobSpace collective_space(const Pattern& pattern, const Problem& problem, const Machine& machine,
                           const Values& table, const Values& pins) {
  KnobSpace space;
  space.base = default_collective_knobs(table, problem, machine).with(pins);
  if (pins.has("comm_cus") && pins.given("comm_cus")) check_cus(pins["comm_cus"], "comm_cus", machine.gpu);
  const auto varies = [&](std::string_view knob, std::string_view column) {
    return pattern.uses(knob) && !pins.given(column);
  };
  if (varies("comm_cus", "comm_cus")) space.axes.push_back(workgroup_axis(machine));
  if (varies("comm_tile", "comm_tile_m") && !pins.given("comm_tile_n")) space.axes.push_back(piece_axis());
  if (problem.gpus() == 1) return space;
  const bool coded = pattern.uses("wire") && pins.get_or("wire", 0) != 0;  // coded data are pushed
  if (!coded && varies("transport", "transport")) {
    space.axes.push_back(
        transport_axis(table, machine, problem.gpus(), static_cast<DType>(problem["dtype"])));
    for (std::size_t i = 0; i < space.axes.back().values.size(); ++i) space.axes.back().coarse.push_back(i);
  }
  if (varies("rings", "rings") && most_rings(problem.gpus()) > 1) {
    const bool all = usual_rings(problem, machine) > 1;
    const std::int64_t most = most_rings(problem.gpus());
    space.axes.push_back(all ? column_axis("rings", {most, 1}) : column_axis("rings", {1, most}));
  }
  if (varies("peer_order", "peer_order")) {
    space.axes.push_back(
        name_axis("peer_order", kPeerOrderNames, static_cast<std::int64_t>(PeerOrder::staggered)));
  }
  return space;
}

std::vector<Rect> cut(const Rect& whole, std::int32_t height, std::int32_t width) {
  std::vector<Rect> pieces;
  for (std::int32_t row = 0; row < whole.rows; row += height) {
    for (std::int32_t col = 0; col < whole.cols; col += width) {
      pieces.push_back({whole.row + row, whole.col + col, std::min(height, whole.rows - row),
                        std::min(width, whole.cols - col)});
    }
  }
  return pieces;
}

TileIndex piece_size(const GemmKnobs& knobs) {
  return {knobs.comm_tile_m > 0 ? knobs.comm_tile_m : kPieceAlone,
          knobs.comm_tile_n > 0 ? knobs.comm_tile_n : kPieceAlone};
}

std::int32_t moving_kernel(ScheduleBuilder& builder, const Machine& machine, int rank, std::string name,
                           const SumKnobs& knobs) {
  const TileIndex piece = piece_size(knobs);
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(machine.gpu, copy_resources().threads, std::int64_t{piece.row} * piece.col);
  kernel.placement = Placement::persistent;
  return builder.kernel(std::move(kernel));
}

void library_program(ScheduleBuilder& builder, int rank, const std::vector<std::int32_t>& kernels,
                     bool host_barriers) {
  if (host_barriers) builder.host(rank, HostOpKind::barrier);
  builder.host_work(rank, kCollectiveCall);
  for (const std::int32_t kernel : kernels) builder.launch(rank, kernel);
  builder.host(rank, HostOpKind::device_synchronize);
  if (host_barriers) builder.host(rank, HostOpKind::barrier);
}

}  // namespace tritax

#include "model/parts/sum_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/core/error.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_space.hpp"

namespace tritax {

namespace {

// An upper bound on the number of operations, before they are allocated. A tile is multiplied, stored,
// announced and waited for; an item of a tile is sent, added up from all ranks and, where needed, stored to
// all.
void check_operations(const PartialSums& sums, const SumKnobs& knobs) {
  const auto pieces = [](double size, double piece) { return std::ceil(size / piece); };
  const double cut = sums.gpus - 1;
  const bool rows = sums.blocks == Blocks::rows;
  const auto m = static_cast<double>(sums.m);
  const auto n = static_cast<double>(sums.n);
  const auto count = [&](double tile_m, double tile_n) {
    return (pieces(m, tile_m) + (rows ? cut : 0)) * (pieces(n, tile_n) + (rows ? 0 : cut));
  };
  const double tiles = count(knobs.tile_m, knobs.tile_n);
  const double items = count(knobs.comm_tile_m > 0 ? knobs.comm_tile_m : knobs.tile_m / 4.0,
                             knobs.comm_tile_n > 0 ? knobs.comm_tile_n : knobs.tile_n);
  const double operations = sums.gpus * ((4.0 + sums.gpus) * tiles + 8 * items);
  if (operations <= kMaxOperations) return;
  throw UserError(fmt::format(
      "tile, comm_tile: {:.0f} tiles per GPU in {:.0f} pieces are too many to schedule (over {:.0f} "
      "tile operations); use larger ones",
      tiles, items, kMaxOperations));
}

Axis numbers(std::string_view column, std::initializer_list<std::int64_t> values, std::int64_t usual) {
  Axis axis = column_axis(column, values);
  axis.near = Axis::Near::next;
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    if (*(values.begin() + i) == usual) axis.start = i;
  }
  return axis;
}

// Number of strides that reach all ranks: strides without a common divisor with the number of ranks.
int strides_of_rings(int gpus) {
  int strides = 0;
  for (int stride = 1; stride < gpus; ++stride) strides += std::gcd(stride, gpus) == 1 ? 1 : 0;
  return strides;
}

// A single ring leaves all links of a mesh but one idle, but fills the ports of a switch.
std::int64_t usual_rings(const PartialSums& sums, const Machine& machine) {
  return machine.fabric.kind == LinkKind::mesh ? std::max(1, strides_of_rings(sums.gpus)) : 1;
}

}  // namespace

PartialSums partial_sums_of(const Problem& problem, Blocks blocks) {
  return {problem["m"], problem["n"],  problem["k"], static_cast<DType>(problem["dtype"]),
          blocks,       problem.gpus()};
}

GemmShape shape_of(const PartialSums& sums) { return {sums.m, sums.n, depth_of(sums, 0), sums.dtype}; }

void require_parts(const Problem& problem, const FieldPlace& place, std::string_view field) {
  for (const std::string_view name : {std::string_view("k"), field}) {
    if (name.empty() || problem[name] >= problem.gpus()) continue;
    throw UserError(fmt::format("{}: {} = {} is less than there are GPUs ({}); every GPU must have a part",
                                place(name), name, problem[name], problem.gpus()));
  }
}

void check_partial_sums(const PartialSums& sums, const Machine& machine, const SumKnobs& knobs,
                        double copies_of_c) {
  const double elements = static_cast<double>(sums.m) * static_cast<double>(sums.n);
  const double c = elements * bytes_of(knobs.result.value_or(sums.dtype));
  const double copies = sums.gpus > 1 ? copies_of_c * elements * bytes_of(wire_dtype(sums, knobs)) : 0;
  check_sums_in_memory(sums, machine, knobs, c + copies);
}

void check_sums_in_memory(const PartialSums& sums, const Machine& machine, const SumKnobs& knobs,
                          double more_bytes) {
  check_dtype(sums.dtype, machine);
  check(knobs, machine.gpu);
  check_sum_knobs(knobs);
  check_transport(knobs.transport, machine, sums.gpus, wire_dtype(sums, knobs));
  const double sides = static_cast<double>(sums.m) + static_cast<double>(sums.n);
  const double operands = sides * depth_of(sums, 0) * bytes_of(sums.dtype);
  check_memory("this problem", operands + more_bytes, machine.gpu);
  check_operations(sums, knobs);
}

Work product_work(const PartialSums& sums) {
  return {
      .flops = 2.0 * static_cast<double>(sums.m) * static_cast<double>(sums.n) * static_cast<double>(sums.k),
      .peers = sums.gpus - 1};
}

double sum_bound_ns(const Pattern& pattern, const PartialSums& sums, const Machine& machine,
                    const Values& knobs) {
  return gemm_bound_ns(pattern, shape_of(sums), machine, gemm_knobs_of(knobs), work_sharing_of(knobs));
}

Axis transport_axis(const Values& table, const Machine& machine, int gpus, DType dtype) {
  const auto multimem = static_cast<std::int64_t>(Transport::multimem);
  const auto names = static_cast<std::int64_t>(find_spec(table.specs(), "transport")->names.size());
  std::vector<std::int64_t> values;
  for (std::int64_t value = 0; value < names; ++value) {
    if (value != multimem || has_multimem(machine, gpus, dtype)) values.push_back(value);
  }
  return column_axis("transport", values);
}

Values default_sum_knobs(const Values& table, const PartialSums& sums, const Machine& machine) {
  Values knobs = table;
  knobs.assume("rings", usual_rings(sums, machine));
  assume(knobs, default_gemm_knobs(machine, sums.dtype));
  return knobs;
}

KnobSpace sum_space(const Pattern& pattern, const PartialSums& sums, const Machine& machine,
                    const Values& table, const Values& pins) {
  KnobSpace space = gemm_space(pattern, shape_of(sums), sums.gpus, machine, table, pins);
  space.base = space.base.with(pins);
  if (sums.gpus == 1) return space;
  if (pattern.uses("transport") && !pins.given("transport")) {
    space.axes.push_back(
        transport_axis(table, machine, sums.gpus, wire_dtype(sums, sum_knobs_of(space.base))));
  }
  if (pattern.uses("chunks") && !pins.given("chunks"))
    space.axes.push_back(numbers("chunks", {1, 2, 4, 8}, 2));
  if (pattern.uses("posts") && !pins.given("posts"))
    space.axes.push_back(column_axis(
        "posts", {static_cast<std::int64_t>(Posts::host), static_cast<std::int64_t>(Posts::kernel)}));
  const std::int64_t strides = strides_of_rings(sums.gpus);
  if (pattern.uses("rings") && !pins.given("rings") && strides > 1)
    space.axes.push_back(numbers("rings", {1, strides}, usual_rings(sums, machine)));
  return space;
}

}  // namespace tritax

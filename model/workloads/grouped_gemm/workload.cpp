#include "model/workloads/grouped_gemm/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "model/core/memo.hpp"
#include "model/parts/expert_routing.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/group_tile.hpp"
#include "model/parts/usual_first.hpp"
#include "model/workload/file_values.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workloads/grouped_gemm/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostSide = 65536;
constexpr std::int64_t kMostGrid = std::int64_t{1} << 16;
constexpr std::int64_t kMostDraws = std::int64_t{1} << 23;  // with one token per block; coarser blocks beyond
constexpr std::size_t kMostKept = 8;

const std::array<Spec, 12> kFields{{
    routing_field("tokens"),
    {.name = "n",
     .help = "columns of every product",
     .high = kMostSide,
     .usual = {2048},
     .option = "-N",
     .varies_by_doubling = true},
    {.name = "k",
     .help = "depth of every product",
     .high = kMostSide,
     .usual = {2048},
     .option = "-K",
     .varies_by_doubling = true},
    routing_field("experts"),
    routing_field("top_k"),
    routing_field("routing"),
    routing_field("skew"),
    routing_field("histogram"),
    routing_field("routing_seed"),
    routing_field("capacity"),
    routing_field("block"),
    dtype_field(DType::bf16, "element type of A, B and C"),
}};

const std::array<Spec, 14> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    {.name = "grid",
     .help = "workgroups that run at once (default: one per compute unit)",
     .high = kMostGrid,
     .shown = "grid {}",
     .not_shown = 0},
    {.name = "fixup",
     .help = "how parts of a tile are added: partial sums that the owner adds, or atomic additions onto C",
     .kind = ValueKind::name,
     .names = kFixupNames,
     .shown = "{}",
     .not_shown = static_cast<std::int64_t>(Fixup::partials)},
    gemm_knob("group_m"),
    gemm_knob("xcd_remap"),
    gemm_knob("xcd_chunk"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    gemm_knob("host_barriers"),
}};

using Names = std::string_view;
constexpr std::array<Names, 7> kLaunchedKnobs{"tile",      "waves",     "pipeline", "group_m",
                                              "xcd_remap", "xcd_chunk", "launch"};
constexpr std::array<Names, 8> kResidentKnobs{"tile",    "waves",     "pipeline",  "grid",
                                              "group_m", "xcd_remap", "xcd_chunk", "launch"};
constexpr std::array<Names, 6> kDealtKnobs{"tile", "waves", "pipeline", "grid", "group_m", "launch"};
constexpr std::array<Names, 10> kSharedKnobs{"tile",    "waves",     "pipeline",  "grid", "fixup",
                                             "group_m", "xcd_remap", "xcd_chunk", "lock", "launch"};

using Build = Schedule (*)(const GroupedProducts&, const Machine&, const GroupedKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const std::shared_ptr<const GroupedProducts> products = grouped_products_of(problem);
  const GemmShape& all = products->all;
  check_dtype(all.dtype, machine);
  const auto elements = static_cast<double>(all.m * (all.k + all.n) + all.k * products->columns);
  check_memory("these products", elements * bytes_of(all.dtype), machine.gpu);
  return build(*products, machine, grouped_knobs_of(values));
}

const std::array<Pattern, 8> kPatterns{{
    {.name = "library",
     .summary = "the vendor's GEMM, one call per group",
     .build = build_checked<build_grouped_library>,
     .vendor = true},
    {.name = "launch-per-group",
     .summary = "one kernel per group, one workgroup per tile",
     .knobs = kLaunchedKnobs,
     .build = build_checked<build_launch_per_group>},
    {.name = "dispatched",
     .summary = "one kernel with a workgroup per tile of any group, dispatched as compute units come free",
     .knobs = kLaunchedKnobs,
     .build = build_checked<build_grouped_dispatched>},
    {.name = "tile-mapped",
     .summary = "one workgroup per compute unit; tiles of all groups assigned in turn",
     .knobs = kResidentKnobs,
     .build = build_checked<build_tile_mapped>},
    {.name = "group-mapped",
     .summary = "equally many workgroups for every group; the kernel waits for the largest group",
     .knobs = kDealtKnobs,
     .build = build_checked<build_group_mapped>},
    {.name = "work-oriented",
     .summary = "an even share of the iterations of K of all tiles for every workgroup (Stream-K)",
     .knobs = kSharedKnobs,
     .build = build_checked<build_work_oriented>},
    {.name = "bucketing",
     .summary = "one kernel for the groups that suit the same tile height",
     .knobs = kLaunchedKnobs,
     .build = build_checked<build_group_buckets>},
    {.name = "dynamic-queue",
     .summary = "one workgroup per compute unit; a free workgroup draws the next tile",
     .knobs = kDealtKnobs,
     .build = build_checked<build_tile_queue>},
}};

// Rows do not become operations, so tokens are routed one by one as long as this is fast.
void complete(Problem& problem, const FieldPlace& place) {
  const bool left_out = problem["block"] == 0;
  complete_routing(problem, place);
  const double draws = static_cast<double>(problem["tokens"]) * static_cast<double>(problem["experts"]);
  if (left_out && draws <= static_cast<double>(kMostDraws)) problem.values.assume("block", 1);
}

Work work(const Problem& problem) {
  const GemmShape& all = grouped_products_of(problem)->all;
  return {.flops =
              2.0 * static_cast<double>(all.m) * static_cast<double>(all.n) * static_cast<double>(all.k)};
}

std::string size_text(const Problem& problem) {
  const std::string routed = problem["histogram"] > 0
                                 ? file_of(problem["histogram"])
                                 : std::string(kRoutingNames[static_cast<std::size_t>(problem["routing"])]);
  return fmt::format("{} tokens to {} of {} experts ({}), {}x{} {}", problem["tokens"], problem["top_k"],
                     problem["experts"], routed, problem["n"], problem["k"],
                     name_of(static_cast<DType>(problem["dtype"])));
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const auto dtype = static_cast<DType>(problem["dtype"]);
  GemmKnobs knobs = with_tile_for(default_gemm_knobs(machine, dtype), dtype, machine,
                                  problem["tokens"] * problem["top_k"] / problem["experts"], problem["n"]);
  knobs.host_barriers = false;
  assume(values, knobs);
  return values;
}

std::string left_out(const Pattern&, const Spec& knob, const Machine& machine) {
  return knob.name == "grid" ? fmt::format("{}", machine.gpu.cu_count()) : "";
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  space.axes.push_back(
      tile_rows_axis(pattern, space.base, static_cast<DType>(problem["dtype"]), machine, pins));
  const auto axis = [&](std::string_view knob, std::initializer_list<std::int64_t> others) {
    space.axes.push_back(usual_first(pattern, space.base, knob, others));
  };
  axis("group_m", {1, 2, 4, 16});
  axis("fixup", {0, 1});
  axis("launch", {0, 1});
  return space;
}

double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values&) {
  return peak_bound_ns(work(problem).flops, static_cast<DType>(problem["dtype"]), machine);
}

GroupedProducts products_of(const Problem& problem) {
  const Routes routes(routing_of(problem, false));
  GroupedProducts products{{0, problem["n"], problem["k"], static_cast<DType>(problem["dtype"])},
                           {},
                           problem["n"] * problem["experts"]};
  for (int expert = 0; expert < routes.targets(); ++expert) {
    const std::int32_t rows = routes.target_rows(expert);
    if (rows == 0) continue;
    products.groups.push_back(
        {routes.target_begin(expert), rows, static_cast<std::int32_t>(expert * problem["n"])});
    products.all.m += rows;
  }
  return products;
}

}  // namespace

std::shared_ptr<const GroupedProducts> grouped_products_of(const Problem& problem) {
  static Memo<std::string, GroupedProducts> kept(kMostKept);
  return kept.get(key_of(problem.values), [&] { return products_of(problem); });
}

const Workload& grouped_gemm() {
  static const Workload workload{
      .name = "grouped-gemm",
      .title = "Grouped GEMM",
      .summary = "C_g = A_g·B_g of ragged groups on one GPU, by how workgroups share the tiles",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .left_out = left_out,
      .space = space,
      .bound_ns = bound_ns,
      .step_rows = "tokens",
      .back_to_back = true,
      .computing = {"the grouped GEMM", "matrix work"},
  };
  return workload;
}

}  // namespace tritax

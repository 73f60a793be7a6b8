// A GEMM on one GPU as a workload: fields, knobs and patterns.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_space.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workloads/gemm/patterns.hpp"
#include "model/workloads/gemm/workload.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostParts = 256;
constexpr std::int64_t kMostGroups = 64;
constexpr std::int64_t kMostGrid = std::int64_t{1} << 16;

const std::array<Spec, 4> kFields{{
    size_field("m", "-M", "rows of A and C"),
    size_field("n", "-N", "columns of B and C"),
    size_field("k", "-K", "columns of A, rows of B"),
    dtype_field(DType::fp16, "element type of A, B and C", kDTypeNames),
}};

const std::array<Spec, 18> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    {.name = "grid",
     .help = "workgroups that run at once (default: one per compute unit)",
     .high = kMostGrid,
     .shown = "grid {}",
     .not_shown = 0},
    {.name = "split",
     .help = "workgroups per tile, one part of K each",
     .high = kMostParts,
     .usual = {2},
     .varies_by_doubling = true,
     .shown = "split in {}"},
    {.name = "policy",
     .help = "rounds to split: 0: none, 1: the last round, 2 to 6: also one to five full rounds",
     .low = 0,
     .high = kPolicies - 1,
     .usual = {2},
     .shown = "policy {}"},
    {.name = "sharers",
     .help = "workgroups among which a policy splits: the grid, or one per split tile, so that no tile is "
             "cut",
     .kind = ValueKind::name,
     .names = kSharersNames,
     .shown = "sharers: {}",
     .not_shown = static_cast<std::int64_t>(Sharers::grid)},
    {.name = "fixup",
     .help = "how parts of a tile are added: partial sums that the owner adds, or atomic additions onto C",
     .kind = ValueKind::name,
     .names = kFixupNames,
     .shown = "{}",
     .not_shown = static_cast<std::int64_t>(Fixup::partials)},
    {.name = "groups",
     .help = "most groups of shares with neighbouring tiles, for cutlass-3",
     .high = kMostGroups,
     .usual = {8},
     .varies_by_doubling = true,
     .shown = "at most {} groups",
     .not_shown = 8},
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

GemmShape shape_of(const Problem& problem) {
  return {problem["m"], problem["n"], problem["k"], static_cast<DType>(problem["dtype"])};
}

StreamKnobs stream_knobs_of(const Values& values) {
  StreamKnobs knobs;
  static_cast<GemmKnobs&>(knobs) = gemm_knobs_of(values);
  const auto number = [&](std::string_view name) { return static_cast<std::int32_t>(values[name]); };
  knobs.grid = number("grid");
  knobs.split = number("split");
  knobs.policy = number("policy");
  knobs.sharers = static_cast<Sharers>(values["sharers"]);
  knobs.fixup = static_cast<Fixup>(values["fixup"]);
  knobs.groups = number("groups");
  return knobs;
}

TiledGemm tiles_of(const GemmShape& gemm, const GemmKnobs& knobs) {
  return tiled_gemm(gemm.m, gemm.n, gemm.k, knobs.tile_m, knobs.tile_n, knobs.tile_k);
}

// Throws UserError where the tile does not fit.
Room room_of(const Machine& machine, DType dtype, const GemmKnobs& knobs) {
  const Resources resources = matmul_resources(machine.gpu, machine.interpreter, dtype, matmul_tile(knobs));
  return {machine.gpu.cu_count(), residents_at_most(machine.gpu, resources)};
}

std::int64_t grid_of(const StreamKnobs& knobs, const Room& room) {
  if (knobs.grid > room.most()) {
    throw UserError(fmt::format(
        "grid: {} workgroups are not resident at once; {} compute units hold {} of this tile each: give at "
        "most {}, or a smaller tile",
        knobs.grid, room.units, room.occupancy, room.most()));
  }
  return knobs.grid > 0 ? knobs.grid : room.units;
}

GemmPlan persistent(std::string_view pattern, const Decomposition& split, const StreamKnobs& knobs,
                    std::int64_t grid) {
  return {pattern, split, GridForm::persistent, grid, knobs.fixup};
}

GemmPlan plan_data_parallel(const TiledGemm& gemm, const Room&, const StreamKnobs&) {
  return {"data-parallel", data_parallel(gemm), GridForm::dispatched, 0, Fixup::partials};
}
GemmPlan plan_persistent(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  return persistent("persistent", data_parallel(gemm), knobs, grid_of(knobs, room));
}
GemmPlan plan_stealing(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  return {"work-stealing", data_parallel(gemm), GridForm::stealing, grid_of(knobs, room), Fixup::partials};
}
GemmPlan plan_split(const TiledGemm& gemm, const Room&, const StreamKnobs& knobs) {
  return {"fixed-split", fixed_split(gemm, knobs.split), GridForm::dispatched, 0, knobs.fixup};
}
GemmPlan plan_stream_k(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  const std::int64_t grid = grid_of(knobs, room);
  return persistent("stream-k", stream_k(gemm, grid), knobs, grid);
}
GemmPlan plan_one_tile(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  const std::int64_t grid = grid_of(knobs, room);
  return persistent("one-tile-stream-k", one_tile_stream_k(gemm, grid), knobs, grid);
}
GemmPlan plan_two_tile(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  const std::int64_t grid = grid_of(knobs, room);
  return persistent("two-tile-stream-k", two_tile_stream_k(gemm, grid), knobs, grid);
}
GemmPlan plan_triton(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  const std::int64_t grid = grid_of(knobs, room);
  return persistent("triton-stream-k", triton_stream_k(gemm, grid), knobs, grid);
}
GemmPlan plan_cutlass_2(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  return {"cutlass-2", cutlass_2_stream_k(gemm, room.units, room.occupancy), GridForm::dispatched, 0,
          knobs.fixup};
}
GemmPlan plan_cutlass_3(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  return persistent("cutlass-3", cutlass_3_stream_k(gemm, room.units, 1, knobs.groups), knobs, room.units);
}
GemmPlan plan_policy(const TiledGemm& gemm, const Room& room, const StreamKnobs& knobs) {
  const bool whole = knobs.sharers == Sharers::tiles;
  const std::int64_t grid = grid_of(knobs, room);
  return {"composable-kernel", composable_kernel_policy(gemm, grid, knobs.policy, whole),
          whole ? GridForm::dispatched : GridForm::persistent, grid, Fixup::atomics};
}

// An upper bound on the number of operations, before they are allocated: a part is multiplied and stored.
// Parts that are not whole tiles are announced, waited for and added, and pieces of C are cleared and
// rounded.
void check_size(const GemmPlan& plan, const StreamKnobs& knobs) {
  const auto tiles = static_cast<double>(plan.split.gemm.tiles);
  const double pieces = std::ceil(knobs.tile_m * knobs.tile_n / static_cast<double>(kMostOfReducer)) + 1;
  const double operations =
      2 * tiles + 6 * static_cast<double>(plan.split.sharers) +
      4 * pieces * static_cast<double>(std::min(plan.split.split_tiles, plan.split.sharers));
  if (operations <= kMaxOperations) return;
  throw UserError(fmt::format(
      "tile: {}x{} tiles cut this problem into {:.0f} tiles in {} shares, too many to schedule (over {:.0f} "
      "tile operations); use larger tiles, or split less",
      knobs.tile_m, knobs.tile_n, tiles, plan.split.sharers, kMaxOperations));
}

void check_problem(const GemmShape& gemm, const Machine& machine) {
  check_dtype(gemm.dtype, machine);
  const auto elements = static_cast<double>(gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n);
  check_memory("this problem", elements * bytes_of(gemm.dtype), machine.gpu);
}

using Planner = GemmPlan (*)(const TiledGemm&, const Room&, const StreamKnobs&);

template <Planner planner>
Schedule build_planned(const Problem& problem, const Machine& machine, const Values& values) {
  const GemmShape gemm = shape_of(problem);
  StreamKnobs knobs = stream_knobs_of(values);
  check_problem(gemm, machine);
  check(knobs, machine.gpu);
  const auto side = std::min(ceil_div(static_cast<std::int32_t>(gemm.m), knobs.tile_m),
                             ceil_div(static_cast<std::int32_t>(gemm.n), knobs.tile_n));
  knobs.groups = std::min(knobs.groups, side);
  const GemmPlan plan = planner(tiles_of(gemm, knobs), room_of(machine, gemm.dtype, knobs), knobs);
  check_size(plan, knobs);
  return build_shared_gemm(gemm, machine, knobs, plan);
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  check_problem(shape_of(problem), machine);
  return build_gemm_library(shape_of(problem), machine, stream_knobs_of(values));
}

Values library_choice(const Problem& problem, const Machine& machine) {
  return with_tile(resolved_knobs(problem, machine, {}), library_tile(shape_of(problem), machine).tile);
}

using Names = std::string_view;
constexpr std::array<Names, 7> kWholeKnobs{"tile",      "waves",     "pipeline", "group_m",
                                           "xcd_remap", "xcd_chunk", "launch"};
constexpr std::array<Names, 8> kPersistentKnobs{"tile",    "waves",     "pipeline",  "grid",
                                                "group_m", "xcd_remap", "xcd_chunk", "launch"};
constexpr std::array<Names, 6> kStealingKnobs{"tile", "waves", "pipeline", "grid", "group_m", "launch"};
constexpr std::array<Names, 10> kSplitKnobs{"tile",    "waves",     "pipeline",  "split", "fixup",
                                            "group_m", "xcd_remap", "xcd_chunk", "lock",  "launch"};
constexpr std::array<Names, 10> kStreamKnobs{"tile",    "waves",     "pipeline",  "grid", "fixup",
                                             "group_m", "xcd_remap", "xcd_chunk", "lock", "launch"};
constexpr std::array<Names, 9> kCutlassKnobs{"tile",      "waves",     "pipeline", "fixup", "group_m",
                                             "xcd_remap", "xcd_chunk", "lock",     "launch"};
constexpr std::array<Names, 10> kCutlass3Knobs{"tile",      "waves",     "pipeline", "fixup",  "group_m",
                                               "xcd_remap", "xcd_chunk", "lock",     "launch", "groups"};
constexpr std::array<Names, 10> kPolicyKnobs{"tile",    "waves",   "pipeline",  "grid",      "policy",
                                             "sharers", "group_m", "xcd_remap", "xcd_chunk", "launch"};

const std::array<Pattern, 12> kPatterns{{
    {.name = "library",
     .summary = "the vendor's GEMM",
     .build = build_library,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "data-parallel",
     .summary = "one workgroup per tile, sent as compute units come free",
     .knobs = kWholeKnobs,
     .build = build_planned<plan_data_parallel>},
    {.name = "persistent",
     .summary = "one workgroup per compute unit, whole tiles in turn",
     .knobs = kPersistentKnobs,
     .build = build_planned<plan_persistent>},
    {.name = "work-stealing",
     .summary = "one workgroup per compute unit; each draws whole tiles from the counter of its XCD",
     .knobs = kStealingKnobs,
     .build = build_planned<plan_stealing>},
    {.name = "fixed-split",
     .summary = "every tile in equal parts of K (split-K)",
     .knobs = kSplitKnobs,
     .build = build_planned<plan_split>},
    {.name = "stream-k",
     .summary = "the iterations of all tiles, split evenly",
     .knobs = kStreamKnobs,
     .build = build_planned<plan_stream_k>},
    {.name = "one-tile-stream-k",
     .summary = "the tiles of the last round split evenly, then whole tiles",
     .knobs = kStreamKnobs,
     .build = build_planned<plan_one_tile>},
    {.name = "two-tile-stream-k",
     .summary = "the tiles of the last round and of one full round split evenly, then whole tiles",
     .knobs = kStreamKnobs,
     .build = build_planned<plan_two_tile>},
    {.name = "cutlass-2",
     .summary = "the split of CUTLASS 2.x, among as many workgroups as its search finds",
     .knobs = kCutlassKnobs,
     .build = build_planned<plan_cutlass_2>},
    {.name = "cutlass-3",
     .summary = "the split of CUTLASS 3.x: two tiles, unless the last round is half full",
     .knobs = kCutlass3Knobs,
     .build = build_planned<plan_cutlass_3>},
    {.name = "composable-kernel",
     .summary = "a policy of composable_kernel; atomic additions add the shares onto C",
     .knobs = kPolicyKnobs,
     .build = build_planned<plan_policy>},
    {.name = "triton-stream-k",
     .summary = "whole tiles first, then the tiles of the last round split evenly, as in tritonBLAS",
     .knobs = kStreamKnobs,
     .build = build_planned<plan_triton>},
}};

Work work(const Problem& problem) {
  return {.flops = 2.0 * static_cast<double>(problem["m"]) * static_cast<double>(problem["n"]) *
                   static_cast<double>(problem["k"])};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs(kKnobs);
  assume(knobs, default_gemm_knobs(machine, static_cast<DType>(problem["dtype"])));
  return knobs;
}

std::string left_out(const Pattern&, const Spec& knob, const Machine& machine) {
  return knob.name == "grid" ? fmt::format("{}", machine.gpu.cu_count()) : "";
}

bool splits_tiles(const Pattern& pattern) { return pattern.uses("fixup") || pattern.uses("policy"); }

// Data of a space's lambdas, which may outlive the machine of the space.
struct SpaceContext {
  GemmShape gemm;
  Machine machine;

  TiledGemm tiles(const Values& knobs) const { return tiles_of(gemm, gemm_knobs_of(knobs)); }
  Room room(const Values& knobs) const { return room_of(machine, gemm.dtype, gemm_knobs_of(knobs)); }
};
using Context = std::shared_ptr<const SpaceContext>;

// As many workgroups as compute units, or fewer by eighths; two per compute unit; and one or several per
// tile.
Axis grid_axis(const Context& context, bool splits) {
  Axis axis;
  axis.name = "grid";
  axis.relative = true;
  axis.near = Axis::Near::next;
  const std::int64_t units = context->machine.gpu.cu_count();
  const auto add = [&](std::vector<std::int64_t> id, std::function<std::int64_t(const Values&)> grid) {
    axis.values.push_back({std::move(id), 0, [context, grid = std::move(grid)](Values& knobs) {
                             const std::int64_t wanted = grid(knobs);
                             if (wanted < 1 || wanted > context->room(knobs).most()) return false;
                             knobs.assume("grid", wanted);
                             return true;
                           }});
  };
  for (std::int64_t eighths = 1; eighths <= 8; ++eighths)
    add({0, eighths}, [units, eighths](const Values&) { return units * eighths / 8; });
  axis.start = axis.values.size() - 1;
  add({1, 0}, [units](const Values&) { return 2 * units; });
  for (const std::int64_t parts : {1, 2, 3, 4, 6, 8, 16}) {
    if (!splits) break;
    add({2, parts}, [context, parts](const Values& knobs) { return context->tiles(knobs).tiles * parts; });
  }
  return axis;
}

// Numbers of parts with at least one iteration each, up to a few rounds of workgroups.
Axis split_axis(const Context& context) {
  constexpr std::int64_t kMostRounds = 4;
  Axis axis;
  axis.name = "split";
  axis.near = Axis::Near::next;
  axis.relative = true;
  for (const std::int64_t parts : {2, 3, 4, 6, 8, 12, 16}) {
    if (parts == 2 || parts == 4 || parts == 12) axis.coarse.push_back(axis.values.size());
    axis.values.push_back({{parts}, 0, [context, parts](Values& knobs) {
                             const TiledGemm gemm = context->tiles(knobs);
                             const std::int64_t most = kMostRounds * context->machine.gpu.cu_count();
                             if (parts > 2 && (parts > gemm.iterations || gemm.tiles * parts > most))
                               return false;
                             knobs.assume("split", parts);
                             return true;
                           }});
  }
  return axis;
}

// Merges equal values: grids with idle workgroups, and policies that split in the same way.
void settle_shares(const SpaceContext& context, const Pattern& pattern, const Values& pins, Values& knobs) {
  const TiledGemm gemm = context.tiles(knobs);
  if (pattern.uses("grid") && !pins.given("grid")) {
    const std::int64_t most = splits_tiles(pattern) ? gemm.total() : gemm.tiles;
    knobs.assume("grid", std::min(knobs["grid"], most));
  }
  if (!pattern.uses("policy") || pins.given("policy")) return;
  const std::int64_t grid = knobs["grid"] > 0 ? knobs["grid"] : context.machine.gpu.cu_count();
  const auto split_by = [&](std::int64_t policy) {
    return composable_kernel_policy(gemm, grid, static_cast<int>(policy),
                                    static_cast<Sharers>(knobs["sharers"]) == Sharers::tiles);
  };
  std::int64_t first = 0;
  while (!(split_by(first) == split_by(knobs["policy"]))) ++first;
  knobs.assume("policy", first);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  const GemmShape gemm = shape_of(problem);
  KnobSpace space = gemm_space(pattern, gemm, 1, machine, Values(kKnobs), pins);
  space.base = space.base.with(pins);
  const auto context = std::make_shared<const SpaceContext>(SpaceContext{gemm, machine});
  const auto varies = [&](std::string_view knob) { return pattern.uses(knob) && !pins.given(knob); };
  if (varies("grid")) space.axes.push_back(grid_axis(context, splits_tiles(pattern)));
  if (varies("split")) space.axes.push_back(split_axis(context));
  if (varies("policy")) {
    space.axes.push_back(column_axis("policy", {2, 1, 0, 3, 4, 5, 6}));
  }
  if (varies("fixup")) {
    space.axes.push_back(column_axis(
        "fixup", {static_cast<std::int64_t>(Fixup::partials), static_cast<std::int64_t>(Fixup::atomics)}));
  }
  space.settle = [context, &pattern, pins, before = space.settle](Values& knobs) {
    if (before) before(knobs);
    settle_shares(*context, pattern, pins, knobs);
  };
  return space;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                const Values& values) {
  if (pattern.vendor) return 0;
  const GemmShape gemm = shape_of(problem);
  const StreamKnobs knobs = stream_knobs_of(values);
  const Room room = room_of(machine, gemm.dtype, knobs);
  const bool of_grid = pattern.uses("grid") && knobs.sharers == Sharers::grid;
  return gemm_bound_ns(gemm, machine, knobs, of_grid ? grid_of(knobs, room) : room.most(),
                       splits_tiles(pattern) ? WorkSharing::iterations : WorkSharing::whole_tiles);
}

}  // namespace

const Workload& gemm() {
  static const Workload workload{
      .name = "gemm",
      .title = "GEMM",
      .summary = "C = A·B on one GPU, by how workgroups share the products",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .work = work,
      .size_text = product_text,
      .default_knobs = default_knobs,
      .left_out = left_out,
      .space = space,
      .bound_ns = bound_ns,
      .step_rows = "m",
      .back_to_back = true,
      .traced = TracedForm{},
  };
  return workload;
}

}  // namespace tritax

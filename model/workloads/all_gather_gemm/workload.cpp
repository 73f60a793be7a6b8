// All-gather + GEMM as a workload: fields, knobs and patterns.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_space.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

using Builder = Schedule (*)(const AllGatherGemm&, const Machine&, const GatherKnobs&);

constexpr std::int64_t kMaxSteps = 4096;
constexpr std::int64_t kMaxStages = 1024;
constexpr std::int64_t kMaxChunks = 1024;
constexpr std::int64_t kMaxFetchers = std::int64_t{1} << 16;

const std::array<Spec, 6> kFields{{
    size_field("m", "-M", "rows of A and C"),
    size_field("n", "-N", "columns of B and C of one GPU"),
    size_field("k", "-K", "columns of A, rows of B"),
    dtype_field(DType::fp16, "element type of A, B and C"),
    {.name = "sharding",
     .help = "part of A per GPU: some rows, or all rows over a range of K",
     .kind = ValueKind::name,
     .names = kShardingNames},
    gpus_field(),
}};

constexpr std::array<std::string_view, 2> kTransportNames{"pull", "push"};
constexpr std::array<std::string_view, 2> kFetchNames{"copy", "registers"};
constexpr std::array<std::string_view, 2> kStreamsNames{"two", "one"};

const std::array<Spec, 26> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
    sharing_knob("sharing"),
    sharing_knob("k_split"),
    {.name = "k_steps",
     .help = "K steps per block; a block is fetched or sent as one and has one flag",
     .high = kMaxSteps,
     .usual = {16},
     .varies_by_doubling = true,
     .shown = "{} K steps per block"},
    {.name = "stages",
     .help = "parts of the rows of C tiles, fetched and multiplied in turn",
     .high = kMaxStages,
     .usual = {4},
     .varies_by_doubling = true,
     .shown = "{} stages"},
    {.name = "chunks",
     .help = "pieces per peer slice for copy engines; each kernel multiplies one piece of every peer",
     .high = kMaxChunks,
     .usual = {2},
     .varies_by_doubling = true,
     .shown = "{} chunks"},
    {.name = "first_fetchers",
     .help = "workgroups that fetch for the first stage (default: as for the other stages)",
     .high = kMaxFetchers,
     .shown = "{} fetchers first",
     .not_shown = 0},
    {.name = "transport",
     .help = "fetching workgroups load the peers' parts, or send the own part to all peers",
     .kind = ValueKind::name,
     .names = kTransportNames,
     .value_if_column_missing = 0,
     .shown = "{}",
     .not_shown = 0},
    {.name = "fetch",
     .help = "copy the peers' parts to own rows a block ahead, or load them in the product (as Iris does)",
     .kind = ValueKind::name,
     .names = kFetchNames,
     .value_if_column_missing = 0,
     .shown = "fetched into {}",
     .not_shown = 0},
    {.name = "streams",
     .help = "the GEMM runs beside the kernel that sends, or behind it in one stream (as in Iris)",
     .kind = ValueKind::name,
     .names = kStreamsNames,
     .value_if_column_missing = 0,
     .shown = "{} stream",
     .not_shown = 0},
    gather_way_knob(),
    gemm_knob("group_m"),
    gemm_knob("xcd_remap"),
    gemm_knob("xcd_chunk"),
    gemm_knob("peer_order"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

GemmShape shape_of(const Problem& problem) {
  const AllGatherGemm gemm = all_gather_gemm_of(problem);
  return {gemm.m, gemm.n, gemm.k, gemm.dtype};
}

// An upper bound on the number of operations, before they are allocated: every tile multiplies and waits for
// every block; every block is copied and announced once, or, with pull, once per tile.
void check_size(const AllGatherGemm& gemm, const GatherKnobs& knobs) {
  const auto pieces = [](std::int64_t size, std::int64_t piece) {
    return std::ceil(static_cast<double>(size) / static_cast<double>(piece));
  };
  const double tiles = pieces(gemm.m, knobs.tile_m) * pieces(gemm.n, knobs.tile_n);
  const double blocks = pieces(gemm.k, std::int64_t{knobs.k_steps} * knobs.tile_k) +
                        (gemm.sharding == Sharding::k ? gemm.gpus : 0);
  const double operations =
      gemm.gpus * (tiles * (2 * blocks + 1) + 2 * gemm.gpus * blocks * pieces(gemm.m, knobs.tile_m));
  if (operations <= kMaxOperations) return;
  throw UserError(
      fmt::format("tile, k_steps: {:.0f} tiles per GPU and {:.0f} blocks of K are too many to schedule (over "
                  "{:.0f} tile operations); use larger tiles or more K steps per block",
                  tiles, blocks, kMaxOperations));
}

void check_gather_knobs(const GatherKnobs& knobs) {
  if (knobs.k_steps < 1)
    throw UserError(fmt::format("k_steps: {} is not allowed; it must be at least 1", knobs.k_steps));
  if (knobs.chunks < 1)
    throw UserError(fmt::format("chunks: {} is not allowed; it must be at least 1", knobs.chunks));
  if (knobs.stages < 1)
    throw UserError(fmt::format("stages: {} is not allowed; it must be at least 1", knobs.stages));
}

template <Builder build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const AllGatherGemm gemm = all_gather_gemm_of(problem);
  const GatherKnobs knobs = gather_knobs_of(values);
  check_dtype(gemm.dtype, machine);
  check(knobs, machine.gpu);
  check_gather_knobs(knobs);
  const std::int64_t elements = gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n;
  check_memory("this problem", static_cast<double>(elements) * bytes_of(gemm.dtype), machine.gpu);
  check_size(gemm, knobs);
  return build(gemm, machine, knobs);
}

Values library_choice(const Problem& problem, const Machine& machine) {
  return with_tile(resolved_knobs(problem, machine, {}),
                   tile_of_library(all_gather_gemm_of(problem), machine).tile);
}

constexpr std::array<std::string_view, 14> kBulkKnobs{
    "tile",      "waves",     "pipeline",   "gemm_cus", "comm_cus", "k_steps", "group_m",
    "xcd_remap", "xcd_chunk", "peer_order", "launch",   "sharing",  "k_split", "through"};
constexpr std::array<std::string_view, 11> kPullKnobs{"tile",       "waves",   "pipeline",  "gemm_cus",
                                                      "k_steps",    "group_m", "xcd_remap", "xcd_chunk",
                                                      "peer_order", "launch",  "fetch"};
constexpr std::array<std::string_view, 15> kPushKnobs{
    "tile",      "waves",      "pipeline", "gemm_cus", "comm_cus", "k_steps", "group_m", "xcd_remap",
    "xcd_chunk", "peer_order", "lock",     "launch",   "sharing",  "k_split", "streams"};
constexpr std::array<std::string_view, 12> kStagedKnobs{
    "tile",           "waves",   "pipeline",   "comm_cus", "k_steps", "stages",
    "first_fetchers", "group_m", "peer_order", "lock",     "launch",  "transport"};

constexpr std::array<std::string_view, 9> kCopyEngineKnobs{
    "tile", "waves", "pipeline", "gemm_cus", "group_m", "xcd_remap", "xcd_chunk", "peer_order", "chunks"};

const std::array<Pattern, 6> kPatterns{{
    {.name = "library",
     .summary = "all-gather of the collective library, then the vendor's GEMM",
     .build = build_checked<build_library>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "bulk-synchronous",
     .summary = "a kernel that gathers all of A, then a GEMM kernel in the same stream",
     .knobs = kBulkKnobs,
     .build = build_checked<build_bulk_synchronous>},
    {.name = "pull",
     .summary = "one kernel; every workgroup fetches the operands of its tile itself",
     .knobs = kPullKnobs,
     .build = build_checked<build_pull>},
    {.name = "push",
     .summary = "one kernel sends its part of A to all peers; a GEMM kernel waits block by block",
     .knobs = kPushKnobs,
     .build = build_checked<build_push>,
     .roles = Roles::in_two_kernels},
    {.name = "staged-fetchers",
     .summary =
         "one kernel, dispatched in order: in every stage some workgroups fetch or send blocks, and one "
         "workgroup per tile waits for them",
     .knobs = kStagedKnobs,
     .build = build_checked<build_staged_fetchers>},
    {.name = "copy-engine",
     .summary =
         "copy engines fetch the peers' parts of A in pieces; one GEMM kernel per piece waits for their "
         "events",
     .knobs = kCopyEngineKnobs,
     .build = build_checked<build_copy_engine>},
}};

void complete(Problem& problem, const FieldPlace& place) {
  const bool rows = static_cast<Sharding>(problem["sharding"]) == Sharding::rows;
  if (problem[rows ? "m" : "k"] >= problem.gpus()) return;
  throw UserError(fmt::format("{}: {} = {} is less than there are GPUs ({}); every GPU must have a part of A",
                              place(rows ? "m" : "k"), rows ? "M" : "K", problem[rows ? "m" : "k"],
                              problem.gpus()));
}

Work work(const Problem& problem) {
  const AllGatherGemm gemm = all_gather_gemm_of(problem);
  return {.flops = 2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                   static_cast<double>(gemm.k) * gemm.gpus,
          .peers = gemm.gpus - 1};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{}, A sharded by {}", product_text(problem),
                     kShardingNames[static_cast<std::size_t>(problem["sharding"])]);
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs(kKnobs);
  assume(knobs, default_gemm_knobs(machine, static_cast<DType>(problem["dtype"])));
  return knobs;
}

// An axis of neighbouring numbers, with the usual value first and without values above `most`.
Axis number_axis(std::string_view column, std::initializer_list<std::int64_t> values, std::int64_t usual,
                 std::int64_t most) {
  Axis axis;
  axis.name = column;
  axis.near = Axis::Near::next;
  for (const std::int64_t value : values) {
    if (value > most && value != usual) continue;
    if (value == usual) axis.start = axis.values.size();
    axis.values.push_back(column_value(column, value));
  }
  return axis;
}

// Fetchers take turns with the tiles, so that any number of fetchers goes with all compute units. Few, some
// and many are tried with every tile.
Axis fetcher_axis(const Machine& machine) {
  Axis axis = number_axis("comm_cus", {4, 8, 16, 32, 52, 64, 96, 128}, 32, machine.gpu.cu_count());
  for (std::size_t i = 1; i < axis.values.size(); i += 2) axis.coarse.push_back(i);
  return axis;
}

// Leaves out splits with which a push stalls, by tile and block.
void leave_out_stalls(KnobSpace& space, const Problem& problem, const Machine& machine) {
  for (Axis& axis : space.axes) {
    if (axis.name != "split") continue;
    axis.relative = true;
    for (AxisValue& value : axis.values) {
      value.apply = [apply = value.apply, gemm = all_gather_gemm_of(problem), machine](Values& knobs) {
        return apply(knobs) && !push_stalls(gemm, machine, gather_knobs_of(knobs));
      };
    }
  }
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space = gemm_space(pattern, shape_of(problem), problem.gpus(), machine, Values(kKnobs), pins);
  space.base = space.base.with(pins);
  const bool alone = problem.gpus() == 1;
  if (pattern.name == "staged-fetchers" && !alone && !pins.given("comm_cus")) {
    std::erase_if(space.axes, [](const Axis& axis) { return axis.name == "split"; });
    space.axes.push_back(fetcher_axis(machine));
  }
  const std::int64_t steps = (problem["k"] + space.base["tile_k"] - 1) / space.base["tile_k"];
  if (pattern.uses("k_steps") && !alone && !pins.given("k_steps")) {
    space.axes.push_back(number_axis("k_steps", {4, 8, 16, 32, 64, 128}, 16, steps));
  }
  if (pattern.uses("stages") && !pins.given("stages")) {
    space.axes.push_back(number_axis("stages", {1, 2, 4, 8, 16}, 4, problem["m"] / kTileStep));
  }
  if (pattern.uses("chunks") && !alone && !pins.given("chunks")) {
    space.axes.push_back(number_axis("chunks", {1, 2, 4, 8}, 2, 8));
  }
  if (pattern.uses("first_fetchers") && !alone && !pins.given("first_fetchers")) {
    space.axes.push_back(number_axis("first_fetchers", {0, 52, 128}, 0, machine.gpu.cu_count()));
  }
  if (pattern.uses("transport") && !alone && !pins.given("transport"))
    space.axes.push_back(column_axis("transport", {0, 1}));
  if (pattern.uses("through") && !pins.given("through") && has_multicast(machine, problem.gpus()))
    space.axes.push_back(column_axis("through", {0, 1}));
  if (pattern.name == "push" && !pins.given("gemm_cus") && !pins.given("comm_cus")) {
    leave_out_stalls(space, problem, machine);
  }
  return space;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& knobs) {
  const GemmShape gemm = shape_of(problem);
  const GatherKnobs given = gather_knobs_of(knobs);
  if (pattern.name == "staged-fetchers") {
    return gemm_bound_ns(gemm, machine, given, staged_resources(machine, gemm.dtype, given));
  }
  const double gemm_ns = gemm_bound_ns(pattern, gemm, machine, given, work_sharing_of(knobs));
  if (pattern.name != "pull") return gemm_ns;
  return std::max(gemm_ns, least_pull_ns(all_gather_gemm_of(problem), machine, given));
}

// Reads a row of all_gather_gemm.py: the whole program on the host's clock, or the product alone, launched as
// a graph, between two events.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  if (!is_of_program(line, all_gather_gemm(), true)) return std::nullopt;
  const std::string_view form = kProgramForms[line.choice("form", kProgramForms)];
  const bool graph = kProgramLaunches[line.choice("launch", kProgramLaunches)] == "graph";
  const bool product = form == "gemm" && graph;
  if (!product && !(form == "library" && !graph)) return std::nullopt;
  LibraryCall call;
  call.form = product ? LibraryForm::gemm_cold : LibraryForm::program;
  call.between_events = product;
  call.time_column = product ? "device_us" : "wall_us";
  call.problem = problem_of(all_gather_gemm());
  give_product(line, call.problem.values);
  call.problem.values.give("sharding", static_cast<std::int64_t>(line.choice("sharding", kShardingNames)));
  const std::int64_t gpus = line.integer("gpus", 1, kMaxGpus);
  call.problem.values.give("gpus", product ? 1 : gpus);
  call.pattern = "library";
  call.knobs = Values(kKnobs);
  call.knobs.give("host_barriers", 0);
  return call;
}

}  // namespace

const Workload& all_gather_gemm() {
  static const Workload workload{
      .name = "all-gather-gemm",
      .title = "All-gather + GEMM",
      .summary = "C = A·B, A sharded over the GPUs by rows or along K, another B on every GPU",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .left_out = left_out_cus,
      .space = space,
      .bound_ns = bound_ns,
      .call_ns = gemm_call_ns,
      .library_call = library_call,
      .step_rows = "m",
      .timed_by_host = true,
      .computes_and_sends = true,
      .projection = {.projection = Projection::columns_gathered},
      .traced = TracedForm{.collective = TracedCollective::all_gather, .beside = BesideProduct::before},
  };
  return workload;
}

}  // namespace tritax

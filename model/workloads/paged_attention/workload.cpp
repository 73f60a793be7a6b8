// Paged attention on one GPU: the successive versions of Triton's paged-attention kernel, from one workgroup
// per token and head to query blocks, split keys, free tiles and a static grid (arXiv:2511.11581).
#include "model/workloads/paged_attention/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_attention.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/paged_attention/batch.hpp"
#include "model/workloads/paged_attention/heuristics.hpp"
#include "model/workloads/paged_attention/problem.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostPage = 1024;
constexpr std::int64_t kMostSegments = 1024;
constexpr std::int64_t kMostBlockRows = 256;
constexpr std::int64_t kMostPagedTile = 512;
constexpr std::int64_t kMostLayers = 256;
constexpr std::int64_t kMostRestUs = 10000;
constexpr std::int64_t kMostPrograms = 65536;
constexpr std::int64_t kProgramStep = 8;

constexpr Spec batch_field(std::string_view name, std::string_view help) {
  Spec spec{.name = name, .help = help, .high = kMaxSize};
  spec.parts = {"count", "query", "context"};
  return spec;
}

constexpr Spec first_batch_field() {
  Spec spec = batch_field("sequences",
                          "how many, new tokens of each and keys of each, the new ones included: 16x1x4096");
  spec.usual = {16, 1, 4096};
  return spec;
}

const std::array<Spec, 12> kFields{{
    first_batch_field(),
    batch_field("second", "further sequences of the batch, alike"),
    batch_field("third", "further sequences of the batch, alike"),
    batch_field("fourth", "further sequences of the batch, alike"),
    {.name = "ragged",
     .help = "percent by which sequences are shorter at most, each by a share of its own",
     .low = 0,
     .high = 100},
    {.name = "draw", .help = "seed of those shares", .low = 0, .high = kMaxSize, .usual = {1}, .seeds = true},
    {.name = "lengths",
     .help = "CSV file with the sequences instead, columns query and context, and count of alike ones",
     .kind = ValueKind::file,
     .high = 1 << 30,
     .usual = {0}},
    {.name = "page", .help = "tokens of a page of the cache", .high = kMostPage, .usual = {16}},
    q_heads_field(32),
    kv_heads_field(),
    head_dim_field(),
    dtype_field(DType::fp16, "element type of queries, keys, values and results"),
}};

const std::array<Spec, 13> kKnobs{{
    {.name = "tile",
     .help = "keys at a time",
     .low = kTileStep,
     .high = kMostPagedTile,
     .usual = {32},
     .varies_by_doubling = true,
     .shown = "{} keys at a time"},
    {.name = "block_m",
     .help = "rows of a query block, tokens by heads of a group (default: 16, or the next power of two from "
             "the group on)",
     .low = kTileStep,
     .high = kMostBlockRows,
     .varies_by_doubling = true,
     .shown = "blocks of {} rows",
     .not_shown = 0},
    {.name = "segments",
     .help = "of the keys, each of a workgroup of its own; from two on a second kernel merges",
     .high = kMostSegments,
     .usual = {kUsualSegments},
     .varies_by_doubling = true,
     .shown = "{} segments"},
    {.name = "programs",
     .help = "workgroups of the static grid (default: the largest multiple of 8 below the compute units)",
     .high = kMostPrograms,
     .shown = "{} programs",
     .not_shown = 0},
    {.name = "waves",
     .help = "waves of a workgroup that attends",
     .high = kMaxWaves,
     .usual = {4},
     .varies_by_doubling = true,
     .shown = "{} waves",
     .not_shown = 4},
    gemm_knob("pipeline"),
    gemm_knob("launch"),
    form_knob(),
    {.name = "captured",
     .help = "tokens of the batch that the graph was captured for, whose programs all start (default: those "
             "of this one)",
     .high = kMaxSize,
     .shown = "captured for {} tokens",
     .not_shown = 0},
    call_knob(),
    kernels_knob(),
    {.name = "layers",
     .help = "one behind the other, each with a cache of its own; the time is that of all",
     .high = kMostLayers,
     .usual = {1},
     .shown = "{} layers",
     .not_shown = 1},
    {.name = "rest_us",
     .help = "time of the GPU in the other kernels of a layer, in us",
     .low = 0,
     .high = kMostRestUs,
     .shown = "{} us of other kernels",
     .not_shown = 0},
}};

enum class Variant : std::uint8_t {
  library,
  naive,
  query_blocks,
  split_keys,
  free_tile,
  static_grid,
  listing,
  tree
};

using Names = std::string_view;
constexpr std::array<Names, 2> kLibraryKnobs{"layers", "rest_us"};
constexpr std::array<Names, 6> kNaiveKnobs{"waves", "launch", "captured", "call_us", "layers", "rest_us"};
constexpr std::array<Names, 7> kBlockKnobs{"waves",   "pipeline", "launch", "captured",
                                           "call_us", "layers",   "rest_us"};
constexpr std::array<Names, 8> kSegmentKnobs{"segments", "waves",   "pipeline", "launch",
                                             "captured", "call_us", "layers",   "rest_us"};
constexpr std::array<Names, 10> kTileKnobsOfPaged{"tile",   "block_m",  "segments", "waves",  "pipeline",
                                                  "launch", "captured", "call_us",  "layers", "rest_us"};
constexpr std::array<Names, 10> kStaticKnobs{"tile",     "block_m", "segments", "programs", "waves",
                                             "pipeline", "launch",  "call_us",  "layers",   "rest_us"};
constexpr std::array<Names, 5> kHostKnobsOfPaged{"launch", "captured", "call_us", "layers", "rest_us"};

template <Variant variant>
Schedule build_variant(const Problem& problem, const Machine& machine, const Values& values);
template <Variant variant>
Values own_values(const Problem& problem, const Machine& machine);

const std::array<Pattern, 8> kPatterns{{
    {.name = "library",
     .summary = "the vendor's kernel: FlashAttention-3, FlashInfer or AITER; splits of the keys by its rule",
     .knobs = kLibraryKnobs,
     .build = build_variant<Variant::library>,
     .vendor = true},
    {.name = "naive",
     .summary = "a workgroup per token and query head; keys of a page at a time, asked for when needed",
     .knobs = kNaiveKnobs,
     .build = build_variant<Variant::naive>,
     .calls_itself = true},
    {.name = "q-block",
     .summary = "a workgroup a query block: tokens by the heads that share keys; keys of a page at a time",
     .knobs = kBlockKnobs,
     .build = build_variant<Variant::query_blocks>,
     .calls_itself = true},
    {.name = "split-kv",
     .summary = "the same with the keys in segments, which a second kernel merges",
     .knobs = kSegmentKnobs,
     .build = build_variant<Variant::split_keys>,
     .calls_itself = true},
    {.name = "flexible-tile",
     .summary = "the same with any number of keys at a time and any query block",
     .knobs = kTileKnobsOfPaged,
     .build = build_variant<Variant::free_tile>,
     .calls_itself = true},
    {.name = "static-grid",
     .summary = "the same with a constant number of workgroups, which go through all blocks",
     .knobs = kStaticKnobs,
     .build = build_variant<Variant::static_grid>,
     .calls_itself = true},
    {.name = "listed-heuristic",
     .summary = "query block, tile and segments by the authors' rules (arXiv:2511.11581, listing 2)",
     .knobs = kHostKnobsOfPaged,
     .build = build_variant<Variant::listing>,
     .own_choice = own_values<Variant::listing>,
     .calls_itself = true},
    {.name = "tuned-tree",
     .summary = "query block, tile, waves and stages by the authors' tree for H100 or MI300",
     .knobs = kHostKnobsOfPaged,
     .build = build_variant<Variant::tree>,
     .own_choice = own_values<Variant::tree>,
     .calls_itself = true},
}};

bool is_nvidia(const Gpu& gpu) { return gpu.lanes_per_wave == 32; }

std::int64_t largest_static_grid(const Gpu& gpu) {
  return std::max<std::int64_t>(1, (gpu.cu_count() - 1) / kProgramStep * kProgramStep);
}

PagedKnobs paged_knobs_of(Variant variant, const PagedProblem& problem, const Machine& machine,
                          const Values& values) {
  const auto small = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  PagedKnobs knobs;
  const bool by_page = variant <= Variant::split_keys;
  knobs.by_head = variant == Variant::naive;
  knobs.rest_ns = 1e3 * static_cast<double>(values["rest_us"]);
  knobs.layers = values["layers"];
  if (variant == Variant::library) {
    knobs.vendor = true;
    knobs.call = attention_call_of(problem);
    const LibraryAttention library = library_attention(machine, problem.dtype, knobs.call);
    knobs.tile = library.tile;
    knobs.segments = library.splits;
    knobs.prepares = library.prepares;
    return knobs;
  }
  std::int64_t rows = usual_block_rows(problem.group());
  if (!by_page && values["block_m"] > 0) rows = values["block_m"];
  if (knobs.by_head) rows = kTileStep;  // rows of a tile, one of which counts
  if (rows % kTileStep != 0 || (!by_page && values["tile"] % kTileStep != 0)) {
    throw UserError(
        fmt::format("block_m = {}, tile = {}; both are multiples of {}", rows, values["tile"], kTileStep));
  }
  knobs.tile = {small(rows), small(by_page ? problem.page : values["tile"]), small(problem.depth),
                small(values["waves"]), static_cast<Pipeline>(values["pipeline"])};
  if (by_page) knobs.tile_is = "page";
  // Triton pipelines loads only for its dot products, and a single query uses none.
  if (knobs.by_head) knobs.tile.pipeline = Pipeline::serial;
  if (variant >= Variant::split_keys) knobs.segments = values["segments"];
  if (variant == Variant::static_grid) {
    knobs.programs = values["programs"] > 0 ? values["programs"] : largest_static_grid(machine.gpu);
  }
  knobs.graph = static_cast<LaunchMode>(values["launch"]) == LaunchMode::graph;
  if (variant != Variant::static_grid) knobs.captured = values["captured"];
  knobs.call_ns = 1e3 * static_cast<double>(values["call_us"]);
  return knobs;
}

bool fits_variant(Variant variant, const PagedProblem& problem, const Machine& machine,
                  const Values& values) {
  try {
    paged_resources(machine.gpu, problem.dtype, paged_knobs_of(variant, problem, machine, values).tile,
                    "tile");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// Takes fewer keys at a time where the chosen number does not fit, and enough rows for a group.
template <Variant variant>
Values own_values(const Problem& problem, const Machine& machine) {
  const PagedProblem paged = paged_problem_of(problem);
  const BatchShape shape = shape_of(paged.sequences);
  const bool nvidia = is_nvidia(machine.gpu);
  const KernelChoice choice =
      variant == Variant::tree ? choice_of_tree(shape, nvidia) : choice_of_listing(shape, nvidia);
  Values own(kKnobs);
  own.give("block_m", std::max<std::int64_t>(choice.block_rows, usual_block_rows(paged.group())));
  own.give("waves", choice.warps);
  own.give("pipeline",
           static_cast<std::int64_t>(is_pipelined(choice.stages) ? Pipeline::overlapped : Pipeline::serial));
  const bool splits = splits_keys(shape, paged.sequences.size(), paged.kv_heads);
  own.give("segments", splits ? kUsualSegments : 1);
  own.give("tile", choice.tile);
  for (std::int64_t tile = choice.tile; tile > kTileStep && !fits_variant(variant, paged, machine, own);) {
    own.give("tile", tile /= 2);
  }
  return own;
}

std::string_view name_of_variant(Variant variant) {
  return kPatterns[static_cast<std::size_t>(variant)].name;
}

Variant variant_of(const Pattern& pattern) {
  const auto found = std::find_if(kPatterns.begin(), kPatterns.end(),
                                  [&](const Pattern& other) { return other.name == pattern.name; });
  return static_cast<Variant>(found - kPatterns.begin());
}

Values all_values(const Pattern& pattern, const Problem& problem, const Machine& machine,
                  const Values& values) {
  return pattern.own_choice == nullptr ? values : values.with(pattern.own_choice(problem, machine));
}

template <Variant variant>
Schedule build_variant(const Problem& problem, const Machine& machine, const Values& values) {
  const PagedProblem paged = paged_problem_of(problem);
  const Pattern& pattern = kPatterns[static_cast<std::size_t>(variant)];
  const PagedKnobs knobs =
      paged_knobs_of(variant, paged, machine, all_values(pattern, problem, machine, values));
  return paged_schedule(name_of_variant(variant), paged, knobs, machine);
}

void complete(Problem& problem, const FieldPlace& place) {
  complete_kv_heads(problem, place);
  complete_batch(problem, place);
}

// Steps of decode run in graphs; a batch with prompts does not (vllm-project/vllm, full graphs for decode
// only).
std::int64_t graph_rows(const Problem& problem) {
  const std::vector<PagedSequence> sequences = sequences_of(problem);
  const bool decodes = std::all_of(sequences.begin(), sequences.end(),
                                   [](const PagedSequence& sequence) { return sequence.queries == 1; });
  return decodes ? static_cast<std::int64_t>(sequences.size()) : kMostGraphRows + 1;
}

// Masked keys are no work.
Work work(const Problem& problem) {
  const PagedProblem paged = paged_problem_of(problem);
  double pairs = 0;
  for (const PagedSequence& sequence : paged.sequences) {
    const auto queries = static_cast<double>(sequence.queries);
    pairs += queries * (static_cast<double>(sequence.history()) + (queries + 1) / 2);
  }
  return {.flops = 4.0 * static_cast<double>(paged.heads * paged.depth) * pairs};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{} tokens, {}/{} heads of {} {}, pages of {}{}", batch_text(problem),
                     problem["q_heads"], problem["kv_heads"], problem["head_dim"],
                     name_of(static_cast<DType>(problem["dtype"])), problem["page"],
                     problem["ragged"] > 0 ? fmt::format(", up to {} % shorter", problem["ragged"]) : "");
}

// As in vLLM: 16 keys at a time where all sequences decode, else 32; fewer where these do not fit.
Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const PagedProblem paged = paged_problem_of(problem);
  std::int64_t tile = shape_of(paged.sequences).most_queries > 1 ? 32 : 16;
  values.assume("tile", tile);
  while (tile > kTileStep && !fits_variant(Variant::free_tile, paged, machine, values)) {
    values.assume("tile", tile /= 2);
  }
  return values;
}

// The usual value first; values that do not fit are left out.
KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const auto on = std::make_shared<const Machine>(machine);
  const auto add = [&](std::string_view knob, std::initializer_list<std::int64_t> others, bool coarse,
                       bool fitting) {
    if (!pattern.uses(knob) || pins.given(knob)) return;
    std::vector<std::int64_t> values{space.base[knob]};
    for (const std::int64_t other : others) {
      if (other != values.front()) values.push_back(other);
    }
    Axis axis = column_axis(knob, values);
    for (std::size_t i = 0; coarse && i < values.size(); ++i) axis.coarse.push_back(i);
    axis.travels = coarse;
    axis.relative = fitting;
    for (AxisValue& value : axis.values) {
      if (!fitting) break;
      value.apply = [set = value.apply, variant = variant_of(pattern), paged = paged_problem_of(problem),
                     on](Values& knobs) { return set(knobs) && fits_variant(variant, paged, *on, knobs); };
    }
    space.axes.push_back(std::move(axis));
  };
  add("segments", {1, 2, 4, 8, 16, 32, 64}, true, false);
  if (problem["sequences_query"] > 1 || problem["second_count"] > 0)
    add("block_m", {32, 64, 128}, true, false);
  add("waves", {1, 2, 4, 8}, false, false);
  add("pipeline", {0, 1}, false, false);
  add("launch", {0, 1}, false, false);
  add("tile", {16, 32, 64, 128}, true, true);
  return space;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                const Values& values) {
  if (pattern.vendor) return 0;  // a table may say less than the law
  const PagedProblem paged = paged_problem_of(problem);
  return paged_bound_ns(
      paged,
      paged_knobs_of(variant_of(pattern), paged, machine, all_values(pattern, problem, machine, values)),
      machine);
}

// Rows of backend_hip/baselines/paged_attention.py with replayed graphs. The form is keys at a time x rows x
// segments; its waves are those of the script.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  if (!is_of_program(line, paged_attention(), true) || !line.has("form")) return std::nullopt;
  if (kProgramLaunches[line.choice("launch", kProgramLaunches)] != "graph") return std::nullopt;
  struct Form {
    std::int64_t tile, rows, segments, waves;
  };
  constexpr std::array<std::string_view, 7> kForms{"16x16x1",   "32x16x1",  "128x16x1", "64x64x1",
                                                   "128x128x1", "16x16x16", "32x16x16"};
  constexpr std::array<Form, 7> kKnobsOfForms{{{16, 16, 1, 4},
                                               {32, 16, 1, 4},
                                               {128, 16, 1, 8},
                                               {64, 64, 1, 4},
                                               {128, 128, 1, 8},
                                               {16, 16, 16, 4},
                                               {32, 16, 16, 4}}};
  const Form& form = kKnobsOfForms[line.choice("form", kForms)];
  LibraryCall call;
  call.form = LibraryForm::kernel;
  call.problem = problem_of_row(line, paged_attention());
  for (const char* part : {"sequences_count", "sequences_query", "sequences_context"}) {
    call.problem.values.give(part, line.integer(part, 1, kMaxSize));
  }
  call.pattern = "flexible-tile";
  call.knobs = Values(kKnobs);
  call.knobs.give("tile", form.tile);
  call.knobs.give("block_m", form.rows);
  call.knobs.give("segments", form.segments);
  call.knobs.give("waves", form.waves);
  call.knobs.give("launch", static_cast<std::int64_t>(LaunchMode::graph));
  call.knobs.give(kKernelsKnob, static_cast<std::int64_t>(KernelClass::triton));
  call.time_column = "device_us";
  return call;
}

}  // namespace

PagedProblem paged_problem_of(const Problem& problem) {
  return {sequences_of(problem), problem["q_heads"], problem["kv_heads"],
          problem["head_dim"],   problem["page"],    static_cast<DType>(problem["dtype"])};
}

const Workload& paged_attention() {
  static const Workload workload{
      .name = "paged-attention",
      .title = "Paged attention",
      .summary = "new tokens of a batch of sequences attend to a cache in pages, on one GPU",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .library_call = library_call,
      .step_rows_of = graph_rows,
      .timed_by_host = true,
      .block = BlockRole::cached_attention,
      .computing = {"attention", "matrix and vector work"},
  };
  return workload;
}

}  // namespace tritax

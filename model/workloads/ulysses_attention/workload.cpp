#include "model/workloads/ulysses_attention/workload.hpp"

#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/fields.hpp"
#include "model/workloads/ulysses_attention/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxContext = std::int64_t{1} << 24;
constexpr std::int64_t kMaxColumns = std::int64_t{1} << 20;
constexpr std::int64_t kMaxMovers = 1024;

const std::array<Spec, 7> kFields{{
    {.name = "context",
     .help = "tokens of the sequence, which all GPUs share",
     .high = kMaxContext,
     .required = true,
     .varies_by_doubling = true},
    q_heads_field(32),
    kv_heads_field(),
    head_dim_field(),
    {.name = "causal", .help = "a query sees the keys up to its own place", .kind = ValueKind::boolean},
    dtype_field(DType::fp16, "element type of Q, K, V and O"),
    gpus_field(),
}};

const std::array<Spec, 10> kKnobs{{
    attend_knob("tile"),
    attend_knob("waves"),
    attend_knob("pipeline"),
    {.name = "transport",
     .help =
         "who moves heads: those who have them store them (push), or those who need them load them (pull)",
     .kind = ValueKind::name,
     .names = kTransportNames,
     .shown = "{}",
     .not_shown = 0},
    collective_knob("comm_tile"),
    {.name = "comm_cus",
     .help = "workgroups that move heads",
     .high = kMaxMovers,
     .usual = {64},
     .allowed = kAllowedCus,
     .varies_by_doubling = true,
     .shown = "{} that move"},
    gemm_knob("peer_order"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    gemm_knob("host_barriers"),
}};

using Names = std::string_view;
constexpr std::array<Names, 3> kLibraryKnobs{"tile", "waves", "pipeline"};
constexpr std::array<Names, 8> kKernelKnobs{"tile",      "waves",    "pipeline",   "transport",
                                            "comm_tile", "comm_cus", "peer_order", "lock"};
constexpr std::array<Names, 9> kFusedKnobs{"tile",     "waves",      "pipeline", "transport", "comm_tile",
                                           "comm_cus", "peer_order", "lock",     "launch"};

using Build = Schedule (*)(const UlyssesAttention&, const Machine&, const UlyssesKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const UlyssesAttention heads = ulysses_of(problem);
  return build(heads, machine, ulysses_knobs_of(values, heads));
}

const std::array<Pattern, 4> kPatterns{{
    {.name = "library",
     .summary = "all-to-alls of the collective library for Q, K and V, attention, and one for the results",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_heads_library>},
    {.name = "direct",
     .summary = "the same with own kernels, which move heads straight into their places",
     .knobs = kKernelKnobs,
     .build = build_checked<build_heads_direct>},
    {.name = "fused-results",
     .summary = "an own kernel moves heads; attention stores results straight to who has the tokens",
     .knobs = kKernelKnobs,
     .build = build_checked<build_heads_fused_results>},
    {.name = "fused",
     .summary =
         "one kernel: some workgroups move heads, the others attend as tokens come, and store to owners",
     .knobs = kFusedKnobs,
     .build = build_checked<build_heads_fused>,
     .roles = Roles::in_one_kernel},
}};

void complete(Problem& problem, const FieldPlace& place) {
  complete_kv_heads(problem, place);
  if (problem["context"] < problem.gpus()) {
    throw UserError(fmt::format("{}: context = {} is less than a token for each of {} GPUs", place("context"),
                                problem["context"], problem.gpus()));
  }
  if (problem["q_heads"] * problem["head_dim"] > kMaxColumns) {
    throw UserError(fmt::format("{}: q_heads = {} times head_dim = {} are more than {} columns",
                                place("q_heads"), problem["q_heads"], problem["head_dim"], kMaxColumns));
  }
}

// A masked key is no work.
Work work(const Problem& problem) {
  const UlyssesAttention heads = ulysses_of(problem);
  const auto context = static_cast<double>(heads.context);
  const double pairs = heads.causal ? context * (context + 1) / 2 : context * context;
  return {.flops = 4.0 * static_cast<double>(heads.heads * heads.depth) * pairs};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{} tokens, {}/{} heads of {} {}{}", problem["context"], problem["q_heads"],
                     problem["kv_heads"], problem["head_dim"], name_of(static_cast<DType>(problem["dtype"])),
                     problem["causal"] != 0 ? ", causal" : "");
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const UlyssesAttention heads = ulysses_of(problem);
  assume_fitting_tile(values, machine.gpu, heads.dtype, heads.depth);
  values.assume("peer_order", static_cast<std::int64_t>(PeerOrder::staggered));
  values.assume("host_barriers", 0);
  return values;
}

// The usual value first, then all others of a small range.
Axis axis_of(const Pattern& pattern, const Values& base, std::string_view knob,
             std::initializer_list<std::int64_t> others) {
  std::vector<std::int64_t> values{base[knob]};
  for (const std::int64_t other : others) {
    if (pattern.uses(knob) && !base.given(knob) && other != values.front()) values.push_back(other);
  }
  return column_axis(knob, values);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const UlyssesAttention heads = ulysses_of(problem);
  Axis tiles = attend_tile_axis(space.base, machine.gpu, heads.dtype, heads.depth);
  if (!tiles.values.empty()) space.axes.push_back(std::move(tiles));
  if (heads.gpus == 1) return space;
  space.axes.push_back(axis_of(pattern, space.base, "comm_cus", {16, 32, 64, 128}));
  space.axes.push_back(axis_of(pattern, space.base, "transport", {0, 1}));
  space.axes.push_back(axis_of(pattern, space.base, "peer_order", {2, 1, 0}));
  space.axes.push_back(axis_of(pattern, space.base, "lock", {0, 1, 2}));
  space.axes.push_back(axis_of(pattern, space.base, "launch", {0, 1}));
  return space;
}

double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values& values) {
  const UlyssesAttention heads = ulysses_of(problem);
  return ulysses_bound_ns(heads, ulysses_knobs_of(values, heads), machine);
}

}  // namespace

const Workload& ulysses() {
  static const Workload workload{
      .name = "ulysses",
      .title = "Ulysses",
      .summary = "attention of one sequence that is sharded by tokens: heads go all to all, and results back",
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
      .computing = {"attention", "matrix and vector work"},
  };
  return workload;
}

}  // namespace tritax

#include "model/workloads/ulysses_attention/workload.hpp"

#include <array>

#include "model/parts/attend_tiles.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/sequence_attention.hpp"
#include "model/parts/usual_first.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/ulysses_attention/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxMovers = 1024;

const std::array<Spec, 7> kFields{{
    sequence_field(),
    q_heads_field(32),
    kv_heads_field(),
    head_dim_field(),
    causal_field(),
    dtype_field(DType::fp16, "element type of Q, K, V and O"),
    gpus_field(),
}};

const std::array<Spec, 15> kKnobs{{
    attend_knob("tile"),
    attend_knob("waves"),
    attend_knob("pipeline"),
    attend_knob("kernel"),
    {.name = "transport",
     .help =
         "who moves heads: the GPU that has them stores them (push), or the GPU that needs them loads them "
         "(pull)",
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
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

using Names = std::string_view;
constexpr std::array<Names, 5> kLibraryKnobs{"tile", "waves", "pipeline", "kernel", "form"};
constexpr std::array<Names, 6> kEngineKnobs{"tile", "waves", "pipeline", "kernel", "peer_order", "lock"};
constexpr std::array<Names, 9> kKernelKnobs{"tile",      "waves",    "pipeline",   "kernel", "transport",
                                            "comm_tile", "comm_cus", "peer_order", "lock"};
constexpr std::array<Names, 10> kFusedKnobs{"tile",      "waves",    "pipeline",   "kernel", "transport",
                                            "comm_tile", "comm_cus", "peer_order", "lock",   "launch"};

using Build = Schedule (*)(const SequenceAttention&, const Machine&, const UlyssesKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const SequenceAttention heads = sequence_attention_of(problem);
  return build(heads, machine, ulysses_knobs_of(values, heads));
}

const std::array<Pattern, 5> kPatterns{{
    {.name = "library",
     .summary = "all-to-alls of the collective library for Q, K and V, attention, and one for the results",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_heads_library>},
    {.name = "direct",
     .summary = "the same with own kernels, which move heads directly into their places",
     .knobs = kKernelKnobs,
     .build = build_checked<build_heads_direct>},
    {.name = "copy-engine",
     .summary = "copy engines move heads directly into their places; one attention launch between",
     .knobs = kEngineKnobs,
     .build = build_checked<build_heads_copy_engine>},
    {.name = "fused-results",
     .summary = "an own kernel moves heads; attention stores results directly to the owners of the tokens",
     .knobs = kKernelKnobs,
     .build = build_checked<build_heads_fused_results>},
    {.name = "fused",
     .summary =
         "one kernel: some workgroups move heads; the others attend as tokens arrive, and store to the "
         "owners",
     .knobs = kFusedKnobs,
     .build = build_checked<build_heads_fused>,
     .roles = Roles::in_one_kernel},
}};

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const SequenceAttention heads = sequence_attention_of(problem);
  assume_fitting_tile(values, machine.gpu, heads.dtype, heads.depth);
  values.assume("peer_order", static_cast<std::int64_t>(PeerOrder::staggered));
  values.assume("host_barriers", 0);
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const SequenceAttention heads = sequence_attention_of(problem);
  Axis tiles = attend_tile_axis(space.base, machine.gpu, heads.dtype, heads.depth);
  if (!tiles.values.empty()) space.axes.push_back(std::move(tiles));
  if (heads.gpus == 1) return space;
  space.axes.push_back(usual_first(pattern, space.base, "comm_cus", {16, 32, 64, 128}));
  space.axes.push_back(usual_first(pattern, space.base, "transport", {0, 1}));
  space.axes.push_back(usual_first(pattern, space.base, "peer_order", {2, 1, 0}));
  space.axes.push_back(usual_first(pattern, space.base, "lock", {0, 1, 2}));
  space.axes.push_back(usual_first(pattern, space.base, "launch", {0, 1}));
  return space;
}

double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values& values) {
  const SequenceAttention heads = sequence_attention_of(problem);
  return ulysses_bound_ns(heads, ulysses_knobs_of(values, heads), machine);
}

std::optional<LibraryCall> library_call(const CsvRow& line) { return library_program(line, ulysses()); }

}  // namespace

const Workload& ulysses() {
  static const Workload workload{
      .name = "ulysses",
      .title = "Ulysses",
      .summary = "attention of one sequence that is sharded by tokens: all-to-all of heads, and results back",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete_sequence,
      .work = sequence_work,
      .size_text = sequence_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .library_call = library_call,
      .computing = {"attention", "matrix and vector work"},
  };
  return workload;
}

}  // namespace tritax

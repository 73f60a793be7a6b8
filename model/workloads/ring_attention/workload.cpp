#include "model/workloads/ring_attention/workload.hpp"

#include <array>

#include "model/parts/attend_tiles.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/sequence_attention.hpp"
#include "model/parts/usual_first.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/ring_attention/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxMovers = 1024;

const std::array<Spec, 8> kFields{{
    sequence_field(),
    sequences_field(),
    q_heads_field(32),
    kv_heads_field(),
    head_dim_field(),
    causal_field(),
    dtype_field(DType::fp16, "element type of Q, K, V and O"),
    gpus_field(),
}};

const std::array<Spec, 16> kKnobs{{
    attend_knob("tile"),
    attend_knob("waves"),
    attend_knob("pipeline"),
    attend_knob("kernel"),
    {.name = "zigzag",
     .help = "with a mask, each GPU has an early and a late part of the sequence, so all have equal work",
     .kind = ValueKind::boolean,
     .usual = {1},
     .shown = "zigzag {}",
     .not_shown = 1},
    {.name = "route",
     .help = "route of keys and values: round a ring, from their owner to each GPU in turn, or to all at "
             "once",
     .kind = ValueKind::name,
     .names = kRouteNames,
     .shown = "{}"},
    {.name = "transport",
     .help = "who moves keys and values: the GPU that has them stores them, or the GPU that needs them loads "
             "them",
     .kind = ValueKind::name,
     .names = kTransportNames,
     .shown = "{}",
     .not_shown = 0},
    collective_knob("comm_tile"),
    {.name = "comm_cus",
     .help = "workgroups that move keys and values",
     .high = kMaxMovers,
     .usual = {32},
     .allowed = kAllowedCus,
     .varies_by_doubling = true,
     .shown = "{} that move"},
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

using Names = std::string_view;
constexpr std::array<Names, 6> kLibraryKnobs{"tile", "waves", "pipeline", "kernel", "zigzag", "form"};
constexpr std::array<Names, 7> kEngineKnobs{"tile", "waves", "pipeline", "kernel", "zigzag", "route", "lock"};
constexpr std::array<Names, 11> kFusedKnobs{"tile",      "waves",     "pipeline", "kernel", "zigzag", "route",
                                            "transport", "comm_tile", "comm_cus", "lock",   "launch"};

using Build = Schedule (*)(const SequenceAttention&, const Machine&, const RingKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const SequenceAttention ring = sequence_attention_of(problem);
  return build(ring, machine, ring_knobs_of(values, ring));
}

const std::array<Pattern, 4> kPatterns{{
    {.name = "library",
     .summary = "one attention launch per block, with the library's send to the next GPU in between",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_ring_library>},
    {.name = "library-streams",
     .summary = "the same, with sends in their own stream beside the attention",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_ring_library_streams>},
    {.name = "copy-engine",
     .summary = "copy engines move blocks beside the attention launches",
     .knobs = kEngineKnobs,
     .build = build_checked<build_ring_copy_engine>},
    {.name = "fused",
     .summary =
         "one kernel: some workgroups move blocks; the others keep their queries and attend as blocks arrive",
     .knobs = kFusedKnobs,
     .build = build_checked<build_ring_fused>,
     .roles = Roles::in_one_kernel},
}};

// A mesh has a link to every GPU; a ring would use one of them.
Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const SequenceAttention ring = sequence_attention_of(problem);
  assume_fitting_tile(values, machine.gpu, ring.dtype, ring.depth);
  const bool mesh = machine.fabric.kind == LinkKind::mesh;
  values.assume("route", static_cast<std::int64_t>(mesh ? Route::at_once : Route::in_turn));
  values.assume("host_barriers", 0);
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const SequenceAttention ring = sequence_attention_of(problem);
  Axis tiles = attend_tile_axis(space.base, machine.gpu, ring.dtype, ring.depth);
  if (!tiles.values.empty()) space.axes.push_back(std::move(tiles));
  if (ring.causal) space.axes.push_back(usual_first(pattern, space.base, "zigzag", {0, 1}));
  if (ring.gpus == 1) return space;
  Axis movers = usual_first(pattern, space.base, "comm_cus", {8, 16, 32, 64, 128});
  movers.near = Axis::Near::all;
  space.axes.push_back(std::move(movers));
  space.axes.push_back(usual_first(pattern, space.base, "transport", {0, 1}));
  Axis routes = usual_first(pattern, space.base, "route", {0, 1, 2});
  routes.relative = true;
  for (AxisValue& value : routes.values) {
    value.apply = [set = value.apply](Values& knobs) {
      return set(knobs) && (knobs["transport"] == 0 || knobs["route"] != 0);
    };
  }
  space.axes.push_back(std::move(routes));
  space.axes.push_back(usual_first(pattern, space.base, "lock", {0, 1, 2}));
  space.axes.push_back(usual_first(pattern, space.base, "launch", {0, 1}));
  return space;
}

double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values& values) {
  const SequenceAttention ring = sequence_attention_of(problem);
  return ring_bound_ns(ring, ring_knobs_of(values, ring), machine);
}

std::optional<LibraryCall> library_call(const CsvRow& line) {
  if (form_of_program(line, ring_attention()) == "streams")
    return run_of_program(line, ring_attention(), "library-streams");
  return library_program(line, ring_attention());
}

}  // namespace

const Workload& ring_attention() {
  static const Workload workload{
      .name = "ring-attention",
      .title = "Ring attention",
      .summary = "attention of sequences that are sharded over the GPUs: queries stay, keys and values move",
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

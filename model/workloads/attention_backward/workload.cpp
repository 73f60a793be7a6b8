// Attention backward on one GPU: three kernels; the main one has a workgroup per block of keys. Patterns
// differ in the tile of each workgroup (model/parts/attention_mapping.hpp).
#include "model/workloads/attention_backward/workload.hpp"

#include <array>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/attention_backward/problem.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxHeads = 21845;  // batch × heads; each has three references
constexpr double kFlopsOverForward = 2.5;  // five products instead of two

const std::array<Spec, 7> kKnobs{{
    attend_backward_knob("tile"),
    attend_backward_knob("waves"),
    attend_backward_knob("pipeline"),
    attend_backward_knob("kernel"),
    form_knob(),
    call_knob(),
    kernels_knob(),
}};

template <Mapping mapping>
Schedule build(const Problem& problem, const Machine& machine, const Values& values) {
  const AttentionProblem attention = attention_problem_of(problem);
  return backward_schedule(name_of(mapping), mapping, attention, backward_knobs_of(attention, values),
                           machine);
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values);

constexpr std::array<std::string_view, 4> kTileKnobs{"tile", "waves", "pipeline", "kernel"};

const std::array<Pattern, 4> kPatterns{{
    {.name = "library",
     .summary = "the vendor's kernels: FlashAttention-3, cuDNN or AITER; one head after the other",
     .build = build_library,
     .vendor = true},
    {.name = name_of(Mapping::naive_block_first),
     .summary = "blocks of keys of all heads in turn: a die has every so many-th head, all at once",
     .knobs = kTileKnobs,
     .build = build<Mapping::naive_block_first>},
    {.name = name_of(Mapping::swizzled_block_first),
     .summary = "blocks of keys of all heads in turn, but a die has heads in a row, all at once",
     .knobs = kTileKnobs,
     .build = build<Mapping::swizzled_block_first>},
    {.name = name_of(Mapping::naive_head_first),
     .summary = "all blocks of keys of one head after the other, each head on all dies",
     .knobs = kTileKnobs,
     .build = build<Mapping::naive_head_first>},
}};

// AITER's kernels are assembly, as HipKittens' interleaved ones.
Schedule build_library(const Problem& problem, const Machine& machine, const Values&) {
  const AttentionProblem attention = attention_problem_of(problem);
  Values values(kKnobs);
  if (machine.gpu.lanes_per_wave == 64)
    values.assume("pipeline", static_cast<std::int64_t>(Pipeline::interleaved));
  assume_backward_tile(values, machine.gpu, attention);
  BackwardKnobs knobs = backward_knobs_of(attention, values);
  knobs.profile = KernelProfile::vendor;
  return backward_schedule("library", Mapping::naive_head_first, attention, knobs, machine);
}

void complete(Problem& problem, const FieldPlace& place) { complete_attention(problem, place, kMaxHeads); }

Work work(const Problem& problem) {
  const AttentionProblem attention = attention_problem_of(problem);
  return {.flops = kFlopsOverForward * attention_flops(attention.batch * attention.heads, attention.depth,
                                                       attention.context, attention.causal)};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  assume_backward_tile(values, machine.gpu, attention_problem_of(problem));
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = resolved_knobs(problem, machine, pins);
  if (pattern.vendor) return space;
  Axis tiles = backward_tile_axis(space.base, machine.gpu, attention_problem_of(problem));
  if (!tiles.values.empty()) space.axes.push_back(std::move(tiles));
  return space;
}

// As in a replayed graph, in which the three kernels follow each other without a host.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  std::optional<LibraryCall> call = library_call_of_attention(line, attention_backward());
  if (call) call->knobs.give(kFormKnob, static_cast<std::int64_t>(CallForm::graph));
  return call;
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                const Values& values) {
  if (pattern.vendor) return 0;  // a table may say less than the law
  const AttentionProblem attention = attention_problem_of(problem);
  return backward_bound_ns(attention, backward_knobs_of(attention, values), machine);
}

}  // namespace

BackwardKnobs backward_knobs_of(const AttentionProblem& problem, const Values& values) {
  return {attend_tile_of(values, problem.depth), attend_profile_of(values)};
}

const Workload& attention_backward() {
  static const Workload workload{
      .name = "attention-backward",
      .title = "Attention backward",
      .summary = "gradients of Q, K and V of softmax(Q·Kᵀ/√d)·V, all heads and batches on one GPU",
      .fields = attention_fields(),
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = attention_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .library_call = library_call,
      .back_to_back = true,
      .computing = {"attention", "matrix and vector work"},
  };
  return workload;
}

}  // namespace tritax

// Forward attention on one GPU: one kernel; each workgroup has a tile of queries. Patterns differ only in the
// tile of each workgroup (mapping.hpp), and so in the contents of each die's L2.
#include "model/workloads/attention_forward/workload.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/attention_forward/problem.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxProblems = 65536;  // batch × heads; each is a separate reference

const std::array<Spec, 9> kKnobs{{
    attend_knob("tile"),
    attend_knob("waves"),
    attend_knob("pipeline"),
    attend_knob("kernel"),
    {.name = "persistent",
     .help = "as many workgroups as are resident together, each with every so many-th tile",
     .kind = ValueKind::boolean,
     .shown = "persistent {}",
     .not_shown = 0},
    {.name = "swizzle",
     .help = "order of swizzled-head-first: for any batch, as in the paper, or as in AITER",
     .kind = ValueKind::name,
     .names = kHeadFirstFormNames,
     .recorded_as = "form",
     .shown = "{} swizzle",
     .not_shown = 0},
    form_knob(),
    call_knob(),
    kernels_knob(),
}};

template <Mapping mapping>
Schedule build(const Problem& problem, const Machine& machine, const Values& values) {
  const AttentionProblem attention = attention_problem_of(problem);
  return attention_schedule(name_of(mapping), mapping, attention, attention_knobs_of(attention, values),
                            machine);
}

using Names = std::string_view;
Schedule build_library(const Problem& problem, const Machine& machine, const Values& values);
Values default_knobs(const Problem& problem, const Machine& machine);

constexpr std::array<Names, 5> kTileKnobs{"tile", "waves", "pipeline", "kernel", "persistent"};
constexpr std::array<Names, 6> kFormKnobs{"tile", "waves", "pipeline", "kernel", "persistent", "swizzle"};

const std::array<Pattern, 5> kPatterns{{
    {.name = "library",
     .summary = "the vendor's kernel: cuDNN or AITER; one head after the other",
     .build = build_library,
     .vendor = true},
    {.name = name_of(Mapping::naive_block_first),
     .summary = "heads in turn: a die has every so many-th head, all at once",
     .knobs = kTileKnobs,
     .build = build<Mapping::naive_block_first>},
    {.name = name_of(Mapping::swizzled_block_first),
     .summary = "heads in turn, but a die has heads in a row, all at once",
     .knobs = kTileKnobs,
     .build = build<Mapping::swizzled_block_first>},
    {.name = name_of(Mapping::naive_head_first),
     .summary = "one head after the other, each on all dies",
     .knobs = kTileKnobs,
     .build = build<Mapping::naive_head_first>},
    {.name = name_of(Mapping::swizzled_head_first),
     .summary = "every die has heads of its own, one after the other",
     .knobs = kFormKnobs,
     .build = build<Mapping::swizzled_head_first>},
}};

// The largest tile that fits and leaves room for two workgroups: cuDNN's tiles are not known, and its kernels
// begin the next tile while they store the last one.
Schedule build_library(const Problem& problem, const Machine& machine, const Values&) {
  const AttentionProblem attention = attention_problem_of(problem);
  AttentionKnobs knobs = attention_knobs_of(attention, default_knobs(problem, machine));
  knobs.profile = KernelProfile::vendor;
  return attention_schedule("library", Mapping::naive_head_first, attention, knobs, machine);
}

void complete(Problem& problem, const FieldPlace& place) { complete_attention(problem, place, kMaxProblems); }

Work work(const Problem& problem) {
  const AttentionProblem attention = attention_problem_of(problem);
  return {.flops = attention_flops(attention.batch * attention.heads, attention.depth, attention.context,
                                   attention.causal)};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const AttentionProblem attention = attention_problem_of(problem);
  assume_fitting_tile(values, machine.gpu, attention.dtype, attention.depth);
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = resolved_knobs(problem, machine, pins);
  if (pattern.vendor) return space;
  const AttentionProblem attention = attention_problem_of(problem);
  Axis tiles = attend_tile_axis(space.base, machine.gpu, attention.dtype, attention.depth);
  if (!tiles.values.empty()) space.axes.push_back(std::move(tiles));
  if (!space.base.given("persistent") && pattern.uses("persistent"))
    space.axes.push_back(column_axis("persistent", {space.base["persistent"], 1 - space.base["persistent"]}));
  return space;
}

std::optional<LibraryCall> library_call(const CsvRow& line) {
  return library_call_of_attention(line, attention());
}

double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                const Values& values) {
  if (pattern.vendor) return 0;  // a table may say less than the law
  const AttentionProblem attention = attention_problem_of(problem);
  return attention_bound_ns(attention, attention_knobs_of(attention, values), machine);
}

}  // namespace

AttentionKnobs attention_knobs_of(const AttentionProblem& problem, const Values& values) {
  AttentionKnobs knobs;
  knobs.tile = attend_tile_of(values, problem.depth);
  knobs.profile = attend_profile_of(values);
  knobs.persistent = values["persistent"] != 0;
  knobs.form = static_cast<HeadFirstForm>(values["swizzle"]);
  return knobs;
}

const Workload& attention() {
  static const Workload workload{
      .name = "attention",
      .title = "Attention",
      .summary = "softmax(Q·Kᵀ/√d)·V of all heads and batches on one GPU, forward",
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
      .block = BlockRole::prompt_attention,
      .computing = {"attention", "matrix and vector work"},
  };
  return workload;
}

}  // namespace tritax

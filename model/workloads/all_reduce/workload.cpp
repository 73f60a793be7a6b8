// All-reduce alone.
//
//   library   the vendor's kernel: model/parts/library_collectives.hpp
//   one-shot  every GPU adds up the whole sum itself: one_shot.hpp
//   two-shot  model/parts/sum_patterns.hpp: pieces go to their owner, and the owner's sum goes to all
//   ring      model/parts/sum_patterns.hpp: every piece visits all GPUs; the last one stores the sum to all
//   atomic, spin-lock   model/parts/sum_patterns.hpp: every GPU adds its pieces onto the sum of every GPU
#include "model/workloads/all_reduce/workload.hpp"

#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/staged_sums.hpp"
#include "model/parts/sum_patterns.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/all_reduce/coded.hpp"
#include "model/workloads/all_reduce/one_shot.hpp"

namespace tritax {

namespace {

const std::array<Spec, 4> kFields =
    collective_fields("rows of every GPU's matrix", "columns of the matrix", 1);

const std::array<Spec, 15> kKnobs{{
    collective_knob("comm_tile"),
    collective_knob("comm_cus"),
    sum_knob("transport"),
    sum_knob("wire"),
    collective_knob("rings"),
    collective_knob("peer_order"),
    collective_knob("peers"),
    collective_knob("lock"),
    staged_knob(),
    form_knob(CallForm::custom_graph),
    engine_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

// Pushed data alone are coded, in whole groups of columns.
void check_codec(const Values& values, const Problem& problem) {
  const SumKnobs knobs = collective_knobs_of(values);
  if (knobs.codec == Codec::same) return;
  const std::string_view name = name_of(knobs.codec);
  if (knobs.transport != Transport::push) {
    throw UserError(fmt::format("wire: {} with transport {}; coded data are pushed; use push, or wire: same",
                                name, kSumTransportNames[static_cast<std::size_t>(knobs.transport)]));
  }
  if (static_cast<DType>(problem["dtype"]) == DType::fp8)
    throw UserError(fmt::format("wire: {} of fp8; codecs hold fp32, fp16 and bf16; use same", name));
  const std::int32_t cols = piece_size(knobs).col;
  if (cols % kCodecGroup != 0) {
    throw UserError(fmt::format(
        "comm_tile: pieces of {} columns with wire: {}, whose groups have {}; use multiples of {}", cols,
        name, kCodecGroup, kCodecGroup));
  }
}

// The matrix is one array and is cut along its sides. `copies`: buffers of this size that a GPU needs.
SumDraft draft_of(std::string_view pattern, const Problem& problem, const Machine& machine,
                  const Values& values, double copies) {
  const Collective collective = collective_of(problem);
  const SumKnobs knobs = collective_knobs_of(values);
  check_collective(collective, machine, knobs, copies * collective.bytes());
  return {pattern, array_of(collective), machine, knobs, true};
}

Schedule build_one_shot(const Problem& problem, const Machine& machine, const Values& values) {
  check_codec(values, problem);
  const bool slots = static_cast<Transport>(values["transport"]) == Transport::push;
  const double staged = values[kStagedKnob] != 0 ? 2 : 0;
  SumDraft draft =
      draft_of("one-shot", problem, machine, values, 2.0 + staged + (slots ? problem.gpus() : 0));
  if (staged > 0) stage(draft);
  add_one_shot(draft);
  return draft.builder.finish();
}

Schedule build_two_shot(const Problem& problem, const Machine& machine, const Values& values) {
  check_codec(values, problem);
  const bool staged = values[kStagedKnob] != 0;
  SumDraft draft = draft_of("two-shot", problem, machine, values, staged ? 5 : 3);
  if (staged) stage(draft);
  if (draft.coded()) {
    add_coded_two_shot(draft);
  } else {
    add_direct(draft);
  }
  return draft.builder.finish();
}

Schedule build_ring(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of("ring", problem, machine, values, 3);
  add_ring(draft);
  return draft.builder.finish();
}

// Beside the matrix and the sum: the sum in fp32, where atomics add another type.
template <Onto onto>
Schedule build_onto(const Problem& problem, const Machine& machine, const Values& values) {
  const auto dtype = static_cast<DType>(problem["dtype"]);
  const int wider = bytes_of(sum_dtype(dtype)) / bytes_of(dtype);
  const bool rounds = onto == Onto::atomics && wider > 1;
  SumDraft draft = draft_of(onto == Onto::atomics ? "atomic" : "spin-lock", problem, machine, values,
                            2.0 + (rounds ? wider : 0));
  add_onto_sums(draft, onto);
  return draft.builder.finish();
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of("library", problem, machine, values, 3);
  add_library_sum(draft);
  return draft.builder.finish();
}

using Names = std::string_view;
constexpr std::array<Names, 8> kShotKnobs{"comm_tile",  "comm_cus", "transport", "wire",
                                          "peer_order", "peers",    "lock",      kStagedKnob};
constexpr std::array<Names, 6> kRingKnobs{"comm_tile", "comm_cus", "rings", "peer_order", "peers", "lock"};
constexpr std::array<Names, 5> kOntoKnobs{"comm_tile", "comm_cus", "peer_order", "peers", "lock"};

const std::array<Pattern, 6> kPatterns{{
    {.name = "library",
     .summary = "the all-reduce of the vendor's collective library",
     .build = build_library,
     .vendor = true},
    {.name = "one-shot",
     .summary = "every GPU adds up all matrices itself, from slots or from its peers",
     .knobs = kShotKnobs,
     .build = build_one_shot},
    {.name = "two-shot",
     .summary =
         "pieces go into slots of their owner, or the owner loads them; the owner adds them up and stores "
         "the sum to all",
     .knobs = kShotKnobs,
     .build = build_two_shot},
    {.name = "ring",
     .summary = "every piece goes around all GPUs, and the last one stores the sum to all",
     .knobs = kRingKnobs,
     .build = build_ring},
    {.name = "atomic",
     .summary = "every GPU adds its pieces atomically onto the sum on every GPU",
     .knobs = kOntoKnobs,
     .build = build_onto<Onto::atomics>},
    {.name = "spin-lock",
     .summary = "GPUs take turns at every piece of every sum: load, add, store",
     .knobs = kOntoKnobs,
     .build = build_onto<Onto::turns>},
}};

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(kKnobs), pins);
}

// Published times of coded all-reduces (scenarios/published/quick-reduce.toml) are two to three times the
// predicted ones.
std::string_view untimed(const Pattern& pattern, const Values& knobs) {
  constexpr auto kPlain = static_cast<std::int64_t>(Codec::same);
  if (!pattern.uses("wire") || knobs.get_or("wire", kPlain) == kPlain) return {};
  return "Coding and decoding take no time in the model: a coded all-reduce takes longer than predicted.";
}

std::optional<LibraryCall> library_call(const CsvRow& line) { return library_program(line, all_reduce()); }

}  // namespace

const Workload& all_reduce() {
  static const Workload workload{
      .name = "all-reduce",
      .title = "All-reduce",
      .summary = "every GPU has a matrix and gets the sum of all matrices",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = require_rows_or_columns,
      .work = all_reduce_work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .untimed = untimed,
      .library_call = library_call,
      .step_rows = "rows",
      .message = Message::matrix,
      .block = BlockRole::summed_rows,
      .traced = TracedForm{.collective = TracedCollective::all_reduce},
  };
  return workload;
}

}  // namespace tritax

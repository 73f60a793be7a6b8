// All-reduce with the following steps of a transformer's layer: model/parts/norm_rows.hpp.
//
//   library   the vendor's all-reduce, then a kernel that adds the residual and normalises
//   one-shot  one kernel: every GPU adds up its rows from slots or from its peers, and normalises them
//   two-shot  the two-shot all-reduce, where owners add up and store to all, then a kernel that adds the
//             residual and normalises (ROCm/aiter custom_all_reduce.cuh: reduce_scatter_cross_device_store,
//             local_device_load_rmsnorm)
//   fused-two-shot  patterns.hpp
//
// Where the sums stay with the owners of rows, the library's calls are a reduce-scatter, the kernel on the
// own rows, and an all-gather of normalised rows; one-shot and two-shot leave the sums everywhere all the
// same.
#include "model/workloads/all_reduce_norm/workload.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_sum.hpp"
#include "model/parts/sum_patterns.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/all_reduce_norm/patterns.hpp"

namespace tritax {

namespace {

enum class SumsAt : std::uint8_t { everywhere, owners };
constexpr std::array<std::string_view, 2> kSumsAtNames{"everywhere", "owners"};

// "usual", followed by kCommonDTypeNames.
constexpr std::array<std::string_view, 1 + kCommonDTypeCount> kOutNames{"usual", "fp32", "fp16", "bf16",
                                                                        "fp8"};

const std::array<Spec, 6> kFields = [] {
  const std::array<Spec, 4> shared =
      collective_fields("rows of the matrix: tokens", "columns: the hidden size", 1);
  return std::array<Spec, 6>{{
      shared[0],
      shared[1],
      shared[2],
      shared[3],
      {.name = "out",
       .help = "element type of the normalised rows; usual: that of the sum",
       .kind = ValueKind::name,
       .names = kOutNames,
       .value_if_column_missing = 0},
      {.name = "sums",
       .help = "which GPUs need the sum: all (everywhere), or each for its own rows, as with sequence "
               "parallelism (owners)",
       .kind = ValueKind::name,
       .names = kSumsAtNames,
       .value_if_column_missing = static_cast<std::int64_t>(SumsAt::everywhere)},
  }};
}();

DType out_of(const Problem& problem) {
  const std::int64_t out = problem["out"];
  return out > 0 ? static_cast<DType>(out - 1) : product_dtype(static_cast<DType>(problem["dtype"]));
}

bool at_owners(const Problem& problem) { return static_cast<SumsAt>(problem["sums"]) == SumsAt::owners; }

Spec launch_knob() {
  Spec spec = gemm_knob("launch");
  spec.value_if_column_missing = static_cast<std::int64_t>(LaunchMode::stream);
  return spec;
}

const std::array<Spec, 13> kKnobs{{
    collective_knob("comm_tile"),
    collective_knob("comm_cus"),
    sum_knob("transport"),
    collective_knob("peer_order"),
    collective_knob("peers"),
    collective_knob("lock"),
    launch_knob(),
    form_knob(CallForm::custom_graph),
    engine_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

struct NormPlan {
  Blocks blocks = Blocks::rows;
  bool everywhere = true;  // sums
  double more_bytes = 0;   // per GPU, of other buffers
};

SumDraft draft_of_norm(std::string_view pattern, const Problem& problem, const Machine& machine,
                       const Values& values, const NormPlan& plan) {
  const Collective collective = collective_of(problem);
  SumKnobs knobs = collective_knobs_of(values);
  PartialSums array = array_of(collective);
  array.blocks = plan.blocks;
  const DType dtype = product_dtype(collective.dtype);
  const std::int64_t left_out = plan.everywhere ? 0 : collective.rows - block_of(array, 0).rows;  // of C
  check_collective(collective, machine, knobs,
                   collective.bytes() +
                       norm_bytes(collective.rows, collective.cols, collective.dtype, out_of(problem)) -
                       static_cast<double>(left_out * collective.cols) * bytes_of(dtype) + plan.more_bytes);
  check_norm_rows(collective.rows, collective.gpus, "rows");
  if (pattern != "two-shot") {
    knobs.comm_tile_m = 1;
    knobs.comm_tile_n = static_cast<std::int32_t>(collective.cols);
  }
  return {pattern, array, machine, knobs, plan.everywhere, dtype};
}

// Bytes of one slot per GPU for the widest block.
double slot_bytes(const Problem& problem, Blocks blocks) {
  if (problem.gpus() == 1) return 0;
  PartialSums array = array_of(collective_of(problem));
  array.blocks = blocks;
  const Rect widest = block_of(array, 0);
  return static_cast<double>(problem.gpus()) * widest.rows * widest.cols * bytes_of(array.dtype);
}

// As array_of().
Blocks blocks_of_sums(const Problem& problem) { return array_of(collective_of(problem)).blocks; }

bool pushes(const Values& values) { return static_cast<Transport>(values["transport"]) == Transport::push; }

// The buffers of the own normalised rows, and the kernels behind a reduce-scatter.
Schedule build_library_at_owners(const Problem& problem, const Machine& machine, const Values& values) {
  const Rect widest = block_of(array_of(collective_of(problem)), 0);
  const DType out = out_of(problem);
  const double shard_bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(out);
  SumDraft draft = draft_of_norm("library", problem, machine, values,
                                 {Blocks::rows, false, slot_bytes(problem, Blocks::rows) + shard_bytes});
  ScheduleBuilder& builder = draft.builder;
  NormRows norm = add_norm(draft, out);
  norm.shard = builder.buffer({"shard", out, widest.rows, widest.cols, 1, widest.cols});
  LibraryReduce reduce = library_reduce_of(draft, "reduce_scatter", draft.partial, draft.problem.dtype,
                                           blocks_of(draft.problem));
  const std::vector<Rect> blocks = reduce.blocks;
  const GatherNodes nodes = gather_nodes(builder, machine, draft.ranks(),
                                         [&](int rank) { return blocks[static_cast<std::size_t>(rank)]; });
  const std::int16_t gathered =
      draft.opens() ? builder.flags("gathered", library_channels(machine) * draft.ranks()) : std::int16_t{-1};
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const Rect& block = blocks[static_cast<std::size_t>(rank)];
    reduce.rank = rank;
    reduce.place = {0, 0, block.rows, block.cols};
    const std::vector<int> peers = peers_of(PeerOrder::rotated, draft.ranks(), rank, 0);
    std::function<void(std::int32_t)> tell_all;
    if (gathered >= 0) {
      tell_all = [&](std::int32_t channel) {
        exchange_arrivals(builder, peers, draft.ranks(), rank, channel, gathered, LockProtocol::load_store);
      };
    }
    const bool barriers = draft.knobs.host_barriers;
    if (barriers) builder.host(rank, HostOpKind::barrier);
    builder.host_work(rank, kCollectiveCall);
    builder.launch(rank, add_library_reduce(builder, machine, reduce));
    builder.launch(rank, add_norm_kernel(draft, norm, rank));
    const LibraryGather gather{"all_gather", rank,  draft.ranks(), norm.shard,
                               norm.normed,  block, shard_bytes,   nodes};
    builder.host_work(rank, kCollectiveCall);
    builder.launch(rank, add_library_gather(builder, machine, gather, tell_all));
    builder.host(rank, HostOpKind::device_synchronize);
    if (barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  if (at_owners(problem) && problem.gpus() > 1) return build_library_at_owners(problem, machine, values);
  const Blocks blocks = blocks_of_sums(problem);
  SumDraft draft =
      draft_of_norm("library", problem, machine, values, {blocks, true, slot_bytes(problem, blocks)});
  const NormRows norm = add_norm(draft, out_of(problem));
  add_library_sum(draft,
                  [&](int rank) { draft.builder.launch(rank, add_norm_kernel(draft, norm, rank), 0); });
  return draft.builder.finish();
}

Schedule build_one_shot(const Problem& problem, const Machine& machine, const Values& values) {
  const Collective collective = collective_of(problem);
  const double slots = problem.gpus() > 1 && pushes(values) ? problem.gpus() * collective.bytes() : 0;
  SumDraft draft =
      draft_of_norm("one-shot", problem, machine, values, {blocks_of_sums(problem), true, slots});
  const NormRows norm = add_norm(draft, out_of(problem));
  const OneShotRows shot = add_one_shot_rows(draft, all_cus(machine.gpu, draft.knobs.comm_cus));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t kernel = add_one_shot_kernel(draft, norm, shot, rank);
    host_program(draft.builder, rank, draft.knobs, {{kernel, 0}});
  }
  return draft.builder.finish();
}

// The slots of a GPU are those of its block, one per rank, with push.
Schedule build_two_shot(const Problem& problem, const Machine& machine, const Values& values) {
  const Blocks blocks = blocks_of_sums(problem);
  SumDraft draft = draft_of_norm("two-shot", problem, machine, values,
                                 {blocks, true, pushes(values) ? slot_bytes(problem, blocks) : 0});
  const NormRows norm = add_norm(draft, out_of(problem));
  add_direct(draft, [&](int rank) { return add_norm_kernel(draft, norm, rank, KernelProfile::interpreter); });
  return draft.builder.finish();
}

// Owners have whole rows; with more GPUs than rows some own none.
Schedule build_fused_two_shot(const Problem& problem, const Machine& machine, const Values& values) {
  SumDraft draft = draft_of_norm(
      "fused-two-shot", problem, machine, values,
      {Blocks::rows, !at_owners(problem), pushes(values) ? slot_bytes(problem, Blocks::rows) : 0});
  add_fused_two_shot(draft, add_norm(draft, out_of(problem)));
  return draft.builder.finish();
}

constexpr std::array<std::string_view, 6> kOneShotKnobs{"comm_cus", "transport", "peer_order",
                                                        "peers",    "lock",      "launch"};
constexpr std::array<std::string_view, 7> kTwoShotKnobs{"comm_tile", "comm_cus", "transport", "peer_order",
                                                        "peers",     "lock",     "launch"};

const std::array<Pattern, 4> kPatterns{{
    {.name = "library",
     .summary = "the vendor's all-reduce, then a kernel that adds the residual and normalises the rows",
     .build = build_library,
     .vendor = true},
    {.name = "one-shot",
     .summary =
         "one kernel; every GPU adds up all rows itself, from slots or from its peers, and normalises them",
     .knobs = kOneShotKnobs,
     .build = build_one_shot},
    {.name = "two-shot",
     .summary =
         "owners of blocks add them up and store the sums to all GPUs; a second kernel adds the residual and "
         "normalises the rows",
     .knobs = kTwoShotKnobs,
     .build = build_two_shot},
    {.name = "fused-two-shot",
     .summary = "one kernel; owners of rows add them up, normalise them and store them to all GPUs",
     .knobs = kOneShotKnobs,
     .build = build_fused_two_shot},
}};

void complete(Problem& problem, const FieldPlace& place) {
  check_norm_columns(problem["cols"], place("cols") + ": cols");
  require_rows_or_columns(problem, place);
  if (!at_owners(problem) || problem["rows"] >= problem.gpus()) return;
  throw UserError(
      fmt::format("{}: sums = owners with {} rows on {} GPUs; every GPU must own a row: give at "
                  "least {} rows, or everywhere",
                  place("sums"), problem["rows"], problem.gpus(), problem.gpus()));
}

std::string size_text(const Problem& problem) {
  std::string text = collective_size_text(problem);
  if (problem["out"] > 0) text += fmt::format(" to {}", name_of(out_of(problem)));
  if (at_owners(problem)) text += ", sums at owners";
  return text;
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(kKnobs), pins);
}

}  // namespace

const Workload& all_reduce_norm() {
  static const Workload workload{
      .name = "all-reduce-norm",
      .title = "All-reduce + RMSNorm",
      .summary =
          "every GPU has a matrix and gets the sum of all matrices plus a residual, and the normalised rows",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = all_reduce_work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .step_rows = "rows",
  };
  return workload;
}

}  // namespace tritax

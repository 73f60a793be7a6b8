// A GEMM beside a collective as a workload: fields, knobs and patterns.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_bound.hpp"
#include "model/parts/gemm_space.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/gemm_beside_collective/patterns.hpp"
#include "model/workloads/gemm_beside_collective/workload.hpp"

namespace tritax {

namespace {

const std::array<Spec, 8> kFields{{
    size_field("m", "-M", "rows of A and C of every GPU"),
    size_field("n", "-N", "columns of B and C"),
    size_field("k", "-K", "columns of A and rows of B"),
    size_field("rows", "--rows", "rows of a GPU's block of what is gathered, or of its matrix"),
    size_field("cols", "--cols", "columns of the same"),
    {.name = "collective",
     .help = "the collective beside the GEMM",
     .kind = ValueKind::name,
     .names = kBesideNames,
     .value_if_column_missing = static_cast<std::int64_t>(BesideCollective::all_gather)},
    dtype_field(DType::fp16, "element type of all matrices"),
    gpus_field(1),
}};

const std::array<Spec, 17> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    gemm_knob("comm_tile"),
    gemm_knob("gemm_cus"),
    gemm_knob("comm_cus"),
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

GemmBeside pair_of(const Problem& problem) {
  return {{problem["m"], problem["n"], problem["k"], static_cast<DType>(problem["dtype"])},
          problem["rows"],
          problem["cols"],
          problem.gpus(),
          static_cast<BesideCollective>(problem["collective"])};
}

double block_bytes(const GemmBeside& pair) {
  return static_cast<double>(pair.rows) * static_cast<double>(pair.cols) * bytes_of(pair.gemm.dtype);
}

// An upper bound on the number of operations, before they are allocated: a tile is multiplied and stored, and
// a piece is moved to or from all GPUs and announced.
void check_size(const GemmBeside& pair, const GemmKnobs& knobs) {
  const auto pieces = [](std::int64_t rows, std::int64_t cols, double height, double width) {
    return std::ceil(static_cast<double>(rows) / height) * std::ceil(static_cast<double>(cols) / width);
  };
  const double tiles = pieces(pair.gemm.m, pair.gemm.n, knobs.tile_m, knobs.tile_n);
  const double sent = pieces(pair.rows, pair.cols, knobs.comm_tile_m > 0 ? knobs.comm_tile_m : knobs.tile_m,
                             knobs.comm_tile_n > 0 ? knobs.comm_tile_n : knobs.tile_n);
  if (pair.gpus * 2 * (tiles + sent * pair.gpus) <= kMaxOperations) return;
  throw UserError(fmt::format(
      "tile, comm_tile: {:.0f} tiles per GPU and {:.0f} pieces for each of {} peers are too many to "
      "schedule (over {:.0f} tile operations); use larger ones",
      tiles, sent, pair.gpus - 1, kMaxOperations));
}

Schedule in_turn(const GemmBeside& pair, const Machine& machine, const GemmKnobs& knobs) {
  return build_beside_library(pair, machine, knobs, false);
}

Schedule on_two_streams(const GemmBeside& pair, const Machine& machine, const GemmKnobs& knobs) {
  return build_beside_library(pair, machine, knobs, true);
}

using Builder = Schedule (*)(const GemmBeside&, const Machine&, const GemmKnobs&);

template <Builder build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const GemmBeside pair = pair_of(problem);
  const GemmKnobs knobs = gemm_knobs_of(values);
  check_dtype(pair.gemm.dtype, machine);
  check(knobs, machine.gpu);
  if (build == build_beside_copy_engine && pair.sums()) {
    throw UserError(fmt::format("collective = {}: copy engines do not add; pattern copy-engine runs {} or {}",
                                kBesideNames[static_cast<std::size_t>(pair.collective)],
                                kBesideNames[static_cast<std::size_t>(BesideCollective::all_gather)],
                                kBesideNames[static_cast<std::size_t>(BesideCollective::all_to_all)]));
  }
  if (!pair.gathers() && pair.rows < pair.gpus) {
    throw UserError(fmt::format("rows = {}: fewer than the {} GPUs that share them", pair.rows, pair.gpus));
  }
  const auto m = static_cast<double>(pair.gemm.m);
  const auto n = static_cast<double>(pair.gemm.n);
  const auto k = static_cast<double>(pair.gemm.k);
  // Of other collectives: what is sent, slots or what arrives, and the sum.
  const double blocks = pair.gathers() ? pair.gpus + 1 : 3;
  check_memory("this problem",
               (m * k + k * n + m * n) * bytes_of(pair.gemm.dtype) + block_bytes(pair) * blocks, machine.gpu);
  check_size(pair, knobs);
  return build(pair, machine, knobs);
}

Values library_choice(const Problem& problem, const Machine& machine) {
  return with_tile(resolved_knobs(problem, machine, {}), library_tile(pair_of(problem).gemm, machine).tile);
}

using Names = std::string_view;
constexpr std::array<Names, 12> kStreamKnobs{"tile",      "waves",      "pipeline", "comm_tile",
                                             "gemm_cus",  "comm_cus",   "group_m",  "xcd_remap",
                                             "xcd_chunk", "peer_order", "lock",     "launch"};
constexpr std::array<Names, 9> kCopyEngineKnobs{"tile",      "waves",     "pipeline",   "gemm_cus", "group_m",
                                                "xcd_remap", "xcd_chunk", "peer_order", "lock"};
constexpr std::array<Names, 10> kQueueKnobs{"tile",     "waves",   "pipeline",   "comm_tile", "gemm_cus",
                                            "comm_cus", "group_m", "peer_order", "lock",      "launch"};

const std::array<Pattern, 5> kPatterns{{
    {.name = "library",
     .summary = "the vendor's GEMM, then the collective of its library",
     .build = build_checked<in_turn>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "library-streams",
     .summary = "the same two on two streams, the collective posted first",
     .build = build_checked<on_two_streams>,
     .vendor = true,
     .own_choice = library_choice},
    {.name = "streams",
     .summary = "a GEMM kernel and a kernel of the collective on two streams, each with its own workgroups",
     .knobs = kStreamKnobs,
     .build = build_checked<build_beside_streams>,
     .roles = Roles::in_two_kernels},
    {.name = "copy-engine",
     .summary = "a GEMM kernel on all compute units, and copy engines send beside it",
     .knobs = kCopyEngineKnobs,
     .build = build_checked<build_beside_copy_engine>},
    {.name = "work-queues",
     .summary =
         "one kernel; workgroups draw tiles and pieces from two queues and help out where work is left",
     .knobs = kQueueKnobs,
     .build = build_checked<build_beside_queues>,
     .roles = Roles::in_one_kernel},
}};

Work work(const Problem& problem) {
  const GemmBeside pair = pair_of(problem);
  return {.flops = 2.0 * static_cast<double>(pair.gemm.m) * static_cast<double>(pair.gemm.n) *
                   static_cast<double>(pair.gemm.k) * pair.gpus,
          .peers = pair.gpus - 1};
}

std::string size_text(const Problem& problem) {
  constexpr std::array<std::string_view, 4> kDone{"gathered", "reduced and scattered", "all-reduced",
                                                  "exchanged"};
  return fmt::format("{}x{}x{}, {}x{} {}, {}", problem["m"], problem["n"], problem["k"], problem["rows"],
                     problem["cols"], kDone[static_cast<std::size_t>(problem["collective"])],
                     name_of(static_cast<DType>(problem["dtype"])));
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values knobs(kKnobs);
  assume(knobs, default_gemm_knobs(machine, static_cast<DType>(problem["dtype"])));
  return knobs;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space = gemm_space(pattern, pair_of(problem).gemm, problem.gpus(), machine, Values(kKnobs), pins);
  space.base = space.base.with(pins);
  return space;
}

// Where workgroups of the other role help with tiles, the tiles of one role are no chain.
double bound_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                const Values& values) {
  GemmKnobs knobs = gemm_knobs_of(values);
  if (pattern.roles == Roles::in_one_kernel && knobs.gemm_cus > 0) {
    knobs.gemm_cus = std::min(machine.gpu.cu_count(), knobs.gemm_cus + std::max(knobs.comm_cus, 0));
    if (knobs.comm_cus == 0) knobs.gemm_cus = machine.gpu.cu_count();
    knobs.comm_cus = 0;
  }
  return gemm_bound_ns(pattern, pair_of(problem).gemm, machine, knobs);
}

// Reads a row of gemm_beside_all_gather.py: the whole program on the host's clock.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  const Workload& workload = gemm_beside_collective();
  if (form_of_program(line, workload) == "streams") return run_of_program(line, workload, "library-streams");
  return library_program(line, workload);
}

}  // namespace

const Workload& gemm_beside_collective() {
  static const Workload workload{
      .name = "gemm-beside-collective",
      .title = "GEMM beside a collective",
      .summary = "C = A·B on every GPU, and a collective of other data beside it",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .left_out = left_out_cus,
      .space = space,
      .bound_ns = bound_ns,
      .library_call = library_call,
      .step_rows = "m",
      .timed_by_host = true,
      .computes_and_sends = true,
      .former_name = "gemm-beside-all-gather",
  };
  return workload;
}

}  // namespace tritax

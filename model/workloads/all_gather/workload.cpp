#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_collectives.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/all_gather/workload.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxPosted = std::int64_t{1} << 30;

AllGather all_gather_of(const Problem& problem) {
  return {problem["rows"], problem["cols"], static_cast<DType>(problem["dtype"]), problem.gpus(),
          problem["posted_bytes_per_peer"]};
}

double shard_bytes(const AllGather& gather) {
  return static_cast<double>(gather.rows) * static_cast<double>(gather.cols) * bytes_of(gather.dtype);
}

// Own data and one slot per rank.
void check_memory_of(const AllGather& gather, const Gpu& gpu) {
  check_memory("this scenario", shard_bytes(gather) * (gather.gpus + 1), gpu);
}

// Throws UserError for more tiles than a schedule can reasonably hold.
void check_tiles(const AllGather& gather, const GemmKnobs& knobs) {
  constexpr std::int64_t kMaxTiles = 1 << 18;  // of all ranks; each tile is one operation per rank
  const std::int64_t tile_rows = knobs.comm_tile_m > 0 ? knobs.comm_tile_m : kAllGatherTile;
  const std::int64_t tile_cols = knobs.comm_tile_n > 0 ? knobs.comm_tile_n : kAllGatherTile;
  const std::int64_t tiles =
      (gather.rows + tile_rows - 1) / tile_rows * ((gather.cols + tile_cols - 1) / tile_cols);
  if (tiles * gather.gpus <= kMaxTiles) return;
  throw UserError(
      fmt::format("{}x{} tiles cut the shard into {} pieces, too many to schedule; use a larger "
                  "knobs.comm_tile",
                  tile_rows, tile_cols, tiles));
}

// Throws UserError for posted bytes where the machine file has no measurement to compare with.
void check_posts(const AllGather& gather, const Machine& machine) {
  if (gather.posted_bytes_per_peer == 0 || machine.gpu.post_ns > 0) return;
  throw UserError(
      fmt::format("posted_bytes_per_peer needs gpu.post_time, which machine {} does "
                  "not give; leave the key out, or add the parameter",
                  machine.name));
}

Schedule build_library(const Problem& problem, const Machine& machine, const Values& values) {
  const AllGather gather = all_gather_of(problem);
  if (gather.posted_bytes_per_peer > 0) {
    throw UserError(
        "posted_bytes_per_peer and the library's kernel; what that posts is part of the machine "
        "(library.channel_bandwidth)");
  }
  check_memory_of(gather, machine.gpu);
  return library_all_gather_schedule(gather, machine, values[kListsKnob] != 0);
}

Schedule build_push(const Problem& problem, const Machine& machine, const Values& values) {
  const AllGather gather = all_gather_of(problem);
  const GemmKnobs knobs = gemm_knobs_of(values);
  if (knobs.comm_cus == 0)
    throw UserError("an all-gather needs knobs.comm_cus, the number of its workgroups");
  check_cus(knobs.comm_cus, "comm_cus", machine.gpu);
  check_memory_of(gather, machine.gpu);
  check_tiles(gather, knobs);
  check_posts(gather, machine);
  const bool multimem = values["through"] != 0;
  if (multimem) require_multicast(machine, gather.gpus, "through: multimem", "use peer-by-peer");
  return all_gather_schedule(gather, knobs, multimem);
}

constexpr std::array<std::string_view, 1> kLibraryKnobs{kListsKnob};
constexpr std::array<std::string_view, 4> kPushKnobs{"comm_tile", "comm_cus", "peer_order", "through"};

const std::array<Pattern, 2> kPatterns{{
    {.name = "library",
     .summary = "the all-gather of the vendor's collective library",
     .knobs = kLibraryKnobs,
     .build = build_library,
     .vendor = true},
    {.name = "push",
     .summary = "persistent workgroups load tiles of their shard and store them to all ranks",
     .knobs = kPushKnobs,
     .build = build_push},
}};

const std::array<Spec, 5> kFields{{
    size_field("rows", "--rows", "rows of one rank's shard"),
    size_field("cols", "--cols", "columns of the shard"),
    dtype_field(DType::fp16, "element type"),
    gpus_field(2),
    {.name = "posted_bytes_per_peer",
     .help = "bytes that a workgroup stores to each peer before it waits for its next load (default: as "
             "when the machine's rate of remote stores was measured)",
     .kind = ValueKind::bytes,
     .high = kMaxPosted},
}};

const std::array<Spec, 9> kKnobs{{gemm_knob("comm_tile"), gemm_knob("comm_cus"), gemm_knob("peer_order"),
                                  gather_way_knob(), lists_knob(), form_knob(), call_knob(), kernels_knob(),
                                  processes_knob()}};

Work work(const Problem& problem) {
  const AllGather gather = all_gather_of(problem);
  return {.bytes_per_gpu = shard_bytes(gather) * (gather.gpus - 1), .peers = gather.gpus - 1};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{}x{} {}", problem["rows"], problem["cols"],
                     name_of(static_cast<DType>(problem["dtype"])));
}

// Default: every rank first stores to the next rank.
Values default_knobs(const Problem&, const Machine&) {
  Values knobs(kKnobs);
  knobs.assume("peer_order", static_cast<std::int64_t>(PeerOrder::rotated));
  return knobs;
}

// Workgroups from a few to one per compute unit, crossed with the orders of peers.
KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  constexpr std::array<std::int32_t, 8> kWorkgroups{8, 16, 32, 48, 64, 96, 128, 256};
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  if (!pattern.uses("comm_cus")) return space;
  const std::int32_t cus = machine.gpu.cu_count();
  if (!pins.given("comm_cus")) {
    Axis& units = space.axes.emplace_back(column_axis("comm_cus", {cus}));
    for (const std::int32_t count : kWorkgroups) {
      if (count < cus) units.values.insert(units.values.end() - 1, column_value("comm_cus", count));
    }
    units.near = Axis::Near::next;
    units.start = units.values.size() - 1;
    for (std::size_t i = 0; i < units.values.size(); ++i) units.coarse.push_back(i);
  }
  if (has_multicast(machine, problem.gpus()) && !pins.given("through")) {
    space.axes.push_back(column_axis("through", {0, 1}));
    space.axes.back().coarse = {0, 1};
  }
  if (!pins.given("peer_order")) {
    space.axes.push_back(column_axis("peer_order", {static_cast<std::int64_t>(PeerOrder::rotated),
                                                    static_cast<std::int64_t>(PeerOrder::fixed)}));
  }
  return space;
}

// Reads a row of library_microbench.py with an all-gather.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  constexpr std::int64_t cols = 256;
  constexpr std::int64_t row_bytes = 2 * cols;
  const auto form = line.has("what") ? form_of_call(line, "all_gather") : std::nullopt;
  if (!form) return std::nullopt;
  const std::int64_t bytes = line.integer("bytes_per_rank", row_bytes, row_bytes * kMaxSize);
  if (bytes % row_bytes != 0) line.refuse("bytes_per_rank", fmt::format("a multiple of {}", row_bytes));
  LibraryCall call;
  call.form = *form;
  call.problem = problem_of(all_gather());
  call.problem.values.give("rows", bytes / row_bytes);
  call.problem.values.give("cols", cols);
  call.problem.values.give("dtype", static_cast<std::int64_t>(DType::fp16));
  call.problem.values.give("gpus", line.integer("gpus", 2, kMaxGpus));
  call.pattern = "library";
  call.time_column = "kernel_us";
  return call;
}

}  // namespace

const Workload& all_gather() {
  static const Workload workload{
      .name = "all-gather",
      .title = "All-gather",
      .summary = "every GPU sends its shard to all GPUs",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .usual_pattern = "push",
      .library_key = "library",
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .library_call = library_call,
      .step_rows = "rows",
      .message = Message::matrix_a_gpu,
      .block = BlockRole::gathered_rows,
      .traced = TracedForm{.collective = TracedCollective::all_gather},
  };
  return workload;
}

}  // namespace tritax

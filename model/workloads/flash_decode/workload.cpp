#include "model/workloads/flash_decode/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/usual_first.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/flash_decode/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxBatch = 1024;
constexpr std::int64_t kMaxTokens = 65536;                // batch × q_heads
constexpr std::int64_t kMaxRows = std::int64_t{1} << 30;  // of the cache of a GPU
constexpr std::int64_t kMaxColumns = std::int64_t{1} << 20;
constexpr std::int64_t kMaxSplits = 1024;
constexpr std::int64_t kMaxBlock = 512;
constexpr std::int64_t kMaxSteps = 64;
// Splits that a search tries at first; 32 is the value of ROCm/iris.
constexpr std::array<std::int64_t, 8> kSplits{1, 2, 4, 8, 16, 32, 64, 128};
constexpr std::int64_t kUsualSplits = 32;

const std::array<Spec, 7> kFields{{
    {.name = "kv_length",
     .help = "keys and values per sequence and GPU",
     .high = kMaxSize,
     .required = true,
     .varies_by_doubling = true},
    {.name = "batch", .help = "sequences, each with one new token", .high = kMaxBatch, .usual = {1}},
    q_heads_field(96),
    kv_heads_field(),
    head_dim_field(),
    dtype_field(DType::fp16, "element type of queries, keys, values and results"),
    gpus_field(),
}};

constexpr std::array<std::string_view, 2> kSyncNames{"flags", "hosts"};
constexpr std::array<std::string_view, 2> kFlagNames{"per-head", "per-source"};

const std::array<Spec, 15> kKnobs{{
    {.name = "splits",
     .help = "parts of a GPU's keys, one workgroup each",
     .high = kMaxSplits,
     .usual = {kUsualSplits},
     .varies_by_doubling = true,
     .shown = "{} splits"},
    {.name = "block",
     .help = "keys per attention step",
     .low = kTileStep,
     .high = kMaxBlock,
     .usual = {64},
     .varies_by_doubling = true,
     .shown = "blocks of {} keys"},
    {.name = "waves",
     .help = "waves per attention workgroup",
     .high = kMaxWaves,
     .usual = {4},
     .varies_by_doubling = true,
     .shown = "{} waves",
     .not_shown = 4},
    gemm_knob("pipeline"),
    gemm_knob("lock"),
    gemm_knob("launch"),
    call_knob(),
    {.name = "steps",
     .help = "decode steps in sequence; the time is for all of them",
     .high = kMaxSteps,
     .usual = {1},
     .shown = "{} steps",
     .not_shown = 1},
    form_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
    {.name = "sync",
     .help = "what separates the own all-gather from the kernels around it: its flags, or hosts that meet",
     .kind = ValueKind::name,
     .names = kSyncNames,
     .value_if_column_missing = 1,
     .shown = "{} around the push",
     .not_shown = 0},
    {.name = "staged",
     .help = "a framework copies the partials to a symmetric buffer before the push, and out of it behind",
     .kind = ValueKind::boolean,
     .value_if_column_missing = 0,
     .shown = "staged",
     .not_shown = 0},
    {.name = "flags",
     .help = "a flag for every head, or a counter for every source to which all its heads add",
     .kind = ValueKind::name,
     .names = kFlagNames,
     .value_if_column_missing = 0,
     .shown = "flags {}",
     .not_shown = 0},
}};

using Names = std::string_view;
constexpr std::array<Names, 10> kUnfusedKnobs{"splits", "block",   "waves", "pipeline", "lock",
                                              "launch", "call_us", "steps", "sync",     "staged"};
constexpr std::array<Names, 8> kStreamKnobs{"splits", "block",  "waves",   "pipeline",
                                            "lock",   "launch", "call_us", "steps"};
constexpr std::array<Names, 9> kFusedKnobs{"splits", "block",   "waves", "pipeline", "lock",
                                           "launch", "call_us", "steps", "flags"};
constexpr std::array<Names, 7> kLibraryKnobs{"splits", "block",   "waves", "pipeline",
                                             "form",   "call_us", "steps"};

using Build = Schedule (*)(const FlashDecode&, const Machine&, const DecodeKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  const FlashDecode decode = flash_decode_of(problem);
  return build(decode, machine, decode_knobs_of(values, decode));
}

const std::array<Pattern, 4> kPatterns{{
    {.name = "library",
     .summary = "four launches: split attention, combine, the library's all-gather, merge",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_decode_library>,
     .calls_itself = true},
    {.name = "unfused",
     .summary = "the same with an own all-gather that waits for all peers",
     .knobs = kUnfusedKnobs,
     .build = build_checked<build_decode_unfused>,
     .calls_itself = true},
    {.name = "fused-wait",
     .summary = "an own all-gather that sets one flag per source; the merge waits for the flags",
     .knobs = kStreamKnobs,
     .build = build_checked<build_decode_fused_wait>,
     .calls_itself = true},
    {.name = "fully-fused",
     .summary = "three launches: the combine pushes every head to all GPUs, and the merge waits",
     .knobs = kFusedKnobs,
     .build = build_checked<build_decode_fully_fused>,
     .calls_itself = true},
}};

void refuse(const FieldPlace& place, std::string_view field, const std::string& what) {
  throw UserError(fmt::format("{}: {}", place(field), what));
}

void complete(Problem& problem, const FieldPlace& place) {
  complete_kv_heads(problem, place);
  const std::int64_t heads = problem["q_heads"];
  const std::int64_t kv_heads = problem["kv_heads"];
  if (problem["batch"] * heads > kMaxTokens) {
    refuse(place, "batch",
           fmt::format("batch = {} times q_heads = {} are more than {} heads in all", problem["batch"], heads,
                       kMaxTokens));
  }
  if (problem["batch"] * problem["kv_length"] > kMaxRows) {
    refuse(place, "kv_length",
           fmt::format("batch = {} times kv_length = {} are more than {} keys per GPU", problem["batch"],
                       problem["kv_length"], kMaxRows));
  }
  if (kv_heads * problem["head_dim"] > kMaxColumns) {
    refuse(place, "kv_heads",
           fmt::format("kv_heads = {} times head_dim = {} are more than {} columns", kv_heads,
                       problem["head_dim"], kMaxColumns));
  }
}

Work work(const Problem& problem) {
  const FlashDecode decode = flash_decode_of(problem);
  return {.flops = 4.0 * static_cast<double>(decode.batch * decode.heads * decode.depth) *
                   static_cast<double>(decode.keys) * decode.gpus};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{}x{}/{} heads of {} {}, {} keys per GPU", problem["batch"], problem["q_heads"],
                     problem["kv_heads"], problem["head_dim"], name_of(static_cast<DType>(problem["dtype"])),
                     problem["kv_length"]);
}

bool fits(const FlashDecode& decode, const Values& values, const Gpu& gpu) {
  try {
    decode_resources(gpu, decode.dtype, decode_knobs_of(values, decode).tile);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// The largest number of keys per block that fits.
Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const FlashDecode decode = flash_decode_of(problem);
  for (std::int64_t keys = 64; keys > kTileStep && !fits(decode, values, machine.gpu);) {
    values.assume("block", keys /= 2);
  }
  return values;
}

// Splits have the largest effect: all are tried at first. Other knobs are tried around the best splits.
KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  Axis splits = column_axis("splits", {space.base["splits"]});
  if (!pins.given("splits")) {
    splits.values.clear();
    for (const std::int64_t count : kSplits) {
      if (count > 1 && count > problem["kv_length"]) break;
      if (count <= kUsualSplits) splits.start = splits.values.size();
      splits.coarse.push_back(splits.values.size());
      splits.values.push_back(column_value("splits", count));
    }
    splits.near = Axis::Near::next;
    splits.travels = true;
  }
  space.axes.push_back(std::move(splits));
  Axis blocks = usual_first(pattern, space.base, "block", {16, 32, 64, 128, 256});
  blocks.relative = !pins.given("block");
  if (blocks.relative) {
    for (AxisValue& value : blocks.values) {
      value.apply = [set = value.apply, decode = flash_decode_of(problem), gpu = machine.gpu](Values& knobs) {
        return set(knobs) && fits(decode, knobs, gpu);
      };
    }
  }
  space.axes.push_back(std::move(blocks));
  space.axes.push_back(usual_first(pattern, space.base, "waves", {1, 2, 4, 8}));
  space.axes.push_back(usual_first(pattern, space.base, "pipeline", {0, 1}));
  space.axes.push_back(usual_first(pattern, space.base, "lock", {0, 1, 2}));
  space.axes.push_back(usual_first(pattern, space.base, "launch", {0, 1}));
  return space;
}

// Keys and values come from memory once in every case.
double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values& values) {
  const FlashDecode decode = flash_decode_of(problem);
  decode_resources(machine.gpu, decode.dtype,
                   decode_knobs_of(values, decode).tile);  // throws where the tile does not fit
  const double bytes = 2.0 * static_cast<double>(decode.batch * decode.keys) *
                       static_cast<double>(decode.kv_heads * decode.depth) * bytes_of(decode.dtype);
  return machine.host.launch_latency_ns + bytes / machine.gpu.hbm_gb_per_s;
}

}  // namespace

const Workload& flash_decode() {
  static const Workload workload{
      .name = "flash-decode",
      .title = "Flash decode",
      .summary = "one token per sequence attends to keys that are sharded along the sequence over the GPUs",
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
      .step_rows = "batch",
      .timed_by_host = true,
      .computing = {"attention", "matrix and vector work"},
  };
  return workload;
}

}  // namespace tritax

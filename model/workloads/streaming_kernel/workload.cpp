// Memory-bound kernels on one GPU: rows in, rows out.
//
//   add-norm  z = dropout(x) + residual, y = norm(z)    reads x and residual, writes z and y
//   rotary    y = x turned by a table                   reads x and, for every head, the table; writes y
//
//   separate    one kernel per step, as PyTorch runs it eagerly: intermediates are written and read again
//   fused       one kernel: one workgroup per strip of rows
//   persistent  the same with as many workgroups as are resident together
//
// streaming.hpp has the steps. Workgroup w runs on die w mod X. Kernels behind the first give the tile of
// workgroup w + s to workgroup w, with s = `shift` times the number of earlier kernels. With s = 0, or a
// multiple of X, a strip is read on the die that wrote it, and may still be in that die's L2. Otherwise
// another die reads it from the last-level cache.
#include "model/workloads/streaming_kernel/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/streaming_kernel/streaming.hpp"

namespace tritax {

namespace {

constexpr std::array<std::string_view, 2> kStreamingOperationNames{"add-norm", "rotary"};
enum class HeadPlaces : std::uint8_t { together, apart };
constexpr std::array<std::string_view, 2> kHeadPlaceNames{"together", "apart"};
constexpr std::int32_t kMostRowsApart = 65536;
constexpr std::int64_t kMostStrip = 1024;

constexpr std::array<std::string_view, 2> kNormDtypeNames{"same", "fp32"};

const std::array<Spec, 7> kFields{{
    size_field("rows", "--rows", "rows of every matrix: tokens of all sequences"),
    size_field("cols", "--cols", "columns per row"),
    {.name = "operation",
     .help = "add-norm (residual and layer norm, with dropout or without) or rotary (a position embedding)",
     .kind = ValueKind::name,
     .names = kStreamingOperationNames},
    dtype_field(DType::bf16, "element type"),
    {.name = "dropout", .help = "drop random elements of x first, for add-norm", .kind = ValueKind::boolean},
    {.name = "norm_dtype",
     .help =
         "element type of the norm's weights and result, for add-norm: that of x (same), or fp32, the usual "
         "one of PyTorch's modules",
     .kind = ValueKind::name,
     .names = kNormDtypeNames},
    {.name = "training",
     .help = "keep the mask of dropout for the backward pass",
     .kind = ValueKind::boolean},
}};

const std::array<Spec, 8> kKnobs{{
    {.name = "strip",
     .help = "rows per workgroup and step",
     .high = kMostStrip,
     .usual = {4},
     .varies_by_doubling = true,
     .shown = "strips of {}"},
    {.name = "shift",
     .help = "shift of later kernels in workgroups; a multiple of the XCDs keeps a strip on its XCD",
     .low = 0,
     .high = kMaxSize,
     .shown = "shifted by {}",
     .not_shown = 0},
    {.name = "heads",
     .help =
         "heads of a strip, for rotary: all in one workgroup (together), or one workgroup per head (apart); "
         "they share a table",
     .kind = ValueKind::name,
     .names = kHeadPlaceNames,
     .shown = "heads {}",
     .not_shown = 0},
    {.name = "random",
     .help =
         "random numbers kept of a call of the generator, which makes four: four (cuRAND, rocRAND), or one "
         "(tl.rand of Triton, torch.compile)",
     .kind = ValueKind::name,
     .names = kRandomNumbersNames,
     .shown = "{} number of a call",
     .not_shown = 0},
    {.name = "arithmetic",
     .help = "in fp32 between load and store, or each step rounded to the element type (rounded)",
     .kind = ValueKind::name,
     .names = kRowArithmeticNames,
     .shown = "{} arithmetic",
     .not_shown = 0},
    gemm_knob("launch"),
    call_knob(),
    kernels_knob(),
}};

Streaming streaming_of(const Problem& problem, const Values& values) {
  const auto small = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {static_cast<StreamingOperation>(problem["operation"]),
          small(problem["rows"]),
          small(problem["cols"]),
          static_cast<DType>(problem["dtype"]),
          small(values["strip"]),
          small(values["shift"]),
          static_cast<HeadPlaces>(values["heads"]) == HeadPlaces::apart,
          static_cast<LaunchMode>(values["launch"]) == LaunchMode::graph,
          static_cast<KernelClass>(values[kKernelsKnob]) == KernelClass::triton,
          problem["dropout"] != 0,
          problem["norm_dtype"] != 0 && static_cast<DType>(problem["dtype"]) != DType::fp32,
          problem["training"] != 0 && problem["dropout"] != 0,
          static_cast<RandomNumbers>(values["random"]),
          static_cast<RowArithmetic>(values["arithmetic"])};
}

Schedule build_separate_streams(const Problem& problem, const Machine& machine, const Values& values) {
  return separate_streams(streaming_of(problem, values), machine);
}

template <bool persistent>
Schedule build_fused_streams(const Problem& problem, const Machine& machine, const Values& values) {
  return fused_streams(streaming_of(problem, values), machine, persistent);
}

constexpr std::array<std::string_view, 4> kSeparateKnobs{"strip", "shift", "heads", "launch"};
constexpr std::array<std::string_view, 5> kFusedKnobs{"strip", "heads", "random", "arithmetic", "launch"};

const std::array<Pattern, 3> kPatterns{{
    {.name = "separate",
     .summary = "one kernel per step; each writes the next one's input",
     .knobs = kSeparateKnobs,
     .build = build_separate_streams},
    {.name = "fused",
     .summary = "one kernel, one workgroup per strip of rows",
     .knobs = kFusedKnobs,
     .build = build_fused_streams<false>},
    {.name = "persistent",
     .summary = "one kernel with as many workgroups as are resident at once",
     .knobs = kFusedKnobs,
     .build = build_fused_streams<true>},
}};

double bytes_of_matrix(const Problem& problem) {
  return static_cast<double>(problem["rows"] * problem["cols"]) *
         bytes_of(static_cast<DType>(problem["dtype"]));
}

// Bytes that must be read and written, once each; a table, which is narrower, does not count.
Work work(const Problem& problem) {
  const bool rotates = static_cast<StreamingOperation>(problem["operation"]) == StreamingOperation::rotary;
  const double elements = static_cast<double>(problem["rows"] * problem["cols"]);
  const double wide = problem["norm_dtype"] != 0 ? 4.0 - bytes_of(static_cast<DType>(problem["dtype"])) : 0;
  const double mask = problem["training"] != 0 && problem["dropout"] != 0 ? 1 : 0;
  const double bytes =
      (rotates ? 2 : 4) * bytes_of_matrix(problem) + (rotates ? 0 : elements * (wide + mask));
  return {.bytes_per_gpu = bytes, .peers = 1};
}

void complete(Problem& problem, const FieldPlace& place) {
  const bool rotates = static_cast<StreamingOperation>(problem["operation"]) == StreamingOperation::rotary;
  if (rotates && (problem["dropout"] != 0 || problem["norm_dtype"] != 0)) {
    throw UserError(fmt::format("{}: rotary has no dropout and no norm; operation = add-norm has",
                                place(problem["dropout"] != 0 ? "dropout" : "norm_dtype")));
  }
  if (problem["training"] != 0 && problem["dropout"] == 0) {
    throw UserError(
        fmt::format("{}: there is no mask to keep without dropout; give dropout too", place("training")));
  }
}

std::string size_text(const Problem& problem) {
  return fmt::format("{}{} of {}x{} {}{}{}", problem["dropout"] != 0 ? "dropout-" : "",
                     kStreamingOperationNames[static_cast<std::size_t>(problem["operation"])],
                     problem["rows"], problem["cols"], name_of(static_cast<DType>(problem["dtype"])),
                     problem["norm_dtype"] != 0 ? ", norm in fp32" : "",
                     problem["training"] != 0 ? ", training" : "");
}

bool fits_streaming(const Problem& problem, const Values& values, const Gpu& gpu) {
  try {
    streaming_resources(streaming_of(problem, values), gpu);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  for (std::int64_t strip = values["strip"]; strip > 1 && !fits_streaming(problem, values, machine.gpu);) {
    values.assume("strip", strip /= 2);
  }
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const auto add = [&](std::string_view knob, std::initializer_list<std::int64_t> others) {
    if (!pattern.uses(knob) || pins.given(knob)) return;
    std::vector<std::int64_t> values{space.base[knob]};
    for (const std::int64_t other : others) {
      Values tried = space.base;
      tried.assume(knob, other);
      if (other != values.front() && fits_streaming(problem, tried, machine.gpu)) values.push_back(other);
    }
    space.axes.push_back(column_axis(knob, values));
  };
  add("strip", {1, 2, 4, 8, 16});
  add("launch", {0, 1});
  if (static_cast<StreamingOperation>(problem["operation"]) == StreamingOperation::rotary) {
    add("heads", {0, 1});
  }
  return space;
}

// The inputs come from memory once; written data may stay in a cache.
double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values& values) {
  streaming_resources(streaming_of(problem, values), machine.gpu);  // throws where the rows do not fit
  const bool rotates = static_cast<StreamingOperation>(problem["operation"]) == StreamingOperation::rotary;
  return machine.host.launch_latency_ns +
         (rotates ? 1 : 2) * bytes_of_matrix(problem) / machine.gpu.hbm_gb_per_s;
}

// Rows of backend_hip/baselines/streaming.py with replayed graphs.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  if (!is_of_program(line, streaming_kernel(), true)) return std::nullopt;
  if (kProgramLaunches[line.choice("launch", kProgramLaunches)] != "graph") return std::nullopt;
  constexpr std::array<std::string_view, 4> kForms{"eager", "compiled", "one", "four"};
  const std::string_view form = kForms[line.choice("form", kForms)];
  LibraryCall call;
  call.form = LibraryForm::kernel;
  call.problem = problem_of_row(line, streaming_kernel());
  call.pattern = form == "eager" ? "separate" : "fused";
  call.knobs = Values(kKnobs);
  // A workgroup a row; several where a schedule of so many would be large, which changes little then. The
  // kernel of rotary asks for all heads of a row at once: one head of as many rows moves as much at once.
  const Streaming rows = streaming_of(call.problem, call.knobs);
  if (rows.rotates()) call.knobs.give("heads", static_cast<std::int64_t>(HeadPlaces::apart));
  const std::int32_t few = rows.rows > kMostRowsApart ? 4 : 1;
  call.knobs.give("strip", std::min(rows.rows, few * rows.pieces()));
  call.knobs.give("launch", static_cast<std::int64_t>(LaunchMode::graph));
  call.knobs.give(kKernelsKnob, static_cast<std::int64_t>(KernelClass::triton));
  const RandomNumbers numbers = form == "four" ? RandomNumbers::four : RandomNumbers::one;
  if (form != "eager") call.knobs.give("random", static_cast<std::int64_t>(numbers));
  call.time_column = "device_us";
  return call;
}

}  // namespace

const Workload& streaming_kernel() {
  static const Workload workload{
      .name = "streaming-kernel",
      .title = "Streaming kernel",
      .summary = "a kernel bound by memory: dropout, residual and norm, or rotary embedding",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "separate",
      .complete = complete,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .library_call = library_call,
      .back_to_back = true,
      .computing = {"arithmetic", "arithmetic"},
  };
  return workload;
}

}  // namespace tritax

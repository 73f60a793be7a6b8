// Memory-bound kernels on one GPU: rows in, rows out.
//
//   add-norm  z = dropout(x) + residual, y = norm(z)    reads x and residual, writes z and y
//   rotary    y = x turned by a table                   reads x and, for every head, the table; writes y
//
// Every operation here reads and writes the same data as the kernel, tile by tile. In place of the kernel's
// arithmetic on a row it adds or copies, so that the result can be checked: z = y = x + residual; y = x +
// table, for each head. The arithmetic costs time (vector_work.hpp); its results stand in.
//
//   separate    one kernel per step, as PyTorch runs it eagerly: intermediates are written and read again
//               add-norm: t = x, mask | z = t + residual | w = z | y = w     the first with dropout, the
//               third with a norm in fp32 rotary: h = half of x | t = x, h | a = x + table | b = t + table |
//               y = a + b
//   fused       one kernel: one workgroup per strip of rows
//   persistent  the same with as many workgroups as are resident together
//
// A training step writes the mask of dropout too, a byte per element, in one kernel or in the first of
// several.
//
// Workgroup w runs on die w mod X. Kernels behind the first give the tile of workgroup w + s to workgroup w,
// with s = `shift` times the number of earlier kernels. With s = 0, or a multiple of X, a strip is read on
// the die that wrote it, and may still be in that die's L2. Otherwise another die reads it from the
// last-level cache.
#include "model/workloads/streaming_kernel/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/streaming_kernel/vector_work.hpp"

namespace tritax {

namespace {

constexpr std::array<std::string_view, 2> kStreamingOperationNames{"add-norm", "rotary"};
enum class HeadPlaces : std::uint8_t { together, apart };
constexpr std::array<std::string_view, 2> kHeadPlaceNames{"together", "apart"};
constexpr std::int32_t kHeadColumns = 128;
constexpr std::int32_t kOtherRegisters = 32;  // addresses and sums, per thread
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

struct Streaming {
  StreamingOperation operation = StreamingOperation::add_norm;
  std::int32_t rows = 1, cols = 1;
  DType dtype = DType::bf16;
  std::int32_t strip = 4, shift = 0;
  bool apart = false;
  bool graph = false;
  bool compiled = false;  // by Triton
  bool dropout = false, wide_norm = false, keeps_mask = false;
  RandomNumbers random = RandomNumbers::four;
  RowArithmetic arithmetic = RowArithmetic::fp32;

  bool rotates() const { return operation == StreamingOperation::rotary; }
  std::int32_t strips() const { return ceil_div(rows, strip); }
  std::int32_t width() const { return rotates() ? std::min(cols, kHeadColumns) : cols; }
  std::int32_t pieces() const { return ceil_div(cols, width()); }  // per row
  bool splits_row() const { return rotates() && apart; }
  std::int32_t tiles() const { return strips() * (splits_row() ? pieces() : 1); }
  std::int32_t pieces_of_tile() const { return splits_row() ? 1 : pieces(); }
  DType norm_dtype() const { return wide_norm ? DType::fp32 : dtype; }
};

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

// Registers for the rows of a piece, in fp32.
Resources streaming_resources(const Streaming& streaming, const Gpu& gpu) {
  Resources resources = copy_resources();
  const double elements = static_cast<double>(streaming.strip) * streaming.width();
  const double registers = std::ceil(elements / resources.threads) + kOtherRegisters;
  const double most =
      std::min<double>(gpu.registers_per_thread_max, gpu.registers_per_cu / resources.threads);
  if (registers > most) {
    throw UserError(
        fmt::format("strip: {} rows of {} columns need {:.0f} registers per thread; {} has {:.0f}: use "
                    "fewer rows",
                    streaming.strip, streaming.width(), registers, gpu.name, most));
  }
  resources.registers_per_thread = static_cast<std::int32_t>(registers);
  return resources;
}

class StreamingDraft {
 public:
  StreamingDraft(std::string_view name, const Streaming& streaming, const Machine& machine)
      : streaming_(streaming),
        gpu_(machine.gpu),
        builder_(std::string(name), 1),
        resources_(streaming_resources(streaming, machine.gpu)),
        resident_(
            static_cast<std::int32_t>(machine.gpu.cu_count() * residents_at_most(machine.gpu, resources_))) {
    const double operations = 16.0 * streaming.strips() * streaming.pieces();
    if (operations > kMaxOperations) {
      throw UserError(fmt::format("strip: {} strips of {} pieces are too many to schedule; use higher ones",
                                  streaming.strips(), streaming.pieces()));
    }
    const double bytes = 7.0 * streaming.rows * streaming.cols * bytes_of(streaming.norm_dtype());
    check_memory("this operation", bytes, machine.gpu);
    x_ = add("x");
    other_ = streaming.rotates() ? add("table", streaming.dtype, streaming.width()) : add("residual");
    if (!streaming.rotates()) z_ = add("z");
    y_ = add("y", streaming.rotates() ? streaming.dtype : streaming.norm_dtype());
    if (streaming.keeps_mask) mask_ = add("mask", DType::fp8);
    builder_.input(builder_.whole(x_));
    builder_.input(builder_.whole(other_));
    builder_.result(y_);
  }

  Schedule separate() {
    streaming_.rotates() ? separate_rotary() : separate_norm();
    return finish();
  }

  Schedule fused(bool persistent) {
    workgroups_ = persistent ? std::min(streaming_.tiles(), resident_) : streaming_.tiles();
    expect_results(1);
    const double clk =
        padding() *
        fused_clk(gpu_, streaming_.rotates() ? StreamingOperation::rotary : StreamingOperation::add_norm,
                  {streaming_.dropout, streaming_.random, streaming_.arithmetic});
    add_kernel("fused", clk, {y_, z_, mask_}, [&](Rect rect) {
      if (streaming_.rotates()) return move(rect, x_, other_, {y_});
      move(rect, x_, other_, {z_, y_});
      if (mask_ >= 0) builder_.store(mask_, rect, 0);
    });
    return finish();
  }

 private:
  // Triton's blocks are powers of two: masked lanes compute too.
  double padding() const {
    if (!streaming_.compiled) return 1;
    return static_cast<double>(std::bit_ceil(static_cast<std::uint32_t>(streaming_.cols))) / streaming_.cols;
  }

  void separate_norm() {
    std::int16_t summand = x_;
    if (streaming_.dropout) {
      summand = add("t");
      add_kernel("dropout", framework_clk(gpu_, FrameworkStep::dropout), {summand, mask_}, [&](Rect rect) {
        move(rect, x_, -1, {summand});
        if (mask_ >= 0) builder_.store(mask_, rect, 0);
      });
    }
    add_kernel("add", 0, {z_}, [&](Rect rect) { move(rect, summand, other_, {z_}); });
    std::int16_t normed = z_;
    if (streaming_.wide_norm) {
      normed = add("w", DType::fp32);
      add_kernel("cast", framework_clk(gpu_, FrameworkStep::cast), {normed},
                 [&](Rect rect) { move(rect, z_, -1, {normed}); });
    }
    const FrameworkStep norm =
        streaming_.norm_dtype() == DType::fp32 ? FrameworkStep::norm_fp32 : FrameworkStep::norm;
    add_kernel("norm", framework_clk(gpu_, norm), {y_}, [&](Rect rect) { move(rect, normed, -1, {y_}); });
    expect_results(1);
  }

  void separate_rotary() {
    const std::int16_t half = add("half"), turned = add("turned"), a = add("a"), b = add("b");
    const auto first_half = [](Rect rect) {
      rect.cols = std::max(1, rect.cols / 2);
      return rect;
    };
    add_kernel("negate", framework_clk(gpu_, FrameworkStep::strided), {half},
               [&](Rect rect) { move(first_half(rect), x_, -1, {half}); });
    add_kernel("concatenate", framework_clk(gpu_, FrameworkStep::concatenate), {turned}, [&](Rect rect) {
      builder_.load(half, first_half(rect), 0);
      move(rect, x_, -1, {turned});
    });
    const double broadcast = framework_clk(gpu_, FrameworkStep::broadcast);
    add_kernel("cosine", broadcast, {a}, [&](Rect rect) { move(rect, x_, other_, {a}); });
    add_kernel("sine", broadcast, {b}, [&](Rect rect) { move(rect, turned, other_, {b}); });
    add_kernel("add", 0, {y_}, [&](Rect rect) { move(rect, a, b, {y_}); });
    expect_results(2);
  }

  std::int16_t add(const char* name, DType dtype, std::int32_t cols) {
    element_bytes_.push_back(bytes_of(dtype));
    return builder_.buffer(
        {name, dtype, streaming_.rows, cols, streaming_.strip, std::min(cols, streaming_.width())});
  }
  std::int16_t add(const char* name, DType dtype) { return add(name, dtype, streaming_.cols); }
  std::int16_t add(const char* name) { return add(name, streaming_.dtype); }

  // z and y are `times` the sum of x and the other operand.
  void expect_results(int times) {
    for (std::int32_t piece = 0; piece < (streaming_.rotates() ? streaming_.pieces() : 1); ++piece) {
      const std::int32_t col = piece * streaming_.width();
      const Rect rect{0, col, streaming_.rows, std::min(streaming_.width(), streaming_.cols - col)};
      const Region other{other_, 0, {0, 0, rect.rows, rect.cols}};
      for (const std::int16_t to : {z_, y_}) {
        for (int time = 0; to >= 0 && time < times; ++time) {
          builder_.expect_copy({to, 0, rect}, {x_, 0, rect}, time > 0);
          builder_.expect_copy({to, 0, rect}, other, true);
        }
      }
    }
  }

  // Reads `from`, adds `added` (for a table, the columns of its head), and writes to all of `to`.
  void move(Rect rect, std::int16_t from, std::int16_t added, std::initializer_list<std::int16_t> to) {
    Rect other = rect;
    if (streaming_.rotates() && added == other_) other.col = 0;
    builder_.together([&] {  // no load waits for another
      builder_.load(from, rect, 0);
      if (added >= 0) builder_.reduce(added, other, 0);
    });
    for (const std::int16_t buffer : to) builder_.store(buffer, rect, 0);
  }

  // `clk`: cycles of vector work per element of x; `stored`: the buffers that the kernel writes, -1 for none.
  template <typename Body>
  void add_kernel(std::string_view name, double clk, std::initializer_list<std::int16_t> stored, Body body) {
    Kernel kernel;
    kernel.name = std::string(name);
    kernel.resources = resources_;
    double bytes = 0;
    for (const std::int16_t buffer : stored) {
      if (buffer >= 0) bytes += element_bytes_[static_cast<std::size_t>(buffer)];
    }
    kernel.clk_per_stored_byte = clk / bytes;
    const std::int32_t shift = streaming_.shift * static_cast<std::int32_t>(kernels_.size());
    kernels_.push_back(builder_.kernel(std::move(kernel)));
    const std::int32_t tiles = streaming_.tiles();
    const std::int32_t workgroups = workgroups_ > 0 ? workgroups_ : tiles;
    for (std::int32_t p = 0; p < workgroups; ++p) {
      builder_.workgroup(kernels_.back());
      for (std::int32_t w = p; w < tiles; w += workgroups) {
        const std::int32_t tile = (w + shift) % tiles;
        const std::int32_t in_strip = tiles / streaming_.strips();
        const std::int32_t row = tile / in_strip * streaming_.strip;
        for (std::int32_t i = 0; i < streaming_.pieces_of_tile(); ++i) {
          const std::int32_t col = (tile % in_strip + i) * streaming_.width();
          body(Rect{row, col, std::min(streaming_.strip, streaming_.rows - row),
                    std::min(streaming_.width(), streaming_.cols - col)});
        }
      }
    }
  }

  Schedule finish() {
    Graph graph;
    for (const std::int32_t kernel : kernels_) {
      graph.push_back({kernel, 0});
      if (!streaming_.graph) builder_.launch(0, kernel);
    }
    if (streaming_.graph) builder_.graph_launch(0, std::move(graph));
    builder_.host(0, HostOpKind::device_synchronize);
    return builder_.finish();
  }

  const Streaming& streaming_;
  const Gpu& gpu_;
  ScheduleBuilder builder_;
  Resources resources_;
  std::int32_t resident_ = 1;
  std::int32_t workgroups_ = 0;  // 0: one per tile
  std::vector<std::int32_t> kernels_;
  std::vector<double> element_bytes_;  // by buffer
  std::int16_t x_ = -1, other_ = -1, z_ = -1, y_ = -1, mask_ = -1;
};

Schedule build_separate_streams(const Problem& problem, const Machine& machine, const Values& values) {
  const Streaming streaming = streaming_of(problem, values);
  return StreamingDraft("separate", streaming, machine).separate();
}

template <bool persistent>
Schedule build_fused_streams(const Problem& problem, const Machine& machine, const Values& values) {
  const Streaming streaming = streaming_of(problem, values);
  return StreamingDraft(persistent ? "persistent" : "fused", streaming, machine).fused(persistent);
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

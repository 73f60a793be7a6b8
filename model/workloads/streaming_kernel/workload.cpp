// Memory-bound kernels on one GPU: rows in, rows out.
//
//   add-norm  z = dropout(x) + residual, y = norm(z)    reads x and residual, writes z and y
//   rotary    y = x turned by a table                   reads x and, for every head, the table; writes y
//
// Moved bytes decide the cost. Every operation here reads and writes the same data as the kernel, tile by
// tile. In place of the kernel's arithmetic on a row it adds or copies, so that the result can be checked: z
// = y = x + residual; y = x + table, for each head. Statistics of a row, random numbers and rotations cost
// nothing.
//
//   separate    one kernel per step, as in an eager framework: intermediates are written and read again
//               add-norm: t = x | z = t + residual | y = z       rotary: t = x | y = t + table
//   fused       one kernel: one workgroup per strip of rows
//   persistent  the same with as many workgroups as are resident together
//
// Workgroup w runs on die w mod X. Kernels behind the first give the tile of workgroup w + s to workgroup w,
// with s = `shift` times the number of earlier kernels. With s = 0, or a multiple of X, a strip is read on
// the die that wrote it, and may still be in that die's L2. Otherwise another die reads it from the
// last-level cache.
#include "model/workloads/streaming_kernel/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/kernel_class.hpp"

namespace tritax {

namespace {

enum class StreamingOperation : std::uint8_t { add_norm, rotary };
constexpr std::array<std::string_view, 2> kStreamingOperationNames{"add-norm", "rotary"};
enum class HeadPlaces : std::uint8_t { together, apart };
constexpr std::array<std::string_view, 2> kHeadPlaceNames{"together", "apart"};
constexpr std::int32_t kHeadColumns = 128;
constexpr std::int32_t kOtherRegisters = 32;  // addresses and sums, per thread
constexpr std::int64_t kMostStrip = 1024;

const std::array<Spec, 4> kFields{{
    size_field("rows", "--rows", "rows of every matrix: tokens of all sequences"),
    size_field("cols", "--cols", "columns per row"),
    {.name = "operation",
     .help = "add-norm (dropout, residual and layer norm) or rotary (a position embedding)",
     .kind = ValueKind::name,
     .names = kStreamingOperationNames},
    dtype_field(DType::bf16, "element type"),
}};

const std::array<Spec, 6> kKnobs{{
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

  bool rotates() const { return operation == StreamingOperation::rotary; }
  std::int32_t strips() const { return ceil_div(rows, strip); }
  std::int32_t width() const { return rotates() ? std::min(cols, kHeadColumns) : cols; }
  std::int32_t pieces() const { return ceil_div(cols, width()); }  // per row
  bool splits_row() const { return rotates() && apart; }
  std::int32_t tiles() const { return strips() * (splits_row() ? pieces() : 1); }
  std::int32_t pieces_of_tile() const { return splits_row() ? 1 : pieces(); }
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
          static_cast<LaunchMode>(values["launch"]) == LaunchMode::graph};
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
        builder_(std::string(name), 1),
        resources_(streaming_resources(streaming, machine.gpu)),
        resident_(
            static_cast<std::int32_t>(machine.gpu.cu_count() * residents_at_most(machine.gpu, resources_))) {
    const double operations = 8.0 * streaming.strips() * streaming.pieces();
    if (operations > kMaxOperations) {
      throw UserError(fmt::format("strip: {} strips of {} pieces are too many to schedule; use higher ones",
                                  streaming.strips(), streaming.pieces()));
    }
    const double bytes = 5.0 * streaming.rows * streaming.cols * bytes_of(streaming.dtype);
    check_memory("this operation", bytes, machine.gpu);
    x_ = add("x", streaming.cols);
    other_ = streaming.rotates() ? add("table", streaming.width()) : add("residual", streaming.cols);
    if (!streaming.rotates()) z_ = add("z", streaming.cols);
    y_ = add("y", streaming.cols);
    builder_.input(builder_.whole(x_));
    builder_.input(builder_.whole(other_));
    builder_.result(y_);
    expect_results();
  }

  Schedule separate() {
    const std::int16_t t = add("t", streaming_.cols);
    add_kernel("copy", 0, [&](Rect rect) { move(rect, x_, -1, {t}); });
    if (streaming_.rotates()) {
      add_kernel("turn", streaming_.shift, [&](Rect rect) { move(rect, t, other_, {y_}); });
    } else {
      add_kernel("add", streaming_.shift, [&](Rect rect) { move(rect, t, other_, {z_}); });
      add_kernel("norm", 2 * streaming_.shift, [&](Rect rect) { move(rect, z_, -1, {y_}); });
    }
    return finish();
  }

  Schedule fused(bool persistent) {
    workgroups_ = persistent ? std::min(streaming_.tiles(), resident_) : streaming_.tiles();
    add_kernel("fused", 0, [&](Rect rect) {
      if (streaming_.rotates()) return move(rect, x_, other_, {y_});
      move(rect, x_, other_, {z_, y_});
    });
    return finish();
  }

 private:
  std::int16_t add(const char* name, std::int32_t cols) {
    return builder_.buffer({name, streaming_.dtype, streaming_.rows, cols, streaming_.strip,
                            std::min(cols, streaming_.width())});
  }

  void expect_results() {
    for (std::int32_t piece = 0; piece < (streaming_.rotates() ? streaming_.pieces() : 1); ++piece) {
      const std::int32_t col = piece * streaming_.width();
      const Rect rect{0, col, streaming_.rows, std::min(streaming_.width(), streaming_.cols - col)};
      const Region other{other_, 0, {0, 0, rect.rows, rect.cols}};
      for (const std::int16_t to : {z_, y_}) {
        if (to < 0) continue;
        builder_.expect_copy({to, 0, rect}, {x_, 0, rect});
        builder_.expect_copy({to, 0, rect}, other, true);
      }
    }
  }

  // Reads `from`, adds `added` (for a table, the columns of its head), and writes to all of `to`.
  void move(Rect rect, std::int16_t from, std::int16_t added, std::initializer_list<std::int16_t> to) {
    builder_.load(from, rect, 0);
    Rect other = rect;
    if (streaming_.rotates()) other.col = 0;
    if (added >= 0) builder_.reduce(added, other, 0);
    for (const std::int16_t buffer : to) builder_.store(buffer, rect, 0);
  }

  template <typename Body>
  void add_kernel(std::string_view name, std::int32_t shift, Body body) {
    Kernel kernel;
    kernel.name = std::string(name);
    kernel.resources = resources_;
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
  ScheduleBuilder builder_;
  Resources resources_;
  std::int32_t resident_ = 1;
  std::int32_t workgroups_ = 0;  // 0: one per tile
  std::vector<std::int32_t> kernels_;
  std::int16_t x_ = -1, other_ = -1, z_ = -1, y_ = -1;
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
constexpr std::array<std::string_view, 3> kFusedKnobs{"strip", "heads", "launch"};

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
  return {.bytes_per_gpu = (rotates ? 2 : 4) * bytes_of_matrix(problem), .peers = 1};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{} of {}x{} {}",
                     kStreamingOperationNames[static_cast<std::size_t>(problem["operation"])],
                     problem["rows"], problem["cols"], name_of(static_cast<DType>(problem["dtype"])));
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
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .back_to_back = true,
      .computing = {"arithmetic", "arithmetic"},
  };
  return workload;
}

}  // namespace tritax

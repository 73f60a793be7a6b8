#include "model/workloads/streaming_kernel/streaming.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kOtherRegisters = 32;  // addresses and sums, per thread

class StreamingDraft {
 public:
  StreamingDraft(std::string_view name, const Streaming& streaming, const Machine& machine, bool separate)
      : streaming_(streaming),
        gpu_(machine.gpu),
        builder_(std::string(name), 1),
        resources_(streaming_resources(streaming, machine.gpu)),
        resident_(
            static_cast<std::int32_t>(machine.gpu.cu_count() * residents_at_most(machine.gpu, resources_))) {
    const double operations =
        static_cast<double>(operations_of_tile(separate)) * streaming.strips() * streaming.pieces();
    if (operations > kMaxOperations) {
      throw UserError(fmt::format("strip: {} strips of {} pieces are too many to schedule; use higher ones",
                                  streaming.strips(), streaming.pieces()));
    }
    const double elements = static_cast<double>(streaming.rows) * streaming.cols;
    check_memory("this operation", elements * bytes_of_element(separate), machine.gpu);
    x_ = add("x");
    other_ = streaming.rotates() ? add("table", streaming.dtype, streaming.width()) : add("residual");
    if (!streaming.rotates()) z_ = add("z");
    y_ = add("y", streaming.rotates() ? streaming.dtype : streaming.norm_dtype());
    if (streaming.keeps_mask || (separate && streaming.dropout)) mask_ = add("mask", DType::fp8);
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
    const double clk = padding() * fused_clk(gpu_, streaming_.operation,
                                             {streaming_.dropout, streaming_.random, streaming_.arithmetic});
    add_kernel("fused", clk, {y_, z_, mask_}, [&](Rect rect) {
      if (streaming_.rotates()) return move(rect, x_, other_, {y_});
      move(rect, x_, other_, {z_, y_});
      if (mask_ >= 0) builder_.store(mask_, rect, 0);
    });
    return finish();
  }

 private:
  // As counted in the functions below.
  std::int64_t operations_of_tile(bool separate) const {
    if (!separate) return 5;
    return streaming_.rotates() ? 17 : 10;
  }
  double bytes_of_element(bool separate) const {
    const double e = bytes_of(streaming_.dtype), norm = bytes_of(streaming_.norm_dtype());
    if (streaming_.rotates()) return (separate ? 6 : 2) * e;
    return (separate ? 4 * e + norm : 3 * e) + norm + 1;
  }

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
    const auto first_half = [](Rect rect) { return Rect{rect.row, rect.col, rect.rows, rect.cols / 2}; };
    // It stores half of the elements of x, and so twice the work per byte.
    add_kernel("negate", 2 * framework_clk(gpu_, FrameworkStep::strided), {half}, [&](Rect rect) {
      if (rect.cols > 1) move(first_half(rect), x_, -1, {half});
    });
    add_kernel("concatenate", framework_clk(gpu_, FrameworkStep::concatenate), {turned}, [&](Rect rect) {
      const Rect first = first_half(rect);
      if (first.cols > 0) move(first, half, -1, {turned});
      move({rect.row, rect.col + first.cols, rect.rows, rect.cols - first.cols}, x_, -1, {turned});
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

}  // namespace

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

Schedule separate_streams(const Streaming& streaming, const Machine& machine) {
  return StreamingDraft("separate", streaming, machine, true).separate();
}

Schedule fused_streams(const Streaming& streaming, const Machine& machine, bool persistent) {
  return StreamingDraft(persistent ? "persistent" : "fused", streaming, machine, false).fused(persistent);
}

}  // namespace tritax

#include <fmt/format.h>

#include <algorithm>

#include "model/core/ceil_div.hpp"
#include "model/core/error.hpp"
#include "model/cost/attend_backward_cost.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/kernels.hpp"
#include "model/workloads/attention_backward/problem.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kOpsOfHead = 8;      // ranges of queries, where a schedule can hold as many
constexpr std::int64_t kRowsOfPiece = 128;  // of the kernels before and after, at least
constexpr std::int64_t kMostPieces = 65536;

class Draft {
 public:
  Draft(std::string_view name, Mapping mapping, const AttentionProblem& problem, const BackwardKnobs& knobs,
        const Machine& machine)
      : mapping_(mapping),
        problem_(problem),
        knobs_(knobs),
        machine_(machine),
        grid_{problem.batch, problem.kv_heads, problem.kv_heads, ceil_div(problem.context, knobs.tile.n),
              machine.gpu.xcds},
        builder_(std::string(name), 1) {
    check();
    rows_of_piece_ = kRowsOfPiece;
    while (pieces() * problem.heads * problem.batch > kMostPieces && rows_of_piece_ < problem.context)
      rows_of_piece_ *= 2;
    add_buffers();
  }

  Schedule build() {
    add_delta();
    add_gradients();
    add_rounding();
    builder_.host(0, HostOpKind::device_synchronize);
    expect_results();
    return builder_.finish();
  }

 private:
  std::int64_t pieces() const { return ceil_div(problem_.context, rows_of_piece_); }
  Rect of_queries(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t rows) const {
    return head_rect(problem_, batch, head, row, rows, problem_.depth);
  }
  Rect of_keys(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t rows) const {
    return head_rect(problem_, batch, head, row, rows, 2 * problem_.depth);
  }
  Rect of_statistics(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t rows) const {
    return head_rect(problem_, batch, head, row, rows, 2);
  }
  static Rect delta_of(Rect statistics) { return {statistics.row, statistics.col + 1, statistics.rows, 1}; }

  void check() const {
    check_dtype(problem_.dtype, machine_);
    const auto rows = static_cast<double>(problem_.batch * problem_.context);
    const auto columns =
        static_cast<double>(problem_.depth) * static_cast<double>(4 * problem_.heads + 4 * problem_.kv_heads);
    const auto sums = static_cast<double>((problem_.depth + 2) * problem_.heads) * bytes_of(DType::fp32);
    check_memory("this problem", rows * (columns * bytes_of(problem_.dtype) + sums), machine_.gpu);
    if (static_cast<double>(grid_.tiles() * (problem_.group() + 1)) * 2 <= kMaxOperations) return;
    throw UserError(
        fmt::format("tile: {} blocks of keys of {} heads for {} query heads each, and {} batches are too "
                    "many to schedule "
                    "(over {:.0f} tile operations); use larger tiles",
                    grid_.blocks, grid_.heads, problem_.group(), grid_.batch, kMaxOperations));
  }

  void add_buffers() {
    const auto rows = static_cast<std::int32_t>(problem_.batch * problem_.context);
    const auto d = static_cast<std::int32_t>(problem_.depth);
    const auto piece = static_cast<std::int32_t>(rows_of_piece_);
    const auto add = [&](const char* name, std::int64_t heads, std::int32_t tile_rows, std::int32_t cols,
                         DType dtype) {
      return builder_.buffer({name, dtype, rows, static_cast<std::int32_t>(heads) * cols, tile_rows, cols});
    };
    buffers_.q = add("Q", problem_.heads, knobs_.tile.m, d, problem_.dtype);
    buffers_.kv = add("KV", problem_.kv_heads, knobs_.tile.n, 2 * d, problem_.dtype);
    o_ = add("O", problem_.heads, piece, d, problem_.dtype);
    buffers_.d_out = add("dO", problem_.heads, piece, d, problem_.dtype);
    buffers_.statistics = add("statistics", problem_.heads, piece, 2, DType::fp32);
    buffers_.d_q = add("dQ_sums", problem_.heads, piece, d, DType::fp32);
    zeros_ = builder_.buffer({"zeros", DType::fp32, piece, d, piece, d});
    d_q_ = add("dQ", problem_.heads, piece, d, problem_.dtype);
    d_kv_ = add("dKV", problem_.kv_heads, knobs_.tile.n, 2 * d, problem_.dtype);
    builder_.result(d_q_);
    for (const std::int16_t buffer : {buffers_.q, buffers_.kv, o_, buffers_.d_out})
      builder_.input(builder_.whole(buffer));
    builder_.input(builder_.whole(zeros_), InputValues::zero);
    for (std::int32_t head = 0; head < problem_.heads; ++head)  // log-sum-exps
      builder_.input({buffers_.statistics, 0, {0, 2 * head, rows, 1}});
  }

  std::int32_t add_kernel(Kernel kernel) {
    kernel.profile = knobs_.profile;
    if (kernel.profile == KernelProfile::vendor) kernel.library.routine = LibraryRoutine::plain;
    const std::int32_t index = builder_.kernel(std::move(kernel));
    builder_.launch(0, index);
    return index;
  }

  // A kernel with a workgroup per piece of rows of a head.
  template <typename Add>
  void add_pieces(const char* name, Add&& add) {
    Kernel kernel;
    kernel.name = name;
    kernel.resources = copy_resources();
    const std::int32_t index = add_kernel(std::move(kernel));
    for (std::int64_t z = 0; z < problem_.batch; ++z) {
      for (std::int64_t head = 0; head < problem_.heads; ++head) {
        for (std::int64_t row = 0; row < problem_.context; row += rows_of_piece_) {
          builder_.workgroup(index);
          add(z, head, row, std::min(rows_of_piece_, problem_.context - row));
        }
      }
    }
  }

  void add_delta() {
    add_pieces("delta", [&](std::int64_t z, std::int64_t head, std::int64_t row, std::int64_t rows) {
      const Rect rect = of_queries(z, head, row, rows);
      builder_.load(o_, rect, 0);
      builder_.row_dot(buffers_.d_out, rect, 0);
      builder_.store(buffers_.statistics, delta_of(of_statistics(z, head, row, rows)), 0);
      builder_.load(zeros_, {0, 0, rect.rows, rect.cols}, 0);
      builder_.store(buffers_.d_q, rect, 0);
    });
  }

  void add_rounding() {
    add_pieces("round_gradients",
               [&](std::int64_t z, std::int64_t head, std::int64_t row, std::int64_t rows) {
                 const Rect rect = of_queries(z, head, row, rows);
                 builder_.load(buffers_.d_q, rect, 0);
                 builder_.store(d_q_, rect, 0);
               });
  }

  void add_gradients() {
    Kernel kernel;
    kernel.name = "gradients";
    kernel.resources = backward_resources(machine_.gpu, problem_.dtype, knobs_.tile);
    kernel.tile = knobs_.tile;
    const std::int32_t index = add_kernel(std::move(kernel));
    const std::int64_t room =
        static_cast<std::int64_t>(kMostScheduled / 2) / (grid_.tiles() * problem_.group()) - 1;
    const std::int64_t ops = std::clamp<std::int64_t>(room, 1, kOpsOfHead);
    const std::int64_t step = ceil_div(ceil_div(problem_.context, ops), knobs_.tile.m) * knobs_.tile.m;
    for (std::int64_t w = 0; w < grid_.tiles(); ++w) {
      builder_.workgroup(index);
      add_tile(tile_of_workgroup(mapping_, HeadFirstForm::clean, grid_, w), step);
    }
  }

  // Queries before the keys do not see them; whole blocks of these are left out.
  void add_tile(const AttentionTile& tile, std::int64_t step) {
    const std::int64_t row = tile.block * knobs_.tile.n;
    const Rect keys =
        of_keys(tile.batch, tile.head, row, std::min<std::int64_t>(knobs_.tile.n, problem_.context - row));
    const std::int64_t begin = problem_.causal ? row / knobs_.tile.m * knobs_.tile.m : 0;
    for (std::int64_t head = tile.head * problem_.group(); head < (tile.head + 1) * problem_.group();
         ++head) {
      for (std::int64_t query = begin; query < problem_.context; query += step) {
        const Rect queries = of_queries(tile.batch, head, query, std::min(step, problem_.context - query));
        builder_.attend_backward(buffers_, keys, queries.col, queries.row, queries.row + queries.rows,
                                 problem_.causal ? 1 : 0);
      }
    }
    builder_.store(d_kv_, keys, 0);
  }

  void expect_results() {
    const std::int64_t rows = problem_.context;
    for (std::int64_t z = 0; z < problem_.batch; ++z) {
      for (std::int64_t head = 0; head < problem_.heads; ++head) {
        const Region queries{buffers_.q, 0, of_queries(z, head, 0, rows)};
        const Region keys{buffers_.kv, 0, of_keys(z, head / problem_.group(), 0, rows)};
        const Region d_out{buffers_.d_out, 0, queries.rect};
        const Region statistics{buffers_.statistics, 0, of_statistics(z, head, 0, rows)};
        const std::int32_t limit = problem_.causal ? 1 : 0;
        builder_.expect_row_dot({buffers_.statistics, 0, delta_of(statistics.rect)}, {o_, 0, queries.rect},
                                d_out);
        builder_.expect_attention_backward({d_q_, 0, queries.rect}, queries, keys, d_out, statistics, limit);
        builder_.expect_attention_backward({d_kv_, 0, keys.rect}, queries, keys, d_out, statistics, limit,
                                           head % problem_.group() != 0);
      }
    }
  }

  Mapping mapping_;
  const AttentionProblem& problem_;
  const BackwardKnobs& knobs_;
  const Machine& machine_;
  AttentionGrid grid_;
  ScheduleBuilder builder_;
  ScheduleBuilder::BackwardBuffers buffers_;
  std::int16_t o_ = 0, zeros_ = 0, d_q_ = 0, d_kv_ = 0;
  std::int64_t rows_of_piece_ = 0;
};

}  // namespace

Schedule backward_schedule(std::string_view name, Mapping mapping, const AttentionProblem& problem,
                           const BackwardKnobs& knobs, const Machine& machine) {
  return Draft(name, mapping, problem, knobs, machine).build();
}

double backward_bound_ns(const AttentionProblem& problem, const BackwardKnobs& knobs,
                         const Machine& machine) {
  const MatmulTile& tile = knobs.tile;
  const Resources resources = backward_resources(machine.gpu, problem.dtype, tile);
  const AttendCost block = attend_backward_cost(machine.gpu, costs(machine, knobs.profile), problem.dtype,
                                                tile, resources, {tile.n, tile.k, tile.m, false});
  double of_head = 0, longest = 0;  // blocks of queries
  for (std::int64_t row = 0; row < problem.context; row += tile.n) {
    const std::int64_t begin = problem.causal ? row / tile.m * tile.m : 0;
    const auto blocks = static_cast<double>(ceil_div(problem.context - begin, tile.m));
    longest = std::max(longest, blocks);
    of_head += blocks;
  }
  const auto group = static_cast<double>(problem.group());
  const double block_ns = block.cost.compute_ns / (1 + machine.gpu.attend_spread);
  return blocks_bound_ns(machine, problem.dtype, resources, block_ns, block.shared_speedup, longest * group,
                         of_head * static_cast<double>(problem.batch * problem.heads));
}

}  // namespace tritax

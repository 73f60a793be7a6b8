#include "model/workloads/moe/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/movers.hpp"

namespace tritax {

namespace {

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

void check_size(const MoeDraft& draft) {
  const Moe& problem = draft.problem;
  const auto experts = static_cast<double>(draft.routes.targets_of(0).size());
  const auto hidden = static_cast<double>(problem.hidden), ffn = static_cast<double>(problem.ffn);
  const double up = ffn * (problem.gated ? 2 : 1);
  const double rows = 2.0 * draft.routes.most_rows_of_owner() + 2.0 * draft.routes.most_rows_of_source() +
                      2.0 * static_cast<double>(problem.routing.tokens);
  const double elements =
      experts * hidden * (up + ffn) + rows * hidden + draft.routes.most_rows_of_owner() * up;
  check_memory("this layer", elements * bytes_of(problem.dtype), draft.machine.gpu);
  double operations = 0;
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    operations += 6.0 * static_cast<double>(draft.routes.of(rank).size());
    const double of_group = up / draft.knobs.tile_n + hidden / draft.knobs.tile_n * (2 + draft.ranks());
    operations +=
        (static_cast<double>(draft.routes.rows_of_owner(rank)) / draft.knobs.tile_m + experts) * of_group;
  }
  if (operations <= kMaxOperations) return;
  throw UserError(fmt::format(
      "block: this layer needs about {:.0f} tile operations, more than the {:.0f} that can be scheduled; use "
      "larger blocks or tiles",
      operations, kMaxOperations));
}

}  // namespace

Moe moe_of(const Problem& problem) {
  return {routing_of(problem, false), problem["hidden"], problem["ffn"], problem["gated"] != 0,
          static_cast<DType>(problem["dtype"])};
}

MoeKnobs moe_knobs_of(const Values& values) {
  MoeKnobs knobs{gemm_knobs_of(values)};
  knobs.pull = values["transport"] != 0;
  return knobs;
}

MoeDraft::MoeDraft(std::string_view pattern, const Moe& problem_, const Machine& machine_,
                   const MoeKnobs& knobs_)
    : problem(problem_),
      machine(machine_),
      knobs(knobs_),
      routes(problem_.routing),
      builder(std::string(pattern), problem_.routing.gpus) {
  check_cus(knobs.comm_cus, "comm_cus", machine.gpu);
  check(knobs, machine.gpu);
  check_dtype(problem.dtype, machine);
  check_size(*this);
  const std::int32_t rows = routes.most_rows_of_owner();
  const std::int64_t experts = routes.targets_of(0).size();
  const DType result = product_dtype(problem.dtype);
  buffers.cols = narrow(problem.hidden);
  buffers.tokens = add("tokens", problem.dtype, narrow(problem.routing.tokens), problem.hidden);
  buffers.at_owner = add("at experts", problem.dtype, rows, problem.hidden);
  up = add("up", problem.dtype, buffers.cols, experts * up_columns());
  h = add("H", problem.dtype, rows, up_columns());
  down = add("down", problem.dtype, narrow(problem.ffn), experts * problem.hidden);
  buffers.results = add("results", result, rows, problem.hidden);
  buffers.sums = add("sums", result, narrow(problem.routing.tokens), problem.hidden);
  builder.result(buffers.sums);
  for (const std::int16_t input : {buffers.tokens, up, down}) builder.input(builder.whole(input));
  expect_dispatched(builder, routes, buffers);
  for (int expert = 0; expert < routes.targets(); ++expert) {
    if (routes.target_rows(expert) == 0) continue;
    const int owner = routes.owner(expert);
    const Rect in{routes.target_begin(expert), 0, routes.target_rows(expert), buffers.cols};
    Rect between = in, used = in;
    between.cols = up_columns();
    used.cols = narrow(problem.ffn);
    builder.expect_product({h, owner, between}, {buffers.at_owner, owner, in},
                           {up, owner, weights(expert, ExpertProduct::up)});
    builder.expect_product({buffers.results, owner, in}, {h, owner, used},
                           {down, owner, weights(expert, ExpertProduct::down)});
  }
  expect_summed(builder, routes, buffers);
}

std::int16_t MoeDraft::add(const char* name, DType dtype, std::int32_t rows, std::int64_t cols) {
  return builder.buffer({name, dtype, rows, narrow(cols), knobs.tile_m, knobs.tile_n});
}

void MoeDraft::add_back() {
  buffers.back = add("back", product_dtype(problem.dtype), routes.most_rows_of_source(), problem.hidden);
}

std::int32_t MoeDraft::up_columns() const { return narrow(problem.ffn) * (problem.gated ? 2 : 1); }

Rect MoeDraft::weights(int expert, ExpertProduct product) const {
  const std::int32_t local = expert - narrow(routes.targets_of(routes.owner(expert)).begin);
  if (product == ExpertProduct::up) return {0, local * up_columns(), buffers.cols, up_columns()};
  return {0, local * buffers.cols, narrow(problem.ffn), buffers.cols};
}

// Tiles of one column of weights follow each other.
std::vector<ExpertTile> MoeDraft::tiles(int rank, ExpertProduct product) const {
  std::vector<ExpertTile> all;
  const std::int32_t columns = product == ExpertProduct::up ? up_columns() : buffers.cols;
  const Share own = routes.targets_of(rank);
  std::int32_t group = 0;
  for (auto expert = static_cast<int>(own.begin); expert < own.end; ++expert) {
    const std::int32_t begin = routes.target_begin(expert), rows = routes.target_rows(expert);
    for (std::int32_t col = 0; col < columns; col += knobs.tile_n) {
      for (std::int32_t row = 0; row < rows; row += knobs.tile_m) {
        const Rect rect{begin + row, col, std::min(knobs.tile_m, rows - row),
                        std::min(knobs.tile_n, columns - col)};
        all.push_back({rect, expert, group + row / knobs.tile_m});
      }
    }
    group += ceil_div(rows, knobs.tile_m);
  }
  return all;
}

std::int32_t MoeDraft::groups() const {
  std::int32_t most = 1;
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::vector<ExpertTile> all = tiles(rank, ExpertProduct::down);
    if (!all.empty()) most = std::max(most, all.back().group + 1);
  }
  return most;
}

std::int32_t MoeDraft::tiles_of_group() const { return ceil_div(up_columns(), knobs.tile_n); }

void MoeDraft::multiply(int rank, ExpertProduct product, const ExpertTile& tile) {
  const bool first = product == ExpertProduct::up;
  Rect operand = tile.rect;
  operand.col += weights(tile.expert, product).col;
  builder.matmul(first ? buffers.at_owner : h, first ? up : down, operand, 0,
                 first ? buffers.cols : narrow(problem.ffn));
  builder.store(first ? h : buffers.results, tile.rect, rank);
}

void MoeDraft::send_back(int rank, const ExpertTile& tile) {
  const std::int32_t tile_end = tile.rect.row + tile.rect.rows;
  for (int source = 0; source < ranks(); ++source) {
    const std::int32_t run = routes.owner_begin(source, tile.expert);
    const std::int32_t begin = std::max(run, tile.rect.row);
    const std::int32_t end = std::min(run + routes.rows(source, tile.expert), tile_end);
    if (end <= begin) continue;
    const std::int32_t row = routes.source_begin(source, tile.expert) + begin - run;
    builder.copy(buffers.back, {row, tile.rect.col, end - begin, tile.rect.cols}, source, buffers.results,
                 begin, tile.rect.col, rank);
  }
}

Kernel MoeDraft::product_kernel(int rank, std::string_view name) const {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.rank = rank;
  kernel.tile = matmul_tile(knobs);
  kernel.resources = matmul_resources(machine.gpu, machine.interpreter, problem.dtype, kernel.tile);
  return kernel;
}

void MoeDraft::launch_product(int rank, ExpertProduct product) {
  const std::vector<ExpertTile> all = tiles(rank, product);
  if (all.empty()) return;
  const std::int32_t id = builder.kernel(product_kernel(rank, product == ExpertProduct::up ? "up" : "down"));
  for (const ExpertTile& tile : all) {
    builder.workgroup(id);
    multiply(rank, product, tile);
  }
  builder.launch(rank, id);
}

std::int32_t MoeDraft::multiplying(std::int32_t others) const {
  return room_beside(machine.gpu, product_kernel(0, "").resources, others, "multiply");
}

}  // namespace tritax

#include "model/parts/norm_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// Columns per piece of a row that is sent. Fewer columns than 256 threads move at once are not worth a
// workgroup, and pieces begin at whole sectors.
constexpr std::int32_t kLeastSentColumns = 512;
constexpr std::int32_t kSentColumnsStep = 16;

Rect slot_of_row(const SumDraft& draft, int source, std::int32_t row) {
  return row_of(draft, source * static_cast<std::int32_t>(draft.problem.m) + row);
}

// Pushes pieces of rows one after the other, from all workgroups: with whole rows, few rows would leave most
// workgroups idle.
void push_pieces(SumDraft& draft, const OneShotRows& shot, int rank, std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = draft.peers_of(rank, p);
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  for (std::int32_t i = p; i < m * shot.pieces; i += shot.workgroups) {
    const std::int32_t row = i / shot.pieces;
    const std::int32_t col = i % shot.pieces * shot.width;
    const Rect piece{row, col, 1, std::min(shot.width, n - col)};
    builder.load(draft.partial, piece, rank);
    const Rect slot{rank * m + row, col, 1, piece.cols};
    send_to_slots(draft, {shot.slots, slot, shot.arrived, row}, peers, i == p);
  }
}

void add_rows(SumDraft& draft, const NormRows& norm, const OneShotRows& shot, int rank, std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = draft.peers_of(rank, p);
  for (std::int32_t row = p; row < draft.problem.m; row += shot.workgroups) {
    if (shot.arrived >= 0)
      builder.wait(shot.arrived, row, (draft.ranks() - 1) * shot.pieces, Scope::system, draft.knobs.lock);
    add_up_norm_row(draft, norm, shot.slots, rank, row, peers);
    finish_norm_row(draft, norm, rank, row);
  }
}

}  // namespace

Rect row_of(const SumDraft& draft, std::int32_t row) {
  return {row, 0, 1, static_cast<std::int32_t>(draft.problem.n)};
}

std::int32_t norm_rows_kernel(SumDraft& draft, const char* name, int rank) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, draft.problem.n);
  kernel.placement = Placement::persistent;
  return draft.builder.kernel(std::move(kernel));
}

void check_norm_columns(std::int64_t cols, std::string_view field) {
  if (cols <= kMostOfReducer) return;
  throw UserError(
      fmt::format("{} = {}: a row that is normalised must fit into the registers of one workgroup, "
                  "at most {} elements",
                  field, cols, kMostOfReducer));
}

void check_norm_rows(std::int64_t rows, int gpus, std::string_view field) {
  const double operations_of_row = gpus * (4.0 * gpus + 8);
  const double most = std::floor(kMaxOperations / operations_of_row);
  if (static_cast<double>(rows) <= most) return;
  throw UserError(fmt::format(
      "{} = {}: a row at a time on {} GPUs is too much to schedule (over {:.0f} tile operations); "
      "give at most {:.0f} rows, or fewer GPUs",
      field, rows, gpus, kMaxOperations, most));
}

double norm_bytes(std::int64_t rows, std::int64_t cols, DType operands, DType normed) {
  constexpr double kMatrices = 2;  // C and residual; the weights are one more row
  const double row_bytes = static_cast<double>(cols) * bytes_of(product_dtype(operands));
  return (kMatrices * static_cast<double>(rows) + 1) * row_bytes +
         static_cast<double>(rows) * static_cast<double>(cols) * bytes_of(normed);
}

NormRows add_norm(SumDraft& draft, std::optional<DType> normed) {
  ScheduleBuilder& builder = draft.builder;
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  const DType dtype = product_dtype(draft.problem.dtype);
  NormRows norm;
  norm.residual = builder.buffer({"residual", dtype, m, n, 1, n});
  norm.weights = builder.buffer({"weights", dtype, 1, n, 1, n});
  norm.normed = builder.buffer({"normed", normed.value_or(dtype), m, n, 1, n});
  builder.result(norm.normed);
  builder.input(builder.whole(norm.residual), InputValues::same);
  builder.input(builder.whole(norm.weights), InputValues::same);
  const Region weights = builder.whole(norm.weights, 0);
  if (draft.everywhere) {
    builder.expect_copy(builder.whole(draft.c), builder.whole(norm.residual, 0), true);
    builder.expect_rms_norm(builder.whole(norm.normed), builder.whole(draft.c, 0), weights);
    return norm;
  }
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    const Rect block = block_of(draft.problem, owner);
    const Region sum{draft.c, owner, draft.place_in_c(owner, block)};
    builder.expect_copy(sum, {norm.residual, owner, block}, true);
    builder.expect_rms_norm({norm.normed, kEveryRank, block}, sum, weights);
  }
  return norm;
}

void add_up_norm_row(SumDraft& draft, const NormRows& norm, std::int16_t slots, int rank, std::int32_t row,
                     const std::vector<int>& peers) {
  ScheduleBuilder& builder = draft.builder;
  const Rect whole = row_of(draft, row);
  const bool of_block = slots == draft.slots;
  const bool in_switch = draft.knobs.transport == Transport::multimem && draft.sends();
  add_of_all(draft, [&] {
    if (in_switch) {
      builder.load(draft.partial, whole, rank);
    } else {
      builder.load(norm.residual, whole, rank);
      builder.reduce(draft.partial, whole, rank);
    }
    for (const int peer : peers) {
      if (slots >= 0) {
        builder.reduce(
            slots, of_block ? draft.place_in_slot(rank, peer, whole) : slot_of_row(draft, peer, row), rank);
      } else {
        builder.reduce(draft.partial, whole, peer);
      }
    }
  });
  if (in_switch) builder.reduce(norm.residual, whole, rank);
}

void finish_norm_row(SumDraft& draft, const NormRows& norm, int rank, std::int32_t row) {
  ScheduleBuilder& builder = draft.builder;
  const Rect whole = row_of(draft, row);
  builder.store(draft.c, draft.place_in_c(rank, whole), rank);
  builder.rms_norm(norm.weights, row_of(draft, 0), rank);
  if (norm.shard >= 0) return builder.store(norm.shard, draft.place_in_c(rank, whole), rank);
  builder.store(norm.normed, whole, rank);
}

std::int32_t add_norm_kernel(SumDraft& draft, const NormRows& norm, int rank, KernelProfile profile) {
  Kernel kernel;
  kernel.name = "residual_rms_norm";
  kernel.rank = rank;
  kernel.profile = profile;
  kernel.resources = copy_resources();
  if (profile == KernelProfile::vendor) {
    kernel.library.routine = LibraryRoutine::plain;
  } else {
    kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, draft.problem.n);
  }
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const Rect own = block_of(draft.problem, rank);
  const std::int32_t first = draft.everywhere ? 0 : own.row;
  const std::int32_t rows = draft.everywhere ? static_cast<std::int32_t>(draft.problem.m) : own.rows;
  for (std::int32_t row = first; row < first + rows; ++row) {
    draft.builder.workgroup(id);
    draft.builder.load(draft.c, draft.place_in_c(rank, row_of(draft, row)), rank);
    draft.builder.reduce(norm.residual, row_of(draft, row), rank);
    finish_norm_row(draft, norm, rank, row);
  }
  return id;
}

OneShotRows add_one_shot_rows(SumDraft& draft, std::int32_t workgroups) {
  ScheduleBuilder& builder = draft.builder;
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  OneShotRows shot;
  shot.workgroups = std::min(workgroups, m);
  if (!draft.sends()) return shot;
  if (draft.knobs.transport == Transport::push) {
    shot.pieces = std::clamp(workgroups / m, 1, ceil_div(n, kLeastSentColumns));
    shot.width = ceil_div(ceil_div(n, shot.pieces), kSentColumnsStep) * kSentColumnsStep;
    shot.pieces = ceil_div(n, shot.width);
    shot.workgroups = std::min(workgroups, m * shot.pieces);
    shot.slots = builder.buffer({"slots", draft.wire_dtype(), m * draft.ranks(), n, 1, n});
    shot.arrived = builder.flags("arrived", m);
    add_opened(draft);
    return shot;
  }
  shot.ready = builder.flags("ready", shot.workgroups * draft.ranks());
  // A GEMM kernel overwrites the partial sums of the run before, while peers may still add them up.
  if (!draft.alone()) add_opened(draft);
  if (draft.alone() && draft.opens()) add_done(draft, shot.workgroups);
  return shot;
}

std::int32_t add_one_shot_kernel(SumDraft& draft, const NormRows& norm, const OneShotRows& shot, int rank) {
  const std::int32_t id = norm_rows_kernel(draft, "all_reduce_rms_norm", rank);
  for (std::int32_t p = 0; p < shot.workgroups; ++p) {
    draft.builder.workgroup(id);
    if (draft.alone()) tell_opened(draft, rank, p == 0);  // else the GEMM kernel does
    if (shot.ready >= 0) {
      exchange_arrivals(draft.builder, draft.peers_of(rank, p), draft.ranks(), rank, p, shot.ready,
                        draft.knobs.lock, draft.knobs.serves);
    }
    if (shot.slots >= 0) push_pieces(draft, shot, rank, p);
    add_rows(draft, norm, shot, rank, p);
    exchange_done(draft, rank, p);
  }
  return id;
}

}  // namespace tritax

// Checks operations that attend: regions, masks and dtypes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <span>
#include <string>

#include "model/schedule/findings.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/op_views.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

Finding no_fault() { return {Kind::meaningless, "", ""}; }
Finding meaningless(std::string message) { return {Kind::meaningless, "", std::move(message)}; }

Finding fault_of_regions(const Schedule& schedule, std::span<const Region> regions) {
  for (const Region& region : regions) {
    std::string fault = fault_of(schedule, region.buffer, region.rect);
    if (!fault.empty()) return {Kind::out_of_range, "", std::move(fault)};
  }
  return no_fault();
}

std::string fault_of_range(const Op& op, std::string_view what) {
  if (op.k_begin >= 0 && op.k_end > op.k_begin) return {};
  return fmt::format("{} [{}, {}); give at least one", what, op.k_begin, op.k_end);
}

// The buffers must have the dtype of `first`, which attention must support. `what`: its name in messages.
std::string fault_of_dtypes(const Schedule& schedule, std::string_view what, std::int16_t first,
                            std::span<const std::int16_t> others) {
  const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(first)];
  if (buffer.dtype == DType::fp64) {
    return fmt::format("{} '{}' are fp64, which attention does not support; give {}", what, buffer.name,
                       fmt::join(kCommonDTypeNames, ", "));
  }
  for (const std::int16_t number : others) {
    const Buffer& other = schedule.buffers[static_cast<std::size_t>(number)];
    if (other.dtype == buffer.dtype) continue;
    return fmt::format("{} '{}' are {} and '{}' is {}; they must be the same", what, buffer.name,
                       name_of(buffer.dtype), other.name, name_of(other.dtype));
  }
  return {};
}

Finding fault_of_forward(const Schedule& schedule, const Op& op, const Kernel& kernel) {
  const MatmulTile& tile = kernel.tile;
  if (std::string fault = fault_of_range(op, "keys"); !fault.empty()) return meaningless(std::move(fault));
  const std::array regions{keys_of(op, kernel.rank), values_of(op, kernel.rank)};
  if (Finding fault = fault_of_regions(schedule, regions); !fault.message.empty()) return fault;
  if (op.rect.rows > tile.m || op.rect.cols > tile.k) {
    return meaningless(fmt::format("queries of {}×{} in a kernel that attends with {} of at most {} columns",
                                   op.rect.rows, op.rect.cols, tile.m, tile.k));
  }
  const AttendView view(op);
  if (view.first_unseen() < 0 || view.rows_alike() < (view.is_masked() ? 1 : 0)) {
    return meaningless(fmt::format(
        "limit {} for groups of {} rows; give at least 0, which is no limit, and groups of at least 1",
        view.first_unseen(), view.rows_alike()));
  }
  return meaningless(fault_of_dtypes(schedule, "queries", op.buffer, std::array{op.src_buffer, op.b_buffer}));
}

Finding fault_of_backward(const Schedule& schedule, const Op& op, const Kernel& kernel) {
  const MatmulTile& tile = kernel.tile;
  if (std::string fault = fault_of_range(op, "queries"); !fault.empty()) return meaningless(std::move(fault));
  if (op.rect.cols % 2 != 0) {
    return meaningless(
        fmt::format("{} columns of keys beside values; give twice the columns of a head", op.rect.cols));
  }
  if (op.rect.cols / 2 > tile.k || op.rect.rows > tile.n) {
    return meaningless(fmt::format(
        "keys of {}×{} beside values in a kernel that attends with {} keys of at most {} columns; give no "
        "more, or the kernel a larger tile",
        op.rect.rows, op.rect.cols / 2, tile.n, tile.k));
  }
  const BackwardView view(op);
  if (view.limit() < 0)
    return meaningless(fmt::format("limit {}; give at least 0, which is no limit", view.limit()));
  for (const std::int32_t buffer : {view.statistics(), view.query_gradients()}) {
    if (std::string fault = fault_of(schedule, buffer, {0, 0, 1, 1}); !fault.empty())
      return {Kind::out_of_range, "", std::move(fault)};
  }
  const std::array regions{queries_of_backward(op, kernel.rank, op.src_buffer),
                           queries_of_backward(op, kernel.rank, op.b_buffer), statistics_of(op, kernel.rank),
                           query_gradients_of(op, kernel.rank)};
  if (Finding fault = fault_of_regions(schedule, regions); !fault.message.empty()) return fault;
  for (const Region& sums : {regions[2], regions[3]}) {
    const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(sums.buffer)];
    if (buffer.dtype == DType::fp32) continue;
    return meaningless(fmt::format("'{}' is {}; statistics and gradients of queries are fp32", buffer.name,
                                   name_of(buffer.dtype)));
  }
  return meaningless(fault_of_dtypes(schedule, "keys", op.buffer, std::array{op.src_buffer, op.b_buffer}));
}

}  // namespace

Finding fault_of_attention(const Schedule& schedule, const Op& op, const Kernel& kernel) {
  const std::array tile{Region{op.buffer, kernel.rank, op.rect}};
  if (Finding fault = fault_of_regions(schedule, tile); !fault.message.empty()) return fault;
  return op.kind == OpKind::attend ? fault_of_forward(schedule, op, kernel)
                                   : fault_of_backward(schedule, op, kernel);
}

}  // namespace tritax

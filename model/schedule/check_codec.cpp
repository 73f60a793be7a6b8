// Buffers whose elements a line codec holds (model/core/codec.hpp).
#include <fmt/format.h>

#include "model/schedule/findings.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

bool whole_groups(const Buffer& buffer, const Rect& rect) {
  const std::int32_t end = rect.col + rect.cols;
  return rect.col % kCodecGroup == 0 && (end % kCodecGroup == 0 || end == buffer.cols);
}

}  // namespace

std::string fault_of_codec(const Buffer& buffer) {
  if (buffer.codec == Codec::same || buffer.dtype == DType::fp32 || buffer.dtype == DType::fp16 ||
      buffer.dtype == DType::bf16) {
    return {};
  }
  return fmt::format("holds {} as {}; codecs hold fp32, fp16 and bf16", name_of(buffer.dtype),
                     name_of(buffer.codec));
}

std::string fault_of_codec(const Schedule& schedule, const Op& op, std::int32_t own_rank) {
  std::string fault;
  const auto check = [&](const Region& region) {
    const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(region.buffer)];
    if (buffer.codec == Codec::same) return;
    const bool possible = op.kind == OpKind::load || op.kind == OpKind::reduce || op.kind == OpKind::store;
    if (!possible || op.multimem) {
      fault = fmt::format("'{}' is held as {}, which only load, reduce and store code, without multimem",
                          buffer.name, name_of(buffer.codec));
    } else if (!whole_groups(buffer, region.rect)) {
      fault = fmt::format(
          "columns [{}, {}) of '{}', which is held as {} in groups of {} columns; give whole groups",
          region.rect.col, region.rect.col + region.rect.cols, buffer.name, name_of(buffer.codec),
          kCodecGroup);
    }
  };
  for_each_read(op, own_rank, check);
  for_each_write(op, [&](const Region& region, bool) { check(region); });
  return fault;
}

}  // namespace tritax

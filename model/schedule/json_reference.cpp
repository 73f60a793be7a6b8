#include <algorithm>

#include "model/schedule/json_fields.hpp"

namespace tritax {

namespace {

std::span<const std::string_view> keys_of(ReferenceKind kind) {
  static constexpr std::array<std::string_view, 5> product{"op", "to", "a", "b", "add"};
  static constexpr std::array<std::string_view, 8> attention{"op", "to",    "a",     "b",
                                                             "c",  "limit", "group", "add"};
  static constexpr std::array<std::string_view, 8> backward{"op", "to", "a", "b", "c", "d", "limit", "add"};
  static constexpr std::array<std::string_view, 4> other{"op", "to", "a", "add"};
  static constexpr std::array<std::string_view, 6> sparse{"op", "to", "a", "b", "sparse", "add"};
  if (kind == ReferenceKind::sparse_product) return sparse;
  if (kind == ReferenceKind::attention) return attention;
  if (kind == ReferenceKind::attention_backward) return backward;
  if (has_b(kind)) return product;
  return other;
}

// The keys of a region in an object that may have others; see docs/schedule-format.md.
Region region_of(const JsonValue& value, const UniqueNames& buffers, const Schedule& schedule) {
  Region region;
  region.buffer = number_of(value.at("buffer"), buffers, "buffer");
  region.rank = rank_or(value, "rank", kEveryRank);
  const JsonPair at = pair_or_zero(value, "at", "[row, column]");
  JsonPair shape{1, 1};
  if (value.has("shape")) {
    shape = pair_of(value.at("shape"), "[rows, columns]", 1);
  } else if (static_cast<std::size_t>(region.buffer) < schedule.buffers.size()) {
    const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(region.buffer)];
    shape = {std::max(1, buffer.rows - at.first), std::max(1, buffer.cols - at.second)};
  }
  region.rect = {at.first, at.second, shape.first, shape.second};
  return region;
}

Input input_of(const JsonValue& value, const UniqueNames& buffers, const Schedule& schedule) {
  static constexpr std::array<std::string_view, 6> keys{"buffer", "rank", "at", "shape", "group", "values"};
  value.expect_object(keys);
  Input input;
  input.region = region_of(value, buffers, schedule);
  input.group = int32_or(value, "group", 0, static_cast<std::int32_t>(schedule.inputs.size()));
  if (value.has("values")) {
    input.values = static_cast<InputValues>(value.at("values").one_of(kInputValuesNames));
  }
  return input;
}

ReferenceOp reference_op_of(const JsonValue& value, const UniqueNames& buffers, const Schedule& schedule) {
  static constexpr std::array<std::string_view, 4> region_keys{"buffer", "rank", "at", "shape"};
  const auto region = [&](const char* key) {
    const JsonValue given = value.at(key);
    given.expect_object(region_keys);
    return region_of(given, buffers, schedule);
  };
  ReferenceOp op;
  op.kind = static_cast<ReferenceKind>(value.at("op").one_of(kReferenceKindNames));
  value.expect_object(keys_of(op.kind));
  op.to = region("to");
  op.a = region("a");
  if (has_b(op.kind)) op.b = region("b");
  if (op.kind == ReferenceKind::sparse_product) op.index = int32_or(value, "sparse", 0, 0);
  if (has_c(op.kind)) {
    op.c = region("c");
    op.limit = int32_or(value, "limit", 0, 0);
  }
  if (op.kind == ReferenceKind::attention) op.group = int32_or(value, "group", 1, 1);
  if (op.kind == ReferenceKind::attention_backward) op.d = region("d");
  if (value.has("add")) op.add = value.at("add").boolean();
  return op;
}

}  // namespace

void read_reference(const JsonValue& root, const UniqueNames& buffers, Schedule& schedule) {
  if (!root.has("inputs") && !root.has("reference")) {
    infer_reference(schedule);
    return;
  }
  if (root.has("inputs")) {
    each_of(root.at("inputs"),
            [&](const JsonValue& value) { schedule.inputs.push_back(input_of(value, buffers, schedule)); });
  }
  if (root.has("reference")) {
    each_of(root.at("reference"), [&](const JsonValue& value) {
      schedule.reference.push_back(reference_op_of(value, buffers, schedule));
    });
  }
}

}  // namespace tritax

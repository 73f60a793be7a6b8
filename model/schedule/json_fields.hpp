// Fields that several parts of the JSON form share. Internal to model/schedule.
#pragma once

#include <fmt/format.h>

#include "model/schedule/json_reader.hpp"
#include "model/schedule/names.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

// Values of the key "processes".
inline constexpr std::string_view kProcessPerGpu = "per-gpu";
inline constexpr std::string_view kOneProcess = "one";

// The keys of every OpField.
inline constexpr std::array<std::string_view, 24> kOpFieldKeys{"a b",
                                                               "queries keys values column",
                                                               "limit group",
                                                               "queries keys_values result_gradients "
                                                               "statistics query_gradients column limit",
                                                               "from",
                                                               "to",
                                                               "buffer at shape",
                                                               "at shape",
                                                               "k",
                                                               "from",
                                                               "flag index",
                                                               "value",
                                                               "rank",
                                                               "scope protocol",
                                                               "change order",
                                                               "items",
                                                               "limit",
                                                               "skip",
                                                               "sparse values x columns",
                                                               "sharing lanes",
                                                               "with_previous",
                                                               "multimem",
                                                               "by_engine",
                                                               "owner"};

inline std::int32_t int32_or(const JsonValue& object, const char* key, std::int64_t low, std::int32_t usual) {
  return object.has(key) ? static_cast<std::int32_t>(object.at(key).integer(low, kMaxInt32)) : usual;
}

inline std::int16_t rank_or(const JsonValue& object, const char* key, std::int32_t usual) {
  const std::int64_t rank = object.has(key) ? object.at(key).integer(0, kMaxInt16) : usual;
  return static_cast<std::int16_t>(rank);
}

struct JsonPair {
  std::int32_t first = 0;
  std::int32_t second = 0;
};

inline JsonPair pair_of(const JsonValue& value, const char* what, std::int64_t low) {
  value.expect_array_of(2, what);
  return {static_cast<std::int32_t>(value.item(0).integer(low, kMaxInt32)),
          static_cast<std::int32_t>(value.item(1).integer(low, kMaxInt32))};
}

inline JsonPair pair_or_zero(const JsonValue& object, const char* key, const char* what) {
  return object.has(key) ? pair_of(object.at(key), what, 0) : JsonPair{};
}

// The number of a buffer or flag array, from its name or number.
inline std::int16_t number_of(const JsonValue& value, const UniqueNames& names, const char* what) {
  if (!value.is_string()) {
    return static_cast<std::int16_t>(value.integer(0, kMaxInt16));
  }
  const std::int64_t index = names.find(value.string());
  if (index == kNoSuchName) {
    value.refuse_name(what, names.names());
  }
  if (index < 0) {
    value.refuse(fmt::format("several {}s have this name; give its number", what));
  }
  if (index > kMaxInt16) {
    value.refuse(fmt::format("a schedule has at most {} {}s", kMaxInt16 + 1, what));
  }
  return static_cast<std::int16_t>(index);
}

template <typename ReadItem>
void each_of(const JsonValue& list, ReadItem read_item) {
  list.expect_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    read_item(list.item(i));
  }
}

// Reads the keys "inputs" and "reference" of a schedule whose buffers have been read; calls infer_reference
// if both are missing.
void read_reference(const JsonValue& root, const UniqueNames& buffers, Schedule& schedule);

}  // namespace tritax

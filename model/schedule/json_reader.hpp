// Gives typed access to a JSON tree of a schedule, or of a document that contains one, with the path of every
// value for messages.
//
//   schedule.json: kernels[2].workgroups[5].ops[3].to: 1.5 is not allowed; give an integer from 0 to 32767
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tritax {

inline constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kMaxInt16 = std::numeric_limits<std::int16_t>::max();

// Parses text. Throws UserError "origin:line:column: …" for syntax errors, truncated text, numbers that
// overflow, repeated keys and nesting deeper than in any schedule.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

// One value of the tree and its place. Paths are linked on the stack and written out only in messages.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& value, const std::string& origin) : value_(value), origin_(origin) {}

  // Throws UserError if the value is not an object, or has a key that is not in `keys` (the nearest is
  // offered).
  void expect_object(std::span<const std::string_view> keys) const;
  bool has(const char* key) const { return value_.find(key) != value_.end(); }
  JsonValue at(const char* key) const;  // throws UserError when the key is missing

  void expect_array() const;
  void expect_array_of(std::size_t size, const char* what) const;
  std::size_t size() const { return value_.size(); }
  JsonValue item(std::size_t index) const;

  bool is_string() const { return value_.is_string(); }
  const std::string& string() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  double number(double low) const;  // finite, at least `low`
  bool boolean() const;

  // Index of the string in `names`.
  std::size_t one_of(std::span<const std::string_view> names) const;

  // Throws UserError "origin: path: value is not allowed; allowed".
  [[noreturn]] void refuse(const std::string& allowed) const;
  [[noreturn]] void refuse_name(const std::string& what, std::span<const std::string> known) const;

 private:
  JsonValue(const nlohmann::json& value, const JsonValue* parent, const char* key, std::size_t index)
      : value_(value), origin_(parent->origin_), parent_(parent), key_(key), index_(index) {}
  std::string path() const;
  std::string place() const;

  const nlohmann::json& value_;
  const std::string& origin_;
  const JsonValue* parent_ = nullptr;
  const char* key_ = nullptr;  // null: an item of an array
  std::size_t index_ = 0;
};

}  // namespace tritax

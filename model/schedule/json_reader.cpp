#include "model/schedule/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr std::size_t kMaxDepth = 16;    // a schedule needs 8
constexpr std::size_t kMaxKeys = 64;     // of one object; a schedule needs 11
constexpr std::size_t kShownBytes = 60;  // of an offending value

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("{}:{}", line, std::max<std::size_t>(column, 1));
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …" without the parts that
// our own message contains.
std::string plain_reason(std::string_view what) {
  const std::size_t bracket = what.find("] ");
  if (bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  if (what.starts_with("parse error at ")) {
    const std::size_t colon = what.find(": ");
    if (colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
  }
  return std::string(what);
}

// Refuses text whose tree would hide keys (repeated keys) or would be unreasonably large, before the tree is
// built. This is a separate pass, because nlohmann's parser with a callback searches the whole array after
// every object in it, which takes seconds for the operations of a long workgroup.
class StructureGuard : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit StructureGuard(const std::string& origin) : origin_(origin) {}

  bool null() override { return item(); }
  bool boolean(bool /*value*/) override { return item(); }
  bool number_integer(number_integer_t /*value*/) override { return item(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return item(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return item(); }
  bool string(string_t& /*value*/) override { return item(); }
  bool binary(binary_t& /*value*/) override { return item(); }
  bool start_array(std::size_t /*size*/) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t /*size*/) override { return open(); }
  bool end_object() override { return close(); }
  // The parser that builds the tree finds and reports the same error.
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

  bool key(string_t& key) override {
    std::vector<std::string>& keys = open_[depth_ - 1].keys;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      throw UserError(fmt::format("{}: {}key '{}' is given twice; allowed: once", origin_, path(), key));
    }
    if (keys.size() == kMaxKeys) {
      throw UserError(fmt::format("{}: {}more than {} keys in one object", origin_, path(), kMaxKeys));
    }
    keys.push_back(key);
    return true;
  }

 private:
  // An open object or array.
  struct Open {
    std::vector<std::string> keys;  // of an object, so far
    std::size_t items = 0;          // complete items
  };

  bool open() {
    if (depth_ == kMaxDepth) {
      throw UserError(
          fmt::format("{}: nested more than {} levels deep; a schedule needs 8", origin_, kMaxDepth));
    }
    open_[depth_].keys.clear();
    open_[depth_++].items = 0;
    return true;
  }
  bool close() {
    --depth_;
    return item();
  }
  bool item() {
    if (depth_ > 0) ++open_[depth_ - 1].items;
    return true;
  }

  // Path of the innermost object, written as in JsonValue::path().
  std::string path() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < depth_; ++i) {
      const Open& outer = open_[i];
      path += outer.keys.empty() ? fmt::format("[{}]", outer.items)
                                 : fmt::format("{}{}", path.empty() ? "" : ".", outer.keys.back());
    }
    return path.empty() ? path : path + ": ";
  }

  const std::string& origin_;
  std::size_t depth_ = 0;               // objects and arrays that are open
  std::array<Open, kMaxDepth> open_{};  // outermost first
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& origin) {
  StructureGuard guard(origin);
  try {
    nlohmann::json::sax_parse(text.begin(), text.end(), &guard);
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    const bool truncated = error.byte > text.size();
    throw UserError(fmt::format("{}:{}: {}{}", origin, line_and_column(text, error.byte),
                                truncated ? "the text ends too early: " : "", plain_reason(error.what())));
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("{}: {}", origin, plain_reason(error.what())));
  }
}

void JsonValue::expect_object(std::span<const std::string_view> keys) const {
  if (!value_.is_object()) {
    refuse(fmt::format("give an object with the keys {}", fmt::join(keys, ", ")));
  }
  for (auto entry = value_.begin(); entry != value_.end(); ++entry) {
    if (std::find(keys.begin(), keys.end(), entry.key()) != keys.end()) {
      continue;
    }
    const std::string nearest = nearest_name(entry.key(), keys);
    throw UserError(fmt::format("{}unknown key '{}'{}; allowed: {}", place(), entry.key(),
                                nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                                fmt::join(keys, ", ")));
  }
}

JsonValue JsonValue::at(const char* key) const {
  if (!value_.is_object()) {
    refuse("give an object");
  }
  const auto entry = value_.find(key);
  if (entry == value_.end()) {
    throw UserError(fmt::format("{}the key '{}' is missing", place(), key));
  }
  return JsonValue(*entry, this, key, 0);
}

void JsonValue::expect_array() const {
  if (!value_.is_array()) {
    refuse("give an array");
  }
}

void JsonValue::expect_array_of(std::size_t size, const char* what) const {
  if (!value_.is_array() || value_.size() != size) {
    refuse(fmt::format("give {}", what));
  }
}

JsonValue JsonValue::item(std::size_t index) const { return JsonValue(value_[index], this, nullptr, index); }

const std::string& JsonValue::string() const {
  if (!value_.is_string()) {
    refuse("give a string");
  }
  return value_.get_ref<const std::string&>();
}

std::int64_t JsonValue::integer(std::int64_t low, std::int64_t high) const {
  // Integers above 2^63 are unsigned, those above 2^64 floating point.
  if (value_.is_number_unsigned() && value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)) {
    const auto value = static_cast<std::int64_t>(value_.get<std::uint64_t>());
    if (value >= low) {
      return value;
    }
  } else if (value_.is_number_integer() && !value_.is_number_unsigned()) {
    const auto value = value_.get<std::int64_t>();
    if (value >= low && value <= high) {
      return value;
    }
  }
  refuse(fmt::format("give an integer from {} to {}", low, high));
}

bool JsonValue::boolean() const {
  if (!value_.is_boolean()) refuse("give true or false");
  return value_.get<bool>();
}

double JsonValue::number(double low) const {
  if (value_.is_number()) {
    const double value = value_.get<double>();
    if (std::isfinite(value) && value >= low) {
      return value;
    }
  }
  refuse(fmt::format("give a number of at least {}", low));
}

std::size_t JsonValue::one_of(std::span<const std::string_view> names) const {
  const std::string& name = string();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    const std::vector<std::string> known(names.begin(), names.end());
    refuse_name("name", known);
  }
  return static_cast<std::size_t>(found - names.begin());
}

void JsonValue::refuse(const std::string& allowed) const {
  std::string shown;
  if (value_.is_object()) {
    shown = "an object";
  } else if (value_.is_array()) {
    shown = fmt::format("an array of {}", value_.size());
  } else {
    shown = value_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (shown.size() > kShownBytes) {
      shown = shown.substr(0, kShownBytes) + "…";
    }
  }
  throw UserError(fmt::format("{}{} is not allowed; {}", place(), shown, allowed));
}

void JsonValue::refuse_name(const std::string& what, std::span<const std::string> known) const {
  // Long words are not misspelt short names, and their distance is expensive.
  const std::string word = string().substr(0, kShownBytes);
  const std::string nearest = nearest_name(word, known);
  const std::size_t shown = std::min<std::size_t>(known.size(), 12);
  throw UserError(fmt::format("{}unknown {} '{}'{}; allowed: {}{}", place(), what, word,
                              nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                              known.empty() ? "none" : fmt::format("{}", fmt::join(known.first(shown), ", ")),
                              shown < known.size() ? ", …" : ""));
}

std::string JsonValue::path() const {
  if (parent_ == nullptr) {
    return "";
  }
  const std::string before = parent_->path();
  if (key_ == nullptr) {
    return fmt::format("{}[{}]", before, index_);
  }
  return before.empty() ? key_ : before + "." + key_;
}

std::string JsonValue::place() const {
  const std::string where = path();
  return where.empty() ? origin_ + ": " : origin_ + ": " + where + ": ";
}

}  // namespace tritax

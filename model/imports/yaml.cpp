#include "model/imports/yaml.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/core/error.hpp"

namespace tritax {

namespace {

std::string shown(const YAML::Node& node) {
  if (!node.IsDefined() || node.IsNull()) return "nothing";
  if (node.IsScalar()) return "'" + node.Scalar() + "'";
  return node.IsSequence() ? fmt::format("a list of {}", node.size()) : "a table";
}

}  // namespace

std::string YamlPlace::where() const {
  const YAML::Mark mark = node_.Mark();
  return mark.line < 0 ? fmt::format("{}: {}", origin_, path_)
                       : fmt::format("{}:{}: {}", origin_, mark.line + 1, path_.empty() ? "the file" : path_);
}

void YamlPlace::refuse(std::string_view allowed) const {
  throw UserError(fmt::format("{}: {} is not allowed; {}", where(), shown(node_), allowed));
}

bool YamlPlace::has(const std::string& key) const {
  return node_.IsMap() && node_[key].IsDefined() && !node_[key].IsNull();
}

YamlPlace YamlPlace::at(const std::string& key) const {
  if (!node_.IsMap()) refuse(fmt::format("give a table with the key '{}'", key));
  if (!has(key)) throw UserError(fmt::format("{}: the key '{}' is missing", where(), key));
  return {node_[key], origin_, path_.empty() ? key : path_ + "." + key};
}

YamlPlace YamlPlace::at(std::size_t index) const {
  return {node_[index], origin_, fmt::format("{}[{}]", path_, index)};
}

std::size_t YamlPlace::size() const {
  if (!node_.IsSequence()) refuse("give a list");
  return node_.size();
}

std::string YamlPlace::text() const {
  if (!node_.IsScalar()) refuse("give a text");
  return node_.Scalar();
}

double YamlPlace::above_0() const {
  double value = 0;
  const bool number = node_.IsScalar() && YAML::convert<double>::decode(node_, value);
  if (!number || !std::isfinite(value) || value <= 0) refuse("give a number above 0");
  return value;
}

std::int64_t YamlPlace::whole(std::int64_t highest) const {
  std::int64_t value = 0;
  const bool number = node_.IsScalar() && YAML::convert<std::int64_t>::decode(node_, value);
  if (!number || value < 1 || value > highest)
    refuse(fmt::format("give a whole number from 1 to {}", highest));
  return value;
}

YamlPlace parse_yaml(const std::string& text, const std::string& origin) {
  try {
    return {YAML::Load(text), origin, ""};
  } catch (const YAML::Exception& error) {
    throw UserError(fmt::format("{}:{}: not valid YAML: {}", origin, error.mark.line + 1, error.msg));
  }
}

}  // namespace tritax

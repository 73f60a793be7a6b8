// Reading YAML, and with it JSON, with messages that name file, line and key. Internal: include it from .cpp
// files only, since it pulls in yaml-cpp.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tritax {

// A node with the file and the keys that lead to it.
class YamlPlace {
 public:
  YamlPlace(YAML::Node node, std::string origin, std::string path)
      : node_(std::move(node)), origin_(std::move(origin)), path_(std::move(path)) {}

  const YAML::Node& node() const { return node_; }
  // "network.yml:3: bandwidth[0]"
  std::string where() const;
  [[noreturn]] void refuse(std::string_view allowed) const;  // with the value

  bool has(const std::string& key) const;
  YamlPlace at(const std::string& key) const;  // refuses where there is none
  YamlPlace at(std::size_t index) const;
  std::size_t size() const;  // of a list; refuses what is none

  std::string text() const;
  double above_0() const;                          // a number
  std::int64_t whole(std::int64_t highest) const;  // from 1 on

 private:
  YAML::Node node_;
  std::string origin_;
  std::string path_;
};

// Throws UserError for what is no YAML.
YamlPlace parse_yaml(const std::string& text, const std::string& origin);

}  // namespace tritax

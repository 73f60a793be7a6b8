// The key of the answer to a point of a sweep: a hash of everything that decides the answer.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace tritax {

// 36 characters: the name-based UUID (RFC 4122 §4.3, SHA-1) of `text`.
std::string hash_text(const std::string& text);

class SweepKeys {
 public:
  // `version` of the program.
  explicit SweepKeys(std::string version) : version_(std::move(version)) {}

  // Hash of the point, the content of the machine and the model that it names, from any source, and the
  // version. If a machine or model cannot be read, the reason counts: it is the answer to the point until the
  // file can be read. Files are read once.
  std::string key(const nlohmann::json& point);

  const std::string& version() const { return version_; }

 private:
  const std::string& content_of(const nlohmann::json& point, const char* name,
                                const std::function<std::string(const std::string&)>& read);

  std::string version_;
  std::map<std::string, std::string> contents_;  // hashes, by kind and name
};

}  // namespace tritax

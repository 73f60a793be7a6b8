// Classes of activities by key: activities with equal keys have equal uses of resources and equal caps.
//
// FluidClasses owns the keys. It adds classes to the fluid network and changes nothing else. The caller makes
// the key from all that a class depends on.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "sim/fluid.hpp"

namespace tritax::engine {

struct ClassKey {
  std::uint64_t what = 0;
  std::uint64_t cap_bits = 0;
  std::uint64_t cost_bits = 0;  // of the link
  bool operator==(const ClassKey&) const = default;
};

class FluidClasses {
 public:
  explicit FluidClasses(FluidNetwork& fluid) : fluid_(fluid) {}

  // The class of a key, kNone if there is none yet. Few keys repeat often.
  std::int32_t known(const ClassKey& key) {
    const std::uint64_t mixed =
        (key.what ^ key.cap_bits ^ key.cap_bits >> 20 ^ key.cost_bits >> 8) * 0x9e3779b97f4a7c15ULL;
    Recent& recent = recent_[(mixed >> 32) % kRecent];
    if (recent.key == key && recent.id != FluidNetwork::kNone) return recent.id;
    const auto found = ids_.find(key);
    if (found == ids_.end()) return FluidNetwork::kNone;
    recent = {key, found->second};
    return recent.id;
  }
  // Adds the class of a key that is not known.
  std::int32_t add(const ClassKey& key, const std::vector<FluidNetwork::Use>& uses, double cap) {
    const std::int32_t id = fluid_.add_class(uses, cap);
    ids_.emplace(key, id);
    return id;
  }

 private:
  static constexpr std::size_t kRecent = 1024;  // a power of two
  struct Recent {
    ClassKey key;
    std::int32_t id = FluidNetwork::kNone;
  };
  struct Hash {
    std::size_t operator()(const ClassKey& key) const {
      return std::hash<std::uint64_t>{}(key.what * 0x9e3779b97f4a7c15ULL ^ key.cap_bits ^ key.cost_bits);
    }
  };

  FluidNetwork& fluid_;
  std::unordered_map<ClassKey, std::int32_t, Hash> ids_;
  std::vector<Recent> recent_ = std::vector<Recent>(kRecent);  // subset of ids_, by hash
};

}  // namespace tritax::engine

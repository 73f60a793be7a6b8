// Looks up names of buffers, flags and kernels, to which the JSON form refers. Internal to model/schedule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

inline constexpr std::int64_t kNoSuchName = -1;
inline constexpr std::int64_t kAmbiguousName = -2;

// Buffers or flag arrays by name.
class UniqueNames {
 public:
  UniqueNames() = default;

  template <typename Items>
  explicit UniqueNames(const Items& items) {
    for (const auto& item : items) {
      add(item.name);
    }
  }

  void add(const std::string& name) {
    const auto [entry, added] = by_name_.emplace(name, count_++);
    if (!added) {
      entry->second = kAmbiguousName;
    }
  }

  // Index of the only entry called `name`; kNoSuchName or kAmbiguousName otherwise.
  std::int64_t find(const std::string& name) const {
    const auto entry = by_name_.find(name);
    return entry == by_name_.end() ? kNoSuchName : entry->second;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, index] : by_name_) {
      names.push_back(name);
    }
    return names;
  }

 private:
  std::map<std::string, std::int64_t> by_name_;
  std::int64_t count_ = 0;
};

// Kernels by name and rank: every rank may have its own "gemm".
class KernelNames {
 public:
  explicit KernelNames(const Schedule& schedule) {
    for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
      const Kernel& kernel = schedule.kernels[i];
      const auto [entry, added] =
          by_name_.emplace(std::pair{kernel.rank, kernel.name}, static_cast<std::int64_t>(i));
      if (!added) {
        entry->second = kAmbiguousName;
      }
    }
  }

  // Index of the only kernel called `name` on `rank`; kNoSuchName or kAmbiguousName otherwise.
  std::int64_t find(const std::string& name, std::int32_t rank) const {
    const auto entry = by_name_.find({rank, name});
    return entry == by_name_.end() ? kNoSuchName : entry->second;
  }

  std::vector<std::string> on_rank(std::int32_t rank) const {
    std::vector<std::string> names;
    for (auto entry = by_name_.lower_bound({rank, std::string()});
         entry != by_name_.end() && entry->first.first == rank; ++entry) {
      names.push_back(entry->first.second);
    }
    return names;
  }

 private:
  std::map<std::pair<std::int32_t, std::string>, std::int64_t> by_name_;
};

}  // namespace tritax

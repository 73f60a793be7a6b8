// Keeps the last few results of a function that is slow and is asked for the same keys again and again, by
// all threads of the process.
//
//   static Memo<std::string, Table> tables(8);
//   return tables.get(path, [&] { return read_table(path); });
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace tritax {

template <typename Key, typename Value>
class Memo {
 public:
  explicit Memo(std::size_t most) : most_(most) {}

  // Calls `make` for a key without a value; threads that ask meanwhile wait. Of more than `most` values the
  // oldest one goes; who holds it keeps it.
  template <typename Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, value] : kept_) {
      if (known == key) return value;
    }
    kept_.emplace_back(key, std::make_shared<const Value>(make()));
    if (kept_.size() > most_) kept_.pop_front();
    return kept_.back().second;
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::deque<std::pair<Key, std::shared_ptr<const Value>>> kept_;
};

}  // namespace tritax

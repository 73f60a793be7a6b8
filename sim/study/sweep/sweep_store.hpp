// Where the answers of sweeps are kept: a SQLite database, so that nothing that was stored is lost, whatever
// ends the program.
//
//   points  key, version, point, answer or error     one row for everything that was asked and answered
//   asked   sweep, number, key                       which points a sweep has; several may share answers
//
// `key` is a hash of all that decides the answer: the point, the content of the machine and model that it
// names, and the program's version (sweep_key.hpp). A write is one transaction in write-ahead mode: after
// kill -9, a full disk or loss of power the database holds whole batches. The layout is version
// kSweepLayout of the database (PRAGMA user_version); others are refused and stay as they are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tritax {

inline constexpr int kSweepLayout = 1;
inline constexpr int kSweepApplication = 0x54725378;  // "TrSx", PRAGMA application_id

// A point and what came of it, as texts of JSON objects.
struct SweepRow {
  std::string key;
  std::string version;  // of the program that answered
  std::string point;
  std::string answer;  // "" where there is only …
  std::string error;   // … this
};

struct AskedPoint {
  std::size_t number = 0;
  std::string key;
};

// What `merge` did.
struct SweepMerge {
  std::size_t rows = 0;    // that the other database has
  std::size_t added = 0;   // … of which so many are new, or replace an error
  std::size_t differ = 0;  // … and so many have another answer here, which is kept
};

enum class SweepAccess { write, read };

class SweepStore {
 public:
  // With SweepAccess::write the file is made where there is none. Every function throws UserError that begins
  // with the path: what is no database of a sweep, one of a newer layout, one that cannot be written (full
  // disk, read-only) or that another program holds for longer than half a minute.
  SweepStore(std::string path, SweepAccess access);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  // Keys of stored points; without `with_errors` only of those that were answered.
  std::unordered_set<std::string> keys(bool with_errors) const;

  // Which points a sweep of `total` has in this shard (sim/study/sweep/run_sweep.hpp); replaces what the
  // shard had before.
  void ask(const std::string& sweep, std::size_t total, std::size_t shard, std::size_t shards,
           const std::vector<AskedPoint>& points);

  // One transaction. A row whose key has an answer already changes nothing.
  void add(const std::vector<SweepRow>& rows);

  // Adds what another database has, in one transaction.
  SweepMerge merge(const std::string& other);

  // Calls `visit` for all points of a sweep, of all sweeps where it is "", by sweep and number. Points that
  // were not answered yet are left out.
  void visit(const std::string& sweep,
             const std::function<void(const std::string& sweep, std::size_t number, const SweepRow& row)>&
                 visit) const;
  std::vector<std::string> sweeps() const;

  // Puts everything into the one file, so that it can be copied. Nothing is lost without.
  void close();

 private:
  struct Connection;
  template <typename Work>
  auto guarded(const Work& work) const;

  std::string path_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tritax

// Stores the answers of sweeps in a SQLite database, so that stored answers survive any end of the program.
//
//   points  key, version, point, answer or error     one row per answered point
//   asked   sweep, number, key                       the points of a sweep; several may share answers
//
// `key` is a hash of everything that decides the answer: the point, the content of the machine and model that
// it names, and the program's version (sweep_key.hpp). A write is one transaction in write-ahead mode: after
// kill -9, a full disk or loss of power the database holds whole batches. The layout is version kSweepLayout
// of the database (PRAGMA user_version); other versions are refused and stay unchanged.
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

// A point and its result, as texts of JSON objects.
struct SweepRow {
  std::string key;
  std::string version;  // of the program that answered
  std::string point;
  std::string answer;  // "" if there is only …
  std::string error;   // … an error
};

struct AskedPoint {
  std::size_t number = 0;
  std::string key;
};

// Result of `merge`.
struct SweepMerge {
  std::size_t rows = 0;    // rows of the other database
  std::size_t added = 0;   // … of which so many are new, or replace an error
  std::size_t differ = 0;  // … and so many differ from the answer here, which is kept
};

enum class SweepAccess { write, read };

class SweepStore {
 public:
  // SweepAccess::write creates the file if it does not exist. Every function throws UserError that begins
  // with the path: for a file that is no sweep database, has a newer layout, cannot be written (full disk,
  // read-only), or is held by another program for longer than half a minute.
  SweepStore(std::string path, SweepAccess access);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  // Keys of stored points; without `with_errors` only of answered points.
  std::unordered_set<std::string> keys(bool with_errors) const;

  // Stores which points of a sweep of `total` points this shard has (sim/study/sweep/run_sweep.hpp); replaces
  // the previous points of the shard.
  void ask(const std::string& sweep, std::size_t total, std::size_t shard, std::size_t shards,
           const std::vector<AskedPoint>& points);

  // One transaction. A row whose key already has an answer changes nothing.
  void add(const std::vector<SweepRow>& rows);

  // Adds the rows of another database, in one transaction.
  SweepMerge merge(const std::string& other);

  // Calls `visit` for all points of a sweep, or of all sweeps if `sweep` is "", by sweep and number. Points
  // without an answer are left out.
  void visit(const std::string& sweep,
             const std::function<void(const std::string& sweep, std::size_t number, const SweepRow& row)>&
                 visit) const;
  std::vector<std::string> sweeps() const;

  // Moves all data into the one file, so that it can be copied. Without this call no data is lost.
  void close();

 private:
  struct Connection;
  template <typename Work>
  auto guarded(const Work& work) const;

  std::string path_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tritax

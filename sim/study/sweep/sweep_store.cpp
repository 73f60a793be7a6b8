#include "sim/study/sweep/sweep_store.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr int kWaitMilliseconds = 30'000;  // for another writing program

constexpr const char* kLayoutText = R"(
CREATE TABLE IF NOT EXISTS points (
  key TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  point TEXT NOT NULL,
  answer TEXT,
  error TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (
  sweep TEXT NOT NULL,
  number INTEGER NOT NULL,
  key TEXT NOT NULL,
  PRIMARY KEY (sweep, number)
) WITHOUT ROWID;
)";

// An answer replaces an error; nothing replaces an answer.
constexpr const char* kKeepAnswers =
    " ON CONFLICT(key) DO UPDATE SET version = excluded.version, answer = excluded.answer, error = "
    "excluded.error WHERE points.answer IS NULL AND excluded.answer IS NOT NULL";

std::string reason_of(const SQLite::Exception& error) {
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
      return "the disk is full; make room and run the same command again: what was stored is kept";
    case SQLITE_IOERR:
      return fmt::format(
          "it cannot be read or written ({}; is the disk full?); mend that and run the same command again: "
          "what was stored is kept",
          error.what());
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "it is read-only; give a file that can be written";
    case SQLITE_CANTOPEN:
      return "it cannot be opened or created; give a file in a folder that can be written";
    case SQLITE_NOTADB:
      return "it is not a database; give one that 'tritax sweep' writes";
    case SQLITE_CORRUPT:
      return fmt::format("it is damaged ({}); 'sqlite3 FILE .recover' saves what can be read", error.what());
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program has been writing to it for half a minute; wait for that, or give another file";
    default:
      return error.what();
  }
}

void bind_text_or_null(SQLite::Statement& statement, int index, const std::string& text) {
  if (text.empty()) {
    statement.bind(index);
  } else {
    statement.bind(index, text);
  }
}

int pragma_of(SQLite::Database& database, const std::string& name) {
  return database.execAndGet("PRAGMA " + name).getInt();
}

// Whether the database is new. Throws UserError if it is no sweep database, or of a newer program.
bool is_new_store(SQLite::Database& database, const std::string& path) {
  const int application = pragma_of(database, "application_id");
  const int layout = pragma_of(database, "user_version");
  const int tables = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt();
  if (application == 0 && layout == 0 && tables == 0) return true;
  if (application != kSweepApplication) {
    throw UserError(path + ": it is a database of another program; give one that 'tritax sweep' writes");
  }
  if (layout > kSweepLayout) {
    throw UserError(fmt::format(
        "{}: a newer Tritax wrote it (layout {}; this one knows {}); use that one, or give another file",
        path, layout, kSweepLayout));
  }
  return false;
}

}  // namespace

struct SweepStore::Connection {
  SQLite::Database database;
  Connection(const std::string& path, SweepAccess access)
      : database(path,
                 access == SweepAccess::read ? SQLite::OPEN_READONLY
                                             : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                 kWaitMilliseconds) {}
};

template <typename Work>
auto SweepStore::guarded(const Work& work) const {
  try {
    return work();
  } catch (const SQLite::Exception& error) {
    throw UserError(fmt::format("{}: {}", path_, reason_of(error)));
  }
}

SweepStore::SweepStore(std::string path, SweepAccess access) : path_(std::move(path)) {
  std::error_code ignored;
  if (access == SweepAccess::read && !std::filesystem::exists(path_, ignored)) {
    throw UserError(path_ + ": there is no such file; give a database that 'tritax sweep' writes");
  }
  if (std::filesystem::is_directory(path_, ignored)) {
    throw UserError(path_ + ": it is a folder; give a file in it");
  }
  guarded([&] {
    connection_ = std::make_unique<Connection>(path_, access);
    SQLite::Database& database = connection_->database;
    const bool is_new = is_new_store(database, path_);
    if (access == SweepAccess::read) {
      if (is_new) throw UserError(path_ + ": it is empty; give a database that 'tritax sweep' writes");
      return;
    }
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    if (!is_new) {
      // SQLite silently opens a read-only file for reading.
      if (sqlite3_db_readonly(database.getHandle(), "main") == 1)
        throw UserError(path_ + ": it is read-only; give a file that can be written");
      return;
    }
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    database.exec(kLayoutText);
    database.exec(fmt::format("PRAGMA application_id = {}", kSweepApplication));
    database.exec(fmt::format("PRAGMA user_version = {}", kSweepLayout));
    transaction.commit();
  });
}

SweepStore::~SweepStore() = default;

std::unordered_set<std::string> SweepStore::keys(bool with_errors) const {
  return guarded([&] {
    SQLite::Statement query(connection_->database, with_errors
                                                       ? "SELECT key FROM points"
                                                       : "SELECT key FROM points WHERE answer IS NOT NULL");
    std::unordered_set<std::string> keys;
    while (query.executeStep()) keys.insert(query.getColumn(0).getString());
    return keys;
  });
}

void SweepStore::ask(const std::string& sweep, std::size_t total, std::size_t shard, std::size_t shards,
                     const std::vector<AskedPoint>& points) {
  guarded([&] {
    SQLite::Database& database = connection_->database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement clear(database,
                            "DELETE FROM asked WHERE sweep = ? AND (number >= ? OR number % ? = ?)");
    clear.bind(1, sweep);
    clear.bind(2, static_cast<std::int64_t>(total));
    clear.bind(3, static_cast<std::int64_t>(shards));
    clear.bind(4, static_cast<std::int64_t>(shard));
    clear.exec();
    SQLite::Statement insert(database, "INSERT OR REPLACE INTO asked VALUES (?, ?, ?)");
    for (const AskedPoint& point : points) {
      insert.bind(1, sweep);
      insert.bind(2, static_cast<std::int64_t>(point.number));
      insert.bind(3, point.key);
      insert.exec();
      insert.reset();
    }
    transaction.commit();
  });
}

void SweepStore::add(const std::vector<SweepRow>& rows) {
  if (rows.empty()) return;
  guarded([&] {
    SQLite::Database& database = connection_->database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(database,
                             std::string("INSERT INTO points VALUES (?, ?, ?, ?, ?)") + kKeepAnswers);
    for (const SweepRow& row : rows) {
      insert.bind(1, row.key);
      insert.bind(2, row.version);
      insert.bind(3, row.point);
      bind_text_or_null(insert, 4, row.answer);
      bind_text_or_null(insert, 5, row.error);
      insert.exec();
      insert.reset();
    }
    transaction.commit();
  });
}

SweepMerge SweepStore::merge(const std::string& other) {
  std::error_code ignored;
  if (std::filesystem::equivalent(path_, other, ignored)) {
    throw UserError(fmt::format("{}: it is the output of the merge; leave it out", other));
  }
  const SweepStore source(other, SweepAccess::read);  // refuses other files, and closes the database again
  return guarded([&] {
    SQLite::Database& database = connection_->database;
    SQLite::Statement attach(database, "ATTACH ? AS other");
    attach.bind(1, other);
    attach.exec();
    SweepMerge merged;
    {
      SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
      const auto count = [&](const std::string& text) {
        return static_cast<std::size_t>(database.execAndGet(text).getInt64());
      };
      merged.rows = count("SELECT count(*) FROM other.points");
      merged.differ = count(
          "SELECT count(*) FROM other.points AS a JOIN main.points AS b USING (key) WHERE a.answer <> "
          "b.answer");
      merged.added = static_cast<std::size_t>(database.exec(
          std::string("INSERT INTO main.points SELECT * FROM other.points WHERE true") + kKeepAnswers));
      database.exec("INSERT OR REPLACE INTO main.asked SELECT * FROM other.asked");
      transaction.commit();
    }
    database.exec("DETACH other");
    return merged;
  });
}

void SweepStore::visit(const std::string& sweep,
                       const std::function<void(const std::string& sweep, std::size_t number,
                                                const SweepRow& row)>& visit) const {
  guarded([&] {
    SQLite::Statement query(
        connection_->database,
        "SELECT sweep, number, key, version, point, answer, error FROM asked JOIN points USING (key) WHERE "
        "?1 = '' OR sweep = ?1 ORDER BY sweep, number");
    query.bind(1, sweep);
    while (query.executeStep()) {
      const auto text = [&](int column) { return query.getColumn(column).getString(); };
      visit(text(0), static_cast<std::size_t>(query.getColumn(1).getInt64()),
            {text(2), text(3), text(4), text(5), text(6)});
    }
  });
}

std::vector<std::string> SweepStore::sweeps() const {
  return guarded([&] {
    SQLite::Statement query(connection_->database, "SELECT DISTINCT sweep FROM asked ORDER BY sweep");
    std::vector<std::string> names;
    while (query.executeStep()) names.push_back(query.getColumn(0).getString());
    return names;
  });
}

void SweepStore::close() {
  guarded([&] {
    // Fails, harmlessly, while another program has the database open.
    connection_->database.setBusyTimeout(0);
    try {
      connection_->database.exec("PRAGMA journal_mode = DELETE");
    } catch (const SQLite::Exception& error) {
      if (error.getErrorCode() != SQLITE_BUSY && error.getErrorCode() != SQLITE_LOCKED) throw;
    }
    connection_.reset();
  });
}

}  // namespace tritax

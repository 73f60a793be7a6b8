// Stored answers stay, and are found under the key of everything that decides them.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "sim/study/sweep/run_sweep.hpp"

namespace tritax {
namespace {

class SweepStores : public testing::Test {
 protected:
  SweepStores() {
    folder_ = std::filesystem::temp_directory_path() /
              ("tritax-sweep-" + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SweepStores() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  template <typename Work>
  static std::string refusal_of(const Work& work) {
    try {
      work();
    } catch (const UserError& error) {
      return error.what();
    }
    return "it is accepted";
  }

 private:
  std::filesystem::path folder_;
};

SweepPlan plan_of_sizes(int count) {
  return parse_sweep("[point]\nmachine = 'h200-4'\n[product]\nproblem.m = { from = 1, to = " +
                         std::to_string(count) + ", step = 1 }\n",
                     "s.toml", "sizes");
}

// Doubles m; refuses multiples of 7.
SweepAnswer doubled(const nlohmann::json& point) {
  const auto m = point.at("problem").at("m").get<std::int64_t>();
  if (m % 7 == 0) return {"", "m is a multiple of 7"};
  return {nlohmann::json{{"twice", 2 * m}}.dump(), ""};
}

using Rows = std::vector<std::string>;

Rows rows_of(const std::string& path) {
  Rows rows;
  SweepStore(path, SweepAccess::read)
      .visit("", [&](const std::string& sweep, std::size_t number, const SweepRow& row) {
        rows.push_back(sweep + std::to_string(number) + row.key + row.version + row.point + row.answer +
                       row.error);
      });
  return rows;
}

SweepTally run_all(const SweepPlan& plan, const std::string& path, SweepRunOptions options = {},
                   const AnswerPoint& answer = doubled, const std::string& version = "1") {
  SweepStore store(path, SweepAccess::write);
  SweepKeys keys(version);
  const SweepTally tally = run_sweep(plan, store, keys, answer, options);
  store.close();
  return tally;
}

TEST_F(SweepStores, RepeatedSweepsAskNothingAgain) {
  const SweepTally first = run_all(plan_of_sizes(50), path("a.db"));
  EXPECT_EQ(first.answered, 43u);
  EXPECT_EQ(first.refused, 7u);
  EXPECT_EQ(first.first_refusal, "m is a multiple of 7");
  const Rows rows = rows_of(path("a.db"));
  EXPECT_EQ(rows.size(), 50u);
  const SweepTally again = run_all(plan_of_sizes(50), path("a.db"));
  EXPECT_EQ(again.answered + again.refused + again.left, 0u);
  const SweepTally more = run_all(plan_of_sizes(60), path("a.db"));
  EXPECT_EQ(more.answered + more.refused, 10u);
  SweepRunOptions retry;
  retry.retry = true;
  EXPECT_EQ(run_all(plan_of_sizes(50), path("a.db"), retry).refused, 7u);
  EXPECT_EQ(rows_of(path("a.db")), rows);
}

TEST_F(SweepStores, ShardsMergeToWhatOneProcessStores) {
  run_all(plan_of_sizes(50), path("one.db"));
  for (std::size_t shard = 0; shard < 3; ++shard) {
    SweepRunOptions options;
    options.shard = shard;
    options.shards = 3;
    run_all(plan_of_sizes(50), path(std::to_string(shard)), options);
    SweepStore all(path("all.db"), SweepAccess::write);
    const SweepMerge merged = all.merge(path(std::to_string(shard)));
    EXPECT_EQ(merged.added, merged.rows);
    EXPECT_EQ(all.merge(path(std::to_string(shard))).added, 0u);
    all.close();
  }
  EXPECT_EQ(rows_of(path("all.db")), rows_of(path("one.db")));
}

TEST_F(SweepStores, AnswersOfAnotherVersionMachineOrPointAreOthers) {
  std::ofstream(path("m.toml")) << "name = 'mine'\nbase = 'h200-4'\n";
  const nlohmann::json point{{"ask", "simulate"}, {"machine", path("m.toml")}};
  const std::string key = SweepKeys("1").key(point);
  EXPECT_EQ(SweepKeys("1").key(point), key);
  EXPECT_NE(SweepKeys("2").key(point), key);
  nlohmann::json other = point;
  other["seed"] = 2;
  EXPECT_NE(SweepKeys("1").key(other), key);
  std::ofstream(path("m.toml")) << "name = 'mine'\nbase = 'h100-4'\n";
  EXPECT_NE(SweepKeys("1").key(point), key);
  std::filesystem::remove(path("m.toml"));
  EXPECT_NE(SweepKeys("1").key(point), key);
}

TEST_F(SweepStores, WhatIsInterruptedGoesOn) {
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  SweepRunOptions options;
  options.stop = &stop;
  const auto count = [&](const nlohmann::json& point) {
    if (++asked == 20) stop = true;
    return doubled(point);
  };
  const SweepTally first = run_all(plan_of_sizes(500), path("a.db"), options, count);
  EXPECT_GT(first.left, 0u);
  EXPECT_GE(first.answered + first.refused, 20u);
  const SweepTally second = run_all(plan_of_sizes(500), path("a.db"));
  EXPECT_EQ(second.answered + second.refused, first.left);
  run_all(plan_of_sizes(500), path("b.db"));
  EXPECT_EQ(rows_of(path("a.db")), rows_of(path("b.db")));
}

TEST_F(SweepStores, AnAnswerIsNotReplacedAnErrorIs) {
  SweepStore store(path("a.db"), SweepAccess::write);
  store.add({{"k", "1", "{}", "", "broken"}});
  store.add({{"k", "1", "{}", "{}", ""}});
  store.add({{"k", "1", "{}", "{\"other\": 1}", ""}});
  EXPECT_EQ(store.keys(false).count("k"), 1u);
  store.ask("s", 1, 0, 1, {{0, "k"}});
  std::string answer;
  store.visit("s", [&](const std::string&, std::size_t, const SweepRow& row) { answer = row.answer; });
  EXPECT_EQ(answer, "{}");
}

TEST_F(SweepStores, FilesThatWillNotDoAreRefusedAndStayAsTheyAre) {
  const auto opened = [&](const std::string& name, SweepAccess access) {
    return refusal_of([&] { SweepStore(path(name), access); });
  };
  std::ofstream(path("text")) << std::string(5000, 'x');
  EXPECT_NE(opened("text", SweepAccess::write).find("not a database"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path("text")), 5000u);
  EXPECT_NE(opened("none", SweepAccess::read).find("no such file"), std::string::npos);
  EXPECT_NE(opened("none/a.db", SweepAccess::write).find("cannot be opened"), std::string::npos);
  EXPECT_NE(opened(".", SweepAccess::write).find("folder"), std::string::npos);
  SQLite::Database(path("other.db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t (x)");
  EXPECT_NE(opened("other.db", SweepAccess::write).find("another program"), std::string::npos);
  run_all(plan_of_sizes(3), path("new.db"));
  const Rows rows = rows_of(path("new.db"));
  SQLite::Database(path("new.db"), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 2");
  for (const SweepAccess access : {SweepAccess::read, SweepAccess::write})
    EXPECT_NE(opened("new.db", access).find("newer Tritax"), std::string::npos) << opened("new.db", access);
  SQLite::Database(path("new.db"), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 1");
  EXPECT_EQ(rows_of(path("new.db")), rows);
}

// As on a full disk: no file may grow beyond a limit.
TEST_F(SweepStores, AFullDiskIsSaidAndWhatWasStoredIsKept) {
  run_all(plan_of_sizes(50), path("a.db"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{60'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string refusal = refusal_of([&] { run_all(plan_of_sizes(3000), path("a.db")); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(refusal.find("a.db"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("full"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("is kept"), std::string::npos) << refusal;
  EXPECT_EQ(rows_of(path("a.db")).size(), 50u);
  EXPECT_EQ(run_all(plan_of_sizes(3000), path("a.db")).left, 0u);
}

TEST_F(SweepStores, NothingIsLostWhateverTheSizeOfBatches) {
  for (const std::size_t size : {1, 7, 50, 400}) {
    const std::string file = path(std::to_string(size));
    SweepRunOptions options;
    options.batch_points = size;
    options.batch_seconds = 1000;
    const SweepTally tally = run_all(plan_of_sizes(50), file, options);
    EXPECT_EQ(tally.answered + tally.refused, 50u);
    EXPECT_EQ(rows_of(file).size(), 50u);
  }
}

}  // namespace
}  // namespace tritax

// The law of stream_reuse.hpp against exact LRU over every line.
#include "sim/stream_reuse.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <list>
#include <map>
#include <queue>
#include <random>
#include <unordered_map>
#include <vector>

namespace tritax {
namespace {

class ExactLru {
 public:
  explicit ExactLru(std::size_t lines) : lines_(lines) {}
  bool touch(std::uint64_t line) {
    const auto at = places_.find(line);
    const bool hit = at != places_.end();
    if (hit) order_.erase(at->second);
    order_.push_front(line);
    places_[line] = order_.begin();
    if (order_.size() <= lines_) return hit;
    places_.erase(order_.back());
    order_.pop_back();
    return hit;
  }

 private:
  std::size_t lines_;
  std::list<std::uint64_t> order_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

// Readers of a cache: `slots` at a time, each of the `jobs` in turn on the next slot that is free, with a
// pace of its own within `spread` of 1. A job reads one stream of `lines` lines in `pieces` pieces.
struct ReadersRun {
  int slots = 38, lines = 1024, pieces = 8;
  std::size_t cache_lines = 64;
  double spread = 0.015;
  std::vector<std::uint32_t> jobs;  // their streams

  struct Event {
    double time = 0;
    std::size_t job = 0;
    int line = 0;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : job > other.job;
    }
  };

  // Shares of the lines that LRU and the law find.
  std::pair<double, double> hits() const {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(1 - spread, 1 + spread);
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::vector<double> line_ns(jobs.size());
    std::vector<std::uint32_t> reader(jobs.size());
    for (double& ns : line_ns) ns = 1 / uniform(random);
    ExactLru lru(cache_lines);
    StreamReuse law(static_cast<double>(cache_lines));
    std::size_t next = 0, lru_hits = 0;
    double law_hits = 0;
    for (; next < jobs.size() && next < static_cast<std::size_t>(slots); ++next) events.push({0, next, 0});
    const int piece = lines / pieces;
    while (!events.empty()) {
      const Event event = events.top();
      events.pop();
      const std::size_t job = event.job;
      if (event.line > 0 && event.line % piece == 0) law.end(reader[job], event.time);
      if (event.line == lines) {
        if (next < jobs.size()) events.push({event.time, next++, 0});
        continue;
      }
      if (event.line % piece == 0) {
        const StreamReuse::Piece read{
            jobs[job], 1.0 * event.line, 1.0 * event.line + piece, 0, event.time, line_ns[job], 1};
        law_hits += piece * law.found(read).share;
        reader[job] = law.begin(read);
      }
      lru_hits += lru.touch(std::uint64_t{jobs[job]} << 32 | static_cast<std::uint32_t>(event.line));
      events.push({event.time + line_ns[job], job, event.line + 1});
    }
    const double all = static_cast<double>(jobs.size()) * lines;
    return {static_cast<double>(lru_hits) / all, law_hits / all};
  }
};

// So many streams in turn, as block-first orders have them; with one, the streams follow each other.
std::vector<std::uint32_t> in_turn(int jobs, int streams) {
  std::vector<std::uint32_t> order;
  for (int job = 0; job < jobs; ++job) order.push_back(static_cast<std::uint32_t>(job % streams));
  return order;
}
std::vector<std::uint32_t> one_after_the_other(int jobs, int of_stream) {
  std::vector<std::uint32_t> order;
  for (int job = 0; job < jobs; ++job) order.push_back(static_cast<std::uint32_t>(job / of_stream));
  return order;
}

constexpr double kAgree = 0.03;

TEST(StreamReuse, AgreesWithExactLruWhereManyStreamsShareACache) {
  for (const double spread : {0.0, 0.005, 0.01, 0.02, 0.05}) {
    ReadersRun run;
    run.spread = spread;
    run.slots = 76;
    run.jobs = in_turn(228, 16);
    const auto [exact, law] = run.hits();
    EXPECT_NEAR(law, exact, kAgree) << "spread " << spread;
  }
}

TEST(StreamReuse, AgreesWithExactLruWhereOneStreamHasTheCache) {
  for (const double spread : {0.0, 0.005, 0.01, 0.02, 0.05}) {
    ReadersRun run;
    run.spread = spread;
    run.jobs = one_after_the_other(228, 152);
    const auto [exact, law] = run.hits();
    EXPECT_NEAR(law, exact, kAgree) << "spread " << spread;
  }
}

TEST(StreamReuse, KeepsWhatFits) {
  ReadersRun run;
  run.lines = 64;
  run.slots = 8;
  run.cache_lines = 128;
  run.jobs = in_turn(80, 2);
  const auto [exact, law] = run.hits();
  EXPECT_NEAR(exact, 1 - 2.0 / 80, 1e-9);
  EXPECT_NEAR(law, exact, 0.02);
}

TEST(StreamReuse, FindsNothingAlone) {
  StreamReuse cache(1000);
  const StreamReuse::Piece piece{1, 0, 500, 0, 0, 1, 1};
  EXPECT_EQ(cache.found(piece).share, 0);
  cache.end(cache.begin(piece), 500);
  const StreamReuse::Piece other{2, 0, 500, 0, 500, 1, 1};
  EXPECT_EQ(cache.found(other).share, 0);
}

RC_GTEST_PROP(StreamReuse, FindsMoreInALargerCache, ()) {
  ReadersRun run;
  run.lines = 256;
  run.slots = *rc::gen::inRange(1, 20);
  run.spread = *rc::gen::inRange(0, 50) * 1e-3;
  run.jobs = in_turn(3 * run.slots, *rc::gen::inRange(1, 6));
  run.cache_lines = 16;
  const double small = run.hits().second;
  run.cache_lines = 4096;
  RC_ASSERT(run.hits().second >= small - 0.02);
}

}  // namespace
}  // namespace tritax

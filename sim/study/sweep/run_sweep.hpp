// Answers the missing points of a sweep and stores the answers, on all cores.
//
// A point that any sweep has stored is not asked again. Answers are stored in batches, one transaction each
// (sweep_store.hpp): if the program ends, at most the points in progress and the last batch are lost. A point
// that cannot be answered is stored with the reason, and the other points continue.
//
// Shard i of n has the points whose number is i modulo n. Together the shards are the sweep, and their merged
// databases equal the database of one run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "sim/study/sweep/sweep_key.hpp"
#include "sim/study/sweep/sweep_plan.hpp"
#include "sim/study/sweep/sweep_store.hpp"

namespace tritax {

struct SweepAnswer {
  std::string answer;  // JSON object; "" if there is only …
  std::string error;   // … an error; both are "" if the point was interrupted and has to be asked again
};

// Callable from any thread.
using AnswerPoint = std::function<SweepAnswer(const nlohmann::json& point)>;

// The work of a sweep.
struct SweepWork {
  std::size_t total = 0;            // points of the sweep
  std::vector<AskedPoint> asked;    // of the shard
  std::vector<AskedPoint> missing;  // … of which these have no answer, each key once
};

struct SweepRunOptions {
  std::size_t shard = 0;  // number of the shard, below `shards`
  std::size_t shards = 1;
  bool retry = false;          // refused points are asked again
  bool one_at_a_time = false;  // each point uses all cores itself
  std::size_t batch_points = 512;
  double batch_seconds = 1;                 // the limit reached first stores a batch
  const std::atomic<bool>* stop = nullptr;  // true: stores the answers so far and returns
  std::function<void(std::size_t done, std::size_t all)> progress;  // missing points; one thread at a time
};

struct SweepTally {
  std::size_t answered = 0;
  std::size_t refused = 0;
  std::size_t left = 0;  // still missing
  std::string first_refusal;
};

// Collects answers and stores them in batches; also for other ways to distribute points (MPI).
class SweepBatches {
 public:
  SweepBatches(SweepStore& store, const SweepRunOptions& options, std::string version, std::size_t missing);

  // Call it from one thread at a time.
  void add(const AskedPoint& point, const nlohmann::json& input, SweepAnswer answer);
  // Stores the remaining answers.
  SweepTally finish();

 private:
  void flush();

  SweepStore& store_;
  const SweepRunOptions& options_;
  const std::string version_;
  std::vector<SweepRow> rows_;
  SweepTally tally_;
  std::chrono::steady_clock::time_point flushed_;
  std::size_t missing_ = 0;
};

// Lists the work without asking any point.
SweepWork work_of_sweep(const SweepPlan& plan, const SweepStore* store, SweepKeys& keys,
                        const SweepRunOptions& options);

// Throws UserError if the database cannot be written.
SweepTally run_sweep(const SweepPlan& plan, SweepStore& store, SweepKeys& keys, const AnswerPoint& answer,
                     const SweepRunOptions& options);

}  // namespace tritax

// Answers what is missing of a sweep and stores it, on all cores.
//
// A point that is stored already, by whatever sweep, is not asked again. Answers are stored in batches, each
// one transaction (sweep_store.hpp): what ends the program loses at most the points that were being answered
// and the last batch. A point that cannot be answered is stored with the reason, and the others go on.
//
// Shard i of n has the points whose number is i modulo n: together they are the sweep, and their databases
// merged are equal to that of one run.
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
  std::string answer;  // JSON object; "" where there is only …
  std::string error;   // … this, or neither of a point that was interrupted and is still to be asked
};

// From any thread.
using AnswerPoint = std::function<SweepAnswer(const nlohmann::json& point)>;

// What a sweep has to do.
struct SweepWork {
  std::size_t total = 0;            // points of the sweep
  std::vector<AskedPoint> asked;    // of the shard
  std::vector<AskedPoint> missing;  // … of which these are to be answered, each key once
};

struct SweepRunOptions {
  std::size_t shard = 0;  // of `shards`, from 0
  std::size_t shards = 1;
  bool retry = false;          // points that were refused are asked again
  bool one_at_a_time = false;  // each point uses all cores itself
  std::size_t batch_points = 512;
  double batch_seconds = 1;                 // a batch is stored when either is reached
  const std::atomic<bool>* stop = nullptr;  // true: store what there is and return
  std::function<void(std::size_t done, std::size_t all)> progress;  // of the missing; one thread at a time
};

struct SweepTally {
  std::size_t answered = 0;
  std::size_t refused = 0;
  std::size_t left = 0;  // missing still
  std::string first_refusal;
};

// Collects answers and stores them in batches; for whoever distributes points otherwise (MPI).
class SweepBatches {
 public:
  SweepBatches(SweepStore& store, const SweepRunOptions& options, std::string version, std::size_t missing);

  // One thread at a time.
  void add(const AskedPoint& point, const nlohmann::json& input, SweepAnswer answer);
  // Stores the rest.
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

// Without asking anything.
SweepWork work_of_sweep(const SweepPlan& plan, const SweepStore* store, SweepKeys& keys,
                        const SweepRunOptions& options);

// Throws UserError where the database cannot be written.
SweepTally run_sweep(const SweepPlan& plan, SweepStore& store, SweepKeys& keys, const AnswerPoint& answer,
                     const SweepRunOptions& options);

}  // namespace tritax

#include "sim/study/sweep/run_sweep.hpp"

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <memory>
#include <unordered_set>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

struct AnsweredPoint {
  AskedPoint asked;
  nlohmann::json point;
  SweepAnswer answer;
};

// Answers come in any order: a slow point delays no other point.
void answer_in_parallel(const SweepPlan& plan, const SweepWork& work, const AnswerPoint& answer,
                        const SweepRunOptions& options, SweepBatches& batches) {
  std::size_t next = 0;
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  const auto take = [&](tbb::flow_control& flow) -> std::size_t {
    if (next < work.missing.size() && !stopped()) return next++;
    flow.stop();
    return 0;
  };
  const auto find_out = [&](std::size_t index) {
    auto found = std::make_shared<AnsweredPoint>();
    found->asked = work.missing[index];
    found->point = plan.point(found->asked.number);
    if (!stopped()) found->answer = answer(found->point);
    return found;
  };
  const auto keep = [&](const std::shared_ptr<AnsweredPoint>& found) {
    batches.add(found->asked, found->point, std::move(found->answer));
  };
  const auto threads = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  const std::size_t at_once = options.one_at_a_time ? 1 : 4 * threads;
  tbb::parallel_pipeline(
      at_once, tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order, take) &
                   tbb::make_filter<std::size_t, std::shared_ptr<AnsweredPoint>>(tbb::filter_mode::parallel,
                                                                                 find_out) &
                   tbb::make_filter<std::shared_ptr<AnsweredPoint>, void>(
                       tbb::filter_mode::serial_out_of_order, keep));
}

}  // namespace

SweepBatches::SweepBatches(SweepStore& store, const SweepRunOptions& options, std::string version,
                           std::size_t missing)
    : store_(store),
      options_(options),
      version_(std::move(version)),
      flushed_(std::chrono::steady_clock::now()),
      missing_(missing) {}

void SweepBatches::add(const AskedPoint& point, const nlohmann::json& input, SweepAnswer answer) {
  if (answer.answer.empty() && answer.error.empty()) return;  // interrupted
  const bool refused = answer.answer.empty();
  ++(refused ? tally_.refused : tally_.answered);
  if (refused && tally_.first_refusal.empty()) tally_.first_refusal = answer.error;
  rows_.push_back({point.key, version_, input.dump(), std::move(answer.answer), std::move(answer.error)});
  if (options_.progress) options_.progress(tally_.answered + tally_.refused, missing_);
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - flushed_;
  if (rows_.size() >= options_.batch_points || waited.count() >= options_.batch_seconds) flush();
}

void SweepBatches::flush() {
  store_.add(rows_);
  rows_.clear();
  flushed_ = std::chrono::steady_clock::now();
}

SweepTally SweepBatches::finish() {
  flush();
  tally_.left = missing_ - tally_.answered - tally_.refused;
  return tally_;
}

SweepWork work_of_sweep(const SweepPlan& plan, const SweepStore* store, SweepKeys& keys,
                        const SweepRunOptions& options) {
  TRITAX_ASSERT(options.shard < options.shards, "a shard is one of those that there are");
  SweepWork work;
  work.total = plan.count();
  std::unordered_set<std::string> known;
  if (store != nullptr) known = store->keys(!options.retry);
  for (std::size_t number = options.shard; number < work.total; number += options.shards) {
    AskedPoint& point = work.asked.emplace_back(AskedPoint{number, keys.key(plan.point(number))});
    if (known.insert(point.key).second) work.missing.push_back(point);
  }
  return work;
}

SweepTally run_sweep(const SweepPlan& plan, SweepStore& store, SweepKeys& keys, const AnswerPoint& answer,
                     const SweepRunOptions& options) {
  const SweepWork work = work_of_sweep(plan, &store, keys, options);
  store.ask(plan.name, work.total, options.shard, options.shards, work.asked);
  SweepBatches batches(store, options, keys.version(), work.missing.size());
  answer_in_parallel(plan, work, answer, options, batches);
  return batches.finish();
}

}  // namespace tritax

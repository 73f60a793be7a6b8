// Answers to the points of a sweep (sim/study/sweep/sweep_plan.hpp).
//
//   simulate      as a line of `tritax evaluate`: "time_us", "bound_us", "operations", "critical_path"
//
//   advise        of the fastest: "pattern", "time_us", "speedup", "knobs", "critical_path";
//                 the best of every pattern: "candidates"
//
//   layer         of all layers: "libraries_us", "chosen_us", "best_us", "speedup"; of each step: "steps"
//
//   closed-form   "bound_us": a lower bound, by a formula, for all schedules with the knobs
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/machine/machine.hpp"
#include "sim/study/sweep/run_sweep.hpp"

namespace tritax::cli {

class PointAnswerer {
 public:
  // `stop` ends searches early; their point is then not answered. `stop` must outlive this object.
  explicit PointAnswerer(const std::atomic<bool>& stop) : stop_(stop) {}

  // Any thread may call it.
  SweepAnswer answer(const nlohmann::json& point);

 private:
  std::shared_ptr<const Machine> named(const std::string& name);
  Machine machine_of(const nlohmann::json& point);
  nlohmann::ordered_json find_answer(const nlohmann::json& point);
  nlohmann::ordered_json advise_point(const nlohmann::json& point, const Machine& machine) const;
  nlohmann::ordered_json layer_point(const nlohmann::json& point, const Machine& machine) const;

  const std::atomic<bool>& stop_;
  std::mutex mutex_;  // guards machines_
  std::map<std::string, std::shared_ptr<const Machine>> machines_;
};

}  // namespace tritax::cli

// Immutable schedules for Python, with the way to rebuild them where it is known.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/schedule/schedule.hpp"
#include "sim/study/sensitivity.hpp"

namespace tritax::python {

class BoundSchedule {
 public:
  // A schedule of a builder or a file, not checked yet.
  explicit BoundSchedule(Schedule schedule)
      : schedule_(std::make_shared<const Schedule>(std::move(schedule))),
        sound_(std::make_shared<std::atomic<bool>>(false)) {}
  // A schedule of a pattern.
  BoundSchedule(Schedule schedule, Rebuild rebuild) : BoundSchedule(std::move(schedule)) {
    rebuild_ = std::move(rebuild);
    sound_->store(true);
  }

  const Schedule& operator*() const { return *schedule_; }
  const Schedule* operator->() const { return schedule_.get(); }
  const std::shared_ptr<const Schedule>& shared() const { return schedule_; }
  const Rebuild* rebuild() const { return rebuild_ ? &*rebuild_ : nullptr; }
  std::string place() const;  // prefix of messages

  // Throws UserError with the findings of the checker, including findings on the machine; schedules of
  // patterns count as sound.
  void require_sound_on(const Machine& machine) const;

 private:
  std::shared_ptr<const Schedule> schedule_;
  std::optional<Rebuild> rebuild_;
  std::shared_ptr<std::atomic<bool>> sound_;  // independent of the machine; set once checked
};

}  // namespace tritax::python

// Schedules as Python holds them: never changed, perhaps with how they were built.
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
  // Of a builder or a file: nobody knows yet whether it is sound.
  explicit BoundSchedule(Schedule schedule)
      : schedule_(std::make_shared<const Schedule>(std::move(schedule))),
        sound_(std::make_shared<std::atomic<bool>>(false)) {}
  // Of a pattern.
  BoundSchedule(Schedule schedule, Rebuild rebuild) : BoundSchedule(std::move(schedule)) {
    rebuild_ = std::move(rebuild);
    sound_->store(true);
  }

  const Schedule& operator*() const { return *schedule_; }
  const Schedule* operator->() const { return schedule_.get(); }
  const std::shared_ptr<const Schedule>& shared() const { return schedule_; }
  const Rebuild* rebuild() const { return rebuild_ ? &*rebuild_ : nullptr; }
  std::string place() const;  // in front of messages

  // Throws UserError with what the checker finds, on the machine too; schedules of patterns are taken for
  // sound.
  void require_sound_on(const Machine& machine) const;

 private:
  std::shared_ptr<const Schedule> schedule_;
  std::optional<Rebuild> rebuild_;
  std::shared_ptr<std::atomic<bool>> sound_;  // whatever the machine; known once it has been checked
};

}  // namespace tritax::python

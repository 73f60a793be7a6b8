// Work queues: claims that draw items, or skip operations.
//
// WorkQueues owns what each workgroup has drawn, and the free signals that it has passed while a store was in
// flight. It moves the pc of the workgroup, and that of its sender.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_flags.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class WorkQueues {
 public:
  WorkQueues(Run& run, Flags& flags) : run_(run), flags_(flags) {}

  void begin_claim(WorkgroupState& wg, std::uint32_t id, const Op& op, double now);
  void end_claim(WorkgroupState& wg, std::uint32_t id, const Op& op);
  bool goes_back_to_claim(WorkgroupState& wg, std::uint32_t id);

  // A free signal at the pc of a workgroup waits for the store in flight; the end of the store raises it.
  void pass_signal(const WorkgroupState& wg, std::uint32_t id) {
    if (run_.has_items) state_of(id).passed.push_back(wg.pc);
  }
  void raise_passed(WorkgroupState& wg, std::uint32_t id, double lost_ns, double now);

 private:
  struct State {                        // of a workgroup
    std::uint32_t claim = kNobody;      // operation that has drawn the current item; kNobody: none
    std::vector<std::uint32_t> passed;  // free signals that the end of the store in flight raises
  };
  State& state_of(std::uint32_t id) {
    if (id >= states_.size()) states_.resize(id + 1);
    return states_[id];
  }
  void go_to(WorkgroupState& wg, std::uint32_t id, std::uint32_t first, std::uint32_t end);

  Run& run_;
  Flags& flags_;
  std::vector<State> states_;  // by place of a workgroup, up to the last that has drawn or passed
};

}  // namespace tritax::engine

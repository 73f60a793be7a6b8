// What waited for what in a simulated timeline: the signal that released each wait, and one chain of
// operations, each of which began or ended when the one before it let it, from the begin of the run to its
// end.
//
// The chain is read off the times, backwards from whatever ends last:
//
//   operation   released by the signal that its wait saw, or by the last store of its workgroup that it had
//               to see drained; else begun after the operation before it in its workgroup, after the one
//               that made room on its compute unit, or with its kernel
//   kernel      ended with its last operation; begun when its host had launched it, or when what it waits
//               for in its stream had ended, whichever came later
//   host        a synchronisation ended with the last of what it waits for; a barrier with the last rank
//
// Several chains may be as long; where times are equal the later operation of the timeline is taken. Its
// steps follow each other without a gap, so they add up to the time of the run. The account of the taxes
// (sim/simulate.hpp) is kept by the simulator itself and knows more: what a step was slowed by.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax {

inline constexpr std::uint32_t kNoCause = 0xffffffffu;

// For every operation of `timeline` (in its order) the one whose signal let it end; kNoCause for what is no
// wait, and for waits whose flag stood from the start.
std::vector<std::uint32_t> releases_of(const Timeline& timeline, const Schedule& schedule);

enum class StepKind : std::uint8_t { op, kernel, host, copy };

struct PathStep {
  StepKind kind = StepKind::op;
  std::uint32_t index = 0;  // into ops, kernels, host_ops or copies of the timeline
  double begin_ns = 0;      // from the end of the step before it …
  double end_ns = 0;
};

// In the order of time, from 0 to the last end; empty for an empty timeline. `releases` as releases_of gives.
std::vector<PathStep> critical_path_of(const Timeline& timeline, const Schedule& schedule,
                                       const std::vector<std::uint32_t>& releases);

}  // namespace tritax

// Items of work queues in lowering: conflicts between programs, and claims. Plain host code.
//
// On the device the program of an item ends with its own claim, which draws the next item, so that a wave
// needs only the begin and end of its operations. The operations behind an empty queue belong to the claims
// of the workgroups.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

// Whether two programs of a kernel access the same memory, and at least one writes it. One workgroup may run
// both, one after the other, and then its waves must meet between them.
bool programs_conflict(const Schedule& schedule, const Kernel& kernel);

// Number of the item's own claim in stamps: after all operations of the schedule.
std::int32_t number_of_item_claim(const Schedule& schedule, std::size_t kernel, std::size_t item);
std::size_t item_total(const Schedule& schedule);

// The claim of a workgroup that draws this item, as an index into Schedule::ops.
std::uint32_t claim_of_item(const Schedule& schedule, const Workgroup& workgroup, std::int32_t item);

}  // namespace tritax::gpu

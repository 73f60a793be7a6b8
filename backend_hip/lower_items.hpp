// Items of work queues in lowering: what a workgroup may not know of them beforehand. Plain host code.
//
// On the device the program of an item ends with a claim of its own, which draws the next one: a wave needs
// to know no more than where its operations are and end. What comes behind an empty queue stands with the
// claims of the workgroups.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

// Whether two of a kernel's programs touch the same memory, and one of them writes it. One workgroup may run
// them one after the other, and then its waves have to meet between them.
bool programs_conflict(const Schedule& schedule, const Kernel& kernel);

// The number of the item's own claim in stamps: behind all operations of the schedule.
std::int32_t number_of_item_claim(const Schedule& schedule, std::size_t kernel, std::size_t item);
std::size_t item_total(const Schedule& schedule);

// The claim of a workgroup that draws this item: an index into Schedule::ops.
std::uint32_t claim_of_item(const Schedule& schedule, const Workgroup& workgroup, std::int32_t item);

}  // namespace tritax::gpu

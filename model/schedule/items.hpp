// Items are work that workgroups draw from a queue at run time, without a fixed assignment.
//
// A kernel has a list of items, programs like those of its workgroups. A queue is a flag counter with a range
// of items. A workgroup that reaches a `claim` takes n = counter++, in one atomic step, and runs item first +
// n, with an empty accumulator; then it returns to the same claim. If no item is left, the workgroup
// continues after the claim, again with an empty accumulator. So exactly one workgroup runs each item, and
// item n + 1 is not drawn before item n: the items are like a grid that is dispatched in order to the
// claiming workgroups.
//
//   G workgroups, each {claim queue[0]: items 0 … W-1}, and W items that take t each: ceil(W/G) rounds of t.
//
// For any assignment, items come after everything that all claims of their queue have waited for, and before
// the end of the kernel. Only flags order two items, or an item and the operations after a claim.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// A claim that runs items; other claims skip operations.
inline bool draws_items(const Op& op) { return op.kind == OpKind::claim && op.k_end > op.k_begin; }
inline std::int32_t item_count(const Op& claim) { return claim.k_end - claim.k_begin; }

// Workgroups and items of a kernel in one numbering: first the workgroups, then the items.
inline std::size_t program_count(const Kernel& kernel) {
  return kernel.workgroups.size() + kernel.items.size();
}
inline const Workgroup& program_of(const Kernel& kernel, std::size_t number) {
  const std::size_t workgroups = kernel.workgroups.size();
  return number < workgroups ? kernel.workgroups[number] : kernel.items[number - workgroups];
}

// The item that contains an operation (index into Schedule::ops); -1: the operation is of a workgroup.
std::int32_t item_of(const Kernel& kernel, std::uint32_t op);

// A counter on the rank of `kernel`, and the items that are drawn from it.
struct ItemQueue {
  std::int16_t flag = -1;
  std::int32_t index = 0;
  std::int32_t first = 0;  // into Kernel::items
  std::int32_t count = 0;
  std::vector<Op> awaited;  // waits before all its claims, with the least value and scope
};

// The queues of a kernel that has passed check_items().
std::vector<ItemQueue> item_queues(const Schedule& schedule, const Kernel& kernel);

}  // namespace tritax

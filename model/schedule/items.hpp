// Items: work that workgroups draw from a queue, so that it need not be told beforehand who does what.
//
// A kernel has a list of items, programs like those of its workgroups. A queue is a flag counter together
// with a range of items: a workgroup that comes to a `claim` takes n = counter++, in one atomic step, and
// runs item first + n, with an empty accumulator; then it comes back to the same claim. If there is none, it
// goes on behind the claim, again with an empty accumulator. So every item is run by exactly one workgroup,
// and item n + 1 is not drawn before item n: a grid that is dispatched in order onto those who claim.
//
//   G workgroups, each {claim queue[0]: items 0 … W-1}, and W items that take t each: ceil(W/G) rounds of t.
//
// What is known of items, whoever draws them: they come after what all claims of their queue come after
// (what all of them have waited for), and before the end of the kernel. Nothing orders two items, nor an item
// and what follows a claim, unless flags do.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// A claim that runs items, as against one that skips operations.
inline bool draws_items(const Op& op) { return op.kind == OpKind::claim && op.k_end > op.k_begin; }
inline std::int32_t item_count(const Op& claim) { return claim.k_end - claim.k_begin; }

// Workgroups and items of a kernel under one number: first the workgroups, then the items.
inline std::size_t program_count(const Kernel& kernel) {
  return kernel.workgroups.size() + kernel.items.size();
}
inline const Workgroup& program_of(const Kernel& kernel, std::size_t number) {
  const std::size_t workgroups = kernel.workgroups.size();
  return number < workgroups ? kernel.workgroups[number] : kernel.items[number - workgroups];
}

// The item that an operation (index into Schedule::ops) belongs to, or -1: it is of a workgroup.
std::int32_t item_of(const Kernel& kernel, std::uint32_t op);

// A counter of the rank of `kernel` and the items that are drawn from it.
struct ItemQueue {
  std::int16_t flag = -1;
  std::int32_t index = 0;
  std::int32_t first = 0;  // into Kernel::items
  std::int32_t count = 0;
  std::vector<Op> awaited;  // waits that all its claims come after, at the least value and scope of all
};

// Those of a kernel that has passed check_items().
std::vector<ItemQueue> item_queues(const Schedule& schedule, const Kernel& kernel);

}  // namespace tritax

#include "model/schedule/items.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "model/schedule/findings.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

// Flag array and index.
using Counter = std::pair<std::int16_t, std::int32_t>;

struct Awaited {
  std::int32_t value = 0;
  Scope scope = Scope::workgroup;
};
using AwaitedCounters = std::map<Counter, Awaited>;

void note_wait(AwaitedCounters& awaited, const Op& op) {
  Awaited& known = awaited[{op.flag, op.index}];
  known = {std::max(known.value, op.value), std::max(known.scope, op.scope)};
}

void keep_common(AwaitedCounters& common, const AwaitedCounters& other) {
  for (auto entry = common.begin(); entry != common.end();) {
    const auto found = other.find(entry->first);
    if (found == other.end()) {
      entry = common.erase(entry);
      continue;
    }
    Awaited& both = entry->second;
    both = {std::min(both.value, found->second.value), std::min(both.scope, found->second.scope)};
    ++entry;
  }
}

std::vector<Op> waits_for(const Kernel& kernel, const AwaitedCounters& awaited) {
  std::vector<Op> waits;
  for (const auto& [counter, what] : awaited) {
    Op& op = waits.emplace_back();
    op.kind = OpKind::wait;
    op.rank = static_cast<std::int16_t>(kernel.rank);
    op.flag = counter.first;
    op.index = counter.second;
    op.value = what.value;
    op.scope = what.scope;
  }
  return waits;
}

// Place of a claim, for messages.
struct ClaimPlace {
  std::size_t kernel = 0;
  std::size_t workgroup = 0;
  std::uint32_t op = 0;
};

class ItemChecker {
 public:
  ItemChecker(const Schedule& schedule, Findings& findings) : schedule_(schedule), findings_(findings) {}

  void check() {
    for (std::size_t k = 0; k < schedule_.kernels.size() && !findings_.full(); ++k) {
      if (!schedule_.kernels[k].items.empty()) check_places_of_items(k);
      check_claims(k);
      if (findings_.empty() && !schedule_.kernels[k].items.empty()) check_table(k);
    }
    if (findings_.empty()) check_launches();
  }

 private:
  std::string describe(const ClaimPlace& place) const {
    return describe_op(schedule_, place.kernel, place.workgroup, place.op);
  }

  // The items must follow the workgroups in Schedule::ops, so that the index of an operation identifies its
  // item.
  void check_places_of_items(std::size_t k) {
    const Kernel& kernel = schedule_.kernels[k];
    std::uint64_t end = 0;
    for (const Workgroup& workgroup : kernel.workgroups) {
      end = std::max(end, std::uint64_t{workgroup.first_op} + workgroup.op_count);
    }
    for (std::size_t i = 0; i < kernel.items.size(); ++i) {
      const Item& item = kernel.items[i];
      if (item.first_op < end) {
        findings_.add(Kind::meaningless, fmt::format("{} item {}", describe_kernel(schedule_, k), i),
                      fmt::format("its operations begin at {}; those of the kernel's workgroups and of items "
                                  "before it end at {}, and an item lies behind them",
                                  item.first_op, end));
        return;
      }
      end = std::uint64_t{item.first_op} + item.op_count;
    }
  }

  void check_claims(std::size_t k) {
    const Kernel& kernel = schedule_.kernels[k];
    for (std::size_t w = 0; w < kernel.workgroups.size(); ++w) {
      const Workgroup& workgroup = kernel.workgroups[w];
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule_.ops[workgroup.first_op + i];
        if (op.kind == OpKind::claim) check_counter({k, w, i}, op);
      }
    }
  }

  // All claims from a counter must mean the same queue.
  void check_counter(const ClaimPlace& place, const Op& op) {
    const std::tuple key(schedule_.kernels[place.kernel].rank, op.flag, op.index);
    const auto [entry, added] = claims_.try_emplace(key, place, op);
    const auto& [before, other] = entry->second;
    if (added || (!draws_items(op) && !draws_items(other))) return;
    const std::string counter =
        describe_flag(schedule_, op.flag, op.index, schedule_.kernels[place.kernel].rank);
    if (before.kernel != place.kernel) {
      findings_.add(Kind::meaningless, describe(place),
                    fmt::format("claims from {}, as does {}; items belong to one kernel: give each kernel a "
                                "counter of its own",
                                counter, describe(before)));
    } else if (op.k_begin != other.k_begin || op.k_end != other.k_end) {
      findings_.add(
          Kind::meaningless, describe(place),
          fmt::format("claims {} from {}, but {} claims {}; all claims from a counter name the same "
                      "items",
                      text_of(op), counter, describe(before), text_of(other)));
    }
  }

  static std::string text_of(const Op& claim) {
    return draws_items(claim) ? fmt::format("items [{}, {})", claim.k_begin, claim.k_end) : "no items";
  }

  // Every item must be in exactly one queue.
  void check_table(std::size_t k) {
    const Kernel& kernel = schedule_.kernels[k];
    std::vector<std::pair<std::int32_t, const std::pair<ClaimPlace, Op>*>> queues;
    for (const auto& [key, claim] : claims_) {
      if (claim.first.kernel == k && draws_items(claim.second)) {
        queues.emplace_back(claim.second.k_begin, &claim);
      }
    }
    std::sort(queues.begin(), queues.end());
    std::int32_t end = 0;
    for (std::size_t i = 0; i < queues.size(); ++i) {
      const auto& [place, op] = *queues[i].second;
      if (op.k_begin < end) {
        findings_.add(
            Kind::meaningless, describe(place),
            fmt::format("claims {}, of which {} claims {} from another counter; every item is in one "
                        "queue",
                        text_of(op), describe(queues[i - 1].second->first),
                        text_of(queues[i - 1].second->second)));
        return;
      }
      if (op.k_begin > end) break;
      end = op.k_end;
    }
    if (static_cast<std::size_t>(end) < kernel.items.size()) {
      findings_.add(Kind::meaningless, fmt::format("{} item {}", describe_kernel(schedule_, k), end),
                    "no workgroup of the kernel claims it; name it in a claim, or leave it out");
    }
  }

  // A queue is empty after the first launch, and nothing resets its counter.
  void check_launches() {
    std::vector<int> launches(schedule_.kernels.size(), 0);
    const auto launch = [&](std::size_t rank, std::size_t op, std::int32_t kernel) {
      const auto k = static_cast<std::size_t>(kernel);
      if (!schedule_.kernels[k].items.empty() && ++launches[k] == 2) {
        findings_.add(Kind::meaningless, describe_host_op(schedule_, rank, op),
                      fmt::format("launches {} again, which has items; the first launch leaves its queues "
                                  "empty: give the second launch a kernel and counters of its own",
                                  describe_kernel(schedule_, k)));
      }
    };
    for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) {
      for (std::size_t i = 0; i < schedule_.host[rank].size(); ++i) {
        for_each_launch(schedule_, schedule_.host[rank][i],
                        [&](const GraphNode& node) { launch(rank, i, node.kernel); });
      }
    }
  }

  const Schedule& schedule_;
  Findings& findings_;
  // The first claim from each counter, by rank, flag and index.
  std::map<std::tuple<std::int32_t, std::int16_t, std::int32_t>, std::pair<ClaimPlace, Op>> claims_;
};

}  // namespace

std::int32_t item_of(const Kernel& kernel, std::uint32_t op) {
  const auto behind = std::upper_bound(kernel.items.begin(), kernel.items.end(), op,
                                       [](std::uint32_t o, const Item& item) { return o < item.first_op; });
  return static_cast<std::int32_t>(behind - kernel.items.begin()) - 1;
}

std::vector<ItemQueue> item_queues(const Schedule& schedule, const Kernel& kernel) {
  std::map<Counter, ItemQueue> queues;
  std::map<Counter, AwaitedCounters> common;
  for (const Workgroup& workgroup : kernel.workgroups) {
    AwaitedCounters awaited;
    std::uint64_t block_end = 0;  // of a block that may be skipped
    for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
      const Op& op = schedule.ops[workgroup.first_op + i];
      if (op.kind == OpKind::wait && i >= block_end) note_wait(awaited, op);
      if (op.kind != OpKind::claim) continue;
      const Counter counter{op.flag, op.index};
      if (!draws_items(op)) {
        block_end = std::uint64_t{i} + 1 + static_cast<std::uint64_t>(op.rect.rows);
      } else if (queues.try_emplace(counter, ItemQueue{op.flag, op.index, op.k_begin, item_count(op), {}})
                     .second) {
        common[counter] = awaited;
      } else {
        keep_common(common[counter], awaited);
      }
    }
  }
  std::vector<ItemQueue> all;
  for (auto& [counter, queue] : queues) {
    queue.awaited = waits_for(kernel, common[counter]);
    all.push_back(std::move(queue));
  }
  return all;
}

void check_items(const Schedule& schedule, Findings& findings) { ItemChecker(schedule, findings).check(); }

}  // namespace tritax

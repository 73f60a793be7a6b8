// Schedules that deadlock, or do not, according to who gets a place on the compute units.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "tests/schedule/places.hpp"

namespace tritax {
namespace {

// "A" spins on "B" and "C" on "D", all on streams of their own.
Places two_pairs(int a, int c, Placement placement) {
  Places s(1);
  s.spinning(s.add("A", 0, -1, 65536, placement), a, 0);
  s.spinning(s.add("C", 0, -1, 65536, placement), c, 1);
  s.signalling(s.add("B", 0), 0, 0);
  s.signalling(s.add("D", 0), 1, 0);
  return s;
}

TEST(CheckPlaces, KernelsThatSpinOnDifferentOnesMayNotFillTheGpuTogether) {
  for (const Placement placement : {Placement::dispatch, Placement::persistent}) {
    two_pairs(4, 2, placement).expect_sound();
    two_pairs(4, 4, placement)
        .expect_refused("kernel 'A' rank 0 workgroup 0 operation 0 (wait)",
                        "waits for ready[0] of rank 0 >= 1, but kernel 'B' rank 0 workgroup 0, on which that "
                        "depends, may never get a place on Small: 4 workgroups of kernel 'A' rank 0 and 4 "
                        "workgroups of kernel 'C' rank 0 can take every place");
  }
}

// On both ranks "A" spins on the "B" of the other.
Places crossed(int a, Placement placement, bool signaller_first) {
  Places s(2);
  for (int rank = 0; rank < 2; ++rank) {
    if (signaller_first) s.signalling(s.add("B", rank), 0, 1 - rank);
    s.spinning(s.add("A", rank, -1, 65536, placement), a, 0);
    if (!signaller_first) s.signalling(s.add("B", rank), 0, 1 - rank);
  }
  return s;
}

TEST(CheckPlaces, KernelsThatSpinOnAnotherRankMayNotKeepOutWhomThatRankSpinsOn) {
  for (const Placement placement : {Placement::dispatch, Placement::persistent}) {
    crossed(kUnits - 2, placement, false).expect_sound();
    crossed(kUnits, placement, true)
        .expect_refused(
            "kernel 'A' rank 1 workgroup 0 operation 0 (wait)",
            "so it is if 'A' starts before 'B', as independent streams may, whichever is launched first");
    crossed(kUnits, placement, false)
        .expect_refused(
            "kernel 'A' rank 1 workgroup 0 operation 0 (wait)",
            "kernel 'B' rank 0 workgroup 0, on which that depends, may never get a place on Small: "
            "8 workgroups of kernel 'A' rank 0 can take every place");
  }
}

TEST(CheckPlaces, AKernelMayFillTheGpuWhileItSpinsOnARankWhereThereIsRoom) {
  Places s(2);
  s.spinning(s.add("A", 0), kUnits, 0);
  s.signalling(s.add("B", 0), 0, 1);  // nobody on rank 1 fills it, so "A" ends in any case
  s.spinning(s.add("A", 1), 1, 1);
  s.signalling(s.add("B", 1), 0, 0);
  s.signalling(s.add("C", 1), 1, 1);
  s.expect_sound();
}

TEST(CheckPlaces, WorkgroupsThatDoNotSpinLeaveTheirPlaces) {
  Places s(1);
  const auto mixed = s.add("mixed", 0);
  s.signalling(mixed, 1, 0, 10 * kUnits);
  s.spinning(mixed, kUnits - 2, 0);
  s.signalling(s.add("B", 0), 0, 0);
  s.expect_sound();
}

// Two streams of three kernels each, which spin on six others.
Places two_streams(int each) {
  Places s(1);
  for (int flag = 0; flag < 6; ++flag) s.spinning(s.add("spins", 0, flag % 2), each, flag);
  for (int flag = 0; flag < 6; ++flag) s.signalling(s.add("signals", 0), flag, 0);
  return s;
}

TEST(CheckPlaces, OnlyOneKernelOfAStreamSpinsAtATime) {
  two_streams(2).expect_sound();
  two_streams(4).expect_refused("kernel 'spins' rank 0 workgroup 0 operation 0 (wait)",
                                "may never get a place");
}

// "spins" is launched behind "signals" and smaller, so it slips in where "early" leaves no room for the
// larger, or where it starts first.
Places large_before_small(bool early) {
  Places s(1);
  if (early) s.signalling(s.add("early", 0, -1, 32768), 1, 0, 2 * kUnits);
  s.signalling(s.add("signals", 0), 0, 0, 2 * kUnits);
  s.spinning(s.add("spins", 0, -1, 32768), 2 * kUnits, 0, 2 * kUnits);
  return s;
}

TEST(CheckPlaces, ALargeWorkgroupIsOnlySureOfItsPlaceIfItStartsFirstOnAnEmptyGpu) {
  large_before_small(false).expect_refused("kernel 'spins' rank 0 workgroup 0 operation 0 (wait)",
                                           "so it is if 'spins' starts before 'signals'");
  large_before_small(true).expect_refused("kernel 'spins' rank 0 workgroup 0 operation 0 (wait)",
                                          "may never get a place");
}

// In the order of its launches "both" comes before the second kernel of the first stream. Were that stream
// launched as a whole before the others, that kernel would leave too few places for "both", on which it
// spins.
TEST(CheckPlaces, AWholeStreamMayStartBeforeTheNextIsLaunched) {
  Places s(1);
  s.signalling(s.add("first", 0, 0), 2, 0);
  const auto both = s.add("both", 0, 1);
  for (int w = 0; w < 3; ++w) {
    s.signalling(both, 0, 0);
    s.wait(1, 1, Scope::system);
  }
  s.signalling(s.add("last", 0, 2), 1, 0);
  s.spinning(s.add("second", 0, 0), 5, 0, 3);
  s.expect_refused("kernel 'second' rank 0 workgroup 0 operation 0 (wait)",
                   "so it is if 'second' starts before 'both'");
}

// Executes a schedule of workgroups that each take a compute unit, with launches and operations in any order
// that can be. What it knows of dispatch is what dispatch.hpp says.
class AnyOrder {
 public:
  AnyOrder(const Schedule& schedule, unsigned seed) : schedule_(schedule), random_(seed) {}

  bool ends() {
    while (step()) {
    }
    return std::all_of(kernels_.begin(), kernels_.end(),
                       [&](const Running& k) { return k.ended == size_of(k); }) &&
           launched_ == std::vector<std::size_t>{schedule_.host[0].size(), schedule_.host[1].size()};
  }

 private:
  struct Running {
    std::int32_t kernel = 0;
    std::int32_t stream = 0;
    std::size_t ended = 0;
    std::vector<std::size_t> next;  // by die: workgroup to dispatch
  };
  struct Resident {
    std::size_t running = 0;
    std::size_t workgroup = 0;
    std::uint32_t op = 0;
  };

  const Kernel& kernel_of(const Running& running) const {
    return schedule_.kernels[static_cast<std::size_t>(running.kernel)];
  }
  std::size_t size_of(const Running& running) const { return kernel_of(running).workgroups.size(); }

  bool step() {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < residents_.size(); ++i) {
      if (can_go_on(residents_[i])) able.push_back(i);
    }
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      if (launched_[rank] < schedule_.host[rank].size()) ranks.push_back(rank);
    }
    if (able.empty() && ranks.empty()) return false;
    const std::size_t choice = random_() % (able.size() + ranks.size());
    if (choice < able.size()) {
      go_on(able[choice]);
    } else {
      const std::size_t rank = ranks[choice - able.size()];
      const HostOp& op = schedule_.host[rank][launched_[rank]++];
      kernels_.push_back({op.kernel, op.stream, 0, {0, 1}});
    }
    dispatch();
    return true;
  }

  const Op* op_of(const Resident& resident) const {
    const Workgroup& workgroup = kernel_of(kernels_[resident.running]).workgroups[resident.workgroup];
    return resident.op < workgroup.op_count ? &schedule_.ops[workgroup.first_op + resident.op] : nullptr;
  }

  bool can_go_on(const Resident& resident) const {
    const Op* op = op_of(resident);
    const std::int32_t rank = kernel_of(kernels_[resident.running]).rank;
    return op == nullptr || op->kind != OpKind::wait || flag(rank, op->index) >= op->value;
  }

  void go_on(std::size_t index) {
    Resident& resident = residents_[index];
    const Op* op = op_of(resident);
    if (op != nullptr) {
      if (op->kind == OpKind::signal)
        flags_[static_cast<std::size_t>(op->rank * 16 + op->index)] += op->value;
      ++resident.op;
      return;
    }
    ++kernels_[resident.running].ended;
    residents_.erase(residents_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  std::int32_t flag(std::int32_t rank, std::int32_t index) const {
    return flags_[static_cast<std::size_t>(rank * 16 + index)];
  }

  // Every die takes of the kernels that have started, in the order of their launches.
  void dispatch() {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (!started(i)) continue;
      for (std::size_t die = 0; die < 2; ++die) {
        std::size_t& next = kernels_[i].next[die];
        if (kernel_of(kernels_[i]).placement == Placement::gang && !fits_whole(kernels_[i])) continue;
        for (; next < size_of(kernels_[i]) && taken(kernel_of(kernels_[i]).rank, die) < kUnits / 2;
             next += 2) {
          residents_.push_back({i, next, 0});
        }
      }
    }
  }

  // The first die of a gang that fits takes nothing from the second.
  bool fits_whole(const Running& running) const {
    const std::size_t size = size_of(running);
    const std::int32_t rank = kernel_of(running).rank;
    const bool begun = running.next[0] > 0 || running.next[1] > 1;
    return begun || (taken(rank, 0) + static_cast<std::ptrdiff_t>((size + 1) / 2) <= kUnits / 2 &&
                     taken(rank, 1) + static_cast<std::ptrdiff_t>(size / 2) <= kUnits / 2);
  }

  bool started(std::size_t index) const {
    return std::all_of(
        kernels_.begin(), kernels_.begin() + static_cast<std::ptrdiff_t>(index), [&](const Running& before) {
          return before.stream != kernels_[index].stream ||
                 kernel_of(before).rank != kernel_of(kernels_[index]).rank || before.ended == size_of(before);
        });
  }

  std::ptrdiff_t taken(std::int32_t rank, std::size_t die) const {
    return std::count_if(residents_.begin(), residents_.end(), [&](const Resident& resident) {
      return kernel_of(kernels_[resident.running]).rank == rank && resident.workgroup % 2 == die;
    });
  }

  const Schedule& schedule_;
  std::mt19937 random_;
  std::vector<std::size_t> launched_{0, 0};  // by rank: host operations
  std::vector<Running> kernels_;             // in the order of their launches
  std::vector<Resident> residents_;
  std::vector<std::int32_t> flags_ = std::vector<std::int32_t>(32, 0);
};

// Kernels of one to eight workgroups; every kernel signals a flag of its own on both ranks, most spin on the
// flag of another.
Schedule any_spinning_schedule() {
  SmallSchedule s(2);
  const int kernels = *rc::gen::inRange(4, 13);
  std::vector<int> sizes;
  std::vector<int> heights;  // spinning on what is lower makes no cycle
  for (int k = 0; k < kernels; ++k) {
    sizes.push_back(*rc::gen::inRange(1, kUnits + 1));
    heights.push_back(*rc::gen::inRange(0, 100));
  }
  for (int k = 0; k < kernels; ++k) {
    Kernel kernel;
    kernel.name = fmt::format("k{}", k);
    kernel.rank = *rc::gen::inRange(0, 2);
    kernel.resources = {256, 16, 65536};
    kernel.placement = *rc::gen::element(Placement::dispatch, Placement::dispatch, Placement::gang);
    const int rank = kernel.rank;
    const auto index = s.builder.kernel(std::move(kernel));
    const int on = *rc::gen::inRange(0, kernels);
    const bool spins = heights[static_cast<std::size_t>(on)] < heights[static_cast<std::size_t>(k)];
    const int spinning = spins ? sizes[static_cast<std::size_t>(k)] - *rc::gen::inRange(0, 2) : 0;
    const bool signal_first = *rc::gen::arbitrary<bool>();
    for (int w = 0; w < sizes[static_cast<std::size_t>(k)]; ++w) {
      s.builder.workgroup(index);
      if (!signal_first && w < spinning) s.wait(on, sizes[static_cast<std::size_t>(on)], Scope::system);
      for (int to = 0; to < 2; ++to) s.signal(k, to, 1, Scope::system);
      if (signal_first && w < spinning) s.wait(on, sizes[static_cast<std::size_t>(on)], Scope::system);
    }
    s.builder.launch(rank, index, *rc::gen::inRange(0, 7));
  }
  return s.builder.finish();
}

// The schedule with the launches of independent streams in another order for which `orders` says that it is
// sound.
Schedule in_another_order(Schedule schedule, LaunchOrders orders, std::mt19937& random) {
  std::vector<std::size_t> turns(7);  // by place of the stream in the order of first launches
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  if (orders == LaunchOrders::some) {
    if (random() % 2 == 0) return schedule;
    std::reverse(turns.begin(), turns.end());
  } else {
    std::shuffle(turns.begin(), turns.end(), random);
  }
  for (std::vector<HostOp>& program : schedule.host) {
    if (orders == LaunchOrders::every) std::shuffle(turns.begin(), turns.end(), random);
    std::map<std::int32_t, std::size_t> place;
    for (const HostOp& op : program) place.emplace(op.stream, place.size());
    std::stable_sort(program.begin(), program.end(), [&](const HostOp& a, const HostOp& b) {
      return turns[place[a.stream]] < turns[place[b.stream]];
    });
  }
  return schedule;
}

TEST(CheckPlaces, TwinsEndInEveryOrderThatBothRanksKeep) {
  bool all_end = true;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const Schedule schedule = twins(2 + static_cast<int>(seed % 4));
    EXPECT_TRUE(AnyOrder(in_another_order(schedule, LaunchOrders::alike, random), seed).ends()) << seed;
    all_end = AnyOrder(in_another_order(schedule, LaunchOrders::every, random), seed).ends() && all_end;
  }
  EXPECT_FALSE(all_end);  // where ranks differ some wait for each other
}

RC_GTEST_PROP(CheckPlaces, WhatPassesEndsInWhateverOrderThingsHappen, ()) {
  const Schedule schedule = any_spinning_schedule();
  RC_PRE(check_schedule(schedule).empty());
  LaunchOrders orders = LaunchOrders::one;
  const bool sound = check_schedule_on(schedule, small_machine(), 20, &orders).empty();
  RC_CLASSIFY(sound,
              std::string("sound, ") + std::string(kLaunchOrdersNames[static_cast<std::size_t>(orders)]));
  bool all_end = true;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    all_end = AnyOrder(sound ? in_another_order(schedule, orders, random) : schedule, seed).ends() && all_end;
  }
  RC_CLASSIFY(all_end, "seen to end");
  RC_ASSERT(all_end || !sound);
}

}  // namespace
}  // namespace tritax

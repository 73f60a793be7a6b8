// Decides whether a schedule with reordered operations computes the same as the original: the law for
// searches of better orders.
//
// Operations change places inside their workgroup (or item), or move to another workgroup of their kernel, if
// the kernel has neither items nor claims. Then the same operations access the same data, and only their
// order can change. The results are the same for any timing, up to the rounding of sums in another order (in
// one accumulator, and of atomic additions), if
//  * the checker finds nothing (check.hpp), with the same result about the order of launches;
//  * for every read and write of common data, and for two writes, the access that certainly came first still
//    comes first. The checker requires less: it accepts any order of a read and a write and ignores pairs of
//    writes. Several writes of one workgroup to the same data stay together;
//  * every releasing signal still comes after its writes, in their workgroup. Its writes are those between
//    the previous releasing signal and itself, also if no operation in the schedule reads them, because later
//    kernels may rely on them. A signal without writes stays in its workgroup;
//  * no workgroup reads its own write before the write is visible, unless the original does;
//  * every operation that writes the accumulator out writes the results of the same operations;
//  * a program with a claim that skips operations does not change: the claim counts operations by place.
//
// Example: {matmul t; store t -> 0; store t -> 1; signal} may store to 1 first; the signal may not come
// before the stores, and no store before the matmul.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

class SyncGraph;
struct Accesses;
struct Conflict;
struct MovedPlaces;
struct OpPoint;

// By operation, the number of its group, from 1. A group has consecutive signals and the operations before
// them, back to the previous signals. Groups do not span workgroups.
std::vector<std::uint32_t> publication_groups(const Schedule& schedule);

// By group, the number of writes that its signals publish; 0 without a signal.
std::vector<std::uint32_t> published_writes(const Schedule& schedule,
                                            std::span<const std::uint32_t> publication_groups);

// Whether a claim of the program skips operations instead of drawing items.
bool skips_by_claim(std::span<const Op> program);

// Places of a write and a read of the same data in one program, with no operation between that waits for the
// write (a barrier, a signal, another store). Such a read may see the old data.
std::vector<std::pair<std::uint32_t, std::uint32_t>> reads_in_flight(std::span<const Op> program,
                                                                     std::int32_t own_rank);

class SameResult {
 public:
  // Throws UserError with the checker's findings in `start`. `machine` must outlive this object.
  SameResult(const Schedule& start, const Machine& machine);

  // Why `moved` does not compute the same as the start, or "". `start_of[i]`: the operation of the start at
  // place i of `moved.ops`. Programs of `moved` may have other numbers of operations, but a kernel has the
  // same total.
  std::string fault(const Schedule& moved, std::span<const std::uint32_t> start_of) const;

  // The one condition that two swapped neighbours cannot check by themselves, for one program: whether all
  // its reads see their data as in the start.
  bool reads_what_is_there(const Schedule& moved, std::span<const std::uint32_t> start_of,
                           const Workgroup& program, std::int32_t own_rank) const;

 private:
  // Order between writes of one workgroup run and an operation of another.
  struct Standing {
    std::uint32_t workgroup_run = 0;  // run of the operation
    std::uint32_t op = 0;
    std::uint32_t other_run = 0;
    std::uint32_t begin = 0;  // its writes, into ops_
    std::uint32_t end = 0;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
  };
  // Consecutive writes of one workgroup run to common data, unless all of them are additions.
  struct Rewrites {
    std::uint32_t workgroup_run = 0;
    std::uint32_t begin = 0;  // into rewrite_ops_
    std::uint32_t end = 0;
  };
  void find_rewrites(const Accesses& accesses, const std::vector<Conflict>& own);
  // The place of an operation of the start in `moved`.
  OpPoint moved_point(OpPoint start, const MovedPlaces& places) const;
  std::string fault_of_rewrites(const SyncGraph& graph, const MovedPlaces& places) const;
  std::string fault_of_order(const SyncGraph& graph, const MovedPlaces& places) const;

  const Machine& machine_;
  std::vector<std::uint32_t> groups_;
  std::vector<std::uint32_t> published_;      // by group: writes that its signals publish
  std::vector<std::uint32_t> program_of_op_;  // number in its kernel, by operation of the start
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_flight_;  // of the start, sorted
  LaunchOrders orders_ = LaunchOrders::one;
  // By workgroup run: its first operation (kNowhere for copies by copy engines), and the first workgroup run
  // of its kernel's execution.
  std::vector<std::uint32_t> first_op_;
  std::vector<std::uint32_t> first_of_run_;
  std::vector<Standing> standings_;
  std::vector<std::uint32_t> ops_;
  std::vector<Rewrites> rewrites_;
  std::vector<std::uint32_t> rewrite_ops_;
  std::vector<std::uint64_t> written_;  // mark per operation that writes the accumulator out; else 0
};

}  // namespace tritax

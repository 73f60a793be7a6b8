// Whether a schedule that has the operations of another one in another order does the same: the law of those
// who look for better orders.
//
// Operations change places inside their workgroup (or item), or go to another workgroup of their kernel, if
// it has neither items nor claims. Then the same operations meet in the same data, and all that can change is
// who comes first. The results are the same, whatever happens when, up to the rounding of sums in another
// order (of what goes into one accumulator, and of atomic additions), if
//  * the checker finds nothing (check.hpp), with the same promise about the order of launches;
//  * of every read and write of common data, and of two writes, the one that surely came first still does:
//    beyond what the checker asks for, which is content with any order of a read and a write and does not
//    look at two writes; several writes of one workgroup to the same data stay together;
//  * every signal that releases still comes behind the writes that it was written for, in their workgroup:
//    those between it and the last one before it that does, also if nobody in the schedule reads them:
//    whoever goes on behind a kernel that has waited counts on them; and one that is for none stays in its
//    workgroup;
//  * no workgroup reads what it writes itself before that is there, unless the start does;
//  * every operation that writes the accumulator out writes what the same operations have put into it;
//  * a program with a claim that skips operations stays as it is: the claim counts them by place.
//
// Example: {matmul t; store t -> 0; store t -> 1; signal} may store to 1 first; it may not signal before the
// stores, and no store may come before the matmul.
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

// By operation, a number for it and for all that belongs to the same signals: what stands in front of them,
// up to the signals before. Nothing has the number of another workgroup's. From 1.
std::vector<std::uint32_t> publication_groups(const Schedule& schedule);

// By group, how many writes its signals are for; 0 without a signal.
std::vector<std::uint32_t> published_writes(const Schedule& schedule,
                                            std::span<const std::uint32_t> publication_groups);

// Whether a claim of the program skips operations, rather than draw items.
bool skips_by_claim(std::span<const Op> program);

// Reads of what the same program has just written, with nothing between that waits until it is there (a
// barrier, a signal, another store): places of both. Such a read may see what was there before.
std::vector<std::pair<std::uint32_t, std::uint32_t>> reads_in_flight(std::span<const Op> program,
                                                                     std::int32_t own_rank);

class SameResult {
 public:
  // Throws UserError with what the checker finds in `start`. `machine` must outlive it.
  SameResult(const Schedule& start, const Machine& machine);

  // Why `moved` does not do what the start does, or "". `start_of[i]`: which operation of the start stands at
  // place i of `moved.ops`. Programs of `moved` may have other numbers of operations, those of a kernel
  // together the same.
  std::string fault(const Schedule& moved, std::span<const std::uint32_t> start_of) const;

  // The one part that neighbours who change places cannot tell by themselves, for one program: whether all
  // that it reads is there as at the start.
  bool reads_what_is_there(const Schedule& moved, std::span<const std::uint32_t> start_of,
                           const Workgroup& program, std::int32_t own_rank) const;

 private:
  // How writes of one workgroup run stand to an operation of another.
  struct Standing {
    std::uint32_t workgroup_run = 0;  // of the operation
    std::uint32_t op = 0;
    std::uint32_t other_run = 0;
    std::uint32_t begin = 0;  // its writes, into ops_
    std::uint32_t end = 0;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
  };
  // Writes of one workgroup run to common data, one behind the other; not those that all add.
  struct Rewrites {
    std::uint32_t workgroup_run = 0;
    std::uint32_t begin = 0;  // into rewrite_ops_
    std::uint32_t end = 0;
  };
  void find_rewrites(const Accesses& accesses, const std::vector<Conflict>& own);
  // Where an operation of the start is now.
  OpPoint moved_point(OpPoint start, const MovedPlaces& places) const;
  std::string fault_of_rewrites(const SyncGraph& graph, const MovedPlaces& places) const;
  std::string fault_of_order(const SyncGraph& graph, const MovedPlaces& places) const;

  const Machine& machine_;
  std::vector<std::uint32_t> groups_;
  std::vector<std::uint32_t> published_;      // by group with a signal: writes that it is for
  std::vector<std::uint32_t> program_of_op_;  // of its kernel, by operation of the start
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_flight_;  // of the start, sorted
  LaunchOrders orders_ = LaunchOrders::one;
  // By workgroup run: its first operation (kNowhere of copies by copy engines), and the first workgroup run
  // of its kernel's execution.
  std::vector<std::uint32_t> first_op_;
  std::vector<std::uint32_t> first_of_run_;
  std::vector<Standing> standings_;
  std::vector<std::uint32_t> ops_;
  std::vector<Rewrites> rewrites_;
  std::vector<std::uint32_t> rewrite_ops_;
  std::vector<std::uint64_t> written_;  // of every operation that writes the accumulator out; 0 of others
};

}  // namespace tritax

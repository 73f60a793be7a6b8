// The checker rejects unsound schedules before a run.
//
// The checker refuses the following. Each finding names kernel, rank, workgroup and operation; all places
// with one cause are one finding:
//  * references out of range: buffer, rectangle, rank, flag, index, kernel, stream, graph;
//  * operations without meaning: matmul in a kernel without a matrix tile, a store with an empty accumulator,
//    k ranges outside the operands, claims inside the block of another claim, a counter that is both queue
//    and flag;
//  * sizes that exceed any memory, and counters that overflow (check_limits.cpp);
//  * a wait that no set of signals can satisfy, and cycles of waits (deadlock);
//  * a read (load, reduce, copy source, matmul operand) of data that some workgroup writes, if no chain of
//    program order, signal and wait, kernel end, stream order or host barrier orders the write before the
//    read;
//  * a signal that sets a counter while another operation may change the counter or still needs its old value
//    (find_phases.hpp);
//  * with a machine: buffers that exceed its memory, workgroups that do not fit a compute unit (threads,
//    registers, LDS), persistent kernels that cannot be resident together, workgroups that may never get a
//    place because spinning workgroups hold all places, for any order in which independent streams start
//    (check_places.cpp).
//
// A Boost.Graph graph of host operations, kernel starts and ends, signals and waits describes dependences
// (sync_graph.hpp): order is reachability in this graph, a deadlock is a cycle among vertices that an
// execution without time never reaches.
//
// Passing the checker does not guarantee that writes do not race with writes, or that blocks behind a `claim`
// from one queue write the same data. Each such block is checked as if it were executed, and at most `limit`
// blocks count; waits inside a block order nothing after the block.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

struct Finding {
  enum class Kind : std::uint8_t {
    out_of_range,
    meaningless,
    unsatisfiable_wait,
    deadlock,
    unordered_read,
    resources,
    flag_race
  };
  Kind kind = Kind::meaningless;
  std::string where;      // "kernel 'scatter' rank 2 workgroup 5 operation 3 (wait)"
  std::string message;    // the problem and the correct form
  std::size_t count = 1;  // places with this cause (findings.hpp); `where` is the first
};

// The message of a finding, with the number of further places with the same cause.
std::string with_count(const std::string& message, std::size_t count);

// All findings that hold on every machine, one per cause, at most `limit`. If `limit` is reached, some places
// may not be counted. Empty: the schedule is sound.
std::vector<Finding> check_schedule(const Schedule& schedule, std::size_t limit = 20);

// The orders in which kernels on independent streams may start without a deadlock for lack of places
// (check_places.cpp). A GPU guarantees no order: in mirage-project/mirage issue 761 the first workgroups of
// the second launch took places that the first launch needed.
enum class LaunchOrders : std::uint8_t {
  one,    // only one order exists: no rank has two streams
  every,  // any order on every rank
  alike,  // any order of streams, numbered by first launch, if it is the same on all ranks
  some,   // as `alike`, with too many streams to try all orders: as launched, and backwards
};
// "in any order", "in any order that is the same on all ranks", …; empty for `one`.
std::string describe(LaunchOrders orders);
inline constexpr std::array<std::string_view, 4> kLaunchOrdersNames{"one", "every", "alike", "some"};

// Findings that depend on a machine: ranks, resources and residency. Without findings, `orders`, if given,
// receives the orders for which the result holds.
std::vector<Finding> check_schedule_on(const Schedule& schedule, const Machine& machine,
                                       std::size_t limit = 20, LaunchOrders* orders = nullptr);

// Throws UserError with the first findings, if any. `origin` is the file or pattern to blame.
void require_sound(const std::vector<Finding>& findings, const std::string& origin);

// "kernel 'scatter' rank 2 workgroup 5 operation 3 (wait)"; used by every message about an operation.
// `program` is the number of a workgroup or item in program_of() (items.hpp); an operation of an item may
// also be named by the workgroup that drew the item (OpPlace), "… workgroup 5 item 7 operation 0 (matmul)".
std::string describe_op(const Schedule& schedule, std::size_t kernel, std::size_t program, std::size_t op);

}  // namespace tritax

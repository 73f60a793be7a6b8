// The checker: rejects a schedule before anyone runs it.
//
// Refused, each with kernel, rank, workgroup and operation named, all places of one cause as one finding:
//  * references out of range: buffer, rectangle, rank, flag, index, kernel, stream, graph;
//  * operations without meaning: matmul in a kernel without a matrix tile, a store with an empty accumulator,
//    k ranges outside the operands, claims inside the block of another, a counter that is queue and flag;
//  * sizes that nobody could hold, and counters that overflow (check_limits.cpp);
//  * a wait that no set of signals can satisfy, and cycles of waits (deadlock);
//  * a read (load, reduce, copy source, matmul operand) of data that some workgroup writes, without a chain
//    of program order, signal and wait, kernel end, stream order or host barrier that orders the write
//    before;
//  * a signal that sets a counter while another may change it or may not have seen it (flag_phases.hpp);
//  * with a machine: buffers that its memory does not hold, workgroups that do not fit a compute unit
//    (threads, registers, LDS), persistent kernels that cannot all be resident together, workgroups that may
//    never get a place because others hold all of them and spin, for whatever they wait, in whatever order
//    independent streams start (check_places.cpp).
//
// Dependences are a Boost.Graph graph of host operations, kernel starts and ends, signals and waits
// (sync_graph.hpp): order is reachability in it, a deadlock is a cycle among what an execution without time
// never reaches.
//
// What a pass does not promise: that writes do not race with writes; that blocks behind a `claim` from one
// queue write the same data (each is checked as if it were the one that is executed, and at most `limit` of
// them count; what they have waited for orders nothing behind them).
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
  std::string message;    // what is wrong and what would be right
  std::size_t count = 1;  // of the places with this cause (findings.hpp); the first is `where`
};

// The message of a finding, with how many more places have the same cause.
std::string with_count(const std::string& message, std::size_t count);

// All findings that hold on every machine, one a cause, at most `limit` of them. Where all `limit` are used,
// places may be left uncounted. Empty: the schedule is sound.
std::vector<Finding> check_schedule(const Schedule& schedule, std::size_t limit = 20);

// In which orders kernels on independent streams may start without a deadlock for want of a place
// (check_places.cpp). A GPU promises none: in mirage-project/mirage issue 761 the first workgroups of the
// second launch took the places that the first one needed.
enum class LaunchOrders : std::uint8_t {
  one,    // there is one only: no rank has two streams
  every,  // on every rank in any order
  alike,  // in any order of the streams, which are counted by their first launch, the same on all ranks
  some,   // as `alike`, but of more streams than all orders are tried of: as launched, and backwards
};
// "in any order", "in any order that is the same on all ranks", …; empty where there is one only.
std::string describe(LaunchOrders orders);
inline constexpr std::array<std::string_view, 4> kLaunchOrdersNames{"one", "every", "alike", "some"};

// Findings that depend on a machine: ranks, resources and residency. Without findings `orders`, if given,
// becomes those for which that holds.
std::vector<Finding> check_schedule_on(const Schedule& schedule, const Machine& machine,
                                       std::size_t limit = 20, LaunchOrders* orders = nullptr);

// Throws UserError with the first findings, if there are any. `origin` is the file or pattern to blame.
void require_sound(const std::vector<Finding>& findings, const std::string& origin);

// "kernel 'scatter' rank 2 workgroup 5 operation 3 (wait)"; used by every message about an operation. The
// program is a workgroup or item by the number of program_of() (items.hpp); an operation of an item may also
// be named by the workgroup that has drawn it (OpPlace), "… workgroup 5 item 7 operation 0 (matmul)".
std::string describe_op(const Schedule& schedule, std::size_t kernel, std::size_t program, std::size_t op);

}  // namespace tritax

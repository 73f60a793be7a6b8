// Nodes, or ranks of one node, that behave alike, simulated once.
//
// Ranks 0 … W-1 fill the nodes in order. Let s be the ranks of a few whole nodes, or a few ranks of one node,
// a divisor of W. The shift r -> r + s (mod W) is a *symmetry* of a run if
//
//   links      one bijection of the machine's links takes every route a -> b to the route a+s -> b+s, each
//              link to one of the same rate
//   programs   host programs and kernels of r and r + s, compared operation by operation, differ in nothing
//              but the ranks that they name, which are s further on; the counters that they name, and where
//              in their buffers they read and write: by one bijection of the counters of all ranks, and one
//              of the tiles, one of the operands, which overlap as their like do, and one of the parts of
//              regions that overlap, of each
//
// The clock asks a schedule for no more than these maps keep: sizes, which operations meet the same counter,
// tile, operand or part of a region, and which share a link. So r and r + s do the same at all times. A run
// of the ranks 0 … s-1 alone says it all, if whatever one of them does to rank p is done to rank p mod s:
// what reaches p mod s from the ranks that are not simulated is what those that are send to p and its like.
// Counters are found the same way: where rank r signals to p = p' + k·s, its like r - k·s signals to p' < s,
// and in the whole schedule stands which counter that is. A link is taken through L links before it is itself
// again, of W/s at most: it carries what the ranks 0 … s-1 send over all L of them, W/(s·L) times. So one
// link stands for the L, with s·L/W of its rate. (L = 1: an uplink to the spine that all nodes share.)
//
// All of this is compared, for all ranks, before anything is left out; what cannot be shown is simulated in
// full. Not shown: masks and sparse matrices that depend on the rank.
//
// Turns. Hosts of one node launch in turn, so ranks of a node are alike only where that takes no time. A rank
// that stands for several of its node takes the last turn of them.
//
// Luck. Service, and the rate of equal matmuls, are drawn for each operation, so in a full run nodes are
// alike up to chance. Simulated once they have one luck: Symmetry::same_luck gives a full run that draws so,
// and equals it but for the order in which rates are added (1e-9).
//
// Example: a push of every rank to all others on 8 nodes of 8 GPUs is the same from 8 ranks on: of 64 ranks 8
// are simulated, whose 8·63 ways load 8 GPUs and 8 NICs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/engine_state.hpp"

namespace tritax {

struct FoldedRun {
  Schedule schedule;  // with programs of the first `simulated_ranks` alone, and the counters of their like
  std::int32_t simulated_ranks = 0;
  std::vector<AlikeLink> links;  // by topology edge
  // Of the whole schedule, for one luck, if asked for: by number of a workgroup and of an operation, those of
  // `schedule`.
  std::vector<std::uint32_t> workgroup_of, op_of;

  // For an engine that runs `schedule`, and for one that runs the whole schedule with the same luck.
  Alike once() const { return {.simulated_ranks = simulated_ranks, .links = &links}; }
  Alike in_full() const {
    return {.lucky_ranks = simulated_ranks, .workgroup_of = &workgroup_of, .op_of = &op_of};
  }
};

// Whether workgroup_of and op_of are wanted.
enum class Numbers : std::uint8_t { none, of_all };

// With the fewest nodes that stand for all; nothing where there is one node, or no symmetry is found.
std::optional<FoldedRun> fold_nodes(const Schedule& schedule, const Machine& machine,
                                    Numbers numbers = Numbers::none);

// With the fewest ranks, less than a node has, that stand for all; nothing where no symmetry is found.
std::optional<FoldedRun> fold_ranks(const Schedule& schedule, const Machine& machine,
                                    Numbers numbers = Numbers::none);

// By link the first that is alike under a shift of all ranks by `shift`; nothing if that is no symmetry.
std::optional<std::vector<AlikeLink>> alike_links(const Topology& topology, std::int32_t shift);

}  // namespace tritax

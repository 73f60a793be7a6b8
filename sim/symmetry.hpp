// Nodes, or ranks of one node, that behave alike are simulated once.
//
// Ranks 0 … W-1 fill the nodes in order. Let s be the ranks of a few whole nodes, or a few ranks of one node,
// a divisor of W. The shift r -> r + s (mod W) is a *symmetry* of a run if
//
//   links      one bijection of the machine's links takes every route a -> b to the route a+s -> b+s, each
//              link to one of the same rate
//   programs   host programs and kernels of r and r + s are equal, operation by operation, except for the
//              ranks that they name, which are s further on, the counters that they name, and the places in
//              the buffers that they read and write. Bijections map these: one for the counters of all ranks,
//              and per rank one for tiles, one for operands, which overlap in the same way, and one for the
//              parts of regions that overlap
//
// The clock asks a schedule only for properties that these maps keep: sizes, which operations meet the same
// counter, tile, operand or part of a region, and which share a link. So r and r + s do the same at all
// times. A run of the ranks 0 … s-1 alone gives the whole result, if every operation on a rank p acts on rank
// p mod s: the data that p mod s receives from ranks that are not simulated is the data that simulated ranks
// send to p and its alike ranks. Counters work in the same way: if rank r signals to p = p' + k·s, its alike
// rank r - k·s signals to p' < s, and the whole schedule names that counter. The shift takes a link through a
// cycle of L links, L at most W/s. The link carries the traffic of the ranks 0 … s-1 over all L links,
// W/(s·L) times. So one link stands for the L links, with s·L/W of its rate. (L = 1: an uplink to the spine
// that all nodes share.)
//
// All of this is compared, for all ranks, before any rank is left out; a run without a proven symmetry is
// simulated in full. Not proven: masks and sparse matrices that depend on the rank.
//
// Turns. Hosts of one node launch in turn, so ranks of a node are alike only if turns take no time. A rank
// that stands for several ranks of its node takes the last of their turns.
//
// Random shares. Service, and the rate of equal matmuls, are drawn for each operation, so in a full run nodes
// are alike up to chance. Simulated once, they have one random share: SimulationOptions::same_luck gives a
// full run that draws the same shares. Both runs are equal up to the order in which rates are added (1e-9).
//
// Example: a push of every rank to all others on 8 nodes of 8 GPUs has a symmetry from 8 ranks on: 8 of 64
// ranks are simulated, whose 8·63 routes load 8 GPUs and 8 NICs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/engine_state.hpp"

namespace tritax {

struct FoldedRun {
  Schedule schedule;  // programs of the first `simulated_ranks` alone, with the counters of their alike ranks
  std::int32_t simulated_ranks = 0;
  std::vector<AlikeLink> links;  // by topology edge
  // If requested: the numbers of a workgroup and an operation in `schedule`, by their number in the whole
  // schedule.
  std::vector<std::uint32_t> workgroup_of, op_of;

  // For an engine that runs `schedule`; and for one that runs the whole schedule with equal random shares.
  Alike once() const { return {.simulated_ranks = simulated_ranks, .links = &links}; }
  Alike in_full() const {
    return {.lucky_ranks = simulated_ranks, .workgroup_of = &workgroup_of, .op_of = &op_of};
  }
};

// Whether fold_* fills workgroup_of and op_of.
enum class Numbers : std::uint8_t { none, of_all };

// Folds to the fewest nodes that stand for all; nothing if there is one node or no symmetry.
std::optional<FoldedRun> fold_nodes(const Schedule& schedule, const Machine& machine,
                                    Numbers numbers = Numbers::none);

// Folds to the fewest ranks, below the ranks of a node, that stand for all; nothing if there is no symmetry.
std::optional<FoldedRun> fold_ranks(const Schedule& schedule, const Machine& machine,
                                    Numbers numbers = Numbers::none);

// By link: the first link that is alike under a shift of all ranks by `shift`; nothing if the shift is no
// symmetry.
std::optional<std::vector<AlikeLink>> alike_links(const Topology& topology, std::int32_t shift);

}  // namespace tritax

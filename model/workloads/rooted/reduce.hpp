// The patterns of a reduce: rank 0, the root, ends with the sum of the matrices of all ranks.
//
//   direct, pushed  a tree whose leaves are all other ranks
//   ring            a tree of one branch: W-1 -> … -> 1 -> 0 (ROCm/iris iris/ccl/triton/reduce.py)
//   tree            rank r adds up 2r+1 and 2r+2
//       every rank, workgroup 0:   tell the children that their slots are open
//       every rank, G workgroups:  for pieces p, p+G, …: wait arrived[piece] of all children; load own
//                                    for children: reduce slot
//                                    root: store the sum
//                                    others: store -> slot at the parent; arrived[piece] += 1 there
//   direct, pulled  root, G workgroups: for pieces p, p+G, …: load own; for peers: reduce theirs; store
//   two-phase       every rank: the same for pieces rank, rank+W, …; store the sum at the root (ROCm/iris
//                   iris/ccl/triton/reduce_twophase.py)
//
// A sum on its way has the dtype of the matrix; it is widened in the accumulator. A ring or a tree sends the
// matrix once over each link between a rank and its parent. In two phases all links to all ranks carry parts
// of it, and then the links to the root.
#pragma once

#include "model/workloads/rooted/draft.hpp"

namespace tritax {

// The rank to which a rank sends its sums; the root has none.
using ParentOf = int (*)(int rank);
inline int parent_in_star(int) { return kRootRank; }
inline int parent_in_ring(int rank) { return rank - 1; }
inline int parent_in_tree(int rank) { return (rank - 1) / 2; }

// Ranks that send to one rank, at most.
int most_children(int ranks, ParentOf parent);

// With input, result and reference.
struct ReduceDraft : RootedDraft {
  ReduceDraft(std::string_view pattern, const Problem& problem, const Machine& machine, const Values& values,
              int slots_of_gpu);
  std::int16_t own = -1;
  std::int16_t sum = -1;
  std::vector<Rect> pieces;
};

void add_reduce_up(ReduceDraft& draft, ParentOf parent);
// `two_phase`: all ranks add up pieces; else the root alone.
void add_reduce_pulled(ReduceDraft& draft, bool two_phase);

}  // namespace tritax

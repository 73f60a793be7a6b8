// What the collectives with a root and sends between GPUs share: a schedule under construction, what ranks
// tell each other, and blocks that move from rank to rank.
//
// A *mover* is a rank whose workgroups read or write memory of others. Without host barriers:
//
//   others, workgroup 0:  opened[own] += 1 at their movers: data are there, and the target may be written
//   movers, G workgroups: wait opened[other] before the first access; done[own] += 1 at the others at the end
//   others, workgroup 0:  wait done[mover] for all G workgroups of each mover
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "model/parts/collectives.hpp"

namespace tritax {

inline constexpr int kRootRank = 0;

struct RootedDraft {
  // `blocks`: blocks of rows × cols that a GPU has in all buffers together. Throws UserError.
  RootedDraft(std::string_view pattern, const Problem& problem, const Machine& machine, const Values& values,
              double blocks);

  Collective collective;  // the block of a GPU
  const Machine& machine;
  SumKnobs knobs;
  ScheduleBuilder builder;
  std::int32_t workgroups = 1;  // G
  std::int16_t opened = -1;     // by rank, as is `done`
  std::int16_t done = -1;

  int ranks() const { return collective.gpus; }
  // Whether flags, not the host, separate runs.
  bool opens() const { return !knobs.host_barriers; }
  // Block number `index` of blocks one below the other.
  Rect block(int index = 0) const;
  // Adds a buffer of `count` such blocks.
  std::int16_t add_blocks(const char* name, int count = 1);
};

// Whether rank `mover` reads or writes memory of rank `other`.
using Uses = std::function<bool(int mover, int other)>;

void add_sides(RootedDraft& draft);
// At the start and the end of workgroup `p` of a rank.
void tell_movers(RootedDraft& draft, const Uses& uses, int rank, std::int32_t p);
void tell_others(RootedDraft& draft, const Uses& uses, int rank, std::int32_t p);
// Before a mover's first access.
void await_other(RootedDraft& draft, int other);
// Workgroups of a rank: G of a mover, one of a rank that only tells and waits, else none.
std::int32_t workgroups_of(const RootedDraft& draft, const Uses& uses, int rank, bool moves);

// A block that goes from rank to rank, in `source` there to `target` here.
struct RootedMove {
  int from = 0;
  int to = 0;
  Rect block;
  Rect place;
};
struct Moves {
  std::int16_t source = -1;
  std::int16_t target = -1;
  std::vector<RootedMove> list;  // at most one from a rank to a rank
};

// Adds the reference: all blocks are at their places.
void expect(RootedDraft& draft, const Moves& moves);

// Every rank copies pieces of the blocks that it sends (push) or receives (pull).
void add_direct_moves(RootedDraft& draft, const Moves& moves);

// The sends and receives of the vendor's collective library (model/parts/library_gather.hpp).
void add_library_moves(RootedDraft& draft, const Moves& moves);

// Producers store pieces into slots of the receiver and tell it so piece by piece; behind its own sends, the
// receiver takes each piece out of its slot as soon as it is there.
void add_message_passing(RootedDraft& draft, const Moves& moves);

}  // namespace tritax

// The patterns of a broadcast, in place: rank 0, the root, has the data, and all other ranks receive them.
//
//   library         model/parts/library_collectives.hpp
//   direct, pushed  root, G workgroups:     wait until all peers have opened their memory
//                                           for pieces p, p+G, …: load; for peers: store there
//                                           arrived += 1 at all peers
//                   others, one workgroup:  tell the root; wait for all its workgroups
//   direct, pulled  root, one workgroup:    tell all peers; wait for all their workgroups
//                   others, G workgroups:   wait for the root; for pieces p, p+G, …: copy from there
//                                           done += 1 at the root
//   scatter-gather  root, G workgroups:     as direct, each piece to one peer; arrived[piece] += 1 there
//                   others, G workgroups:   for the own pieces: wait; load; for other peers: store there
//                                           exchange arrivals with the counterparts at the other peers
//
// With direct patterns, the root sends all data to every peer, (W-1) times. With scatter-gather, the root
// sends all data once, over all of its links, and the links of the peers carry the rest.
#pragma once

#include "model/parts/collectives.hpp"

namespace tritax {

inline constexpr int kRoot = 0;

struct BroadcastDraft {
  BroadcastDraft(std::string_view pattern, const Problem& problem, const Machine& machine,
                 const Values& values);

  Collective collective;
  const Machine& machine;
  SumKnobs knobs;
  ScheduleBuilder builder;
  std::int16_t data = -1;
  std::vector<Rect> pieces;
  std::int32_t workgroups = 1;  // G

  int ranks() const { return collective.gpus; }
  // Whether flags, not the host, separate runs.
  bool opens() const { return !knobs.host_barriers; }
};

void add_direct_push(BroadcastDraft& draft);
void add_direct_pull(BroadcastDraft& draft);
void add_scatter_gather(BroadcastDraft& draft);

}  // namespace tritax

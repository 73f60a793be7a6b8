// A timeline as columns of numbers, for a program that draws hundreds of thousands of operations.
//
//   "tick_ns"      all times below are whole numbers of this many ns
//   "end"          of the run
//   "ranks", "ranks_shown", "operations", "operations_shown"   the first ranks only, where all are too many
//   "dies"         of a GPU
//   "kinds"        names of what an interval can be: the tile operations, then kernel, copy engine, host
//   "names"        of intervals, each once: "matmul C[3,5]"
//   "tracks"       [{"gpu", "group": "host" | "stream" | "engine" | "cu" | "stores", "name", "die"}, …] in
//                  the order on screen; "die" of compute units
//   "intervals"    {"track", "begin", "end", "kind", "name", "workgroup"}, by track, then by begin;
//                  "workgroup" of operations, 2^32-1 of others
//   "flags"        {"signal", "wait"}: intervals at both ends of each flag that a wait had to wait for
//   "path"         {"interval", "begin", "end"}: the critical path (model/timeline/causes.hpp); an interval
//                  of a rank that is not shown is 2^32-1
//   "path_shares"  ns of the path by kind, by name of the kind
//   "links"        [{"name", "raw_gb_per_s", "mean_gb_per_s", "rates"}, …] of the links that moved data:
//                  mean rates in equal parts of the run, float32
//
// A column of numbers is {"type": "u8" | "u32" | "f32", "base64": "…"}, little-endian.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "model/machine/topology.hpp"
#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax {

struct ColumnOptions {
  std::size_t most_operations = 400'000;  // ranks are left out beyond, the last ones first
  std::size_t link_parts = 600;           // of the run
};

nlohmann::ordered_json timeline_columns(const Timeline& timeline, const Schedule& schedule,
                                        const Machine& machine, const Topology& topology,
                                        const ColumnOptions& options = {});

}  // namespace tritax

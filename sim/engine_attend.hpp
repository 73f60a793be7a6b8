// Attention: keys and values are streams, and caches hold what readers of a stream pass one after another; by
// the law of stream_reuse.hpp.
//
// Attention owns the stream of each operation, the streams in the caches of every GPU, and the place of each
// attending workgroup. It changes nothing else but counts of traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_luck.hpp"
#include "sim/engine_run.hpp"
#include "sim/stream_reuse.hpp"

namespace tritax::engine {

class Attention {
 public:
  Attention(Run& run, const Luck& luck)
      : run_(run), luck_(luck), caches_(static_cast<std::size_t>(run.simulated_ranks)) {}

  // Before the run: names the stream of keys and values that an operation reads.
  void name_stream(std::uint32_t op, std::uint32_t stream) {
    streams_.resize(run_.schedule.ops.size(), 0);
    streams_[op] = stream;
  }
  // Misses of an `attend` that starts now, with `sharers` workgroups on its compute unit.
  Missed begin(WorkgroupState& wg, std::uint32_t id, std::int32_t sharers, double now);
  // The pace of the `attend` that the workgroup has begun, relative to the mean.
  double pace_of(std::uint32_t id) const { return readers_[id].pace; }
  void end(const WorkgroupState& wg, std::uint32_t id, double now);

 private:
  struct Reader {                // a workgroup that attends
    std::uint32_t wg = kNobody;  // id of the workgroup
    std::uint32_t stream = 0;
    std::uint32_t l2_reader = kNobody, llc_reader = kNobody;
    std::uint32_t misses = 0;
    double end = 0;        // end of the current or last piece of the stream
    double run_begin = 0;  // place where the workgroup entered the stream
    double ns_per_byte = 0;
    double pace = 1;
  };
  struct Caches {                 // of a GPU; empty until its first attend
    std::vector<StreamReuse> l2;  // by die
    std::vector<StreamReuse> llc;
  };
  Caches& caches_of(std::int32_t rank);
  void count(const WorkgroupState& wg, const Op& op, const MatmulShape& shape, std::uint32_t missed_l2,
             std::uint32_t missed_llc);

  Run& run_;
  const Luck& luck_;
  std::vector<Caches> caches_;          // by rank
  std::vector<Reader> readers_;         // by place of a workgroup, up to the last that has attended
  std::vector<std::uint32_t> streams_;  // by operation; empty without attention
};

}  // namespace tritax::engine

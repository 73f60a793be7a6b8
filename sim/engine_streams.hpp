// Streams of the hosts: work that hosts have posted, and starts in order.
//
// Streams owns the queues of all streams and the records of events. It starts kernels and transfers by an
// event of the loop, and sets the path that leads to their start; it knows nothing of the programs of hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_copies.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class Streams {
 public:
  enum class Kind : std::uint8_t { kernel, copy, record, wait };
  struct Work {
    Kind kind = Kind::kernel;
    std::uint32_t item = 0;  // index of the kernel, or number of the transfer or record
    double earliest_ns = 0;
    double gap_ns = 0;            // after the previous work in the stream
    double synchronized_ns = -1;  // the host has waited for kernels that ended up to this time
    Path launch{};
  };

  Streams(Run& run, CopyQueues& copies);

  std::size_t count(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)].streams.size(); }
  void post(std::int32_t rank, std::int32_t stream, const Work& work);
  // Work has ended: the next work in its stream starts.
  void end_work(std::int32_t rank, std::int32_t stream, const Path& path);
  // Whether a stream has no work; -1: all streams of the rank.
  bool idle(std::int32_t rank, std::int32_t stream) const;
  // Continues `path` with the path of the work that ended last in a stream (-1: in all), if that is later.
  void follow_ends(std::int32_t rank, std::int32_t stream, Path& path) const;

  // A record of an event that has not happened yet; and the number of the last record.
  std::uint32_t add_record(std::int32_t rank, std::int32_t event);
  std::uint32_t last_record(std::int32_t rank, std::int32_t event) const;

 private:
  struct Stream {
    std::vector<Work> queue;
    std::size_t head = 0;
    bool busy = false;
    bool used = false;
    Path last_end;
  };
  struct Rank {
    std::vector<Stream> streams;
    std::vector<std::int32_t> order;         // streams in the order of their first use
    std::vector<std::uint32_t> last_record;  // by event: into records_
  };
  struct Record {
    bool happened = false;
    Path path;
  };
  void start_next(std::int32_t rank, std::int32_t stream);
  static double start_of(Stream& stream, const Work& work, Path& path);
  bool pass_point(Stream& stream, const Work& work);

  Run& run_;
  CopyQueues& copies_;
  std::vector<Rank> ranks_;
  std::vector<Record> records_;  // in posting order
};

}  // namespace tritax::engine

// Copies by copy engines: the queue of each GPU's engines, and the transfers that hosts have posted.
//
// CopyQueues owns both. It starts activities in the fluid network and tells the records of tiles what was
// written. It knows neither streams nor hosts: the caller says when the turn of a transfer has come, and
// learns from end() which stream goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_counters.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_tiles.hpp"
#include "sim/engine_traffic.hpp"

namespace tritax::engine {

class CopyQueues {
 public:
  CopyQueues(Run& run, DataTraffic& traffic, TileRecords& tiles, const Counters& counters);

  // A workgroup posts a copy, whose turn is now. Its end is that of the workgroup's store.
  void post(std::uint32_t workgroup, const Op& op, double now);
  // Adds the transfer that an operation of a host posts; returns its number.
  std::uint32_t add(std::int32_t rank, const HostOp& op, std::uint32_t host_op);
  Path& path_of(std::uint32_t transfer) { return transfers_[transfer].path; }
  // The transfer's turn in its stream has come.
  [[gnu::noinline]] void begin(std::uint32_t transfer, double now);
  // The engine has worked on the packet, and data moves.
  [[gnu::noinline]] void move(std::uint32_t transfer, double now);
  struct Ended {
    std::int32_t rank = 0, stream = 0;
    Path path;
    std::uint32_t workgroup = kNobody;  // that has posted it; else a host has
  };
  [[gnu::noinline]] Ended end(std::uint32_t transfer, double lost_ns, double now);

 private:
  struct Transfer {
    const Op* op = nullptr;
    std::int32_t rank = 0;
    std::uint32_t workgroup = kNobody;  // that has posted it
    std::uint32_t host_op = 0;          // that has posted it
    std::int32_t stream = 0;
    std::int32_t engine = -1;
    double begin_ns = 0;  // time at which data begins to move
    double alone_ns = 0;
    double lost_ns = 0;  // loss of the class on links before begin_ns
    double TimeAccount::*part = &TimeAccount::wire_ns;
    Path path;
  };
  struct Queue {                         // of one GPU
    std::vector<Path> last_end;          // by engine
    std::vector<char> busy;              // by engine
    std::vector<std::uint32_t> waiting;  // transfers whose turn in their stream has come
    std::size_t head = 0;                // of waiting
  };
  Queue& queue_of(const Transfer& transfer) { return queues_[static_cast<std::size_t>(transfer.rank)]; }
  void take_engine(std::uint32_t transfer, std::int32_t engine, double now);

  Run& run_;
  DataTraffic& traffic_;
  TileRecords& tiles_;
  const Counters& counters_;
  const double packet_ns_;           // work of an engine on a packet
  std::vector<Queue> queues_;        // by rank
  std::vector<Transfer> transfers_;  // in posting order
};

}  // namespace tritax::engine

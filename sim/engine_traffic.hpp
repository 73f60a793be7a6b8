// The way of data through memories, ports and links: the path of an operation, and the class of its activity.
//
// DataTraffic owns nothing but references. It counts the traffic of caches and links, asks and changes the
// records of tiles, and adds classes.
#pragma once

#include <vector>

#include "model/timeline/counters.hpp"
#include "sim/engine_classes.hpp"
#include "sim/engine_crowds.hpp"
#include "sim/engine_data_path.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_tiles.hpp"
#include "sim/engine_write_back.hpp"

namespace tritax::engine {

struct Served {               // source of the data that a transfer reads
  std::int32_t rank = 0;      // rank of the caches and the memory that serve the read
  std::int32_t die = -1;      // die of the L2 that serves the read; -1: bypasses the L2s
  Level level = Level::chip;  // chip: there is nothing to read
};

class DataTraffic {
 public:
  DataTraffic(Run& run, SharedResources& resources, const Crowds& crowds, TileRecords& tiles,
              const WriteBack& write_back, FluidClasses& classes)
      : run_(run),
        resources_(resources),
        crowds_(crowds),
        tiles_(tiles),
        write_back_(write_back),
        classes_(classes) {}

  // The path of an operation that begins; its traffic counts at once.
  DataPath path_of(WorkgroupState& wg, const Op& op, double now);
  DataPath path_of_copy(const Op& op, std::int32_t rank);
  std::int32_t class_of(const DataPath& path);

  // Loads of one byte of an operand of a matmul of `rank` that comes from `peer`: ports, links and memory.
  std::vector<FluidNetwork::Use> uses_of_operand(std::int32_t rank, std::int32_t peer, KernelProfile profile,
                                                 double link_cost) const;

  // By a workgroup on `die`, or by a copy engine (-1).
  Served served_by(const DataPath& path, const Op& op, std::int32_t die) const;
  ReadBytes read_bytes(const DataPath& path, const Served& served) const;

 private:
  std::vector<FluidNetwork::Use> uses_of(const DataPath& path) const;
  void count(const DataPath& path, const Op& op, std::int32_t die);
  void count_sent(const DataPath& path);
  [[gnu::noinline, gnu::cold]] void count_cells(CacheTraffic& read) const;

  Run& run_;
  SharedResources& resources_;
  const Crowds& crowds_;
  TileRecords& tiles_;
  const WriteBack& write_back_;
  FluidClasses& classes_;
};

}  // namespace tritax::engine

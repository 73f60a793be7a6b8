// The data path of an operation that moves data: what it loads, and the speed at which one workgroup can
// drive it.
#pragma once

#include <cstdint>

#include "model/cost/move_cost.hpp"
#include "sim/engine_state.hpp"

namespace tritax::engine {

struct DataPath : DataMove {
  KernelProfile profile = KernelProfile::interpreter;
  Level source = Level::chip;
  bool mixed = false;    // several sources: `source` is the farthest, TileRecords::bytes_read() has all
  bool rereads = false;  // the source is a tile written before, not an input
  double bytes = 0;
  double cap_gb_per_s = 0;
  double link_cost = 1;   // bytes on a link per byte stored
  double vector_clk = 0;  // cycles of a compute unit per byte stored, Kernel::clk_per_stored_byte
  double with_flags = 1;  // bytes sent per byte of data, if flags travel in the words of the data
  // Crowding::step_of() the transfers on the link of the sender and of the receiver, if the link is full.
  std::uint8_t crowd_out = 0, crowd_in = 0;
  bool written_back = false;  // written data goes to memory
  // Ranks of the group that the switch carries out, of which this is one: the bytes of all of them cross the
  // link of the workgroup's GPU once. 1: no such group.
  std::int32_t fan = 1;
};

}  // namespace tritax::engine

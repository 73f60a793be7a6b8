// Short names of tile operations for people: "matmul C[3,5]", "store C[3,5] -> GPU 2", "wait ready[7] >= 1".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// "C[3,5]" by tile index, with a "+" where the rectangle does not start on a tile; "C" if the buffer has no
// tiles.
std::string tile_name(const Buffer& buffer, const Rect& rect);

// "C[0:256, 512:768]", rows and columns in elements.
std::string region_name(const Buffer& buffer, const Rect& rect);

// For every operation of Schedule::ops the operation that writes out its accumulator (the next store or
// atomic_add of the same workgroup), or -1. It gives a matmul the name of its C tile.
std::vector<std::int32_t> accumulator_sinks(const Schedule& schedule);

// "launch gemm"; the label of host work.
std::string host_op_name(const Schedule& schedule, const HostOp& op);

// "copy C[0:256, 512:768] GPU 0 -> GPU 1", of a transfer by a copy engine.
std::string transfer_name(const Schedule& schedule, const Op& transfer);

// Name of the operation `op` (index into Schedule::ops) of a workgroup on `rank`.
std::string op_name(const Schedule& schedule, const std::vector<std::int32_t>& sinks, std::size_t op,
                    int rank);

}  // namespace tritax

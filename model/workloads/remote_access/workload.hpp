// Remote-access microbenchmarks: every workgroup of a large grid moves one block per peer (ROCm/iris examples
// 00 to 05). schedule.cpp says how a block becomes tile operations.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/workload/workload.hpp"

namespace tritax {

enum class RemoteOperation : std::uint8_t {
  load,        // memory to registers
  store,       // registers to memory
  atomic_add,  // registers added to memory
  get,         // the peer's memory to the own memory
  put,         // the own memory to the peer's memory
};
inline constexpr std::array<std::string_view, 5> kRemoteOperationNames{"load", "store", "atomic-add", "get",
                                                                       "put"};

enum class Peers : std::uint8_t {
  self,  // GPU 0 with its own memory
  one,   // GPU 0 with GPU 1
  all,   // every GPU with all its peers at once
};
inline constexpr std::array<std::string_view, 3> kPeersNames{"self", "one", "all"};

struct RemoteAccess {
  RemoteOperation operation = RemoteOperation::store;
  Peers peers = Peers::one;
  std::int64_t bytes = 0;           // per peer
  std::int64_t block_bytes = 1024;  // 512 fp16 elements, as in Iris
  int gpus = 2;                     // that take part
};

// One kernel per active rank; its workgroups move blocks. Throws UserError when a block does not fit a tile
// operation of this machine.
Schedule remote_access_schedule(const RemoteAccess& access, const Machine& machine);

// Rows of the blocks of a coarsened grid, in dispatch order; their sum is `rows`. `slots` blocks are resident
// together, and each stands for `granule` rows in flight. The first `fine_rounds` rounds have blocks of one
// granule, so that start-up effects keep their size (fabric.convoy_rounds). Then sizes double, up to rows /
// (slots · generations). At the end a block has at most half of the rows left per slot, so that no slot idles
// for long. All blocks but the last are granule · 2^i, so that there are few sizes.
std::vector<std::int64_t> coarsened_blocks(std::int64_t rows, std::int64_t granule, std::int64_t slots,
                                           std::int64_t generations, std::int64_t fine_rounds);

// The remote-access workload.
const Workload& remote_access();

}  // namespace tritax

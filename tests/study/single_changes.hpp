// Single changes of the knobs of GEMM + all-scatter.
#pragma once

#include <cstdint>
#include <vector>

#include "model/parts/gemm_knobs.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {

// Changes that a user might try after a search: one knob changed, by a list of values that is not
// that of the search. Some of them fit no compute unit.
inline std::vector<GemmKnobs> single_changes(const GemmKnobs& winner, const Pattern& pattern,
                                             const Machine& machine) {
  std::vector<GemmKnobs> changes;
  const auto add = [&](const auto& change) {
    GemmKnobs knobs = winner;
    change(knobs);
    if (!(knobs == winner)) changes.push_back(knobs);
  };
  const std::int32_t cus = machine.gpu.cu_count();
  for (const std::int32_t side : {16, 32, 64, 128, 256}) {
    add([&](GemmKnobs& k) { k.tile_m = side; });
    add([&](GemmKnobs& k) { k.tile_n = side; });
    add([&](GemmKnobs& k) { k.tile_k = side; });
  }
  for (const std::int32_t waves : {1, 2, 4, 8, 16}) add([&](GemmKnobs& k) { k.waves = waves; });
  if (pattern.uses("comm_tile")) {
    for (const std::int32_t m : {32, 64, 128, 256}) {
      for (const std::int32_t n : {32, 64, 128, 256}) {
        add([&](GemmKnobs& k) { k.comm_tile_m = m, k.comm_tile_n = n; });
      }
    }
  }
  if (pattern.uses("gemm_cus")) {
    for (std::int32_t count = 8; count <= cus; count += 8) add([&](GemmKnobs& k) { k.gemm_cus = count; });
  }
  if (pattern.uses("comm_cus")) {
    for (std::int32_t count = 4; count <= cus; count += count < 64 ? 4 : 16) {
      add([&](GemmKnobs& k) { k.comm_cus = count; });
      // The split moved as a whole is one change too.
      if (pattern.roles != Roles::in_turn && count < cus) {
        add([&](GemmKnobs& k) { k.comm_cus = count, k.gemm_cus = cus - count; });
      }
    }
  }
  for (const std::int32_t group : {1, 2, 3, 4, 6, 8, 12, 16}) add([&](GemmKnobs& k) { k.group_m = group; });
  add([&](GemmKnobs& k) { k.xcd_remap = !k.xcd_remap, k.xcd_chunk = 0; });
  if (pattern.uses("xcd_chunk") && winner.xcd_remap) {
    for (const std::int32_t chunk : {0, 2, 4, 8, 16}) add([&](GemmKnobs& k) { k.xcd_chunk = chunk; });
  }
  for (const PeerOrder order : {PeerOrder::fixed, PeerOrder::rotated, PeerOrder::staggered}) {
    add([&](GemmKnobs& k) { k.peer_order = order; });
  }
  for (const LaunchMode launch : {LaunchMode::stream, LaunchMode::graph}) {
    add([&](GemmKnobs& k) { k.launch = launch; });
  }
  for (const Pipeline pipeline : {Pipeline::serial, Pipeline::overlapped}) {
    add([&](GemmKnobs& k) { k.pipeline = pipeline; });
  }
  return changes;
}

}  // namespace tritax

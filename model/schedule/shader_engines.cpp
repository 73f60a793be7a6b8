#include "model/schedule/shader_engines.hpp"

#include <algorithm>

namespace tritax {

std::int32_t engine_begin(const Gpu& gpu, std::int32_t engine) {
  return (engine * gpu.cus_per_xcd + gpu.shader_engines - 1) / gpu.shader_engines;
}

std::vector<std::int32_t> engine_turns(const Gpu& gpu) {
  std::vector<std::int32_t> turns;
  for (std::int32_t round = 0; static_cast<std::int32_t>(turns.size()) < gpu.cus_per_xcd; ++round) {
    for (std::int32_t engine = 0; engine < gpu.shader_engines; ++engine) {
      if (engine_begin(gpu, engine) + round < engine_begin(gpu, engine + 1)) turns.push_back(engine);
    }
  }
  return turns;
}

std::int32_t workgroups_beside(const Gpu& gpu, std::int32_t taken) {
  const std::vector<std::int32_t> turns = engine_turns(gpu);
  std::vector<std::int32_t> left;
  for (std::int32_t engine = 0; engine < gpu.shader_engines; ++engine) {
    left.push_back(engine_begin(gpu, engine + 1) - engine_begin(gpu, engine));
  }
  const std::int32_t on_a_die = std::min(gpu.cus_per_xcd, (taken + gpu.xcds - 1) / gpu.xcds);
  for (std::int32_t i = 0; i < on_a_die; ++i)
    --left[static_cast<std::size_t>(turns[static_cast<std::size_t>(i)])];
  std::int32_t beside = 0;
  for (const std::int32_t engine : turns) {
    if (left[static_cast<std::size_t>(engine)]-- == 0) break;
    ++beside;
  }
  return beside * gpu.xcds;
}

}  // namespace tritax

#include "model/schedule/shader_engines.hpp"

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

}  // namespace tritax

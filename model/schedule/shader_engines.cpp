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

namespace {

// Compute units per engine of a die that the first `taken` workgroups of a kernel leave free.
std::vector<std::int32_t> left_of_die(const Gpu& gpu, const std::vector<std::int32_t>& turns,
                                      std::int32_t taken) {
  std::vector<std::int32_t> left;
  for (std::int32_t engine = 0; engine < gpu.shader_engines; ++engine) {
    left.push_back(engine_begin(gpu, engine + 1) - engine_begin(gpu, engine));
  }
  for (std::int32_t i = 0; i < std::min(gpu.cus_per_xcd, taken); ++i)
    --left[static_cast<std::size_t>(turns[static_cast<std::size_t>(i)])];
  return left;
}

// Workgroup w goes to die w mod X.
std::int32_t on_die(const Gpu& gpu, std::int32_t workgroups, std::int32_t die) {
  return (workgroups + gpu.xcds - 1 - die) / gpu.xcds;
}

}  // namespace

std::int32_t workgroups_beside(const Gpu& gpu, std::int32_t taken) {
  const std::vector<std::int32_t> turns = engine_turns(gpu);
  std::vector<std::int32_t> left = left_of_die(gpu, turns, on_die(gpu, taken, 0));
  std::int32_t beside = 0;
  for (const std::int32_t engine : turns) {
    if (left[static_cast<std::size_t>(engine)]-- == 0) break;
    ++beside;
  }
  return beside * gpu.xcds;
}

bool fit_beside(const Gpu& gpu, std::int32_t taken, std::int32_t more) {
  const std::vector<std::int32_t> turns = engine_turns(gpu);
  for (std::int32_t die = 0; die < gpu.xcds; ++die) {
    const std::int32_t of_more = on_die(gpu, more, die);
    if (on_die(gpu, taken, die) + of_more > gpu.cus_per_xcd) return false;
    std::vector<std::int32_t> left = left_of_die(gpu, turns, on_die(gpu, taken, die));
    for (std::int32_t i = 0; i < of_more; ++i) {
      if (left[static_cast<std::size_t>(turns[static_cast<std::size_t>(i)])]-- == 0) return false;
    }
  }
  return true;
}

}  // namespace tritax

#include "model/schedule/wave_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tritax {

namespace {

constexpr std::int32_t kRegisterStep = 8;
constexpr std::int32_t kMostThreads = 1024;  // of a workgroup (AMD CDNA 3 instruction set reference)

std::int32_t waves_of_schedule(const Gpu& gpu, Pipeline pipeline) {
  if (pipeline == Pipeline::ping_pong) return 2 * gpu.simds_per_cu;
  return pipeline == Pipeline::interleaved ? gpu.simds_per_cu : 0;
}

}  // namespace

std::int32_t producers_of(const Gpu& gpu, const MatmulTile& tile) {
  if (tile.pipeline != Pipeline::producer_consumer) return 0;
  return tile.producers > 0 ? tile.producers : gpu.simds_per_cu;
}

std::string fault_of_waves(const Gpu& gpu, const MatmulTile& tile) {
  if (!is_wave_schedule(tile.pipeline)) return {};
  const std::string_view name = kPipelineNames[static_cast<std::size_t>(tile.pipeline)];
  if (gpu.async_tile_copy) {
    return fmt::format("{} waves fill the LDS, and {} copies into it by itself: use serial or overlapped",
                       name, gpu.name);
  }
  const std::int32_t wanted = waves_of_schedule(gpu, tile.pipeline);
  if (wanted > 0 && tile.waves != wanted) {
    return fmt::format("{} waves are {} on each of the {} SIMDs of {}, and {} are given: use waves = {}",
                       name, wanted / gpu.simds_per_cu, gpu.simds_per_cu, gpu.name, tile.waves, wanted);
  }
  const std::int32_t waves = tile.waves + producers_of(gpu, tile);
  const std::int32_t most = kMostThreads / gpu.lanes_per_wave;
  if (waves <= most) return {};
  return fmt::format("{} waves: {} consumers and {} producers are {} waves; at most {} are allowed", name,
                     tile.waves, producers_of(gpu, tile), waves, most);
}

double registers_of_thread(const Gpu& gpu, Pipeline pipeline, std::int32_t threads) {
  const double share = std::min(gpu.registers_per_thread_max, std::floor(gpu.registers_per_cu / threads));
  return is_wave_schedule(pipeline) ? std::floor(share / kRegisterStep) * kRegisterStep : share;
}

}  // namespace tritax

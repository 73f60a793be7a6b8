#include "model/cost/collective_cost.hpp"

#include <algorithm>

namespace tritax {

std::int32_t chunks_of_channel(double bytes) {
  constexpr double kSmallestChunk = 256 * 1024;
  constexpr double kMostChunks = 8;
  return static_cast<std::int32_t>(std::clamp(bytes / kSmallestChunk, 1.0, kMostChunks));
}

int ring_links(int ranks) { return ranks == 4 || ranks == 6 ? ranks - 2 : ranks - 1; }

CollectiveProtocol collective_protocol(const LibraryCosts& library, int ranks, double bytes, int channels,
                                       int steps) {
  if (steps == 0) steps = ranks - 1;
  const CollectiveProtocol full{library.collective_start_ns, library.channel_gb_per_s};
  const CollectiveProtocol small{library.small_start_ns + std::max(0, steps - 1) * library.small_step_ns,
                                 library.small_channel_gb_per_s, kLowLatencyPayload};
  if (small.channel_gb_per_s <= 0) return full;
  const auto time_ns = [&](const CollectiveProtocol& protocol) {
    return protocol.start_ns + bytes / (channels * protocol.channel_gb_per_s);
  };
  return time_ns(small) < time_ns(full) ? small : full;
}

CollectiveProtocol send_protocol(const LibraryCosts& library, double bytes) {
  constexpr double kMostBytesOfLowLatency = 16384;
  if (library.small_channel_gb_per_s <= 0 || bytes > kMostBytesOfLowLatency)
    return {library.collective_start_ns, library.channel_gb_per_s};
  return {library.small_start_ns, library.small_channel_gb_per_s, kLowLatencyPayload};
}

}  // namespace tritax

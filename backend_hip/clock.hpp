// Clock offsets between several GPUs: the offset of each GPU's clock from that of rank 0.
//
// Rank 0 asks, and the other rank stores its clock and answers. The middle of the shortest round trip is
// taken as the instant of the answer, so that the error of the offset is at most half of this round trip.
#pragma once

#include <cstdint>

#include "backend_hip/gpu_api.hpp"

namespace tritax::gpu {

// Mailbox for answers on every GPU, with its two words in separate cache lines.
struct ClockMail {
  std::uint32_t flag = 0;
  std::uint32_t spare[31] = {};
  unsigned long long ticks = 0;
};

struct ClockReading {
  unsigned long long round_trip = ~0ULL;  // ticks
  long long offset = 0;                   // peer's clock minus own
};

void launch_clock_ask(ClockMail* own, ClockMail* peer, ClockReading* best, int rounds,
                      unsigned long long limit, hipStream_t stream);
void launch_clock_answer(ClockMail* own, ClockMail* peer, int rounds, unsigned long long limit,
                         hipStream_t stream);

// Ticks of the device clock per second (ticks() in device.hpp).
#if defined(TRITAX_GPU_NVIDIA)
inline constexpr double kTicksPerSecond = 1e9;
#else
inline constexpr double kTicksPerSecond = 1e8;
#endif

}  // namespace tritax::gpu

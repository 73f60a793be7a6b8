// Alignment of the clocks of two GPUs by flag round trips.
#include "backend_hip/clock.hpp"
#include "backend_hip/device.hpp"

namespace tritax::gpu {

namespace {

// Waits until *flag is `round`; false after `limit` ticks.
__device__ bool await_round(const std::uint32_t* flag, std::uint32_t round, unsigned long long limit) {
  const unsigned long long begin = ticks();
  while (flag_load(flag, Scope::system) != round) {
    if (ticks() - begin > limit) return false;
  }
  acquire_fence(Scope::system);
  return true;
}

__global__ void ask(ClockMail* own, ClockMail* peer, ClockReading* best, int rounds,
                    unsigned long long limit) {
  for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(rounds); ++round) {
    const unsigned long long sent = ticks();
    flag_store(&peer->flag, round, Scope::system);
    if (!await_round(&own->flag, round, limit)) return;
    const unsigned long long received = ticks();
    const unsigned long long answered = own->ticks;
    if (received - sent < best->round_trip) {
      best->round_trip = received - sent;
      best->offset = static_cast<long long>(answered) - static_cast<long long>(sent + (received - sent) / 2);
    }
  }
}

__global__ void answer(ClockMail* own, ClockMail* peer, int rounds, unsigned long long limit) {
  for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(rounds); ++round) {
    if (!await_round(&own->flag, round, limit)) return;
    peer->ticks = ticks();
    release_fence(Scope::system);
    flag_store(&peer->flag, round, Scope::system);
  }
}

}  // namespace

void launch_clock_ask(ClockMail* own, ClockMail* peer, ClockReading* best, int rounds,
                      unsigned long long limit, hipStream_t stream) {
  ask<<<1, 1, 0, stream>>>(own, peer, best, rounds, limit);
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_clock_answer(ClockMail* own, ClockMail* peer, int rounds, unsigned long long limit,
                         hipStream_t stream) {
  answer<<<1, 1, 0, stream>>>(own, peer, rounds, limit);
  TRITAX_GPU_CHECK(hipGetLastError());
}

}  // namespace tritax::gpu

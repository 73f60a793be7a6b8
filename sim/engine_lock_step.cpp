// Matmuls that share operands and run together.
#include <algorithm>
#include <cmath>

#include "sim/engine.hpp"

namespace tritax {

// Compute units that ask for the same bytes at about the same time send the L2 one request for all of them
// (the L2 Request Coalescer: Nsight Compute, Kernel Profiling Guide, Hardware Model). They get them at the
// same time, and so go on in lock step: what makes one of them slow makes all of them slow. Stamps of a
// product of 3072x6528x5888 on an H100 show it (2026-11-25, tiles of 128x128): after six rounds those who
// share columns of B start within 0.1 us, and columns are up to 4.4 us apart. Where stores to a peer pull
// them apart, their matmuls take up to 40 % longer, until the L2 serves each alone.
Engine::Coalesced Engine::coalesce(WorkgroupState& wg, const MatmulInputs& inputs, double duration_ns,
                                   double now) {
  constexpr double kApart = 0.2;  // standard deviation in lock step, however long it lasts, by that window
  const double own = spread_of(machine_.gpu.matmul_spread, wg.id, wg.pc);
  const double window_ns = machine_.gpu.l2_coalescing_ns;
  if (window_ns <= 0) return {0, own};
  std::vector<Readers>& readers = gpus_[wg.rank].readers;
  const auto dies = static_cast<std::size_t>(machine_.gpu.xcds);
  const auto place_of_slab = [&](std::uint32_t slab) {
    return slab * dies + static_cast<std::size_t>(wg.die);
  };
  const auto ask = [&](std::uint32_t slab) {
    const std::size_t place = place_of_slab(slab);
    if (place >= readers.size()) readers.resize(place + 1);
    const double joined = std::exp((readers[place].last_start_ns - now) / window_ns);
    readers[place].last_start_ns = now;
    return static_cast<std::uint32_t>(std::lround((kCoalescingLevels - 1) * joined));
  };
  const std::uint32_t levels = ask(inputs.a_slab) | ask(inputs.b_slab) << kCoalescingBits;
  // Workgroups one after the other share columns of B (group-M), and those lead.
  Readers& together = readers[place_of_slab(inputs.b_slab)];
  if (now > together.first_start_ns + duration_ns / 2) {
    together.first_start_ns = now;
    together.spread = own;
  }
  const double spread_ns = machine_.gpu.matmul_spread * duration_ns;
  const double apart = spread_ns > 0 ? std::min(1.0, kApart * window_ns / spread_ns) : 0;
  return {levels, (1 - apart) * together.spread + apart * own};
}

// Of the bytes of an operand, what its requests ask of the L2.
double Engine::l2_share(std::uint32_t level) const {
  return 1 - (1 - machine_.gpu.l2_coalesced_share) * level / (kCoalescingLevels - 1);
}

}  // namespace tritax

#include "sim/engine_matmul_times.hpp"

#include <algorithm>

namespace tritax::engine {

// Duration of a matmul or attend with `sharers` workgroups on its compute unit: they share its matrix cores,
// but fill each other's bubbles. The bubbles of an attend include its waits.
double work_ns(const MatmulShape& shape, std::int32_t sharers, std::uint32_t misses, double clock) {
  if (shape.attends) {
    const double l2 = l2_parts(misses), llc = llc_parts(misses);
    const double waits_ns =
        ((kMissParts - l2) * shape.wait_ns[0] + (l2 - llc) * shape.wait_ns[1] + llc * shape.wait_ns[2]) /
        kMissParts;
    return std::max(shape.cost.compute_ns / clock + waits_ns,
                    shape.cost.compute_ns * sharers / (shape.shared_speedup * clock));
  }
  const double together = std::min(static_cast<double>(sharers), shape.shared_speedup) / sharers;
  return shape.cost.compute_ns / (clock * together);
}

// The least time in which the operands of a matmul arrive, one stage after another, with `sharers` workgroups
// on its compute unit.
double arrival_ns(const MatmulShape& shape, std::int32_t sharers, std::uint32_t misses) {
  if (shape.attends) {
    const double l2 = l2_parts(misses), llc = llc_parts(misses);
    return ((l2 - llc) * shape.from_llc_ns + llc * shape.from_memory_ns) / kMissParts;
  }
  if (crosses_links(shape, misses)) {
    return std::max(shape.of_peer.least_ns(sharers), arrival_ns(shape, sharers, misses & ~1u));
  }
  if ((misses & (4 | 8)) != 0) return shape.from_memory_ns;
  return (misses & (1 | 2)) != 0 ? shape.from_llc_ns : 0;
}

// Delay of a matmul, which takes `compute_ns` with present operands, because some operands displace data that
// has to be written back first: these operands arrive after all of the writing, even if the memory has room
// for reads and writes at once. Streams of operands show this: after their caches were overwritten, H100 take
// 6 to 9 us longer for 67 and 134 MB by 16 and 32 workgroups with three or four stages in flight, and 5 to 8
// us for 553 MB by all workgroups, which is the time of the writing; workgroups with more stages take less
// (scenarios/measured/h100-4-microbench.csv).
double written_first_ns(const MatmulShape& shape, const Missed& missed, double compute_ns) {
  if (missed.write_back_ns <= 0) return 0;
  const double dirty = evicted_share(missed.bits);
  const double arrives_ns = dirty * shape.from_memory_ns;
  return std::max(dirty * compute_ns, arrives_ns + missed.write_back_ns) -
         std::max(dirty * compute_ns, arrives_ns);
}

}  // namespace tritax::engine

#include "sim/engine_matmul.hpp"

#include <algorithm>

namespace tritax::engine {

// Of a matmul or attend, of `sharers` on its compute unit: they share its matrix cores, but fill each other's
// bubbles. Those of an attend are also its waits.
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

// How long the operands of a matmul take to arrive at least, one stage after the other.
double arrival_ns(const MatmulShape& shape, std::uint32_t misses) {
  if (shape.attends) {
    const double l2 = l2_parts(misses), llc = llc_parts(misses);
    return ((l2 - llc) * shape.from_llc_ns + llc * shape.from_memory_ns) / kMissParts;
  }
  if ((misses & (4 | 8)) != 0) return shape.from_memory_ns;
  return (misses & (1 | 2)) != 0 ? shape.from_llc_ns : 0;
}

// What a matmul takes longer, of `compute_ns` if its operands were there, because some of them displace what
// has to be written back first: they arrive after all of that, even where the memory has room for reads and
// writes at once. Streams of operands show it: after their caches were overwritten, H100 take 6 to 9 us
// longer for 67 and 134 MB by 16 and 32 workgroups that have three or four stages on their way, 5 to 8 us for
// 553 MB by all, which is what the writing takes; those with more stages take less
// (scenarios/measured/h100-4-microbench.csv).
double written_first_ns(const MatmulShape& shape, const Missed& missed, double compute_ns) {
  if (missed.write_back_ns <= 0) return 0;
  const double dirty = evicted_share(missed.bits);
  const double arrives_ns = dirty * shape.from_memory_ns;
  return std::max(dirty * compute_ns, arrives_ns + missed.write_back_ns) -
         std::max(dirty * compute_ns, arrives_ns);
}

}  // namespace tritax::engine

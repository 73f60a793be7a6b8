// Operands in the caches.
#include "sim/engine_operands.hpp"

#include <algorithm>
#include <cmath>

#include "model/schedule/op_traits.hpp"
#include "sim/engine_matmul_times.hpp"

namespace tritax::engine {

// Operands that a matmul of `duration_ns` does not find in the caches. A slab that another matmul is fetching
// arrives at later matmuls no earlier than at the first.
Missed Operands::look_up(std::int32_t rank, std::int32_t die, const Op& op, const MatmulInputs& inputs,
                         const MatmulShape& shape, double duration_ns, double now) {
  GpuState& gpu = run_.gpus[static_cast<std::size_t>(rank)];
  ReuseCache& l2 = gpu.l2[static_cast<std::size_t>(die)];
  Missed missed;
  const bool has_llc = run_.machine.gpu.llc_bytes > 0;
  const bool no_l2 =
      run_.machine.gpu.acquire_drops_l2 && gpu.atomic_pollers[static_cast<std::size_t>(die)] > 0;
  const auto look_up = [&](std::int32_t buffer, std::uint32_t slab, double bytes, std::uint32_t l2_bit,
                           std::uint32_t llc_bit) {
    CacheTraffic& traffic = run_.traffic.at(rank, die, buffer, op.kind);
    traffic.asked_bytes += bytes;
    const auto touch = [&](ReuseCache& cache) {
      return cache.touch(slab, now, duration_ns) ||
             (!overlaps_.empty() && overlaps_.covers(slab, cache, now, duration_ns));
    };
    const bool in_l2 = (touch(l2) || write_back_.operands_stay()) && !no_l2;
    if (in_l2) {
      traffic.l2_hit_bytes += bytes;
      if (!write_back_.operands_stay()) missed.others_ns = std::max(missed.others_ns, l2.arrives_ns(slab));
      return;
    }
    missed.bits |= l2_bit;
    missed.l2_bytes += bytes;
    if (has_llc && touch(gpu.llc)) {
      traffic.llc_hit_bytes += bytes;
      const double in_llc = gpu.llc.arrives_ns(slab);
      missed.others_ns = std::max(missed.others_ns, in_llc);
      l2.expect(slab, std::max(now + shape.from_llc_ns, in_llc));
      return;
    }
    missed.bits |= llc_bit;
    missed.llc_bytes += bytes;
    traffic.hbm_read_bytes += bytes;
  };
  if (shape.peer < 0) {
    look_up(op.src_buffer, inputs.a_slab, shape.cost.a_bytes, 1, 4);
  } else {
    fetch_from_peer(rank, die, op, inputs, shape, duration_ns, no_l2, missed, now);
  }
  look_up(op.b_buffer, inputs.b_slab, shape.cost.b_bytes, 2, 8);
  if (missed.llc_bytes > 0) fetch(gpu, rank, die, op, inputs, shape, missed, now);
  return missed;
}

// A of a peer. A last-level cache holds only the memory of its own GPU, so that only an L2 may keep the data
// of a peer. An earlier kernel leaves nothing there, because the start of a kernel is an acquire.
void Operands::fetch_from_peer(std::int32_t rank, std::int32_t die, const Op& op, const MatmulInputs& inputs,
                               const MatmulShape& shape, double duration_ns, bool no_l2, Missed& missed,
                               double now) {
  ReuseCache& l2 = run_.gpus[static_cast<std::size_t>(rank)].l2[static_cast<std::size_t>(die)];
  const double bytes = shape.cost.a_bytes;
  if (run_.machine.gpu.l2_keeps_peers) {
    CacheTraffic& here = run_.traffic.at(rank, die, op.src_buffer, op.kind);
    here.asked_bytes += bytes;
    if (l2.touch(inputs.a_slab, now, duration_ns) && !no_l2) {
      here.l2_hit_bytes += bytes;
      missed.others_ns = std::max(missed.others_ns, l2.arrives_ns(inputs.a_slab));
      return;
    }
    missed.l2_bytes += bytes;
    l2.expect(inputs.a_slab, now + shape.of_peer.least_ns(1));
  }
  missed.bits |= 1;
  resources_.sent_bytes(shape.peer, rank) += bytes;
  CacheTraffic& there = run_.traffic.at(run_.home(shape.peer), -1, op.src_buffer, op.kind);
  there.asked_bytes += bytes;
  there.hbm_read_bytes += bytes;
}

// Fetches what missed from memory; it displaces dirty data.
void Operands::fetch(GpuState& gpu, std::int32_t rank, std::int32_t die, const Op& op,
                     const MatmulInputs& inputs, const MatmulShape& shape, Missed& missed, double now) {
  if (write_back_.has_dirty(rank)) {
    const WriteBack::Displaced displaced = write_back_.displace(rank, missed.llc_bytes);
    missed.bits |= static_cast<std::uint32_t>(std::lround(displaced.share * kEvictionParts))
                   << kEvictionShift;
    missed.write_back_ns = run_.costs[shape.profile].tuned ? 0 : displaced.write_back_ns;
    const auto count = [&](std::int32_t buffer, double bytes) {
      run_.traffic.at(rank, die, buffer, op.kind).hbm_written_bytes += evicted_share(missed.bits) * bytes;
    };
    if ((missed.bits & 4) != 0) count(op.src_buffer, shape.cost.a_bytes);
    if ((missed.bits & 8) != 0) count(op.b_buffer, shape.cost.b_bytes);
  }
  const double arrives_ns = now + shape.from_memory_ns + written_first_ns(shape, missed, 0);
  const auto expect = [&](std::uint32_t slab) {
    if (run_.machine.gpu.llc_bytes > 0) gpu.llc.expect(slab, arrives_ns);
    gpu.l2[static_cast<std::size_t>(die)].expect(slab, arrives_ns);
  };
  if ((missed.bits & 4) != 0) expect(inputs.a_slab);
  if ((missed.bits & 8) != 0) expect(inputs.b_slab);
}

}  // namespace tritax::engine

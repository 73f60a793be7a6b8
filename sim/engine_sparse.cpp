// Sparse products: activities on the L2 of their die and on the memories, by the law of sparse_cost.hpp.
#include "sim/engine_sparse.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

namespace {

// Operations of nearly equal needs share a class, to limit the number of classes: shares of bytes are rounded
// up to multiples of 1/64, rates to within 2.2 %.
constexpr double kShareParts = 64;
constexpr double kRatesOfOctave = 16;

std::uint64_t parts_of(double share) {
  return static_cast<std::uint64_t>(std::ceil(kShareParts * std::clamp(share, 0.0, 1.0)));
}

}  // namespace

void SparseProducts::begin(WorkgroupState& wg, std::uint32_t id, double now) {
  const Op& op = run_.schedule.ops[wg.pc];
  const SparseCost& cost = costs_.of(wg.pc);
  GpuState& gpu = run_.gpus[static_cast<std::size_t>(wg.rank)];
  const auto die = static_cast<std::size_t>(wg.die);
  gpu.l2[die].insert(cost.llc_bytes, now);
  if (run_.machine.gpu.llc_bytes > 0) gpu.llc.insert(cost.hbm_bytes, now);
  CacheTraffic& x = run_.traffic.at(wg.rank, wg.die, op.b_buffer, op.kind);
  x.asked_bytes += cost.x_bytes;
  x.l2_hit_bytes += cost.x_bytes - cost.x_llc_bytes;
  x.llc_hit_bytes += cost.x_llc_bytes - cost.x_hbm_bytes;
  x.hbm_read_bytes += cost.x_hbm_bytes;
  CacheTraffic& streams = run_.traffic.at(wg.rank, wg.die, op.src_buffer, op.kind);
  streams.asked_bytes += cost.bytes - cost.x_bytes;
  streams.l2_hit_bytes += (cost.bytes - cost.x_bytes) - (cost.llc_bytes - cost.x_llc_bytes);
  streams.hbm_read_bytes += cost.hbm_bytes - cost.x_hbm_bytes;
  if (counters_.any()) counters_.tell_sparse(wg, cost);

  const double rate =
      std::exp2(std::round(kRatesOfOctave * std::log2(cost.bytes / cost.alone_ns)) / kRatesOfOctave);
  const std::uint64_t llc = parts_of(cost.llc_bytes / cost.bytes);
  const std::uint64_t hbm = parts_of(cost.hbm_bytes / cost.bytes);
  const ClassKey key{3ULL << 62 | static_cast<std::uint64_t>(wg.rank) << 40 |
                         static_cast<std::uint64_t>(wg.profile) << 32 |
                         static_cast<std::uint64_t>(die & 0xff) << 16 | llc << 8 | hbm,
                     std::bit_cast<std::uint64_t>(rate), 0};
  std::int32_t class_id = classes_.known(key);
  if (class_id == FluidNetwork::kNone) {
    std::vector<FluidNetwork::Use> uses{{gpu.l2_port[die], resources_.shares_of(wg.profile).l2},
                                        {gpu.hbm, static_cast<double>(hbm) / kShareParts}};
    if (gpu.llc_port != FluidNetwork::kNone) {
      uses.push_back({gpu.llc_port, static_cast<double>(llc) / kShareParts});
    }
    class_id = classes_.add(key, uses, rate);
  }
  wg.op_alone_ns = cost.bytes / rate;
  wg.op_reread_ns = 0;
  wg.op_part = &TimeAccount::compute_ns;
  wg.waiting = Waiting::activity;
  run_.fluid.start(class_id, cost.bytes, 1, token_of(id, false), now);
  wg.op_lost_ns = run_.fluid.lost_on_links_ns(class_id);
  outlook_.look_ahead(wg, now);
}

}  // namespace tritax::engine

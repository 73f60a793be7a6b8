#include "sim/engine_luck.hpp"

#include <numeric>

#include "sim/mix.hpp"

namespace tritax::engine {

Luck::Luck(const Run& run) : run_(run), weights_(run.machine.fabric.arbitration_spread) {
  if (run_.free_flag >= 0) count_added();
  if (run_.has_items) index_items();
}

void Luck::count_added() {
  // Counted as in the run that stands for all, if one rank stands for several.
  const auto counted_as = [&](std::size_t o) {
    return run_.alike.op_of != nullptr ? std::size_t{(*run_.alike.op_of)[o]} : o;
  };
  std::vector<std::uint32_t> added(run_.schedule.ops.size() + 1, 0);
  for (std::size_t o = 0; o < run_.schedule.ops.size(); ++o) {
    const Op& op = run_.schedule.ops[o];
    if ((op.kind == OpKind::signal || op.kind == OpKind::wait) && run_.is_free(op))
      added[counted_as(o) + 1] = 1;
  }
  std::partial_sum(added.begin(), added.end(), added.begin());
  for (std::size_t o = 0; o < run_.schedule.ops.size(); ++o) added_before_.push_back(added[counted_as(o)]);
}

void Luck::index_items() {
  of_item_.resize(run_.schedule.ops.size(), 0);
  for (const Kernel& kernel : run_.schedule.kernels) {
    for (const Item& item : kernel.items) {
      std::fill_n(of_item_.begin() + item.first_op, item.op_count, std::uint8_t{1});
    }
  }
}

// Equal matmuls take different times, because their operands are nearer to some compute units than to others
// (spread_width()).
double Luck::spread_of(const WorkgroupState& wg, std::uint32_t op) const {
  if (run_.machine.gpu.matmul_spread == 0) return 1;
  return 1 + spread_width(run_.machine.gpu, run_.costs_of(wg)) * (2 * unit_random(draw_of(wg.id, op)) - 1);
}

// The identity of an operation for random draws. A run without boundaries draws the same as the run with
// them.
std::uint64_t Luck::draw_of(std::uint32_t id, std::uint32_t op) const {
  // Which workgroup draws an item is random itself; the place among the operations identifies the item.
  id = run_.has_items && of_item_[op] != 0 ? kNobody : lucky_workgroup(id);
  const std::uint32_t added = added_before(op);
  if (run_.alike.op_of != nullptr) op = (*run_.alike.op_of)[op];
  op -= added;
  return static_cast<std::uint64_t>(id) << 32 ^ op;
}

// Uniform in [0, 1), from the seed and `what`.
double Luck::unit_random(std::uint64_t what) const {
  return static_cast<double>(mix(mix(run_.options.seed) ^ what) >> 11) * 0x1.0p-53;
}

// Equal requesters do not get equal service on a full link: every transfer has its own weight, drawn from the
// seed and the operation. If all copies of a workgroup to one peer are one transfer, they have one weight.
double Luck::service_weight(const WorkgroupState& wg, std::uint32_t op) const {
  if (run_.machine.fabric.arbitration_spread == 0) return 1;
  const bool channel = run_.costs_of(wg).tuned && run_.schedule.ops[op].kind == OpKind::copy;
  std::int32_t peer = run_.schedule.ops[op].rank;
  if (run_.alike.lucky_ranks > 0) {
    const std::int32_t first = wg.rank % run_.alike.lucky_ranks;
    peer = (peer + run_.schedule.ranks - (wg.rank - first)) % run_.schedule.ranks;
  }
  const std::uint64_t draw =
      channel ? static_cast<std::uint64_t>(lucky_workgroup(wg.id)) << 32 ^ ~static_cast<std::uint32_t>(peer)
              : draw_of(wg.id, op);
  return weights_.at(unit_random(draw));
}

// Constant while the workgroup runs, and equal if it gets the same tiles again.
double Luck::pace_of(const WorkgroupState& wg) const {
  return 1 + run_.machine.gpu.attend_spread * (2 * unit_random(1ULL << 62 | lucky_workgroup(wg.id)) - 1);
}

}  // namespace tritax::engine

// Reports to the counters of a timeline, if an observer records them.
#include "sim/engine_counters.hpp"

namespace tritax::engine {

Counters::Counters(const Run& run, const Clock& clock, const DataTraffic& traffic)
    : run_(run),
      clock_(clock),
      traffic_(traffic),
      observer_(run.options.link_counters ? dynamic_cast<CounterObserver*>(run.options.observer) : nullptr) {}

void Counters::tell_clocks(double now) {
  if (run_.shapes.empty()) return;
  const bool first = told_clock_ghz_.empty();
  if (first) told_clock_ghz_.resize(run_.gpus.size(), 0.0);
  for (std::size_t rank = 0; rank < run_.gpus.size(); ++rank) {
    const GpuState& gpu = run_.gpus[rank];
    double& told = told_clock_ghz_[rank];
    double ghz = gpu.power.clock_ghz;
    if (ghz == 0) ghz = told > 0 ? told : clock_.slowest_ghz(gpu);  // no matmul has begun
    if (ghz == told) continue;
    told = ghz;
    observer_->clock_changed(static_cast<int>(rank), first ? 0 : now, ghz);
  }
}

void Counters::tell_operands(const WorkgroupState& wg, const MatmulShape& shape, const Missed& missed) const {
  observer_->op_reads(
      run_.place_of(wg, wg.pc), wg.rank,
      {shape.cost.operand_bytes - missed.l2_bytes, missed.l2_bytes - missed.llc_bytes, missed.llc_bytes});
}

void Counters::tell_sparse(const WorkgroupState& wg, const SparseCost& cost) const {
  observer_->op_reads(run_.place_of(wg, wg.pc), wg.rank,
                      {cost.bytes - cost.llc_bytes, cost.llc_bytes - cost.hbm_bytes, cost.hbm_bytes});
}

void Counters::tell_transfer(const WorkgroupState& wg, std::uint32_t op, const DataPath& path) const {
  const Served served = traffic_.served_by(path, run_.schedule.ops[op], wg.die);
  if (served.level == Level::chip) return;
  observer_->op_reads(run_.place_of(wg, op), served.rank, traffic_.read_bytes(path, served));
}

void Counters::tell_copy(std::int32_t rank, std::uint32_t host_op, const Op& op, const DataPath& path) const {
  const Served served = traffic_.served_by(path, op, -1);
  if (served.level == Level::chip) return;
  observer_->copy_reads(rank, host_op, served.rank, traffic_.read_bytes(path, served));
}

}  // namespace tritax::engine

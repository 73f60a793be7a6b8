// The end of a run: results, or the report of a stall.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/engine.hpp"

namespace tritax::engine {

namespace {

// Copies the results of simulated ranks to the ranks that are alike.
void copy_to_alike(const Run& run, SimulationResult& out) {
  const std::int32_t times = run.schedule.ranks / run.simulated_ranks;
  const std::size_t rows = out.caches.size();
  for (std::int32_t rank = run.simulated_ranks; rank < run.schedule.ranks; ++rank) {
    out.ranks.push_back(out.ranks[static_cast<std::size_t>(run.home(rank))]);
  }
  for (std::int32_t i = 1; i < times; ++i) {
    for (std::size_t row = 0; row < rows; ++row) {
      CacheRow& copy = out.caches.emplace_back(out.caches[row]);
      copy.rank += i * run.simulated_ranks;
    }
  }
  out.tile_operations *= static_cast<std::uint64_t>(times);
  out.matrix_flops *= times;
  out.hbm_bytes *= times;
}

}  // namespace

void Engine::report_stall(double now) const {
  std::string text = fmt::format("the simulation stalled at {:.3f} us; nothing can continue:", now / 1000);
  int listed = 0;
  std::vector<const WorkgroupState*> waiting;
  for (const WorkgroupState& wg : run_.workgroups) {
    const bool waits =
        wg.waiting == Waiting::flag || wg.waiting == Waiting::store || wg.waiting == Waiting::loads;
    if (wg.kernel != kNobody && waits) waiting.push_back(&wg);
  }
  std::sort(waiting.begin(), waiting.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  for (const WorkgroupState* waiter : waiting) {
    if (listed == 10) break;
    ++listed;
    const WorkgroupState& wg = *waiter;
    const std::uint32_t first = run_.schedule.kernels[wg.kernel].workgroups[wg.number].first_op;
    if (wg.waiting != Waiting::flag) {
      text +=
          fmt::format("\n  {} waits for a store of its workgroup",
                      describe_op(run_.schedule, wg.kernel, wg.number, std::min(wg.pc, wg.end - 1) - first));
      continue;
    }
    const Op& op = run_.schedule.ops[wg.pc];
    text += fmt::format("\n  {} waits for flag '{}'[{}] >= {}, which is {}",
                        describe_op(run_.schedule, wg.kernel, wg.number, wg.pc - first),
                        run_.schedule.flags[static_cast<std::size_t>(op.flag)].name, op.index, op.value,
                        flags_.value_of(flags_.flag_of(wg.rank, op)));
  }
  for (std::size_t k = 0; k < run_.kernels.size() && listed < 14; ++k) {
    const std::size_t total = run_.schedule.kernels[k].workgroups.size();
    const std::size_t to_send = run_.kernels[k].to_send;
    if (run_.kernels[k].launched && to_send > 0) {
      ++listed;
      text += fmt::format(
          "\n  kernel '{}' rank {}: {} of {} workgroups wait for {}", run_.schedule.kernels[k].name,
          run_.schedule.kernels[k].rank, to_send, total,
          run_.is_gang(static_cast<std::uint32_t>(k)) ? "room for all of them" : "a free compute unit");
    }
  }
  hosts_.list_waiting(text, listed, 20);
  throw UserError(text);
}

SimulationResult Engine::result(double now) {
  SimulationResult out = run_.totals;
  out.makespan_ns = run_.totals.gave_up ? now : 0;
  out.kernels_ns = first_start_ns_ < 0 ? 0 : last_end_ns_ - first_start_ns_;
  for (std::int32_t r = 0; r < run_.simulated_ranks; ++r) {
    const Path last = hosts_.last_path(r);
    RankResult rank;
    rank.account = last.account;
    rank.makespan_ns = last.time_ns;
    const GpuState& gpu = run_.gpus[static_cast<std::size_t>(r)];
    rank.kernels_ns = gpu.first_start_ns < 0 ? 0 : std::max(0.0, gpu.last_end_ns - gpu.first_start_ns);
    rank.cu_busy_ns = gpu.cu_busy_ns;
    // In a run that gave up, some compute units are still busy.
    rank.matrix_busy_ns = (gpu.matrix_busy_ns + gpu.busy_matrix_cus * now) / run_.machine.gpu.cu_count();
    rank.matrix_clock_ghz = gpu.power.clock_ghz;
    rank.matrix_work = gpu.power.work;
    out.ranks.push_back(rank);
    if (!run_.totals.gave_up && !later(out.makespan_ns, last.time_ns)) {
      out.makespan_ns = std::max(out.makespan_ns, last.time_ns);
      out.account = last.account;
    }
  }
  out.link_bytes = resources_.link_bytes();
  for (const GpuState& gpu : run_.gpus) out.hbm_bytes += run_.fluid.carried(gpu.hbm, now);
  out.caches = run_.traffic.rows();
  CacheTraffic operands;
  for (const CacheRow& row : out.caches) {
    if (multiplies(row.operation)) operands += row.traffic;
  }
  const double missed_l2 = operands.asked_bytes - operands.l2_hit_bytes;
  out.l2_hit_fraction = operands.asked_bytes > 0 ? 1 - missed_l2 / operands.asked_bytes : 0;
  out.llc_hit_fraction =
      run_.machine.gpu.llc_bytes > 0 && missed_l2 > 0 ? 1 - operands.hbm_read_bytes / missed_l2 : 0;
  out.simulated_ranks = run_.simulated_ranks;
  if (run_.simulated_ranks < run_.schedule.ranks) copy_to_alike(run_, out);
  return out;
}

}  // namespace tritax::engine

// The least remaining time of a run: it lets a search stop a hopeless simulation long before the clock has
// passed the limit.
//
// Outlook owns the least times of operations and kernels. It reads the run, and sets Run::totals.gave_up.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_clock.hpp"
#include "sim/engine_flags.hpp"
#include "sim/engine_host.hpp"
#include "sim/engine_lock_step.hpp"
#include "sim/engine_luck.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_streams.hpp"

namespace tritax::engine {

class Outlook {
 public:
  struct Parts {
    const Luck& luck;
    const LockStep& lock_step;
    const Flags& flags;
    const Streams& streams;
    const Hosts& hosts;
    const Clock& clock;
  };
  Outlook(Run& run, const Parts& parts) : run_(run), parts_(parts) {}

  // Before the run, once shapes of matmuls are known; without this call no run gives up.
  void index();
  // Gives up if the workgroup, which starts the operation at its pc now, cannot end in time.
  void look_ahead(const WorkgroupState& wg, double now) {
    if (rest_ns_.empty()) return;
    const double left = run_.options.give_up_after_ns * kRoundedUp - now - tail_ns_[wg.kernel];
    if (rest_ns_[wg.pc] <= left) return;  // in time even at the clock under full load
    look_closer(wg, left);
  }

 private:
  // A run of exactly the limit must pass, even if its times are added in another order.
  static constexpr double kRoundedUp = 1 + 1e-10;
  struct FlagOutlook {          // one flag counter
    double rest_ns = 0;         // longest time from the end of its wait to the end of the waiting workgroup
    std::uint32_t kernel = 0;   // kernel of that workgroup
    std::uint32_t signals = 0;  // operations that raise the flag
  };

  [[gnu::noinline]] void look_closer(const WorkgroupState& wg, double left_ns);
  double shortest_move_ns(const Kernel& kernel, const WorkgroupState& wg, std::uint32_t op_index) const;
  void index_rest(const Kernel& kernel, const WorkgroupState& state, const std::vector<FlagOutlook>* flags);
  double rest_of_waiters(const FlagOutlook& flag, const WorkgroupState& raiser) const;
  void index_tails();
  double least_kernel_ns(std::size_t kernel) const;
  WorkgroupState at_item(std::uint32_t kernel, const Item& item) const;
  double highest_clock_factor() const;

  Run& run_;
  const Parts parts_;
  std::vector<double> rest_ns_;      // by operation; empty unless the run may give up
  std::vector<double> tail_ns_;      // by kernel; empty unless the run may give up
  double highest_clock_factor_ = 1;  // only if the run may give up
  double least_read_ns_ = 0;         // latency of a local read; only if the run may give up
};

}  // namespace tritax::engine

// Walks through the host programs of a schedule with lower bounds of the times of kernels, for bounds.hpp.
// Internal to model/select.
//
// A copy by a copy engine takes the packet time and its bytes at the rate of an engine, in stream order, as
// if every copy had its own engine and all links.
#pragma once

#include <limits>
#include <map>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Computes when the hosts are done.
class HostWalk {
 public:
  HostWalk(const Schedule& schedule, const Machine& machine, const CostTable& costs,
           const std::vector<double>& kernel_ns)
      : schedule_(schedule),
        machine_(machine),
        costs_(costs),
        kernel_ns_(kernel_ns),
        hosts_(schedule.host.size()) {}

  double run();

  // Start of the first kernel or copy.
  double first_start_ns() const { return first_start_ns_; }

 private:
  struct Host {
    std::size_t pc = 0;
    double now = 0;
    std::vector<double> stream_end;        // negative: nothing launched yet
    std::map<std::int32_t, double> event;  // time of the last record of each event
  };

  bool advance_to_barrier(Host& host, const std::vector<HostOp>& program);
  void post(Host& host, const HostOp& op);
  double& end_of(Host& host, std::int32_t stream);
  const KernelCosts& costs_of(std::int32_t kernel) const {
    return costs_.of(schedule_.kernels[static_cast<std::size_t>(kernel)]);
  }
  void launch(Host& host, std::int32_t kernel, std::int32_t stream, double gap_ns);

  const Schedule& schedule_;
  const Machine& machine_;
  const CostTable& costs_;
  const std::vector<double>& kernel_ns_;
  std::vector<Host> hosts_;
  double first_start_ns_ = std::numeric_limits<double>::infinity();
};

}  // namespace tritax

// Data that waits in the caches to be written to memory: of the run itself, and of the time before the run.
// Owns which operands and results stay from run to run; changes the dirty state of a GPU's caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/cost/kernel_costs.hpp"
#include "model/schedule/items.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class WriteBack {
 public:
  explicit WriteBack(Run& run) : run_(run) {}

  // Call it before the run, once GPUs and operations are known.
  void find_what_stays();
  bool operands_stay() const { return operands_stay_; }
  bool is_written_back(const Op& op, const KernelCosts& costs) const;
  void find_dirty_share(GpuState& gpu, std::int32_t rank);
  double write_cost() const;
  // Cache capacity of a GPU.
  double cache_bytes() const {
    return std::max(run_.machine.gpu.l2_bytes * run_.machine.gpu.xcds, run_.machine.gpu.llc_bytes);
  }

 private:
  template <typename Visit>
  void for_each_op(const Visit& visit) const {
    for (const Kernel& kernel : run_.schedule.kernels) {
      for (std::size_t p = 0; p < program_count(kernel); ++p) {
        const Workgroup& program = program_of(kernel, p);
        for (std::uint32_t i = 0; i < program.op_count; ++i) {
          visit(kernel, run_.schedule.ops[program.first_op + i]);
        }
      }
    }
  }
  double bytes_touched(bool results) const;
  double bytes_ahead(std::int32_t rank) const;

  Run& run_;
  bool operands_stay_ = false;  // in the L2, from an equal run just before
  bool results_fit_ = false;    // in the L2, beside the operands
};

}  // namespace tritax::engine

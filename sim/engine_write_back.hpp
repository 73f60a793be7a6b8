// Data that waits in the caches to be written to memory: of the run itself, and of the time before the run.
//
// WriteBack owns which operands and results stay from run to run, and the dirty data of every GPU. It changes
// nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/schedule/items.hpp"
#include "sim/engine_run.hpp"

namespace tritax::engine {

class WriteBack {
 public:
  explicit WriteBack(const Run& run);

  // Call it before the run, once GPUs and operations are known.
  void find_what_stays();
  bool operands_stay() const { return operands_stay_; }
  bool is_written_back(const Op& op, const KernelCosts& costs) const;
  // Whether data written before the run is still in the caches of a GPU.
  bool has_dirty(std::int32_t rank) const { return dirty_[static_cast<std::size_t>(rank)].bytes > 0; }
  // A matmul fetches `bytes` from memory, and displaces dirty data.
  struct Displaced {
    double share = 0;          // of the bytes
    double write_back_ns = 0;  // time to write the displaced data back
  };
  Displaced displace(std::int32_t rank, double bytes);
  double write_cost() const;

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
  // Cache capacity of a GPU.
  double cache_bytes() const {
    return std::max(run_.machine.gpu.l2_bytes * run_.machine.gpu.xcds, run_.machine.gpu.llc_bytes);
  }
  struct Dirty {
    double bytes = 0;          // written before the run, and still in the caches
    double reads_bytes = 0;    // bytes that matmuls fetch until the share is found anew
    double share = 0;          // share of these bytes that displaces dirty data
    double write_back_ns = 0;  // time to write the displaced data back
  };
  void find_share(Dirty& dirty, std::int32_t rank) const;
  double bytes_touched(bool results) const;
  double bytes_ahead(std::int32_t rank) const;

  const Run& run_;
  std::vector<Dirty> dirty_;    // by rank
  bool operands_stay_ = false;  // in the L2, from an equal run just before
  bool results_fit_ = false;    // in the L2, beside the operands
};

}  // namespace tritax::engine

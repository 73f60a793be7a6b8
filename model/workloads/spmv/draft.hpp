// Common parts of the patterns of SpMV: the matrix, buffers, and the operations of a range of work.
//
//   a range:  sparse_product of its rows and nonzeros; store the whole rows; add the partial rows that other
//             ranges share onto y, which is zero before the run
//   a search: the probes of the binary search for a step of the merge path: loads of one row end each, one
//             after the other
//
// Kernels have 32 registers per thread, an upper limit for the compiled kernels of gunrock/loops.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/parts/load_balance.hpp"
#include "model/parts/tile_set.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// The matrix of a problem. Keeps the last matrix, because candidates of a search share it.
std::shared_ptr<const SparseMatrix> spmv_matrix(const Problem& problem);

struct SpmvKnobs {
  std::int32_t threads = 128;
  std::int32_t items = 7;        // of a thread; merge-path
  std::int32_t lanes = 32;       // per group
  std::int32_t chunk = 128;      // rows per item of the queue
  std::int32_t short_row = 8;    // bucketing: one lane per row up to here …
  std::int32_t long_row = 1024;  // … one wave per row up to here, and one workgroup beyond
};
SpmvKnobs spmv_knobs_of(const Values& values);

class SpmvDraft {
 public:
  // Throws UserError for problems that a GPU cannot hold.
  SpmvDraft(std::string_view pattern, const Problem& problem, const Machine& machine, const Values& values,
            std::shared_ptr<const SparseMatrix> matrix);

  // Adds a kernel; `lds_offsets`: number of row ends that it stages.
  std::int32_t add_kernel(std::string_view name, std::int32_t threads, std::int64_t lds_offsets = 0,
                          bool vendor = false);
  // Number of resident workgroups with `threads` threads.
  std::int32_t resident(std::int32_t threads) const;

  // Adds operations to the workgroup, or item, that was begun last.
  void add_range(const WorkRange& range, LaneSharing sharing, std::int32_t lanes = 1);
  void add_search(std::int64_t diagonal);
  // Adds a kernel with one workgroup per range.
  std::int32_t add_mapped(std::string_view name, const std::vector<WorkRange>& ranges, std::int32_t threads,
                          LaneSharing sharing, std::int32_t lanes = 1, bool vendor = false);
  Schedule finish(const std::vector<std::int32_t>& kernels);

  const Machine& machine;
  SpmvKnobs knobs;
  std::shared_ptr<const SparseMatrix> matrix;
  ScheduleBuilder builder;
  std::int16_t offsets = -1;

 private:
  std::int16_t sparse_ = -1, values_ = -1, x_ = -1, y_ = -1;
};

}  // namespace tritax

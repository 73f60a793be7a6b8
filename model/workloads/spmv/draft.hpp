// What the patterns of SpMV share: the matrix, buffers, and how a range of work becomes operations.
//
//   a range:  sparse_product of its rows and nonzeros; store the whole rows; add the parts of rows that other
//             ranges share onto y, which is zero before the run
//   a search: the probes of the binary search for where a step of the merge path lies, loads of one row end
//             each, one after the other
//
// Kernels have 32 registers a thread, as the compiled kernels of gunrock/loops do or fewer.
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

// The matrix of a problem. Candidates of a search have the same: the last one asked for is kept.
std::shared_ptr<const SparseMatrix> spmv_matrix(const Problem& problem);

struct SpmvKnobs {
  std::int32_t threads = 128;
  std::int32_t items = 7;        // of a thread, merge-path
  std::int32_t lanes = 32;       // of a group
  std::int32_t chunk = 128;      // rows of an item of the queue
  std::int32_t short_row = 8;    // bucketing: a lane a row up to here …
  std::int32_t long_row = 1024;  // … a wave a row up to here, and a workgroup beyond
};
SpmvKnobs spmv_knobs_of(const Values& values);

class SpmvDraft {
 public:
  // Throws UserError for what a GPU cannot hold.
  SpmvDraft(std::string_view pattern, const Problem& problem, const Machine& machine, const Values& values,
            std::shared_ptr<const SparseMatrix> matrix);

  // Adds a kernel; `lds_offsets`: how many row ends it stages.
  std::int32_t add_kernel(std::string_view name, std::int32_t threads, std::int64_t lds_offsets = 0,
                          bool vendor = false);
  // Workgroups of those threads that the GPU has at once.
  std::int32_t resident(std::int32_t threads) const;

  // Operations of the workgroup, or item, that was begun last.
  void add_range(const WorkRange& range, LaneSharing sharing, std::int32_t lanes = 1);
  void add_search(std::int64_t diagonal);
  // A kernel with a workgroup a range.
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

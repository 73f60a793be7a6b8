// The patterns of SpMV: the schedules of loops (arXiv:2301.04792; gunrock/loops), each a mapping of rows and
// nonzeros to workgroups and lanes. T threads per workgroup, I items per thread, L lanes per group.
#include "model/workloads/spmv/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/workloads/spmv/draft.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kLibraryThreads = 256;  // CSRMVN_DIM of rocSPARSE
constexpr std::int32_t kOffsetsOfCopy = 4096;  // offsets that a workgroup sorts into buckets

// Lanes per row of rocSPARSE's csrmv by rows: the power of two up to the mean length, from 2 to a wave.
std::int32_t library_lanes(const SparseMatrix& matrix, std::int32_t wave) {
  std::int32_t lanes = 2;
  while (lanes < wave && 2 * std::int64_t{lanes} * matrix.rows <= matrix.nonzeros()) lanes *= 2;
  return lanes;
}

void check_count(const SpmvDraft& draft, std::int64_t workgroups, std::int64_t operations,
                 std::string_view knobs) {
  if (static_cast<double>(workgroups * operations) <= kMaxOperations) return;
  throw UserError(
      fmt::format("{}: {} workgroups for {} rows and {} nonzeros are too many to schedule (over "
                  "{:.0f} operations); use higher ones",
                  knobs, workgroups, draft.matrix->rows, draft.matrix->nonzeros(), kMaxOperations));
}

// The kernels of merge-path; in a vendor's library the search is always a separate kernel.
std::vector<std::int32_t> add_merge_path(SpmvDraft& draft, bool vendor) {
  const std::int32_t threads = draft.knobs.threads;
  const std::int64_t items = std::int64_t{threads} * draft.knobs.items;
  const std::vector<WorkRange> ranges = merge_path(*draft.matrix, items);
  const auto tiles = static_cast<std::int64_t>(ranges.size());
  const std::int64_t searchers = (tiles + threads) / threads;
  const bool apart = vendor || searchers >= draft.machine.gpu.cu_count();
  check_count(draft, tiles, apart ? 4 : 36, "workgroup_threads, items");
  std::vector<std::int32_t> kernels;
  if (apart) {
    const std::int16_t begins =
        draft.builder.buffer({"begins", DType::fp32, 1, static_cast<std::int32_t>(searchers), 1,
                              static_cast<std::int32_t>(searchers)});
    kernels.push_back(draft.add_kernel(vendor ? "partition" : "search", threads, 0, vendor));
    for (std::int32_t p = 0; p < searchers; ++p) {
      draft.builder.workgroup(kernels.back());
      // The probes of the workgroup's first thread; those of other threads run at the same time. The last row
      // end of the search stands for the coordinates.
      const std::int64_t begin = std::int64_t{p} * threads * items;
      draft.builder.load(draft.offsets, {0, 0, 1, 1}, 0);  // in front of a search, which may end at once
      draft.add_search(std::min(begin, std::int64_t{draft.matrix->rows} + draft.matrix->nonzeros()));
      draft.builder.store(begins, {0, p, 1, 1}, 0);
    }
  }
  kernels.push_back(
      draft.add_kernel(vendor ? "csrmv" : "merge_path", threads, items + draft.knobs.items + 1, vendor));
  for (std::int64_t p = 0; p < tiles; ++p) {
    draft.builder.workgroup(kernels.back());
    if (!apart) draft.add_search(p * items);
    draft.add_range(ranges[static_cast<std::size_t>(p)], LaneSharing::even);
  }
  return kernels;
}

}  // namespace

//   AMD:     stream 0: ROWS: L lanes per row, by the mean length (rocSPARSE's csrmv without an analysis)
//   NVIDIA:  stream 0: PARTITION, KERNEL: as merge-path with a separate search (cuSPARSE's
//            csrmv_v3_partition_kernel and csrmv_v3_kernel, as profiles name them:
//            control-toolbox/CTBenchmarks.jl issue 26; every call makes the partition again,
//            ddemidov/amgcl pull request 311)
Schedule build_spmv_library(const Problem& problem, const Machine& machine, const Values& knobs) {
  SpmvDraft draft("library", problem, machine, knobs, spmv_matrix(problem));
  if (machine.gpu.async_tile_copy) return draft.finish(add_merge_path(draft, true));
  const std::int32_t lanes = library_lanes(*draft.matrix, machine.gpu.lanes_per_wave);
  return draft.finish({draft.add_mapped("csrmv", mapped_rows(*draft.matrix, kLibraryThreads / lanes),
                                        kLibraryThreads, LaneSharing::vector, lanes, true)});
}

//   stream 0: ROWS: one lane per row, T rows per workgroup
Schedule build_spmv_thread_mapped(const Problem& problem, const Machine& machine, const Values& knobs) {
  SpmvDraft draft("thread-mapped", problem, machine, knobs, spmv_matrix(problem));
  return draft.finish({draft.add_mapped("thread_mapped", mapped_rows(*draft.matrix, draft.knobs.threads),
                                        draft.knobs.threads, LaneSharing::row)});
}

//   stream 0: ROWS: L lanes on L rows, T rows per workgroup; sums of rows in registers
Schedule build_spmv_group_mapped(const Problem& problem, const Machine& machine, const Values& knobs) {
  SpmvDraft draft("group-mapped", problem, machine, knobs, spmv_matrix(problem));
  const std::int32_t lanes = std::min(draft.knobs.lanes, draft.knobs.threads);
  return draft.finish({draft.add_mapped("group_mapped", mapped_rows(*draft.matrix, draft.knobs.threads),
                                        draft.knobs.threads, LaneSharing::group, lanes)});
}

//   stream 0: SHARES: as many workgroups as are resident; search begin and end; an even share of rows and
//             nonzeros
Schedule build_spmv_work_oriented(const Problem& problem, const Machine& machine, const Values& knobs) {
  SpmvDraft draft("work-oriented", problem, machine, knobs, spmv_matrix(problem));
  const std::int64_t steps = std::int64_t{draft.matrix->rows} + draft.matrix->nonzeros();
  // Every thread has at least one step.
  const std::int64_t most = (steps + draft.knobs.threads - 1) / draft.knobs.threads;
  const auto workgroups =
      static_cast<std::int32_t>(std::min<std::int64_t>(draft.resident(draft.knobs.threads), most));
  const std::int32_t kernel = draft.add_kernel("work_oriented", draft.knobs.threads);
  const std::vector<WorkRange> ranges = work_oriented(*draft.matrix, workgroups);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(kernel);
    draft.add_search(share_of(steps, p, workgroups).begin);
    draft.add_search(share_of(steps, p, workgroups).end);
    draft.add_range(ranges[static_cast<std::size_t>(p)], LaneSharing::even);
  }
  return draft.finish({kernel});
}

//   few workgroups:   stream 0: TILES: search the begin; T·I rows and nonzeros, row ends staged in LDS
//   many workgroups:  stream 0: SEARCH: one thread per tile; TILES, without a search
// Many: where one thread per begin fills every compute unit.
Schedule build_spmv_merge_path(const Problem& problem, const Machine& machine, const Values& knobs) {
  SpmvDraft draft("merge-path", problem, machine, knobs, spmv_matrix(problem));
  return draft.finish(add_merge_path(draft, false));
}

//   stream 0: COUNT: read the offsets; SORT: read them again, write the row numbers bucket by bucket;
//             one kernel per bucket: a lane, a wave or a workgroup per row
// y is in the order of the buckets.
Schedule build_spmv_bucketing(const Problem& problem, const Machine& machine, const Values& knobs) {
  const std::shared_ptr<const SparseMatrix> matrix = spmv_matrix(problem);
  const SpmvKnobs limits = spmv_knobs_of(knobs);
  const Buckets buckets =
      buckets_of(*matrix, {limits.short_row, std::max(limits.short_row, limits.long_row)});
  SpmvDraft draft("bucketing", problem, machine, knobs,
                  std::make_shared<const SparseMatrix>(with_rows_in_order(*matrix, buckets.order)));
  const std::int32_t rows = matrix->rows;
  const std::int16_t order =
      draft.builder.buffer({"order", DType::fp32, 1, rows, 1, std::min(rows, kOffsetsOfCopy)});
  std::vector<std::int32_t> kernels{draft.add_kernel("count", 256)};
  const auto for_each_piece = [&](const auto& add) {
    for (std::int32_t row = 0; row < rows; row += kOffsetsOfCopy) {
      draft.builder.workgroup(kernels.back());
      add(Rect{0, row, 1, std::min(kOffsetsOfCopy, rows - row)});
    }
  };
  for_each_piece([&](const Rect& piece) { draft.builder.load(draft.offsets, piece, 0); });
  kernels.push_back(draft.add_kernel("sort", 256));
  for_each_piece(
      [&](const Rect& piece) { draft.builder.copy(order, piece, 0, draft.offsets, 0, piece.col, 0); });
  const std::int32_t wave = machine.gpu.lanes_per_wave, threads = draft.knobs.threads;
  const std::array<std::int32_t, 3> lanes{1, std::min(wave, threads), threads};
  constexpr std::array<const char*, 3> names{"short_rows", "rows", "long_rows"};
  for (std::size_t bucket = 0; bucket < 3; ++bucket) {
    const std::int32_t end = buckets.begin[bucket + 1];
    if (buckets.begin[bucket] == end) continue;
    kernels.push_back(draft.add_kernel(names[bucket], threads));
    const std::int32_t step = threads / lanes[bucket];
    for (std::int32_t row = buckets.begin[bucket]; row < end; row += step) {
      draft.builder.workgroup(kernels.back());
      const std::int32_t count = std::min(step, end - row);
      draft.add_range({row, count, draft.matrix->begin(row), draft.matrix->end(row + count - 1)},
                      bucket == 0 ? LaneSharing::row : LaneSharing::vector, lanes[bucket]);
    }
  }
  return draft.finish(kernels);
}

//   stream 0: QUEUE: all resident workgroups draw chunks of rows, one after the other; one lane per row
Schedule build_spmv_queue(const Problem& problem, const Machine& machine, const Values& knobs) {
  SpmvDraft draft("dynamic-queue", problem, machine, knobs, spmv_matrix(problem));
  const std::vector<WorkRange> chunks = mapped_rows(*draft.matrix, draft.knobs.chunk);
  const auto count = static_cast<std::int32_t>(chunks.size());
  const std::int16_t next = draft.builder.flags("next", 1);
  const std::int32_t kernel = draft.add_kernel("queue", draft.knobs.threads);
  const std::int32_t workgroups = std::min(count, draft.resident(draft.knobs.threads));
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(kernel);
    draft.builder.claim_items(next, 0, 0, count);
  }
  for (const WorkRange& chunk : chunks) {
    draft.builder.item(kernel);
    draft.add_range(chunk, LaneSharing::row);
  }
  return draft.finish({kernel});
}

}  // namespace tritax

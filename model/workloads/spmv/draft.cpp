#include "model/workloads/spmv/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/memo.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/read_tile_set.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kRegisters = 32;
constexpr std::int32_t kOffsetsOfLine = 32;  // tracked together in caches: a line of 128 bytes

TileSetQuestion question_of(const Problem& problem) {
  return {static_cast<TileSetKind>(problem["structure"]),    static_cast<std::int32_t>(problem["rows"]),
          static_cast<std::int32_t>(problem["cols"]),        static_cast<double>(problem["row_length"]),
          static_cast<double>(problem["exponent"]) / 100,    static_cast<std::int32_t>(problem["width"]),
          static_cast<std::uint64_t>(problem["matrix_seed"])};
}

}  // namespace

std::shared_ptr<const SparseMatrix> spmv_matrix(const Problem& problem) {
  static Memo<std::string, SparseMatrix> last(1);
  const std::string path = file_of(problem["matrix"]);
  const std::string key = path.empty() ? key_of(problem.values) : key_of_file(problem["matrix"]);
  return last.get(key, [&] {
    return SparseMatrix(path.empty() ? generate_tile_set(question_of(problem)) : read_tile_set(path));
  });
}

SpmvKnobs spmv_knobs_of(const Values& values) {
  const auto number = [&](std::string_view knob) { return static_cast<std::int32_t>(values[knob]); };
  return {number("workgroup_threads"), number("items"),   number("lanes"), number("chunk"),
          number("short_row"),         number("long_row")};
}

SpmvDraft::SpmvDraft(std::string_view pattern, const Problem& problem, const Machine& machine_,
                     const Values& values, std::shared_ptr<const SparseMatrix> matrix_)
    : machine(machine_),
      knobs(spmv_knobs_of(values)),
      matrix(std::move(matrix_)),
      builder(std::string(pattern), 1) {
  const auto dtype = static_cast<DType>(problem["dtype"]);
  const std::int32_t nonzeros = std::max(1, matrix->nonzeros());
  check_memory("this problem",
               static_cast<double>(nonzeros) * (bytes_of(dtype) + 4.0) + 8.0 * matrix->rows +
                   static_cast<double>(matrix->cols) * bytes_of(dtype),
               machine.gpu);
  sparse_ = builder.sparse(matrix);
  offsets = builder.buffer({"offsets", DType::fp32, 1, matrix->rows + 1, 1, kOffsetsOfLine});
  values_ = builder.buffer({"values", dtype, 1, nonzeros, 1, nonzeros});
  x_ = builder.buffer({"x", dtype, matrix->cols, 1, matrix->cols, 1});
  y_ = builder.buffer({"y", DType::fp32, matrix->rows, 1, std::min(matrix->rows, knobs.threads), 1});
  builder.result(y_);
  builder.input(builder.whole(offsets));
  builder.input(builder.whole(values_));
  builder.input(builder.whole(x_));
  builder.input(builder.whole(y_), InputValues::zero);
  builder.expect_sparse_product(builder.whole(y_), sparse_, builder.whole(values_, 0), builder.whole(x_, 0));
}

std::int32_t SpmvDraft::add_kernel(std::string_view name, std::int32_t threads, std::int64_t lds_offsets,
                                   bool vendor) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.resources = {threads, kRegisters, static_cast<std::int32_t>(4 * lds_offsets)};
  kernel.profile = vendor ? KernelProfile::vendor : KernelProfile::triton;
  if (vendor) kernel.library.routine = LibraryRoutine::plain;
  if (4.0 * static_cast<double>(lds_offsets) > machine.gpu.lds_bytes_per_workgroup_max) {
    throw UserError(fmt::format(
        "items, workgroup_threads: {} row ends do not fit the {:.0f} bytes of LDS of a workgroup; use fewer",
        lds_offsets, machine.gpu.lds_bytes_per_workgroup_max));
  }
  return builder.kernel(std::move(kernel));
}

std::int32_t SpmvDraft::resident(std::int32_t threads) const {
  return residents_at_most(machine.gpu, {threads, kRegisters, 0}) * machine.gpu.cu_count();
}

void SpmvDraft::add_range(const WorkRange& range, LaneSharing sharing, std::int32_t lanes) {
  if (range.rows == 0) return builder.barrier();
  builder.sparse_product(sparse_, values_, x_, {range.row, range.rows, range.k_begin, range.k_end}, sharing,
                         lanes);
  const bool first = shares_first_row(*matrix, range);
  const bool last = shares_last_row(*matrix, range);
  const std::int32_t begin = range.row + (first ? 1 : 0);
  const std::int32_t end = range.row + range.rows - (last ? 1 : 0);
  if (begin < end) builder.store(y_, {begin, 0, end - begin, 1}, 0);
  if (first) builder.atomic_add(y_, {range.row, 0, 1, 1}, 0);
  if (last && range.rows > 1) builder.atomic_add(y_, {end, 0, 1, 1}, 0);
}

void SpmvDraft::add_search(std::int64_t diagonal) {
  for (const std::int32_t row : merge_path_probes(*matrix, diagonal)) {
    builder.load(offsets, {0, row + 1, 1, 1}, 0);
  }
}

std::int32_t SpmvDraft::add_mapped(std::string_view name, const std::vector<WorkRange>& ranges,
                                   std::int32_t threads, LaneSharing sharing, std::int32_t lanes,
                                   bool vendor) {
  const std::int32_t kernel = add_kernel(name, threads, 0, vendor);
  for (const WorkRange& range : ranges) {
    builder.workgroup(kernel);
    add_range(range, sharing, lanes);
  }
  return kernel;
}

Schedule SpmvDraft::finish(const std::vector<std::int32_t>& kernels) {
  for (const std::int32_t kernel : kernels) builder.launch(0, kernel);
  builder.host(0, HostOpKind::device_synchronize);
  return builder.finish();
}

}  // namespace tritax

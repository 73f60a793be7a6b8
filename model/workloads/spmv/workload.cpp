#include "model/workloads/spmv/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/usual_first.hpp"
#include "model/workload/file_values.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/spmv/draft.hpp"
#include "model/workloads/spmv/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 26;
constexpr std::int64_t kUsualRows = 1 << 14;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kUsualWidths = 4;  // of a band, in nonzeros per row
constexpr std::int64_t kUsualBlock = 8;

const std::array<Spec, 9> kFields{{
    {.name = "rows", .help = "rows of A", .high = kMostRows, .usual = {kUsualRows}},
    {.name = "row_length", .help = "mean nonzeros per row", .high = 1 << 20, .usual = {16}},
    {.name = "structure",
     .help =
         "distribution of nonzeros: uniform, power-law (lengths of rows), banded, or in dense blocks (block)",
     .kind = ValueKind::name,
     .usual = {0},
     .names = kTileSetKindNames},
    {.name = "matrix",
     .help = "Matrix Market file of A, or the sizes of tiles, one per line; then nothing is generated",
     .kind = ValueKind::file,
     .high = 1 << 30,
     .usual = {0}},
    {.name = "cols", .help = "columns of A (default: as many as rows)", .high = kMostRows, .usual = {0}},
    {.name = "exponent",
     .help = "exponent of the power law, in hundredths: 210 is 2.1",
     .low = 101,
     .high = 1000,
     .usual = {210}},
    {.name = "width",
     .help = "columns of the band, or side of a block (default: 4 times row_length, or 8)",
     .high = kMostRows,
     .usual = {0}},
    {.name = "matrix_seed",
     .help = "seed of the structure",
     .low = 0,
     .high = 1 << 30,
     .usual = {1},
     .seeds = true},
    dtype_field(DType::fp32, "element type of values and x; sums and y are fp32"),
}};

const std::array<Spec, 9> kKnobs{{
    {.name = "workgroup_threads",
     .help = "threads per workgroup (default: 256 where waves have 64 lanes, else 128)",
     .high = kMostThreads,
     .usual = {0},
     .varies_by_doubling = true,
     .shown = "{} threads"},
    {.name = "items",
     .help = "rows and nonzeros per thread (default: 8 on gfx942, gfx950, sm_90 and later, else 7)",
     .high = 64,
     .usual = {0},
     .shown = "{} items per thread"},
    {.name = "lanes",
     .help = "lanes per group, which takes as many rows together (default: a wave)",
     .high = kMostThreads,
     .usual = {0},
     .varies_by_doubling = true,
     .shown = "groups of {} lanes"},
    {.name = "chunk",
     .help = "rows per draw of a workgroup (default: as many as threads)",
     .high = 1 << 20,
     .usual = {0},
     .varies_by_doubling = true,
     .shown = "chunks of {} rows"},
    {.name = "short_row",
     .help = "most nonzeros of a row for a single lane",
     .high = 1 << 20,
     .usual = {8},
     .varies_by_doubling = true,
     .shown = "short up to {}"},
    {.name = "long_row",
     .help = "most nonzeros of a row for a single wave",
     .high = 1 << 26,
     .usual = {1024},
     .varies_by_doubling = true,
     .shown = "long beyond {}"},
    form_knob(),
    call_knob(),
    kernels_knob(),
}};

using Knob = std::string_view;
constexpr std::array<Knob, 1> kThreads{"workgroup_threads"};
constexpr std::array<Knob, 2> kGroup{"workgroup_threads", "lanes"};
constexpr std::array<Knob, 2> kMergeItems{"workgroup_threads", "items"};
constexpr std::array<Knob, 3> kBuckets{"workgroup_threads", "short_row", "long_row"};
constexpr std::array<Knob, 2> kQueue{"workgroup_threads", "chunk"};

const std::array<Pattern, 7> kPatterns{{
    {.name = "library",
     .summary = "the vendor's: lanes on a row by the mean length (rocSPARSE), or merge-path (cuSPARSE)",
     .build = build_spmv_library,
     .vendor = true},
    {.name = "thread-mapped",
     .summary = "one lane per row; a wave waits for its longest row",
     .knobs = kThreads,
     .build = build_spmv_thread_mapped},
    {.name = "group-mapped",
     .summary = "the lanes of a group take as many rows together and add up by segments, one per row",
     .knobs = kGroup,
     .build = build_spmv_group_mapped},
    {.name = "work-oriented",
     .summary = "an even share of rows and nonzeros for every workgroup that is resident",
     .knobs = kThreads,
     .build = build_spmv_work_oriented},
    {.name = "merge-path",
     .summary = "tiles with equally many rows plus nonzeros for every workgroup",
     .knobs = kMergeItems,
     .build = build_spmv_merge_path},
    {.name = "bucketing",
     .summary = "rows sorted by length, with a lane, a wave or a workgroup per row",
     .knobs = kBuckets,
     .build = build_spmv_bucketing},
    {.name = "dynamic-queue",
     .summary = "resident workgroups draw chunks of rows from a counter",
     .knobs = kQueue,
     .build = build_spmv_queue},
}};

// Sets the fields that a file determines. A saved scenario repeats the values of the file.
void complete_from_file(Problem& problem, const FieldPlace& place) {
  const Values usual(kFields);
  const TileSetFacts facts = facts_of(*spmv_matrix(problem));
  const auto is = [&](std::string_view field, std::int64_t value) {
    if (problem.values.given(field) && problem[field] != value) {
      throw UserError(fmt::format("{}: {} is {} beside the matrix of a file, of which it is {}; leave it out",
                                  place(field), field, problem[field], value));
    }
    problem.values.assume(field, value);
  };
  is("rows", facts.rows);
  is("cols", facts.cols);
  is("row_length", std::max<std::int64_t>(1, std::llround(facts.mean_length)));
  for (const std::string_view field : {"structure", "width", "exponent", "matrix_seed"})
    is(field, usual[field]);
}

void complete(Problem& problem, const FieldPlace& place) {
  if (problem["matrix"] > 0) return complete_from_file(problem, place);
  if (!problem.values.given("cols")) problem.values.assume("cols", problem["rows"]);
  if (!problem.values.given("width")) {
    const bool block = static_cast<TileSetKind>(problem["structure"]) == TileSetKind::block;
    problem.values.assume("width", block ? kUsualBlock : kUsualWidths * problem["row_length"]);
  }
  const std::int64_t nonzeros = problem["rows"] * std::min(problem["row_length"], problem["cols"]);
  if (nonzeros > kMostNonzeros / 2) {
    throw UserError(fmt::format("{}: {} rows of {} nonzeros are {}; at most {} are generated",
                                place("row_length"), problem["rows"], problem["row_length"], nonzeros,
                                kMostNonzeros / 2));
  }
}

Work work(const Problem& problem) {
  const std::shared_ptr<const SparseMatrix> matrix = spmv_matrix(problem);
  const double element = bytes_of(static_cast<DType>(problem["dtype"]));
  const double nonzeros = matrix->nonzeros();
  return {.flops = 2 * nonzeros,
          .bytes_per_gpu = nonzeros * (element + 4) + 8.0 * matrix->rows + element * matrix->cols};
}

std::string size_text(const Problem& problem) {
  if (problem["matrix"] > 0) {
    return fmt::format("{} ({}x{}) {}", file_of(problem["matrix"]), problem["rows"], problem["cols"],
                       name_of(static_cast<DType>(problem["dtype"])));
  }
  return fmt::format("{}x{} {} {}, {} a row", problem["rows"], problem["cols"],
                     kTileSetKindNames[static_cast<std::size_t>(problem["structure"])],
                     name_of(static_cast<DType>(problem["dtype"])), problem["row_length"]);
}

// Launch parameters of gunrock/loops.
Values default_knobs(const Problem&, const Machine& machine) {
  Values values(kKnobs);
  const Gpu& gpu = machine.gpu;
  const bool wide = gpu.lanes_per_wave > 32;
  const bool eight = gpu.arch == "gfx942" || gpu.arch == "gfx950" || gpu.arch.starts_with("sm_9") ||
                     gpu.arch.starts_with("sm_10");
  values.assume("workgroup_threads", wide ? 256 : 128);
  values.assume("items", eight ? 8 : 7);
  values.assume("lanes", gpu.lanes_per_wave);
  values.assume("chunk", values["workgroup_threads"]);
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const auto add = [&](std::string_view knob, std::initializer_list<std::int64_t> others) {
    space.axes.push_back(usual_first(pattern, space.base, knob, others));
  };
  add("workgroup_threads", {64, 128, 256, 512});
  add("items", {4, 7, 11, 16});
  add("lanes", {16, 64, 128, 256});
  Axis& lanes = space.axes.back();
  lanes.relative = lanes.values.size() > 1;  // to threads: a group has at most that many lanes
  for (AxisValue& value : lanes.values) {
    if (!lanes.relative) break;
    value.apply = [set = value.apply](Values& knobs) {
      return set(knobs) && knobs["lanes"] <= knobs["workgroup_threads"];
    };
  }
  add("chunk", {64, 128, 512, 2048, 8192});
  add("short_row", {4, 16, 32});
  add("long_row", {256, 4096});
  return space;
}

// Reads rows of tritax-gpu sparse-library: the faster algorithm of cuSPARSE, on the device's clock.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  constexpr std::array<std::string_view, 3> kForms{"library", "csr-default", "csr-alg2"};
  if (!is_of_program(line, spmv(), true)) return std::nullopt;
  if (kForms[line.choice("form", kForms)] != "library") return std::nullopt;
  LibraryCall call;
  call.form = LibraryForm::kernel;
  call.problem = problem_of_row(line, spmv());
  call.pattern = "library";
  call.time_column = "device_us";
  return call;
}

}  // namespace

const Workload& spmv() {
  static const Workload workload{
      .name = "spmv",
      .title = "Sparse matrix times vector",
      .summary = "y = A·x on one GPU, A in compressed sparse rows",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .library_call = library_call,
      .computing = {"the sparse product", "sparse work"},
  };
  return workload;
}

}  // namespace tritax

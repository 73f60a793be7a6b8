// A GEMM of a library on one GPU, as in published tables of vendors' kernels.
//
// The library picks its tile (model/parts/library_tile.hpp); for a library with one kernel, the tile is a
// field of the problem. The caller decides how long the call takes before the launch: a framework such as
// PyTorch, a thin binding of one kernel, or a bare benchmark loop.
#include "model/workloads/library_gemm/workload.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workload/library_call.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxEdge = 4096;
constexpr std::int64_t kMostWaves = 64;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 20;  // of a chunk
constexpr std::int64_t kUnless = -1;                        // framework: unless called through a binding

struct LibraryGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::bf16;
  MatmulTile tile;  // of a library with one kernel; all zero: the vendor's library picks
  GemmKnobs order;  // of the grid
};

LibraryGemm library_gemm_of(const Problem& problem) {
  LibraryGemm gemm{problem["m"], problem["n"], problem["k"], static_cast<DType>(problem["dtype"]), {}, {}};
  if (problem["tile_m"] == 0) return gemm;
  gemm.order.group_m = static_cast<std::int32_t>(problem["group_m"]);
  gemm.order.xcd_remap = problem["xcd_remap"] != 0;
  gemm.order.xcd_chunk = static_cast<std::int32_t>(problem["xcd_chunk"]);
  const auto small = [&](std::string_view field) { return static_cast<std::int32_t>(problem[field]); };
  gemm.tile = {small("tile_m"), small("tile_n"), small("tile_k"), small("waves"), Pipeline::overlapped};
  gemm.tile.producers = small("producers");
  if (gemm.tile.producers > 0) gemm.tile.pipeline = Pipeline::producer_consumer;
  return gemm;
}

void check_memory_of(const LibraryGemm& gemm, const Gpu& gpu) {
  const std::int64_t elements = gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n;
  check_memory("this problem", static_cast<double>(elements) * bytes_of(gemm.dtype), gpu);
}

// Checks the limits of hand-written kernels, and the number of tiles of a schedule.
void check_tile(const LibraryGemm& gemm, const LibraryTile& library, const Gpu& gpu) {
  GemmKnobs knobs = gemm.order;
  knobs.tile_m = library.tile.m;
  knobs.tile_n = library.tile.n;
  knobs.tile_k = library.tile.k;
  knobs.waves = library.tile.waves;
  if (gemm.tile.m > 0) check(knobs, gpu);
  const double rows = std::ceil(static_cast<double>(gemm.m) / library.tile.m);
  const double cols = std::ceil(static_cast<double>(gemm.n) / library.tile.n);
  if (rows * cols * library.parts * 2 <= kMaxOperations) return;
  throw UserError(
      fmt::format("tile: {}x{} tiles cut this problem into {:.0f} tiles, too many to schedule (over {:.0f} "
                  "tile operations); use larger tiles",
                  library.tile.m, library.tile.n, rows * cols, kMaxOperations));
}

Schedule build(const Problem& problem, const Machine& machine, const Values&) {
  const LibraryGemm gemm = library_gemm_of(problem);
  check_dtype(gemm.dtype, machine);
  check_memory_of(gemm, machine.gpu);
  const bool picks = gemm.tile.m == 0;
  const LibraryTile library =
      picks ? library_tile({gemm.m, gemm.n, gemm.k, gemm.dtype}, machine) : LibraryTile{gemm.tile};
  check_tile(gemm, library, machine.gpu);
  const MatmulTile& tile = library.tile;
  const auto m = static_cast<std::int32_t>(gemm.m);
  const auto n = static_cast<std::int32_t>(gemm.n);
  const auto k = static_cast<std::int32_t>(gemm.k);
  ScheduleBuilder builder(picks ? "library" : "gemm", 1);
  const std::int16_t a = builder.buffer({"A", gemm.dtype, m, k, tile.m, tile.k});
  const std::int16_t b = builder.buffer({"B", gemm.dtype, k, n, tile.k, tile.n});
  const std::int16_t c = builder.buffer({"C", product_dtype(gemm.dtype), m, n, tile.m, tile.n});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  const std::int16_t parts = add_buffer_of_parts(builder, library, gemm.m, n);
  Graph kernels;
  for (const std::int32_t kernel :
       add_library_gemm(builder, machine,
                        {0, a, b, k, c, {0, 0, m, n}, parts, gemm.dtype, library, gemm.order, 0, 0, picks})) {
    kernels.push_back({kernel, 0});
  }
  GemmKnobs knobs;
  knobs.host_barriers = false;
  host_program(builder, 0, knobs, kernels);
  return builder.finish();
}

const std::array<Pattern, 1> kPatterns{{
    {.name = "library", .summary = "one GEMM of a library", .build = build, .vendor = true},
}};

const std::array<Spec, 12> kFields{{
    size_field("m", "-M", "rows of A and C"),
    size_field("n", "-N", "columns of B and C"),
    size_field("k", "-K", "columns of A, rows of B"),
    dtype_field(DType::bf16, "element type of A, B and C", kDTypeNames),
    {.name = "binding",
     .help = "Python calls the GEMM through a thin binding of one kernel",
     .kind = ValueKind::boolean},
    {.name = "framework",
     .help = "a framework such as PyTorch calls the GEMM (default: unless a binding does)",
     .kind = ValueKind::boolean,
     .usual = {kUnless}},
    {.name = "tile",
     .help = "tile of a library with one kernel, for example 256x256x64; otherwise the vendor's library "
             "picks",
     .high = kMaxEdge,
     .parts = {"m", "n", "k"}},
    {.name = "waves", .help = "waves of the tile", .high = kMostWaves, .usual = {8}},
    {.name = "producers",
     .help = "extra waves that only load operands into LDS; the waves of the tile then only multiply",
     .low = 0,
     .high = kMostWaves},
    {.name = "group_m",
     .help = "row tiles per group in the grid order of a library with one kernel",
     .high = kMaxEdge,
     .usual = {GemmKnobs{}.group_m}},
    {.name = "xcd_remap",
     .help = "each XCD gets a contiguous range of tiles",
     .kind = ValueKind::boolean,
     .usual = {1}},
    {.name = "xcd_chunk",
     .help = "tiles per chunk that XCDs get in turn (default: one chunk per XCD)",
     .high = kMostTiles},
}};

void complete(Problem& problem, const FieldPlace& place) {
  if (problem["framework"] == kUnless) problem.values.assume("framework", problem["binding"] == 0 ? 1 : 0);
  if (problem["binding"] != 0 && problem["framework"] != 0) {
    throw UserError(
        fmt::format("{}: binding = true and framework = true; give only one of them", place("binding")));
  }
  if (problem["tile_m"] != 0) return;
  for (const std::string_view field : {"waves", "producers", "group_m", "xcd_remap", "xcd_chunk"}) {
    if (!problem.values.given(field)) continue;
    throw UserError(
        fmt::format("{}: {} needs a 'tile'; without one, the vendor's library decides", place(field), field));
  }
}

Work work(const Problem& problem) {
  return {.flops = 2.0 * static_cast<double>(problem["m"]) * static_cast<double>(problem["n"]) *
                   static_cast<double>(problem["k"])};
}

double call_ns(const Pattern&, const Problem& problem, const Machine& machine) {
  if (problem["framework"] != 0) return machine.library.gemm_call_ns;
  return problem["binding"] != 0 ? machine.library.binding_call_ns : 0;
}

LibraryCall bare_call(LibraryForm form, std::string_view time_column) {
  LibraryCall call;
  call.form = form;
  call.problem = problem_of(library_gemm());
  call.problem.values.give("framework", 0);
  call.pattern = "library";
  call.time_column = time_column;
  return call;
}

// Reads a row of library_microbench.py, or the product alone of a program: launched as a graph, between two
// events.
std::optional<LibraryCall> library_call(const CsvRow& line) {
  if (is_of_call(line)) {
    const auto form = form_of_call(line, "gemm");
    if (!form) return std::nullopt;
    LibraryCall call = bare_call(*form, "kernel_us");
    give_product(line, call.problem.values);
    return call;
  }
  if (!is_of_program(line, library_gemm(), false)) return std::nullopt;
  const bool graph = kProgramLaunches[line.choice("launch", kProgramLaunches)] == "graph";
  if (kProgramForms[line.choice("form", kProgramForms)] != "gemm" || !graph) return std::nullopt;
  LibraryCall call = bare_call(LibraryForm::gemm_cold, "device_us");
  call.between_events = true;
  give_product(line, call.problem.values);
  const std::int64_t gpus = line.integer("gpus", 1, kMaxGpus);
  const std::int64_t n = call.problem["n"];
  if (n % gpus != 0) line.refuse("n", fmt::format("a multiple of the {} GPUs", gpus));
  call.problem.values.give("n", n / gpus);
  return call;
}

}  // namespace

const Workload& library_gemm() {
  static const Workload workload{
      .name = "library-gemm",
      .title = "GEMM of a library",
      .summary = "C = A·B on one GPU by the vendor's library",
      .fields = kFields,
      .patterns = kPatterns,
      .baseline = "library",
      .usual_pattern = "library",
      .complete = complete,
      .work = work,
      .size_text = product_text,
      .call_ns = call_ns,
      .library_call = library_call,
      .back_to_back = true,
      .projection = {.projection = Projection::columns},
  };
  return workload;
}

}  // namespace tritax

#include "model/workloads/moe/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/core/error.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/group_tile.hpp"
#include "model/parts/usual_first.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/moe/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxHidden = 65536;
constexpr std::int64_t kMaxMovers = 1024;

const std::array<Spec, 14> kFields{{
    routing_field("tokens"),
    {.name = "hidden", .help = "elements per token", .high = kMaxHidden, .usual = {2048}},
    {.name = "ffn", .help = "columns of an expert's first product", .high = kMaxHidden, .usual = {1024}},
    {.name = "gated",
     .help = "the first product has a gate with as many columns",
     .kind = ValueKind::boolean,
     .usual = {1}},
    routing_field("experts"),
    routing_field("top_k"),
    routing_field("routing"),
    routing_field("skew"),
    routing_field("histogram"),
    routing_field("routing_seed"),
    routing_field("capacity"),
    routing_field("block"),
    dtype_field(DType::bf16, "element type of tokens and weights; fp8 gives bf16 results"),
    gpus_field(),
}};

const std::array<Spec, 12> kKnobs{{
    gemm_knob("tile"),
    gemm_knob("waves"),
    gemm_knob("pipeline"),
    {.name = "transport",
     .help = "who moves rows: the GPU that has them stores them (push), or the GPU that needs them loads "
             "them (pull)",
     .kind = ValueKind::name,
     .names = kTransportNames,
     .shown = "{}",
     .not_shown = 0},
    {.name = "comm_cus",
     .help = "workgroups that move rows",
     .high = kMaxMovers,
     .usual = {64},
     .allowed = kAllowedCus,
     .varies_by_doubling = true,
     .shown = "{} that move"},
    gemm_knob("lock"),
    gemm_knob("launch"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    gemm_knob("host_barriers"),
}};

using Names = std::string_view;
constexpr std::array<Names, 4> kLibraryKnobs{"tile", "waves", "pipeline", "form"};
constexpr std::array<Names, 4> kEngineKnobs{"tile", "waves", "pipeline", "lock"};
constexpr std::array<Names, 6> kDirectKnobs{"tile", "waves", "pipeline", "transport", "comm_cus", "lock"};
constexpr std::array<Names, 6> kFusedKnobs{"tile", "waves", "pipeline", "comm_cus", "lock", "launch"};

using Build = Schedule (*)(const Moe&, const Machine&, const MoeKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  return build(moe_of(problem), machine, moe_knobs_of(values));
}

const std::array<Pattern, 6> kPatterns{{
    {.name = "library",
     .summary = "sort, the library's all-to-all, grouped products, and the same way back",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_moe_library>},
    {.name = "direct",
     .summary = "own kernels move rows directly to their expert and back; grouped products between",
     .knobs = kDirectKnobs,
     .build = build_checked<build_moe_direct>},
    {.name = "copy-engine",
     .summary = "own kernels sort, copy engines move a block to each GPU and back; grouped products between",
     .knobs = kEngineKnobs,
     .build = build_checked<build_moe_copy_engine>},
    {.name = "fused-dispatch",
     .summary = "one kernel moves tokens and multiplies the tokens of an expert once they arrive",
     .knobs = kDirectKnobs,
     .build = build_checked<build_moe_fused_dispatch>,
     .roles = Roles::in_one_kernel},
    {.name = "fused-combine",
     .summary = "the second product sends its finished tiles back and adds up incoming ones",
     .knobs = kDirectKnobs,
     .build = build_checked<build_moe_fused_combine>},
    {.name = "fused",
     .summary = "one kernel for all: tokens, both products, and the way back",
     .knobs = kFusedKnobs,
     .build = build_checked<build_moe_fused>,
     .roles = Roles::in_one_kernel},
}};

// Work of the rows that are not dropped.
Work work(const Problem& problem) {
  const Moe layer = moe_of(problem);
  const Routes routes(layer.routing);
  double rows = 0;
  for (int rank = 0; rank < routes.ranks(); ++rank) rows += routes.rows_of_owner(rank);
  const double columns = static_cast<double>(layer.ffn) * (layer.gated ? 3 : 2);
  return {.flops = 2.0 * rows * static_cast<double>(layer.hidden) * columns};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{} tokens of {} {}, {} of {} experts of {}{}", problem["tokens"], problem["hidden"],
                     name_of(static_cast<DType>(problem["dtype"])), problem["top_k"], problem["experts"],
                     problem["ffn"], problem["gated"] != 0 ? ", gated" : "");
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  Values values(kKnobs);
  const auto dtype = static_cast<DType>(problem["dtype"]);
  GemmKnobs knobs = with_tile_for(default_gemm_knobs(machine, dtype), dtype, machine,
                                  problem["tokens"] * problem.gpus() * problem["top_k"] / problem["experts"],
                                  std::min(problem["ffn"], problem["hidden"]));
  knobs.comm_cus = 64;
  knobs.host_barriers = false;
  assume(values, knobs);
  return values;
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space;
  space.base = default_knobs(problem, machine).with(pins);
  const auto axis = [&](std::string_view knob, std::initializer_list<std::int64_t> others) {
    space.axes.push_back(usual_first(pattern, space.base, knob, others));
  };
  space.axes.push_back(
      tile_rows_axis(pattern, space.base, static_cast<DType>(problem["dtype"]), machine, pins));
  if (problem.gpus() > 1) axis("transport", {0, 1});
  axis("comm_cus", {16, 32, 64, 128});
  if (problem.gpus() > 1) axis("lock", {0, 1, 2});
  axis("launch", {0, 1});
  return space;
}

// All products at the peak of the matrix cores, as if shared evenly.
double bound_ns(const Pattern&, const Problem& problem, const Machine& machine, const Values&) {
  return peak_bound_ns(work(problem).flops / problem.gpus(), static_cast<DType>(problem["dtype"]), machine);
}

std::optional<LibraryCall> library_call(const CsvRow& line) { return library_program(line, moe()); }

}  // namespace

const Workload& moe() {
  static const Workload workload{
      .name = "moe",
      .title = "Mixture of experts",
      .summary = "a layer of experts that the GPUs share: tokens go to their experts, two products, and back",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete_routing,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .bound_ns = bound_ns,
      .library_call = library_call,
      .step_rows = "tokens",
      .block = BlockRole::routed_experts,
      .computing = {"the grouped GEMM", "matrix work"},
  };
  return workload;
}

}  // namespace tritax

#include "model/workloads/expert_exchange/workload.hpp"

#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/kernel_class.hpp"
#include "model/workloads/expert_exchange/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxHidden = 65536;

const std::array<Spec, 13> kFields{{
    routing_field("tokens"),
    {.name = "step",
     .help = "tokens to the GPUs of their experts, or the sum of the returned results",
     .kind = ValueKind::name,
     .names = kExpertStepNames},
    {.name = "hidden", .help = "elements per token", .high = kMaxHidden, .usual = {7168}},
    routing_field("experts"),
    routing_field("top_k"),
    routing_field("routing"),
    routing_field("skew"),
    routing_field("histogram"),
    routing_field("routing_seed"),
    routing_field("capacity"),
    routing_field("block"),
    dtype_field(DType::bf16, "element type"),
    gpus_field(),
}};

constexpr std::array<std::string_view, 2> kRouteNames{"straight", "by-node"};

const std::array<Spec, 12> kKnobs{{
    collective_knob("comm_cus"),
    collective_knob("transport"),
    {.name = "route",
     .help = "straight to each GPU, or once to each other node by the own rail, and on from there (by-node)",
     .kind = ValueKind::name,
     .names = kRouteNames,
     .value_if_column_missing = 0,
     .shown = "{}",
     .not_shown = 0},
    collective_knob("peer_order"),
    collective_knob("lock"),
    sum_knob("peers"),
    gemm_knob("launch"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

constexpr std::array<std::string_view, 7> kDirectKnobs{"comm_cus", "transport", "route", "peer_order",
                                                       "lock",     "peers",     "launch"};

constexpr std::array<std::string_view, 1> kLibraryKnobs{"form"};

using Build = Schedule (*)(const ExpertExchange&, const Machine&, const ExpertKnobs&);

template <Build build>
Schedule build_checked(const Problem& problem, const Machine& machine, const Values& values) {
  return build(expert_exchange_of(problem), machine, expert_knobs_of(values));
}

const std::array<Pattern, 2> kPatterns{{
    {.name = "library",
     .summary = "tokens are sorted, and the collective library's all-to-all moves blocks of different sizes",
     .knobs = kLibraryKnobs,
     .build = build_checked<build_expert_library>},
    {.name = "direct",
     .summary = "workgroups copy or add rows directly from source to destination",
     .knobs = kDirectKnobs,
     .build = build_checked<build_expert_direct>},
}};

// Rows of other GPUs and of the own GPU, as published bandwidths count them.
Work work(const Problem& problem) {
  const ExpertExchange exchange = expert_exchange_of(problem);
  const Routes routes(exchange.routing);
  double rows = 0;
  for (int rank = 0; rank < routes.ranks(); ++rank) rows += routes.rows_of_owner(rank);
  return {.bytes_per_gpu =
              rows / routes.ranks() * static_cast<double>(exchange.hidden) * bytes_of(exchange.dtype),
          .peers = routes.ranks() - 1};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{}, {} tokens of {} {}, {} of {} experts",
                     kExpertStepNames[static_cast<std::size_t>(problem["step"])], problem["tokens"],
                     problem["hidden"], name_of(static_cast<DType>(problem["dtype"])), problem["top_k"],
                     problem["experts"]);
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(kKnobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  KnobSpace space = collective_space(pattern, problem, machine, Values(kKnobs), pins);
  const int per_node = machine.gpus_per_node;
  if (pattern.uses("route") && !pins.given("route") && problem.gpus() > per_node &&
      problem.gpus() % per_node == 0)
    space.axes.push_back(column_axis("route", {0, 1}));
  if (pattern.uses("launch") && !pins.given("launch")) space.axes.push_back(column_axis("launch", {0, 1}));
  return space;
}

}  // namespace

const Workload& expert_exchange() {
  static const Workload workload{
      .name = "expert-exchange",
      .title = "Expert exchange",
      .summary = "tokens go to the GPUs of their experts, or results come back, without products",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .baseline = "library",
      .complete = complete_routing,
      .work = work,
      .size_text = size_text,
      .default_knobs = default_knobs,
      .space = space,
      .step_rows = "tokens",
  };
  return workload;
}

}  // namespace tritax

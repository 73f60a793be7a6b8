// Patterns of dispatch and combine. r own rank, C workgroups, p one of them.
//
//   library, dispatch:         SORT: copy tokens -> sorted by the GPU they go to; the library's all-to-all
//            combine:          one workgroup tells all that the run before is over, and waits for all; the
//                              all-to-all; SUM: a workgroup per token adds up the arrived rows
//   direct, dispatch, pushed:  for tokens p, p+C, …, for their GPUs: copy -> there; exchange arrivals
//                     pulled:  exchange arrivals: all have begun; for tokens of all: copy -> here; exchange
//           combine, pushed:   for rows p, p+C, …: copy -> back at the source; arrived[r] += 1 there;
//                              wait until all workgroups of all ranks have signalled; for own tokens
//                              p, p+C, …: add up; store
//                    pulled:   exchange arrivals: all have begun; for own tokens: load a row where it is; add
//                              the others where they are; store; exchange arrivals
// Over nodes, with route = by-node: by_node.cpp.
//
// By default the loads of all rows of a token are in flight together, as in ROCm/mori (WarpAccum,
// include/mori/core/transport/p2p/device_primitives.hpp).
#include "model/workloads/expert_exchange/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/expert_moves.hpp"
#include "model/parts/library_gather.hpp"

namespace tritax {

namespace {

void exchange(ExpertDraft& draft, const NodeRoutes* nodes, int rank, std::int32_t p, std::int16_t flags) {
  if (flags < 0) return;
  const std::vector<int> peers =
      nodes != nullptr ? nodes->partners(rank) : peers_of(draft.knobs.peer_order, draft.ranks(), rank, p);
  exchange_arrivals(draft.builder, peers, draft.ranks(), rank, p, flags, draft.knobs.lock,
                    nodes != nullptr ? draft.knobs.serves : ServesPeers::in_turn);
}

struct DirectFlags {
  std::int16_t begin = -1, end = -1;  // (workgroup, rank)
  std::int16_t arrived = -1;          // (source), counted by workgroups
};

void push_and_sum(ExpertDraft& draft, const DirectFlags& flags, int rank, std::int32_t p,
                  std::int32_t count) {
  ScheduleBuilder& builder = draft.builder;
  push_results(builder, draft.routes, draft.buffers, rank, p, count);
  builder.barrier();
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    builder.signal(flags.arrived, rank, 1, peer, Scope::system, draft.knobs.lock);
  }
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    builder.wait(flags.arrived, peer, count, Scope::system, draft.knobs.lock);
  }
  sum_results(builder, draft.routes, draft.buffers, rank, false, p, count, {}, draft.knobs.serves);
}

void add_direct_part(ExpertDraft& draft, NodeRoutes* nodes, const DirectFlags& flags, int rank,
                     std::int32_t p, std::int32_t count) {
  exchange(draft, nodes, rank, p, flags.begin);
  if (nodes != nullptr && draft.dispatches()) {
    nodes->dispatch(rank, p);
  } else if (nodes != nullptr) {
    nodes->combine(rank, p);
  } else if (!draft.dispatches()) {
    if (draft.knobs.pull) {
      sum_results(draft.builder, draft.routes, draft.buffers, rank, true, p, count, {}, draft.knobs.serves);
    } else {
      push_and_sum(draft, flags, rank, p, count);
    }
  } else if (draft.knobs.pull) {
    pull_tokens(draft.builder, draft.routes, draft.buffers, rank, p, count);
  } else {
    push_tokens(draft.builder, draft.routes, draft.buffers, rank, p, count);
  }
  exchange(draft, nodes, rank, p, flags.end);
}

}  // namespace

ExpertDraft::ExpertDraft(std::string_view pattern, const ExpertExchange& problem_, const Machine& machine_,
                         const ExpertKnobs& knobs_)
    : problem(problem_),
      machine(machine_),
      knobs(knobs_),
      routes(problem_.routing),
      builder(std::string(pattern), problem_.routing.gpus) {
  const double row = static_cast<double>(problem.hidden) * bytes_of(problem.dtype);
  const double rows = 2.0 * routes.most_rows_of_source() + 2.0 * routes.most_rows_of_owner() +
                      static_cast<double>(problem.routing.tokens);
  check_memory("this exchange", rows * row, machine.gpu);
  double all = 0;
  for (int rank = 0; rank < ranks(); ++rank) all += 4.0 * static_cast<double>(routes.of(rank).size());
  if (all > kMaxOperations) {
    throw UserError(fmt::format(
        "block: {:.0f} rows are too many to schedule (over {:.0f} tile operations); use larger blocks", all,
        kMaxOperations));
  }
  buffers.cols = static_cast<std::int32_t>(problem.hidden);
  if (dispatches()) {
    buffers.tokens = add("tokens", static_cast<std::int32_t>(problem.routing.tokens));
    buffers.at_owner = buffers.received = add("at experts", routes.most_rows_of_owner());
    builder.result(buffers.at_owner);
    builder.input(builder.whole(buffers.tokens));
    expect_dispatched(builder, routes, buffers);
  } else {
    buffers.results = buffers.to_return = add("results", routes.most_rows_of_owner());
    buffers.sums = add("sums", static_cast<std::int32_t>(problem.routing.tokens));
    builder.result(buffers.sums);
    builder.input(builder.whole(buffers.results));
    expect_summed(builder, routes, buffers);
  }
}

ExpertExchange expert_exchange_of(const Problem& problem) {
  return {routing_of(problem, true), static_cast<ExpertStep>(problem["step"]), problem["hidden"],
          static_cast<DType>(problem["dtype"])};
}

ExpertKnobs expert_knobs_of(const Values& values) {
  ExpertKnobs knobs{gemm_knobs_of(values)};
  knobs.pull = values["transport"] != 0;
  knobs.serves = static_cast<ServesPeers>(values["peers"]);
  knobs.by_node = values["route"] != 0;
  return knobs;
}

Schedule build_expert_direct(const ExpertExchange& problem, const Machine& machine,
                             const ExpertKnobs& knobs) {
  check_cus(knobs.comm_cus, "comm_cus", machine.gpu);
  ExpertDraft draft("direct", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t count = all_cus(machine.gpu, knobs.comm_cus);
  DirectFlags flags;
  std::optional<NodeRoutes> nodes;
  if (knobs.by_node) nodes.emplace(draft, count);
  if (!draft.dispatches() && !knobs.pull && !knobs.by_node) {
    draft.buffers.back = draft.add("back", draft.routes.most_rows_of_source());
    flags.arrived = builder.flags("arrived", draft.ranks());
  }
  if (draft.ranks() > 1 && !knobs.host_barriers) {
    flags.begin = builder.flags("begin", count * draft.ranks());
    flags.end = builder.flags("end", count * draft.ranks());
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t id =
        row_kernel(builder, rank, kExpertStepNames[static_cast<std::size_t>(problem.step)], true);
    for (std::int32_t p = 0; p < count; ++p) {
      builder.workgroup(id);
      add_direct_part(draft, nodes ? &*nodes : nullptr, flags, rank, p, count);
    }
    host_program(builder, rank, knobs, {{id, 0}});
  }
  return builder.finish();
}

Schedule build_expert_library(const ExpertExchange& problem, const Machine& machine,
                              const ExpertKnobs& knobs) {
  ExpertDraft draft("library", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  if (draft.dispatches()) {
    draft.buffers.sorted = draft.add("sorted", draft.routes.most_rows_of_source());
  } else {
    draft.buffers.back = draft.add("back", draft.routes.most_rows_of_source());
  }
  const std::int16_t arrived = builder.flags("arrived", library_channels(machine) * draft.ranks());
  const bool opens = !draft.dispatches() && draft.ranks() > 1 && !knobs.host_barriers;
  const std::int16_t opened = opens ? builder.flags("opened", draft.ranks()) : std::int16_t{-1};
  const double bytes = bytes_of(problem.dtype);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    if (draft.dispatches()) {
      launch_library_dispatch(builder, machine, draft.routes, draft.buffers, rank, bytes, arrived);
    } else {
      if (opens) {
        builder.launch(rank,
                       telling_kernel(builder, "open", peers_of(PeerOrder::rotated, draft.ranks(), rank, 0),
                                      draft.ranks(), rank, opened, LockProtocol::load_store));
      }
      launch_library_return(builder, machine, draft.routes, draft.buffers, rank, bytes, arrived);
      launch_sums(builder, draft.routes, draft.buffers, machine, rank);
    }
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax

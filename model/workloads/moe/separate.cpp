// Patterns with one kernel per step. r own rank, C workgroups move, p one of them.
//
//   library:   SORT; the library's all-to-all; REORDER by expert; UP; DOWN; REORDER by source;
//              the all-to-all; SUM. On one GPU: SORT by expert; UP; DOWN; SUM
//   direct:    DISPATCH, pushed: for rows p, p+C, …: copy -> where the expert's rows are; exchange arrivals
//                        pulled: exchange arrivals: all have begun; for rows of all sources: copy -> here
//              UP, DOWN: a workgroup per tile
//              RETURN, pushed: for rows: copy -> back at their source; returned[r] += 1 there;
//                              wait for all of all; for own tokens: add up; store
//                      pulled: exchange arrivals; for own tokens: add up rows where they are; exchange
//                      arrivals
#include "model/parts/library_gather.hpp"
#include "model/workloads/moe/patterns.hpp"

namespace tritax {

namespace {

void exchange(MoeDraft& draft, int rank, std::int32_t p, std::int16_t flags) {
  if (flags < 0) return;
  exchange_arrivals(draft.builder, peers_of(PeerOrder::rotated, draft.ranks(), rank, 0), draft.ranks(), rank,
                    p, flags, draft.knobs.lock);
}

void push_back_and_sum(MoeDraft& draft, int rank, std::int32_t p, std::int32_t count, std::int16_t returned) {
  ScheduleBuilder& builder = draft.builder;
  push_results(builder, draft.routes, draft.buffers, rank, p, count);
  builder.barrier();
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    builder.signal(returned, rank, 1, peer, Scope::system, draft.knobs.lock);
  }
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    builder.wait(returned, peer, count, Scope::system, draft.knobs.lock);
  }
  sum_results(builder, draft.routes, draft.buffers, rank, false, p, count);
}

}  // namespace

void begin_run(MoeDraft& draft, int rank) {
  if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
}

void end_run(MoeDraft& draft, int rank) {
  draft.builder.host(rank, HostOpKind::device_synchronize);
  begin_run(draft, rank);
}

MoeFlags dispatch_flags(MoeDraft& draft, std::int32_t workgroups) {
  MoeFlags flags;
  if (!draft.sends()) return flags;
  const std::int32_t count = workgroups * draft.ranks();
  if (!draft.knobs.pull) flags.sent = draft.builder.flags("sent", count);
  if (draft.knobs.pull && !draft.knobs.host_barriers) flags.begun = draft.builder.flags("begun", count);
  return flags;
}

void return_flags(MoeDraft& draft, std::int32_t workgroups, MoeFlags& flags) {
  const std::int32_t count = workgroups * draft.ranks();
  if (!draft.knobs.pull) {
    draft.add_back();
    flags.returned = draft.builder.flags("returned", draft.ranks());
  } else if (draft.sends()) {
    flags.ready = draft.builder.flags("ready", count);
    if (!draft.knobs.host_barriers) flags.read = draft.builder.flags("read", count);
  }
}

void launch_dispatch(MoeDraft& draft, int rank, std::int32_t workgroups, const MoeFlags& flags) {
  const std::int32_t id = row_kernel(draft.builder, rank, "dispatch", true);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    exchange(draft, rank, p, flags.begun);
    if (draft.knobs.pull) {
      pull_tokens(draft.builder, draft.routes, draft.buffers, rank, p, workgroups);
    } else {
      push_tokens(draft.builder, draft.routes, draft.buffers, rank, p, workgroups);
    }
    exchange(draft, rank, p, flags.sent);
  }
  draft.builder.launch(rank, id);
}

void launch_return(MoeDraft& draft, int rank, std::int32_t workgroups, const MoeFlags& flags) {
  const std::int32_t id = row_kernel(draft.builder, rank, "return", true);
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    exchange(draft, rank, p, flags.ready);
    if (draft.knobs.pull) {
      sum_results(draft.builder, draft.routes, draft.buffers, rank, true, p, workgroups);
    } else {
      push_back_and_sum(draft, rank, p, workgroups, flags.returned);
    }
    exchange(draft, rank, p, flags.read);
  }
  draft.builder.launch(rank, id);
}

namespace {

// Buffers of the library's exchange, beside the buffers of all patterns; a single GPU exchanges nothing.
void add_library_buffers(MoeDraft& draft) {
  ExpertBuffers& buffers = draft.buffers;
  if (!draft.sends()) {
    buffers.sorted = buffers.at_owner;
    buffers.back = buffers.results;
    return;
  }
  const DType dtype = draft.problem.dtype;
  const std::int64_t hidden = draft.problem.hidden;
  buffers.sorted = draft.add("sorted", dtype, draft.routes.most_rows_of_source(), hidden);
  buffers.received = draft.add("received", dtype, draft.routes.most_rows_of_owner(), hidden);
  buffers.to_return = draft.add("to return", product_dtype(dtype), draft.routes.most_rows_of_owner(), hidden);
  draft.add_back();
}

}  // namespace

Schedule build_moe_library(const Moe& problem, const Machine& machine, const MoeKnobs& knobs) {
  MoeDraft draft("library", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const Routes& routes = draft.routes;
  ExpertBuffers& buffers = draft.buffers;
  const DType result = product_dtype(draft.problem.dtype);
  add_library_buffers(draft);
  const std::int32_t channels = library_channels(machine);
  const auto flags = [&](const char* name) {
    return draft.sends() ? builder.flags(name, channels * draft.ranks()) : std::int16_t{-1};
  };
  const std::int16_t there = flags("arrived");
  const std::int16_t back = flags("arrived back");
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin_run(draft, rank);
    launch_library_dispatch(builder, machine, routes, buffers, rank, bytes_of(problem.dtype), there);
    draft.launch_product(rank, ExpertProduct::up);
    draft.launch_product(rank, ExpertProduct::down);
    launch_library_return(builder, machine, routes, buffers, rank, bytes_of(result), back);
    launch_sums(builder, routes, buffers, machine, rank);
    end_run(draft, rank);
  }
  return builder.finish();
}

Schedule build_moe_direct(const Moe& problem, const Machine& machine, const MoeKnobs& knobs) {
  MoeDraft draft("direct", problem, machine, knobs);
  MoeFlags flags = dispatch_flags(draft, knobs.comm_cus);
  return_flags(draft, knobs.comm_cus, flags);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin_run(draft, rank);
    launch_dispatch(draft, rank, knobs.comm_cus, flags);
    draft.launch_product(rank, ExpertProduct::up);
    draft.launch_product(rank, ExpertProduct::down);
    launch_return(draft, rank, knobs.comm_cus, flags);
    end_run(draft, rank);
  }
  return draft.builder.finish();
}

}  // namespace tritax

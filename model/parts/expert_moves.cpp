#include "model/parts/expert_moves.hpp"

#include <algorithm>
#include <utility>

#include "model/parts/collectives.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/parts/partial_sums.hpp"

namespace tritax {

namespace {

Rect rows_at(std::int32_t row, std::int32_t rows, std::int32_t cols) { return {row, 0, rows, cols}; }

template <typename Visit>
void for_part(const std::vector<Routed>& all, std::int32_t p, std::int32_t count, const Visit& visit) {
  for (auto i = static_cast<std::size_t>(p); i < all.size(); i += static_cast<std::size_t>(count))
    visit(all[i]);
}

void copy_token(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                const Routed& routed) {
  builder.copy(buffers.at_owner, rows_at(routed.at_owner, routed.rows, buffers.cols),
               routes.owner(routed.target), buffers.tokens, routed.token, 0, source);
}

// Blocks of all sources for one owner, a few of each source in turn, so that all links are in use from the
// start.
template <typename Visit>
void for_part_of_owner(const Routes& routes, int owner, std::int32_t p, std::int32_t count,
                       const Visit& visit) {
  std::vector<std::vector<std::pair<int, const Routed*>>> by_source;
  for (const int source : ranks_from(PeerOrder::rotated, routes.ranks(), owner, 0)) {
    by_source.emplace_back();
    for (const Routed& routed : routes.of(source)) {
      if (routes.owner(routed.target) == owner) by_source.back().emplace_back(source, &routed);
    }
  }
  const auto all = merged(by_source, true);
  for (auto i = static_cast<std::size_t>(p); i < all.size(); i += static_cast<std::size_t>(count)) {
    visit(all[i].first, *all[i].second);
  }
}

// First row of a source's block at an owner, in the order by source.
std::int32_t begin_by_source(const Routes& routes, int owner, int source) {
  std::int32_t row = 0;
  for (int before = 0; before < source; ++before) row += routes.rows_between(before, owner);
  return row;
}

// Copies an owner's rows from the order by source to the order by target, or back.
std::int32_t add_reordering(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                            const ExpertBuffers& buffers, int owner, bool to_targets) {
  BlockCopy copy{owner,
                 to_targets ? buffers.received : buffers.results,
                 to_targets ? buffers.at_owner : buffers.to_return,
                 {},
                 {}};
  const Share own = routes.targets_of(owner);
  for (int source = 0; source < routes.ranks(); ++source) {
    std::int32_t row = begin_by_source(routes, owner, source);
    for (auto target = static_cast<int>(own.begin); target < own.end; ++target) {
      const std::int32_t rows = routes.rows(source, target);
      if (rows == 0) continue;
      const Rect by_source = rows_at(row, rows, buffers.cols);
      const Rect by_target = rows_at(routes.owner_begin(source, target), rows, buffers.cols);
      copy.blocks.push_back(to_targets ? by_source : by_target);
      copy.places.push_back(to_targets ? by_target : by_source);
      row += rows;
    }
  }
  return copy.blocks.empty() ? -1 : add_block_copy(builder, machine, copy);
}

// The all-to-all between sources and owners; `back`: results return to their sources.
LibraryAllToAll exchange_with_owners(const Routes& routes, const ExpertBuffers& buffers, int rank,
                                     double bytes_of_element, std::int16_t arrived, bool back) {
  LibraryAllToAll all;
  all.kernel = back ? "all_to_all back" : "all_to_all";
  all.rank = rank;
  all.ranks = routes.ranks();
  all.own = back ? buffers.to_return : buffers.sorted;
  all.received = back ? buffers.back : buffers.received;
  all.arrived = arrived;
  all.widest_bytes = static_cast<double>(routes.most_rows_between()) * buffers.cols * bytes_of_element;
  for (int peer = 0; peer < routes.ranks(); ++peer) {
    const int source = back ? peer : rank, owner = back ? rank : peer;
    const std::int32_t rows = routes.rows_between(source, owner);
    const auto first = static_cast<int>(routes.targets_of(owner).begin);
    const Rect at_source = rows_at(routes.source_begin(source, first), rows, buffers.cols);
    const Rect at_owner = rows_at(begin_by_source(routes, owner, source), rows, buffers.cols);
    all.blocks.push_back(back ? at_owner : at_source);
    all.places.push_back(back ? at_source : at_owner);
  }
  return all;
}

void launch_exchange(ScheduleBuilder& builder, const Machine& machine, const LibraryAllToAll& all) {
  builder.host_work(all.rank, kCollectiveCall);
  builder.launch(all.rank, add_library_all_to_all(builder, machine, all));
}

}  // namespace

void push_tokens(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                 std::int32_t p, std::int32_t count) {
  for_part(routes.of(source), p, count,
           [&](const Routed& routed) { copy_token(builder, routes, buffers, source, routed); });
}

void pull_tokens(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int owner,
                 std::int32_t p, std::int32_t count) {
  for_part_of_owner(routes, owner, p, count, [&](int source, const Routed& routed) {
    copy_token(builder, routes, buffers, source, routed);
  });
}

void push_results(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int owner,
                  std::int32_t p, std::int32_t count) {
  for_part_of_owner(routes, owner, p, count, [&](int source, const Routed& routed) {
    builder.copy(buffers.back, rows_at(routed.at_source, routed.rows, buffers.cols), source, buffers.results,
                 routed.at_owner, 0, owner);
  });
}

void sum_results(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                 bool from_owners, std::int32_t p, std::int32_t count, SumPiece most, ServesPeers serves) {
  const std::vector<Routed>& all = routes.of(source);
  std::int32_t item = 0;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].token == all[begin].token) ++end;
    const std::int32_t high = all[begin].rows;
    const std::int32_t most_rows = most.rows > 0 ? std::min(most.rows, high) : high;
    const auto holds = static_cast<std::int32_t>(std::max<std::int64_t>(1, kMostOfReducer / most_rows));
    const std::int32_t most_cols = most.cols > 0 ? std::min(most.cols, holds) : holds;
    for (const Rect& piece : cut(rows_at(0, high, buffers.cols), most_rows, most_cols)) {
      if (item++ % count != p) continue;
      const auto moved = [&](std::int32_t row) {
        return Rect{row + piece.row, piece.col, piece.rows, piece.cols};
      };
      add_by_peer(builder, serves, [&] {
        for (std::size_t i = begin; i < end; ++i) {
          const Rect rect = moved(from_owners ? all[i].at_owner : all[i].at_source);
          const int rank = from_owners ? routes.owner(all[i].target) : source;
          const std::int16_t buffer = from_owners ? buffers.results : buffers.back;
          if (i == begin) {
            builder.load(buffer, rect, rank);
          } else {
            builder.reduce(buffer, rect, rank);
          }
        }
      });
      builder.store(buffers.sums, moved(all[begin].token), source);
    }
  }
}

void launch_library_dispatch(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                             const ExpertBuffers& buffers, int rank, double bytes_of_element,
                             std::int16_t arrived) {
  BlockCopy sort{rank, buffers.tokens, buffers.sorted, {}, {}};
  for (const Routed& routed : routes.of(rank)) {
    sort.blocks.push_back(rows_at(routed.token, routed.rows, buffers.cols));
    sort.places.push_back(rows_at(routed.at_source, routed.rows, buffers.cols));
  }
  if (!sort.blocks.empty()) builder.launch(rank, add_block_copy(builder, machine, sort));
  if (buffers.at_owner == buffers.sorted) return;
  launch_exchange(builder, machine,
                  exchange_with_owners(routes, buffers, rank, bytes_of_element, arrived, false));
  if (buffers.at_owner == buffers.received) return;
  const std::int32_t reorder = add_reordering(builder, machine, routes, buffers, rank, true);
  if (reorder >= 0) builder.launch(rank, reorder);
}

void launch_library_return(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                           const ExpertBuffers& buffers, int rank, double bytes_of_element,
                           std::int16_t arrived) {
  if (buffers.results == buffers.back) return;
  if (buffers.results != buffers.to_return) {
    const std::int32_t reorder = add_reordering(builder, machine, routes, buffers, rank, false);
    if (reorder >= 0) builder.launch(rank, reorder);
  }
  launch_exchange(builder, machine,
                  exchange_with_owners(routes, buffers, rank, bytes_of_element, arrived, true));
}

void launch_sums(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers,
                 const Machine& machine, int rank) {
  if (routes.of(rank).empty()) return;
  const std::int32_t id = row_kernel(builder, rank, "sum", false);
  const std::int32_t count =
      std::min(static_cast<std::int32_t>(routes.of(rank).size()), kCopiesOfCu * machine.gpu.cu_count());
  for (std::int32_t p = 0; p < count; ++p) {
    builder.workgroup(id);
    sum_results(builder, routes, buffers, rank, false, p, count);
  }
  builder.launch(rank, id);
}

std::int32_t row_kernel(ScheduleBuilder& builder, int rank, std::string_view name, bool persistent) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.placement = persistent ? Placement::persistent : Placement::dispatch;
  return builder.kernel(std::move(kernel));
}

void expect_dispatched(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers) {
  for (int source = 0; source < routes.ranks(); ++source) {
    for (const Routed& routed : routes.of(source)) {
      builder.expect_copy({buffers.at_owner, routes.owner(routed.target),
                           rows_at(routed.at_owner, routed.rows, buffers.cols)},
                          {buffers.tokens, source, rows_at(routed.token, routed.rows, buffers.cols)});
    }
  }
}

void expect_summed(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers) {
  for (int source = 0; source < routes.ranks(); ++source) {
    std::int32_t before = -1;
    for (const Routed& routed : routes.of(source)) {
      builder.expect_copy(
          {buffers.sums, source, rows_at(routed.token, routed.rows, buffers.cols)},
          {buffers.results, routes.owner(routed.target), rows_at(routed.at_owner, routed.rows, buffers.cols)},
          routed.token == before);
      before = routed.token;
    }
  }
}

}  // namespace tritax

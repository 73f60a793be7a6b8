#include "model/workloads/gemm_all_to_all/draft.hpp"

#include <algorithm>
#include <string>

#include "model/parts/grid_order.hpp"

namespace tritax {

namespace {

std::int32_t size_of(const Share& share) { return static_cast<std::int32_t>(share.size()); }

// C_o[rows of s] = A_s · B[:, columns of o], for all s and o.
void add_inputs_and_reference(ExchangeDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const auto k = static_cast<std::int32_t>(draft.problem.k);
  for (int rank = 0; rank < draft.ranks(); ++rank)
    builder.input({draft.a, rank, {0, 0, size_of(own_rows(draft.problem, rank)), k}});
  builder.input(builder.whole(draft.b), InputValues::same);
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    const Share columns = own_columns(draft.problem, owner);
    const Region b{draft.b, owner, {0, static_cast<std::int32_t>(columns.begin), k, size_of(columns)}};
    for (int source = 0; source < draft.ranks(); ++source) {
      const Share rows = own_rows(draft.problem, source);
      builder.expect_product(
          {draft.c, owner, {static_cast<std::int32_t>(rows.begin), 0, size_of(rows), size_of(columns)}},
          {draft.a, source, {0, 0, size_of(rows), k}}, b);
    }
  }
}

}  // namespace

Share own_rows(const GemmAllToAll& problem, int rank) { return share_of(problem.m, rank, problem.gpus); }

Share own_columns(const GemmAllToAll& problem, int rank) { return share_of(problem.n, rank, problem.gpus); }

ExchangeDraft::ExchangeDraft(std::string_view pattern, const GemmAllToAll& problem_, const Machine& machine_,
                             const ExchangeKnobs& knobs_)
    : ExchangeDraft(pattern, problem_, machine_, knobs_, knobs_.result.value_or(problem_.dtype)) {}

ExchangeDraft::ExchangeDraft(std::string_view pattern, const GemmAllToAll& problem_, const Machine& machine_,
                             const ExchangeKnobs& knobs_, DType c_dtype)
    : problem(problem_),
      machine(machine_),
      knobs(knobs_),
      tile(matmul_tile(knobs_)),
      gemm_resources(matmul_resources(machine_.gpu, machine_.interpreter, problem_.dtype, tile)),
      builder(std::string(pattern), problem_.gpus) {
  const auto k = static_cast<std::int32_t>(problem.k);
  const auto n = static_cast<std::int32_t>(problem.n);
  a = builder.buffer({"A", problem.dtype, size_of(own_rows(problem, 0)), k, tile.m, tile.k});
  b = builder.buffer({"B", problem.dtype, k, n, tile.k, tile.n});
  c = builder.buffer(
      {"C", c_dtype, static_cast<std::int32_t>(problem.m), size_of(own_columns(problem, 0)), tile.m, tile.n});
  builder.result(c);
  add_inputs_and_reference(*this);
}

Rect ExchangeDraft::place_in_c(int rank, const OwnedTile& owned) const {
  Rect place = owned.rect;
  place.row += static_cast<std::int32_t>(own_rows(problem, rank).begin);
  place.col -= static_cast<std::int32_t>(own_columns(problem, owned.owner).begin);
  return place;
}

void ExchangeDraft::add_staged() {
  if (!sends()) return;
  staged = builder.buffer({"staged", knobs.result.value_or(problem.dtype), size_of(own_rows(problem, 0)),
                           static_cast<std::int32_t>(problem.n), tile.m, tile.n});
}

void ExchangeDraft::add_arrived(std::int32_t workgroups) {
  if (sends() && !knobs.host_barriers) arrived = builder.flags("arrived", workgroups * ranks());
}

std::vector<OwnedTile> pieces_of(const ExchangeDraft& draft, int rank, Share rows, std::int32_t height,
                                 std::int32_t width) {
  const TileGrid whole{ceil_div(size_of(rows), height), 0};
  std::vector<std::vector<OwnedTile>> by_owner;
  std::vector<int> owners = draft.peers_of(rank, 0);
  owners.push_back(rank);
  for (const int owner : owners) {
    const Share columns = own_columns(draft.problem, owner);
    const TileGrid grid{whole.rows, ceil_div(size_of(columns), width)};
    std::vector<OwnedTile>& list = by_owner.emplace_back();
    for (std::int32_t t = 0; t < grid.count(); ++t) {
      const TileIndex at = grouped_tile(t, grid, draft.knobs.group_m);
      const std::int32_t row = at.row * height;
      const std::int32_t col = at.col * width;
      list.push_back(
          {{static_cast<std::int32_t>(rows.begin) + row, static_cast<std::int32_t>(columns.begin) + col,
            std::min(height, size_of(rows) - row), std::min(width, size_of(columns) - col)},
           owner});
    }
  }
  const std::vector<OwnedTile> own = std::move(by_owner.back());
  by_owner.pop_back();
  std::vector<OwnedTile> walk = merged(by_owner, draft.knobs.peer_order == PeerOrder::staggered);
  walk.insert(walk.end(), own.begin(), own.end());
  return walk;
}

Share chunk_of(const ExchangeDraft& draft, int rank, std::int32_t i) {
  return piece_of_rows(own_rows(draft.problem, rank).size(), i, draft.knobs.chunks, draft.tile.m);
}

std::int32_t exchange_gemm(ExchangeDraft& draft, int rank, std::string_view name, Share rows,
                           std::int32_t workgroups, bool ends) {
  return exchange_gemm_of(draft, rank, name, pieces_of(draft, rank, rows, draft.tile.m, draft.tile.n),
                          workgroups, [&](const OwnedTile*, std::int32_t p) {
                            if (ends) exchange_end(draft, rank, p);
                          });
}

std::int32_t exchange_gemm_of(ExchangeDraft& draft, int rank, std::string_view name,
                              const std::vector<OwnedTile>& tiles, std::int32_t workgroups,
                              const std::function<void(const OwnedTile*, std::int32_t)>& finish) {
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = builder.kernel(std::move(kernel));
  for (std::int32_t p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    for (auto i = static_cast<std::size_t>(first_item(draft.knobs, draft.machine.gpu, p, workgroups));
         i < tiles.size(); i += static_cast<std::size_t>(workgroups)) {
      const OwnedTile& owned = tiles[i];
      builder.matmul(draft.a, draft.b, owned.rect, 0, static_cast<std::int32_t>(draft.problem.k));
      if (owned.owner != rank && draft.staged >= 0) {
        builder.store(draft.staged, owned.rect, rank);
        finish(&owned, p);
      } else {
        builder.store(draft.c, draft.place_in_c(rank, owned), owned.owner);
      }
    }
    finish(nullptr, p);
  }
  return id;
}

void exchange_end(ExchangeDraft& draft, int rank, std::int32_t index) {
  if (draft.arrived < 0) return;
  exchange_arrivals(draft.builder, draft.peers_of(rank, index), draft.ranks(), rank, index, draft.arrived,
                    draft.knobs.lock);
}

}  // namespace tritax

// Library baseline: the vendor's GEMM, then the all-to-all of the collective library.
//
//   stream 0, GEMM:        the vendor's kernel: product = A_r·B
//   stream 0, COPY:        columns of the owners -> blocks
//   stream 0, ALL-TO-ALL:  model/parts/library_gather.hpp; a rank receives rows of its C
//
// The copy is needed because a collective sends contiguous blocks. Nothing waits for the host in between,
// because a framework puts all calls into streams. Products of fp8 leave the GEMM in bf16, as in libraries.
#include <vector>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workloads/gemm_all_to_all/draft.hpp"

namespace tritax {

namespace {

// The block of the product that goes from `source` to `owner`, and its places before and after.
Rect block_of_product(const GemmAllToAll& problem, int source, int owner) {
  const Share columns = own_columns(problem, owner);
  return {0, static_cast<std::int32_t>(columns.begin),
          static_cast<std::int32_t>(own_rows(problem, source).size()),
          static_cast<std::int32_t>(columns.size())};
}

Rect contiguous_block(const GemmAllToAll& problem, int source, int owner) {
  Rect block = block_of_product(problem, source, owner);
  block.row = owner * static_cast<std::int32_t>(own_rows(problem, 0).size());
  block.col = 0;
  return block;
}

Rect received_block(const GemmAllToAll& problem, int source, int owner) {
  Rect block = block_of_product(problem, source, owner);
  block.row = static_cast<std::int32_t>(own_rows(problem, source).begin);
  block.col = 0;
  return block;
}

// Copy into blocks and all-to-all, for one rank.
std::vector<std::int32_t> collective_kernels(ExchangeDraft& draft, int rank, std::int16_t product,
                                             std::int16_t blocks, const ExchangeNodes& nodes) {
  const GemmAllToAll& problem = draft.problem;
  BlockCopy copy{rank, product, blocks, {}, {}};
  LibraryAllToAll exchange;
  exchange.kernel = "all_to_all";
  exchange.rank = rank;
  exchange.ranks = draft.ranks();
  exchange.own = blocks;
  exchange.received = draft.c;
  exchange.arrived = draft.arrived;
  exchange.equal_blocks = problem.m % draft.ranks() == 0 && problem.n % draft.ranks() == 0;
  exchange.widest_bytes = static_cast<double>(own_rows(problem, 0).size() * own_columns(problem, 0).size()) *
                          bytes_of(product_dtype(problem.dtype));
  exchange.nodes = nodes;
  for (int owner = 0; owner < draft.ranks(); ++owner) {
    copy.blocks.push_back(block_of_product(problem, rank, owner));
    copy.places.push_back(contiguous_block(problem, rank, owner));
    exchange.blocks.push_back(contiguous_block(problem, rank, owner));
    exchange.places.push_back(received_block(problem, rank, owner));
  }
  return {add_block_copy(draft.builder, draft.machine, copy),
          add_library_all_to_all(draft.builder, draft.machine, exchange)};
}

}  // namespace

LibraryTile exchange_library_tile(const GemmAllToAll& problem, const Machine& machine) {
  return library_tile({own_rows(problem, 0).size(), problem.n, problem.k, problem.dtype}, machine);
}

Schedule build_exchange_library(const GemmAllToAll& problem, const Machine& machine,
                                const ExchangeKnobs& asked) {
  const LibraryTile library = exchange_library_tile(problem, machine);
  const DType dtype = product_dtype(problem.dtype);
  ExchangeDraft draft("library", problem, machine, library_knobs<ExchangeKnobs>(library.tile, asked), dtype);
  ScheduleBuilder& builder = draft.builder;
  const auto n = static_cast<std::int32_t>(problem.n);
  const auto rows = static_cast<std::int32_t>(own_rows(problem, 0).size());
  const std::int16_t parts = add_buffer_of_parts(builder, library, rows, n);
  std::int16_t product = draft.c;
  std::int16_t blocks = -1;
  ExchangeNodes nodes;
  if (draft.sends()) {
    product = builder.buffer({"product", dtype, rows, n, draft.tile.m, draft.tile.n});
    const auto columns = static_cast<std::int32_t>(own_columns(problem, 0).size());
    blocks = builder.buffer({"blocks", dtype, rows * draft.ranks(), columns, draft.tile.m, draft.tile.n});
    draft.arrived = builder.flags("arrived", library_channels(machine) * draft.ranks());
    nodes = exchange_nodes(
        builder, machine, draft.ranks(), dtype, contiguous_block(problem, 0, 0),
        [&problem](int source, int owner) {
          return BlockMove{contiguous_block(problem, source, owner), received_block(problem, source, owner)};
        });
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const Rect rect{0, 0, static_cast<std::int32_t>(own_rows(problem, rank).size()), n};
    const std::vector<std::int32_t> gemm =
        add_library_gemm(builder, machine,
                         {rank, draft.a, draft.b, static_cast<std::int32_t>(problem.k), product, rect, parts,
                          problem.dtype, library});
    std::vector<std::int32_t> collective;
    if (draft.sends()) collective = collective_kernels(draft, rank, product, blocks, nodes);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (const std::int32_t kernel : gemm) builder.launch(rank, kernel, 0);
    if (draft.sends()) builder.host_work(rank, kCollectiveCall);
    for (const std::int32_t kernel : collective) builder.launch(rank, kernel, 0);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax

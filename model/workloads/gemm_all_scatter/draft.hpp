// Common parts of the patterns of these workloads: buffers, the GEMM tile loop and communication items.
//
// A pattern file creates a `PatternDraft`, adds kernels for every rank with the functions below or with the
// builder itself, and ends with `host_program` (model/parts/kernels.hpp). Notation: r own rank, W ranks, T
// GEMM tiles per rank, p workgroup number.
#pragma once

#include <functional>
#include <vector>

#include "model/parts/grid_order.hpp"
#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_all_scatter/patterns.hpp"

namespace tritax {

// A schedule under construction. Buffers: A and B, as much of them as the largest block of C needs, are
// inputs, C (M × N) is the result.
struct PatternDraft {
  // Checks that the GEMM tile fits a compute unit and creates the buffers.
  PatternDraft(std::string_view pattern, const GemmAllScatter& workload, const Machine& machine,
               const SumKnobs& knobs);

  GemmAllScatter workload;
  const Machine& machine;
  SumKnobs knobs;
  MatmulTile tile;
  Resources gemm_resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
  std::int16_t arrived = -1;  // flags (sending workgroup, rank) for the end of an all-gather

  int ranks() const { return workload.gpus; }
  std::int32_t first_item(std::int32_t p, std::int32_t workgroups) const {
    return tritax::first_item(knobs, machine.gpu, p, workgroups);
  }
  std::vector<int> peers_of(int rank, std::int32_t workgroup) const {
    return tritax::peers_of(knobs.peer_order, ranks(), rank, workgroup);
  }
  TileGrid gemm_grid(int rank) const;
  // Rectangle of C that tile t (in walk order) of `rank` covers; ragged at the lower and right edges.
  Rect gemm_tile(int rank, std::int32_t t) const;
  // The largest number of GEMM tiles of a rank: the size of an array of per-tile flags.
  std::int32_t max_tiles() const;
  DType c_dtype() const { return knobs.result.value_or(workload.dtype); }
  // Adds flags for the end of an all-gather, where no host barrier says that all blocks have arrived. An
  // all-scatter ends without (ROCm/iris).
  void add_arrived(std::int32_t workgroups);
};

// The same tile of a part of C.
Rect gemm_tile(const PatternDraft& draft, const Rect& block, std::int32_t t);

// The end of sending workgroup q, the same on all ranks.
void end_of_sender(PatternDraft& draft, int rank, std::int32_t q, const std::vector<int>& peers);

// Elements that a workgroup sends at a time.
std::int64_t elements_of_comm_tile(const PatternDraft& draft);

// A piece of the own block of C that is sent as one, and the GEMM tiles that it needs.
struct CommItem {
  Rect rect;                        // of C
  std::vector<std::int32_t> tiles;  // ascending
};

// The own block, cut into communication tiles, in the order in which the kernel with these shares completes
// them.
std::vector<CommItem> comm_items(const PatternDraft& draft, const ProductShares& shares, int rank);

// The shares of a kernel with `workgroups` workgroups on every rank. Call it before adding the first
// workgroup.
ProductShares shares_of(PatternDraft& draft, std::int32_t workgroups);

// Adds the product of a tile of the own block of C.
void multiply(PatternDraft& draft, int rank, Rect tile, std::int32_t k_begin, std::int32_t k_end);

// Adds the products of workgroup `number`, and calls `finish` for every tile that is then complete in the
// accumulator.
void compute_tiles(PatternDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                   const std::function<void(std::int32_t)>& finish);

// Adds: wait for the tiles of an item (lock >= 0), copy the item to every peer. lock < 0: no waiting.
void send_item(PatternDraft& draft, int rank, const CommItem& item, const std::vector<int>& peers,
               std::int16_t lock);

// Adds a persistent GEMM kernel with these shares: for its tiles: matmul; store C(t); signal lock[t] unless
// lock < 0.
std::int32_t gemm_kernel(PatternDraft& draft, const ProductShares& shares, int rank, std::int16_t lock);

// The loop body of gemm_kernel, for workgroups that share a kernel with another role.
void compute_and_store_tiles(PatternDraft& draft, const ProductShares& shares, int rank, std::int32_t number,
                             std::int16_t lock);

// Adds a persistent kernel whose workgroups copy communication tiles.
std::int32_t copying_kernel(PatternDraft& draft, std::string_view name, int rank);

// Adds a persistent kernel that sends all items: for i in q', q'+G, …: send_item.
std::int32_t scatter_kernel(PatternDraft& draft, const ProductShares& shares, int rank,
                            std::int32_t workgroups, std::int16_t lock);

}  // namespace tritax

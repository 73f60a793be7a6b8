// What the patterns share: buffers, the GEMM tile loop, communication items, peers and the host program
// around them.
//
// A pattern file creates a `PatternDraft`, adds kernels for every rank with the functions below or with the
// builder itself, and ends with `host_program`. Roles: r own rank, W ranks, T GEMM tiles of a rank, p
// workgroup number.
#pragma once

#include <vector>

#include "model/patterns/grid_order.hpp"
#include "model/patterns/pattern.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

constexpr std::int32_t ceil_div(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

// A schedule in the making. Buffers: A (M × K) and B (K × widest column block) are inputs, C (M × N) is the
// result.
struct PatternDraft {
  // Checks that the GEMM tile fits a compute unit and creates the buffers.
  PatternDraft(std::string_view pattern, const GemmAllScatter& workload, const Machine& machine,
               const Knobs& knobs);

  GemmAllScatter workload;
  const Machine& machine;
  Knobs knobs;
  MatmulTile tile;
  Resources gemm_resources;
  ScheduleBuilder builder;
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;

  int ranks() const { return workload.gpus; }
  TileGrid gemm_grid(int rank) const;
  // Rectangle of C that tile t (in walk order) of `rank` covers; ragged at the lower and right edges.
  Rect gemm_tile(int rank, std::int32_t t) const;
  // Most GEMM tiles that a rank has: the size of an array of per-tile flags.
  std::int32_t max_tiles() const;
};

// Columns of the widest block that a rank owns.
std::int32_t widest_block(const GemmAllScatter& workload);

// Shape of the GEMM tile that the knobs ask for.
MatmulTile matmul_tile(const Knobs& knobs);

// Resources of a workgroup that only copies, a little at a time: 256 threads, 64 registers, no LDS.
Resources copy_resources();

// … that copies whole tiles of so many elements: a compiler that keeps the address of every element needs
// registers for it (gpu.copy_registers), up to what a thread, or all of them together, can have.
Resources tile_copy_resources(const Gpu& gpu, std::int32_t threads, std::int64_t elements);

// Resources of a GEMM kernel of which some workgroups copy the tiles of the draft: its threads, and registers
// and LDS of the worse role.
Resources with_copy_role(const PatternDraft& draft);

// Compute and communication workgroups of a pattern that splits the compute units.
struct Split {
  std::int32_t gemm = 0;
  std::int32_t comm = 0;
};

// Whether both roles are workgroups of one grid, or of two that both go round the dies from the first on.
enum class Roles : std::uint8_t { in_one_kernel, in_two_kernels };

// What the knobs ask for; where they say nothing: the largest power of two not above the CU count computes
// and the rest communicates (ROCm/iris example 11), and if that leaves nothing, one CU in eight communicates.
// With one rank nobody communicates. Where they say one of the two, the other gets the rest; of
// two kernels what the fullest die leaves on every die, so that both are resident, unless that is nothing.
// Throws UserError if both together exceed the CU count.
Split split_cus(const PatternDraft& draft, Roles roles);

// Compute workgroups of a pattern that does not split: the knob, or all CUs.
std::int32_t all_cus(const PatternDraft& draft, std::int32_t knob);

// First item of workgroup p in a persistent grid of G workgroups: p, or p after the XCD remap.
std::int32_t first_item(const PatternDraft& draft, std::int32_t p, std::int32_t workgroups);

// The other ranks in the order of the knob, for a workgroup with this number among those that send.
std::vector<int> peers_of(const PatternDraft& draft, int rank, std::int32_t workgroup);

// The same with the own rank: in its place (fixed) or last.
std::vector<int> ranks_from(const PatternDraft& draft, int rank, std::int32_t workgroup);

// A piece of the own columns of C that is sent as one, and the GEMM tiles it needs.
struct CommItem {
  Rect rect;                        // of C
  std::vector<std::int32_t> tiles;  // ascending
};

// The own columns cut into communication tiles, in the order in which the GEMM walk completes them.
std::vector<CommItem> comm_items(const PatternDraft& draft, int rank);

// Adds the operations that compute tile t into the accumulator.
void compute_tile(PatternDraft& draft, int rank, std::int32_t t);

// Adds: wait for the tiles of an item (lock >= 0), copy it to every peer. lock < 0: no waiting.
void send_item(PatternDraft& draft, int rank, const CommItem& item, const std::vector<int>& peers,
               std::int16_t lock);

// Adds a persistent GEMM kernel: for t in p', p'+G, …: matmul; store C(t); signal lock[t] unless lock < 0.
std::int32_t gemm_kernel(PatternDraft& draft, int rank, std::int32_t workgroups, std::int16_t lock);

// The loop body of gemm_kernel, for workgroups that share a kernel with another role.
void compute_and_store_tiles(PatternDraft& draft, int rank, std::int32_t first, std::int32_t stride,
                             std::int16_t lock);

// Adds a persistent kernel that sends all items: for i in q', q'+G, …: send_item.
std::int32_t scatter_kernel(PatternDraft& draft, int rank, std::int32_t workgroups, std::int16_t lock);

// Adds the end of communicating workgroup `index`: tells its counterpart on every peer that its data are
// there, and waits until those of all peers are. `arrived` holds one flag for every (index, source rank).
void exchange_arrivals(PatternDraft& draft, int rank, std::int32_t index, std::int16_t arrived,
                       LockProtocol protocol);

// Host program of a rank: barrier, kernels (launched one by one or as a graph), device synchronisation,
// barrier.
void host_program(PatternDraft& draft, int rank, const Graph& kernels);

}  // namespace tritax

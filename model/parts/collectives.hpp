// What workloads share that are a collective alone: every rank has a matrix of rows × cols, or one has.
//
// Fields, knobs, limits and the space of a search; a schedule is one kernel a rank, of persistent workgroups
// that move pieces of `comm_tile`. Those with sums are PartialSums without a product (partial_sums.hpp).
//
// A run neither begins nor ends on a rank alone. Without host barriers its workgroups tell their counterparts
// that their memory may be written or read, and at the end that it has been; with them the host says so.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct Collective {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType dtype = DType::fp16;
  int gpus = 1;

  double bytes() const { return static_cast<double>(rows) * static_cast<double>(cols) * bytes_of(dtype); }
};
Collective collective_of(const Problem& problem);

// Fields rows, cols, dtype and gpus. `whose`: "the matrix of every GPU"; `least`: GPUs.
std::array<Spec, 4> collective_fields(std::string_view rows_help, std::string_view cols_help, int least);

// Rows for the tables of knobs: comm_tile, comm_cus, transport, rings, peer_order, lock, host_barriers.
const Spec& collective_knob(std::string_view name);

// Every compute unit has a workgroup where the knobs do not say how many.
SumKnobs collective_knobs_of(const Values& values);

// Refuses knobs, memory and sizes that cannot be. `needed_bytes`: of all buffers of a GPU.
void check_collective(const Collective& collective, const Machine& machine, const SumKnobs& knobs,
                      double needed_bytes);

// Workload::complete where every GPU has a block of rows: refuses fewer rows than GPUs.
void require_rows(Problem& problem, const FieldPlace& place);

// The same where what a GPU owns are rows or columns: refuses fewer of both than GPUs.
void require_rows_or_columns(Problem& problem, const FieldPlace& place);

// The matrices as summands that are one array, of which a GPU owns rows, or columns where there are fewer
// rows than GPUs.
PartialSums array_of(const Collective& collective);

// What a GPU sends of an all-reduce: both ways, as bus bandwidths count it.
Work all_reduce_work(const Problem& problem);

std::string collective_size_text(const Problem& problem);

// The table at the knobs that suit the machine: all rings that a mesh has, and staggered peers.
Values default_collective_knobs(const Values& table, const Problem& problem, const Machine& machine);

// All knobs that the pattern uses: workgroups from a few to one a compute unit, crossed at first; then
// pieces, transports, rings, orders of peers and locks.
KnobSpace collective_space(const Pattern& pattern, const Problem& problem, const Machine& machine,
                           const Values& table, const Values& pins);

// The pieces of a rectangle of at most height × width, row by row.
std::vector<Rect> cut(const Rect& whole, std::int32_t height, std::int32_t width);

// What a workgroup moves at a time: comm_tile, or kPieceAlone square.
TileIndex piece_size(const GemmKnobs& knobs);

// A persistent kernel of workgroups that move such pieces.
std::int32_t moving_kernel(ScheduleBuilder& builder, const Machine& machine, int rank, std::string name,
                           const SumKnobs& knobs);

// Host program of the vendor's kernel.
void library_program(ScheduleBuilder& builder, int rank, std::int32_t kernel, bool host_barriers);

}  // namespace tritax

// Collectives alone as workloads: fields, knobs, limits and the space of a search. Every rank has a matrix of
// rows × cols, or only one rank has.
//
// A schedule has one kernel per rank, whose persistent workgroups move pieces of `comm_tile`. Collectives
// with sums are PartialSums without a product (partial_sums.hpp).
//
// A rank neither begins nor ends a run alone. Without host barriers, workgroups tell their counterparts at
// the start that memory may be written or read, and at the end that this is done. With host barriers the host
// says so.
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

// Fields rows, cols, dtype and gpus. `least`: the fewest GPUs.
std::array<Spec, 4> collective_fields(std::string_view rows_help, std::string_view cols_help, int least);

// Rows for the tables of knobs: comm_tile, comm_cus, transport, rings, peer_order, lock, host_barriers.
const Spec& collective_knob(std::string_view name);

// The table of knobs of a collective that moves blocks, from all to all or around a root, without sums.
std::array<Spec, 10> moving_knobs();

// Where the knobs give no number of workgroups, every compute unit has one.
SumKnobs collective_knobs_of(const Values& values);

// Throws UserError for impossible knobs, memory or sizes. `needed_bytes`: bytes of all buffers of a GPU.
void check_collective(const Collective& collective, const Machine& machine, const SumKnobs& knobs,
                      double needed_bytes);

// Workload::complete where every GPU has a block of rows: throws UserError for fewer rows than GPUs.
void require_rows(Problem& problem, const FieldPlace& place);

// The same where every GPU owns rows or columns: throws UserError where both are fewer than GPUs.
void require_rows_or_columns(Problem& problem, const FieldPlace& place);

// The matrices of all ranks as summands of one array. A GPU owns rows of the array, or columns where there
// are fewer rows than GPUs.
PartialSums array_of(const Collective& collective);

// Bytes that a GPU sends in both halves of an all-reduce, as bus bandwidths count them.
Work all_reduce_work(const Problem& problem);

std::string collective_size_text(const Problem& problem);

// The knobs of the table with the values that suit the machine: all rings that a mesh has, staggered peers,
// no host barriers.
Values default_collective_knobs(const Values& table, const Problem& problem, const Machine& machine);

// All knobs that the pattern uses. A search crosses numbers of workgroups, from a few to one per compute
// unit, at first; then it tries pieces, transports, rings and orders of peers.
KnobSpace collective_space(const Pattern& pattern, const Problem& problem, const Machine& machine,
                           const Values& table, const Values& pins);

// Cuts a rectangle into pieces of at most height × width, row by row.
std::vector<Rect> cut(const Rect& whole, std::int32_t height, std::int32_t width);

// Rows and columns that a workgroup moves at a time: comm_tile, or kPieceAlone square.
TileIndex piece_size(const GemmKnobs& knobs);

// A persistent kernel of workgroups that move pieces of this size.
std::int32_t moving_kernel(ScheduleBuilder& builder, const Machine& machine, int rank, std::string name,
                           const SumKnobs& knobs);

// Host program around the kernels of a library's call.
void library_program(ScheduleBuilder& builder, int rank, const std::vector<std::int32_t>& kernels,
                     bool host_barriers);

}  // namespace tritax

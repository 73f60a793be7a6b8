// Describes as data the inputs with which a schedule starts and the reference with which it must end.
//
// Inputs. Before the first operation every input is filled, with zeros (for sums) or with numbers uniform in
// [-1, 1). Element (i, j) of its region, counted from the region's corner, is u(seed, group, rank, i, j), or
// u without the rank for an input that is the same on all ranks. So inputs of one group with the same shape
// hold the same numbers. Inputs are filled in order; a later input overwrites an earlier one. Elements that
// no input fills are unwritten until an operation writes them: the checker refuses earlier reads. A schedule
// without a list of inputs has inputs by a rule: all buffers of a rank without writes on that rank; the
// executor chooses their numbers.
//
// Reference. Operations on whole matrices, executed in order on a copy of the buffers after the inputs are
// filled:
//
//   product  to = a·b                     a and b each on one rank
//   copy     to = a                       a on one rank
//   sum      to = Σ over ranks r of a_r   a on every rank
//   attention  to = softmax(a·bᵀ/√d)·c    a on one rank, b and c both on one or both on every rank: then
//                                         those of rank 0, 1, … one below the other; d columns each; with
//                                         `limit` L > 0 row i of a sees the first L + i div `group` rows of
//                                         b only
//
//   sparse_product  to = A·b              A sparse matrix `index` with the values a, 1 × nonzeros; b a
//                                         column; both on one rank
//   rms_norm  to = rows of a / √(mean of their squares + kNormEpsilon), times b, a row of weights; a and b
//                                         each on one rank
//
//   row_dot  to = per row, the sum of the products of the elements of a and b, as a column; a and b each on
//                 one rank
//   attention_backward  to = gradients of the queries a, d columns, or of keys and values b, 2·d columns, for
//                 gradients c of the results, as attend_backward computes them (schedule.hpp); b has keys and
//                 values side by side, d log-sum-exps and row products of the queries; all on one rank;
//                 `limit` as in attention, with `group` 1
//
// each with `add`: to += … . With `to` on every rank the value is the same on every rank and is computed
// once. Everything that the operations write is expected: at the end of a run the buffers of the schedule
// must hold these values, up to rounding; if two operations write one place, the later one counts. The
// operations read inputs and results of earlier operations. Values have at least fp32 and products are summed
// in fp64; no dtype rounds in between.
//
// Code that runs schedules executes this data and does not know workloads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/schedule/rect.hpp"

namespace tritax {

struct Schedule;

inline constexpr std::int32_t kEveryRank = -1;

// A rectangle of a buffer, of one rank or of every rank.
struct Region {
  std::int16_t buffer = -1;
  std::int32_t rank = kEveryRank;
  Rect rect;
};

inline bool is_on(const Region& region, std::int32_t rank) {
  return region.rank == kEveryRank || region.rank == rank;
}

// Whether two regions have elements in common on some rank.
inline bool overlap(const Region& a, const Region& b) {
  return a.buffer == b.buffer && (is_on(a, b.rank) || is_on(b, a.rank)) && overlap(a.rect, b.rect);
}

// own: random per rank; same: random, equal on all ranks; zero: 0.
enum class InputValues : std::uint8_t { own, same, zero };
inline constexpr std::array<std::string_view, 3> kInputValuesNames{"own", "same", "zero"};

struct Input {
  Region region;
  std::int32_t group = 0;  // inputs of one group hold the same numbers
  InputValues values = InputValues::own;
};

enum class ReferenceKind : std::uint8_t {
  product,
  copy,
  sum,
  attention,
  sparse_product,
  rms_norm,
  row_dot,
  attention_backward
};
inline constexpr std::array<std::string_view, 8> kReferenceKindNames{
    "product", "copy", "sum", "attention", "sparse_product", "rms_norm", "row_dot", "attention_backward"};

constexpr bool has_b(ReferenceKind kind) { return kind != ReferenceKind::copy && kind != ReferenceKind::sum; }
constexpr bool has_c(ReferenceKind kind) {
  return kind == ReferenceKind::attention || kind == ReferenceKind::attention_backward;
}

struct ReferenceOp {
  ReferenceKind kind = ReferenceKind::product;
  bool add = false;  // onto what `to` holds
  Region to;
  Region a;
  Region b;                           // all but copy and sum
  Region c{};                         // attention, attention_backward
  std::int32_t limit = 0, group = 1;  // the same; `group`: attention
  std::int32_t index = 0;             // sparse_product: of Schedule::sparse
  Region d{};                         // attention_backward
};

// Seed of the random numbers of an input on a rank, derived from the seed of the run.
std::uint64_t seed_of(const Input& input, std::uint64_t seed, std::int32_t rank);

// By buffer, then by rank: whether some operation writes there. Operations may be out of range.
std::vector<std::vector<bool>> written_buffers(const Schedule& schedule);

// The inputs of a schedule; without a list, the inputs by the rule above.
std::vector<Input> inputs_of(const Schedule& schedule);

// Removes the parts of a rank's buffer that inputs fill from `rests`, which are disjoint.
void subtract_inputs(const Schedule& schedule, std::int16_t buffer, std::int32_t rank,
                     std::vector<Rect>& rests);

// The regions that the operation reads: its operands, and `to` if it adds.
std::vector<Region> operands_of(const ReferenceOp& op);

// A part of the expected values on a rank: `rect`, inside the rectangle that reference operation `op` writes,
// holds the result of that operation.
struct ExpectedPart {
  std::size_t op = 0;
  Rect rect;
};

// All expected parts on a rank; the parts are disjoint.
std::vector<ExpectedPart> expected_on(const Schedule& schedule, std::int32_t rank);

// Adds the inputs and the reference of a product by column blocks to `schedule`: C = A·[B_0 … B_{W-1}] on
// every rank, where A is the same on all W ranks, and B_r, the first columns of `b` on rank r, is as wide as
// its share of the N columns of C: N/W, and one more on the first N mod W ranks.
void expect_column_blocks(Schedule& schedule, std::int16_t a, std::int16_t b, std::int16_t c);

// Adds inputs and reference to a schedule read from JSON without `inputs` and `reference`: if there are
// buffers "A" (M x K) and "B" (K x at least ceil(N/W)) without writes, and a result (M x N), the product by
// column blocks; further buffers without writes remain inputs. Does not change other schedules.
void infer_reference(Schedule& schedule);

}  // namespace tritax

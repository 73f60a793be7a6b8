// What a schedule starts from and what it must end with, as data: its inputs and its reference.
//
// Inputs. Before the first operation every input is filled, with zeros (what sums are added onto) or with
// numbers that are uniform in [-1, 1): element (i, j) of its region, counted from the region's corner, is
// u(seed, group, rank, i, j), or the same without the rank for an input that is the same on all ranks. So
// inputs of one group hold the same numbers where they have the same shape. They are filled in order; of two
// that overlap the later one holds. Everything that no input fills is unwritten until some operation writes
// it: reading it before is a mistake that the checker finds. A schedule that lists no inputs has those of a
// rule: all buffers of a rank into which nobody writes there; they hold numbers, but which is for the
// executor to choose.
//
// Reference. Operations on whole matrices, done in order on a copy of the buffers as the inputs left them:
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
// each with `add`: to += … . With `to` on every rank the value is the same there and is computed once. All
// that the operations write is expected: at the end of a run the buffers of the schedule must hold it, as far
// as rounding allows; of two operations that write one place the later one counts. They read inputs and what
// operations before them have written. Values are kept in fp32 at least and products summed in fp64; no dtype
// rounds in between.
//
// Who runs schedules executes this data and knows no workload.
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

enum class InputValues : std::uint8_t { own, same, zero };  // random of each rank, random of all ranks, 0
inline constexpr std::array<std::string_view, 3> kInputValuesNames{"own", "same", "zero"};

struct Input {
  Region region;
  std::int32_t group = 0;  // inputs of one group hold the same numbers
  InputValues values = InputValues::own;
};

enum class ReferenceKind : std::uint8_t { product, copy, sum, attention, sparse_product, rms_norm };
inline constexpr std::array<std::string_view, 6> kReferenceKindNames{
    "product", "copy", "sum", "attention", "sparse_product", "rms_norm"};

constexpr bool has_b(ReferenceKind kind) {
  return kind == ReferenceKind::product || kind == ReferenceKind::attention ||
         kind == ReferenceKind::sparse_product || kind == ReferenceKind::rms_norm;
}

struct ReferenceOp {
  ReferenceKind kind = ReferenceKind::product;
  bool add = false;  // onto what `to` holds
  Region to;
  Region a;
  Region b;                           // product, attention, sparse_product, rms_norm
  Region c{};                         // attention
  std::int32_t limit = 0, group = 1;  // attention
  std::int32_t index = 0;             // sparse_product: of Schedule::sparse
};

// Seed of the random numbers of an input on a rank, from the seed of the run.
std::uint64_t seed_of(const Input& input, std::uint64_t seed, std::int32_t rank);

// By buffer, then by rank: whether some operation writes there. Operations may be out of range.
std::vector<std::vector<bool>> written_buffers(const Schedule& schedule);

// The inputs of a schedule; of one that lists none, those of the rule above.
std::vector<Input> inputs_of(const Schedule& schedule);

// Takes what inputs fill of a buffer of a rank out of `rests`, which are disjoint.
void subtract_inputs(const Schedule& schedule, std::int16_t buffer, std::int32_t rank,
                     std::vector<Rect>& rests);

// What the operation reads: its operands, and `to` if it adds.
std::vector<Region> operands_of(const ReferenceOp& op);

// A part of what is expected on a rank: `rect`, which lies in the rectangle that reference operation `op`
// writes, holds what that operation left there.
struct ExpectedPart {
  std::size_t op = 0;
  Rect rect;
};

// All that is expected on a rank; the parts are disjoint.
std::vector<ExpectedPart> expected_on(const Schedule& schedule, std::int32_t rank);

// Gives `schedule` inputs and reference of a product by column blocks: C = A·[B_0 … B_{W-1}] on every rank,
// where A is the same on all W ranks, and B_r, the first columns of `b` on rank r, is as wide as its share of
// the N columns of C: N/W, and one more on the first N mod W ranks.
void expect_column_blocks(Schedule& schedule, std::int16_t a, std::int16_t b, std::int16_t c);

// What a JSON form without `inputs` and `reference` means: if there are buffers "A" (M x K) and
// "B" (K x at least ceil(N/W)) into which nobody writes, and a result (M x N), the product by column blocks;
// further buffers into which nobody writes stay inputs. Leaves other schedules as they are.
void infer_reference(Schedule& schedule);

}  // namespace tritax

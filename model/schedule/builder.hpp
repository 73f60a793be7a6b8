// Builds tile schedules: takes names, returns indices. Patterns use the builder; a C++ program needs nothing
// else to write a schedule.
//
//   ScheduleBuilder b("my pattern", ranks);
//   auto c = b.buffer({"C", DType::fp16, m, n, 256, 256});
//   auto ready = b.flags("ready", tiles);
//   auto k = b.kernel({.name = "gemm", .rank = r, ...});
//   b.workgroup(k);
//   b.matmul(...); b.store(...); b.signal(...);
//   b.launch(r, k, stream);
//   Schedule s = b.finish();
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "model/schedule/group.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Most operations, and most workgroups, of a schedule over all ranks; 16384³ with 128×128 tiles on 8 GPUs has
// 0.2 million. Far more would fill memory and take hours to simulate.
inline constexpr std::size_t kMostScheduled = std::size_t{8} << 20;

// Returns the memory of a finished schedule for the next schedule of the same thread. A caller that builds
// many schedules saves the system's allocation and zeroing of tens of megabytes per schedule.
void recycle(Schedule&& schedule);

// Throws UserError at more than kMostScheduled operations or workgroups.
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::string name, int ranks);

  std::int16_t buffer(Buffer buffer);
  std::int16_t flags(std::string name, std::int32_t count);
  std::int16_t sparse(std::shared_ptr<const SparseMatrix> matrix);
  void reserve(std::size_t operations);  // expected number, if known
  std::int32_t kernel(Kernel kernel);    // workgroup() adds its workgroups
  void result(std::int16_t buffer);

  // Inputs of the run, and values that the run must end with; see reference.hpp. A region may be on
  // kEveryRank.
  Region whole(std::int16_t buffer, int rank = kEveryRank) const;
  void input(Region region, InputValues values = InputValues::own);  // in a new group
  void expect_product(Region to, Region a, Region b, bool add = false);
  void expect_copy(Region to, Region a, bool add = false);
  void expect_sum(Region to, Region a, bool add = false);
  // to = softmax(q·kᵀ/√d)·v; `limit` and `group` as in ReferenceOp.
  void expect_attention(Region to, Region q, Region k, Region v, std::int32_t limit = 0,
                        std::int32_t group = 1);
  // The gradients that attend_backward leaves, of queries (d columns), or of keys and values (2·d): from
  // queries, keys beside values, gradients of the results, and statistics.
  void expect_attention_backward(Region to, Region q, Region kv, Region d_out, Region statistics,
                                 std::int32_t limit = 0, bool add = false);
  // to = per row, the sum of the products of the elements of a and b.
  void expect_row_dot(Region to, Region a, Region b);
  // to = A·x with a sparse matrix A.
  void expect_sparse_product(Region to, std::int16_t sparse, Region values, Region x);
  // to = rms_norm(a) · weights, with one row of weights.
  void expect_rms_norm(Region to, Region a, Region weights);
  // References with their inputs. C = A·[B_0 … B_{W-1}] on every rank, see reference.hpp; and the shards of
  // all ranks, stacked by rows, on every rank.
  void expect_column_blocks(std::int16_t a, std::int16_t b, std::int16_t c);
  void expect_gathered_rows(std::int16_t shard, std::int16_t gathered);

  // Starts the next workgroup of `kernel`; the following operations belong to it.
  void workgroup(std::int32_t kernel);

  // Starts the next item of `kernel` in the same way, and returns its number; workgroups draw items by
  // claim_items().
  std::int32_t item(std::int32_t kernel);

  void matmul(std::int16_t a, std::int16_t b, Rect rect, std::int32_t k_begin, std::int32_t k_end);
  // The same with A in the memory of `owner`.
  void matmul_of(int owner, std::int16_t a, std::int16_t b, Rect rect, std::int32_t k_begin,
                 std::int32_t k_end);
  // Queries `q`[rect] with the keys [k_begin, k_end), limited by `mask`; `column` is the first column of the
  // head in k and v. See schedule.hpp.
  struct Mask {
    std::int32_t limit = 0;  // first row of k that the first rows of the tile do not see; 0: all visible
    std::int32_t group = 1;  // rows of the tile with the same limit
  };
  void attend(std::int16_t q, Rect rect, std::int16_t k, std::int16_t v, std::int32_t column,
              std::int32_t k_begin, std::int32_t k_end, Mask mask);
  void attend(std::int16_t q, Rect rect, std::int16_t k, std::int16_t v, std::int32_t column,
              std::int32_t k_begin, std::int32_t k_end) {
    attend(q, rect, k, v, column, k_begin, k_end, Mask{});
  }
  // Gradients of the keys and values `kv`[rect], side by side, from the queries [k_begin, k_end), which begin
  // at column `column` of q, d_out and d_q. `limit` as in schedule.hpp; 0: all keys visible.
  struct BackwardBuffers {
    std::int16_t q = 0, kv = 0, d_out = 0, statistics = 0, d_q = 0;
  };
  void attend_backward(const BackwardBuffers& buffers, Rect rect, std::int32_t column, std::int32_t k_begin,
                       std::int32_t k_end, std::int32_t limit = 0);
  // Rows [row, row + rows) of a sparse matrix times x, over the nonzeros [k_begin, k_end); `lanes` is used by
  // LaneSharing::vector and group.
  struct SparseRange {
    std::int32_t row = 0, rows = 0;
    std::int32_t k_begin = 0, k_end = 0;
  };
  void sparse_product(std::int16_t sparse, std::int16_t values, std::int16_t x, SparseRange range,
                      LaneSharing sharing, std::int32_t lanes = 1);
  // Merges a partial result: the last column of rect holds the log-sum-exps, the other columns hold the
  // results.
  void combine(std::int16_t buffer, Rect rect, int rank);
  void load(std::int16_t buffer, Rect rect, int rank);
  void store(std::int16_t buffer, Rect rect, int rank);
  void copy(std::int16_t buffer, Rect rect, int rank, std::int16_t src_buffer, std::int32_t src_row,
            std::int32_t src_col, int src_rank);
  // The same by a copy engine, to which the workgroup posts the copy.
  void post(std::int16_t buffer, Rect rect, int rank, std::int16_t src_buffer, std::int32_t src_row,
            std::int32_t src_col, int src_rank) {
    copy(buffer, rect, rank, src_buffer, src_row, src_col, src_rank);
    schedule_.ops.back().by_engine = true;
  }
  void reduce(std::int16_t buffer, Rect rect, int rank);
  void rms_norm(std::int16_t weights, Rect rect, int rank);
  void row_dot(std::int16_t buffer, Rect rect, int rank);
  void atomic_add(std::int16_t buffer, Rect rect, int rank);
  void signal(std::int16_t flag, std::int32_t index, std::int32_t value, int rank, Scope scope,
              LockProtocol protocol, MemoryOrder order = MemoryOrder::release);
  // A signal that sets the counter, for example to 0, instead of adding.
  void set_flag(std::int16_t flag, std::int32_t index, std::int32_t value, int rank, Scope scope,
                LockProtocol protocol, MemoryOrder order = MemoryOrder::release);
  void wait(std::int16_t flag, std::int32_t index, std::int32_t value, Scope scope, LockProtocol protocol);
  void barrier();
  void claim(std::int16_t flag, std::int32_t index, std::int32_t limit, std::int32_t skip_operations);
  // Runs items [first, first + count) of the kernel; all workgroups that claim from this counter take turns.
  void claim_items(std::int16_t flag, std::int32_t index, std::int32_t first, std::int32_t count);

  // The operations that `add` adds start together, in groups of at most kMostTogether (group.hpp).
  template <typename Add>
  void together(Add&& add) {
    const std::size_t first = schedule_.ops.size();
    add();
    for (std::size_t i = first; i < schedule_.ops.size(); ++i)
      schedule_.ops[i].with_previous = (i - first) % kMostTogether != 0;
  }

  // The operations that `add` adds are one operation of the switch: stores, or a load and reduces, of one
  // rectangle of several ranks (group.hpp).
  template <typename Add>
  void multimem(Add&& add) {
    const std::size_t first = schedule_.ops.size();
    add();
    for (std::size_t i = first; i < schedule_.ops.size(); ++i) {
      schedule_.ops[i].with_previous = i > first;
      schedule_.ops[i].multimem = true;
    }
  }

  void launch(int rank, std::int32_t kernel, std::int32_t stream = 0);
  void graph_launch(int rank, Graph graph);
  void host(int rank, HostOpKind kind, std::int32_t stream = 0);
  // A copy engine of `rank` copies a rectangle of `from_rank` to a rectangle of the same shape of `to_rank`,
  // in stream order. Events belong to the rank.
  void host_copy(int rank, std::int32_t stream, std::int16_t buffer, Rect rect, int to_rank,
                 std::int16_t src_buffer, std::int32_t src_row, std::int32_t src_col, int from_rank);
  void record_event(int rank, std::int32_t event, std::int32_t stream = 0);
  void wait_event(int rank, std::int32_t event, std::int32_t stream = 0);
  void host_work(int rank, std::string_view label, double duration_ns = -1);  // negative: from the machine

  // Moves the schedule out; the builder is empty afterwards.
  Schedule finish();

 private:
  void require_room(std::size_t count, std::string_view what) const;
  Op& add(OpKind kind);
  HostOp& add_host(int rank, HostOpKind kind, std::int32_t stream);
  Op& add_tile(OpKind kind, std::int16_t buffer, Rect rect, int rank);

  Schedule schedule_;
  std::int32_t current_kernel_ = -1;
  bool in_item_ = false;  // otherwise in a workgroup
  std::size_t workgroups_ = 0;
};

}  // namespace tritax

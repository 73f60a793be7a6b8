// Checks for references out of range and operations without meaning: all rules about one operation, one
// workgroup or one host program alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/schedule/accumulator.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/group.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/op_views.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

constexpr std::int32_t kMaxMatrixTile = 65536;  // rows, columns or depth
constexpr std::int32_t kMaxWaves = 64;          // per workgroup; no GPU has more
constexpr double kMostClkPerByte = 10000;
constexpr double kMostStartNs = 3.6e12;      // an hour: the clock still resolves a thousandth of a ns
constexpr double kLeastPayloadShare = 1e-3;  // smaller shares let times overflow

bool in_range(std::int64_t index, std::size_t size) {
  return index >= 0 && index < static_cast<std::int64_t>(size);
}

class RangeChecker {
 public:
  RangeChecker(const Schedule& schedule, Findings& findings) : schedule_(schedule), findings_(findings) {}

  void check() {
    check_data();
    check_sparse();
    if (findings_.empty()) {
      check_limits(schedule_, findings_);
    }
    if (findings_.empty()) {
      check_reference(schedule_, findings_);
    }
    for (std::size_t i = 0; i < schedule_.kernels.size() && !findings_.full(); ++i) {
      check_kernel(i);
    }
    if (!findings_.full()) {
      check_host(schedule_, findings_);
    }
    if (findings_.empty()) {
      check_items(schedule_, findings_);
    }
  }

 private:
  void check_data() {
    if (schedule_.ranks < 1 || schedule_.ranks > INT16_MAX) {
      findings_.add(Kind::out_of_range, "schedule",
                    fmt::format("{} ranks; a schedule has 1 to {}", schedule_.ranks, INT16_MAX));
    }
    if (schedule_.host.size() != static_cast<std::size_t>(schedule_.ranks)) {
      findings_.add(Kind::out_of_range, "schedule",
                    fmt::format("{} host programs for {} ranks; every rank has one", schedule_.host.size(),
                                schedule_.ranks));
    }
    if (schedule_.result_buffer != -1 && !in_range(schedule_.result_buffer, schedule_.buffers.size())) {
      findings_.add(Kind::out_of_range, "schedule",
                    fmt::format("result buffer {}; there are {} buffers", schedule_.result_buffer,
                                schedule_.buffers.size()));
    }
  }

  void check_kernel(std::size_t index) {
    const Kernel& kernel = schedule_.kernels[index];
    const std::string where = describe_kernel(schedule_, index);
    const auto refuse = [&](Kind kind, std::string message) {
      findings_.add(kind, where, std::move(message));
    };
    if (kernel.rank < 0 || kernel.rank >= schedule_.ranks) {
      refuse(Kind::out_of_range, fmt::format("rank {}; there are {} ranks", kernel.rank, schedule_.ranks));
    }
    const Resources& resources = kernel.resources;
    if (resources.threads < 1 || resources.registers_per_thread < 0 || resources.lds_bytes < 0) {
      refuse(
          Kind::out_of_range,
          fmt::format(
              "a workgroup of {} threads, {} registers per thread and {} bytes of LDS; at least 1, 0 and 0",
              resources.threads, resources.registers_per_thread, resources.lds_bytes));
    }
    if (kernel.cu_begin < 0 ||
        (kernel.cu_end == 0 ? kernel.cu_begin != 0 : kernel.cu_end <= kernel.cu_begin)) {
      refuse(Kind::out_of_range, fmt::format("compute units [{}, {}) are not a range; [0, 0) means all",
                                             kernel.cu_begin, kernel.cu_end));
    }
    if (!(kernel.payload_share >= kLeastPayloadShare && kernel.payload_share <= 1)) {
      refuse(Kind::out_of_range, fmt::format("payload_share is {}; give a share from {} to 1",
                                             kernel.payload_share, kLeastPayloadShare));
    }
    if (!(kernel.clk_per_stored_byte >= 0 && kernel.clk_per_stored_byte <= kMostClkPerByte)) {
      refuse(Kind::out_of_range, fmt::format("clk_per_stored_byte is {}; give cycles from 0 to {:.0f}",
                                             kernel.clk_per_stored_byte, kMostClkPerByte));
    }
    if (!(kernel.start_ns >= 0 && kernel.start_ns <= kMostStartNs)) {
      refuse(Kind::out_of_range, fmt::format("start_ns is {}; give a time from 0 to {:.3g} (an hour)",
                                             kernel.start_ns, kMostStartNs));
    }
    check_library_kernel(schedule_, index, findings_);
    if (kernel.workgroups.empty()) {
      refuse(Kind::meaningless, "has no workgroups; a launch needs at least one");
    }
    for (std::size_t p = 0; p < program_count(kernel) && !findings_.full(); ++p) {
      const Workgroup& program = program_of(kernel, p);
      if (std::uint64_t{program.first_op} + program.op_count > schedule_.ops.size()) {
        findings_.add(Kind::out_of_range, fmt::format("{} {}", where, describe_program(kernel, p)),
                      fmt::format("operations [{}, {}); the schedule has {}", program.first_op,
                                  std::uint64_t{program.first_op} + program.op_count, schedule_.ops.size()));
      } else {
        check_program(index, p);
      }
    }
  }

  // Checks a workgroup or an item.
  void check_program(std::size_t kernel, std::size_t program) {
    place_ = {kernel, program, 0};
    accumulator_ = empty_accumulator();
    claim_ = {};
    const Workgroup& range = program_of(schedule_.kernels[kernel], program);
    for (std::uint32_t i = 0; i < range.op_count && !findings_.full(); ++i) {
      place_.op = i;
      if (i == claim_.end) accumulator_.meet(claim_.accumulator);
      const Op& op = schedule_.ops[range.first_op + i];
      refused_ = false;
      check_op(op, schedule_.kernels[kernel], range.op_count - i - 1);
      if (op.by_engine && op.kind != OpKind::copy && !refused_)
        refuse(Kind::meaningless, "is by_engine; a copy engine only copies");
      if (!refused_) {
        std::string fault = fault_of_codec(schedule_, op, schedule_.kernels[kernel].rank);
        if (!fault.empty()) refuse(Kind::meaningless, std::move(fault));
      }
      if ((op.with_previous || op.multimem) && !refused_) {
        const std::string fault =
            fault_of_group(schedule_, range, i, schedule_.kernels[kernel].rank, claim_.end);
        if (!fault.empty()) refuse(Kind::meaningless, fault);
      }
      if (refused_ && fills_accumulator(op.kind)) accumulator_.forget();
    }
  }

  void check_op(const Op& op, const Kernel& kernel, std::uint32_t operations_left) {
    switch (op.kind) {
      case OpKind::matmul:
        return check_matmul(op, kernel);
      case OpKind::load:
      case OpKind::reduce:
      case OpKind::combine:
      case OpKind::rms_norm:
      case OpKind::row_dot:
      case OpKind::store:
      case OpKind::atomic_add:
        if (check_rank(op.rank) && check_tile(op.buffer, op.rect)) {
          check_accumulator(op);
        }
        return;
      case OpKind::copy:
        return check_copy(op);
      case OpKind::attend:
      case OpKind::attend_backward:
        return check_attention(op, kernel);
      case OpKind::signal:
        return check_signal(op, kernel);
      case OpKind::wait:
        return check_wait(op, kernel);
      case OpKind::barrier:
        return;
      case OpKind::claim:
        return check_claim(op, kernel, operations_left);
      case OpKind::sparse_product:
        return check_sparse_product(op, kernel);
    }
    refuse(Kind::out_of_range, fmt::format("operation kind {}", static_cast<int>(op.kind)));
  }

  bool check_matrix_tile(const MatmulTile& tile, OpKind kind) {
    const auto is_edge = [](std::int32_t edge) { return edge >= 1 && edge <= kMaxMatrixTile; };
    const bool has_roles = tile.pipeline == Pipeline::producer_consumer;
    if (tile.producers < 0 || tile.producers > (has_roles ? kMaxWaves : 0)) {
      refuse(Kind::meaningless, fmt::format("{} producers; {}", tile.producers,
                                            has_roles ? fmt::format("give 0 to {}", kMaxWaves)
                                                      : "only the pipeline specialised has any"));
      return false;
    }
    if (is_edge(tile.m) && is_edge(tile.n) && is_edge(tile.k) && tile.waves >= 1 && tile.waves <= kMaxWaves) {
      return true;
    }
    refuse(Kind::meaningless,
           fmt::format("the kernel's matrix tile is {}×{}×{} with {} waves; a kernel with {} needs 1 to {} "
                       "each way and 1 to {} waves",
                       tile.m, tile.n, tile.k, tile.waves, name_of(kind), kMaxMatrixTile, kMaxWaves));
    return false;
  }

  void check_attention(const Op& op, const Kernel& kernel) {
    check_own_rank(op, kernel);
    if (!check_matrix_tile(kernel.tile, op.kind)) return;
    Finding fault = fault_of_attention(schedule_, op, kernel);
    if (!fault.message.empty()) return refuse(fault.kind, std::move(fault.message));
    check_accumulator(op);
  }

  void check_sparse_product(const Op& op, const Kernel& kernel) {
    check_own_rank(op, kernel);
    const SparseView view(op);
    if (!in_range(view.matrix(), schedule_.sparse.size()) ||
        !in_range(view.sharing_number(), kLaneSharingNames.size()) || view.lanes() < 1) {
      return refuse(
          Kind::out_of_range,
          fmt::format("sparse matrix {} in sharing {} by {} lanes; the schedule has {} such matrices, "
                      "and give at least one lane",
                      view.matrix(), view.sharing_number(), view.lanes(), schedule_.sparse.size()));
    }
    const SparseMatrix& matrix = matrix_of(schedule_, op);
    if (!sound_sparse_[static_cast<std::size_t>(view.matrix())]) return refuse_quietly();
    const std::int64_t last = std::int64_t{op.rect.row} + op.rect.rows;
    if (op.rect.row < 0 || op.rect.rows < 1 || last > matrix.rows || op.rect.col != 0 || op.rect.cols != 1 ||
        view.rows_of_x() != matrix.cols) {
      return refuse(Kind::out_of_range,
                    fmt::format("rows [{}, {}) and {} columns; the matrix is {}×{}", op.rect.row, last,
                                view.rows_of_x(), matrix.rows, matrix.cols));
    }
    const auto end = static_cast<std::int32_t>(last);
    if (op.k_begin < matrix.begin(op.rect.row) || op.k_end < op.k_begin || op.k_end > matrix.end(end - 1)) {
      return refuse(Kind::meaningless,
                    fmt::format("nonzeros [{}, {}); rows [{}, {}) have [{}, {})", op.k_begin, op.k_end,
                                op.rect.row, end, matrix.begin(op.rect.row), matrix.end(end - 1)));
    }
    if (!check_tile(op.b_buffer, x_of(op, kernel.rank).rect)) return;
    if (op.k_end > op.k_begin && !check_tile(op.src_buffer, nonzeros_of(op, kernel.rank).rect)) return;
    if (!check_buffer(op.src_buffer)) return;
    check_accumulator(op);
  }

  void check_sparse() {
    for (std::size_t i = 0; i < schedule_.sparse.size(); ++i) {
      const std::string fault = fault_of(*schedule_.sparse[i]);
      sound_sparse_.push_back(fault.empty());
      if (!fault.empty()) findings_.add(Kind::meaningless, fmt::format("sparse matrix {}", i), fault);
    }
  }

  void check_matmul(const Op& op, const Kernel& kernel) {
    const MatmulTile& tile = kernel.tile;
    check_own_rank(op, kernel);
    if (!check_matrix_tile(tile, op.kind) || !check_buffer(op.src_buffer) || !check_buffer(op.b_buffer)) {
      return;
    }
    if (op.value != 0 && !check_rank(op.value - 1)) return;
    if (fetches_a(op) && owner_of_a(op, kernel.rank) == kernel.rank) {
      return refuse(Kind::meaningless,
                    fmt::format("names its own rank {} as the owner of A; leave it out", kernel.rank));
    }
    const Buffer& a = schedule_.buffers[static_cast<std::size_t>(op.src_buffer)];
    const Buffer& b = schedule_.buffers[static_cast<std::size_t>(op.b_buffer)];
    if (op.k_begin < 0 || op.k_end <= op.k_begin || op.k_end > a.cols || op.k_end > b.rows) {
      return refuse(Kind::meaningless,
                    fmt::format("k range [{}, {}); A '{}' has {} columns and B '{}' has {} rows", op.k_begin,
                                op.k_end, a.name, a.cols, b.name, b.rows));
    }
    if (!check_tile(op.src_buffer, a_of(op, kernel.rank).rect) ||
        !check_tile(op.b_buffer, b_of(op, kernel.rank).rect)) {
      return;
    }
    if (op.rect.rows > tile.m || op.rect.cols > tile.n) {
      return refuse(Kind::meaningless, fmt::format("a tile of {}×{} in a kernel with matrix tiles of {}×{}",
                                                   op.rect.rows, op.rect.cols, tile.m, tile.n));
    }
    if (a.dtype != b.dtype) {
      return refuse(Kind::meaningless, fmt::format("A '{}' is {} and B '{}' is {}; they must be the same",
                                                   a.name, name_of(a.dtype), b.name, name_of(b.dtype)));
    }
    check_accumulator(op);
  }

  void check_accumulator(const Op& op) {
    std::string fault = accumulator_.after(op, claim_.op);
    if (!fault.empty()) refuse(Kind::meaningless, std::move(fault));
  }

  void check_copy(const Op& op) {
    Finding fault = fault_of_copy(schedule_, op);
    if (!fault.message.empty()) refuse(fault.kind, std::move(fault.message));
  }

  void check_signal(const Op& op, const Kernel& kernel) {
    if (!check_rank(op.rank) || !check_flag(op)) {
      return;
    }
    if (sets_flag(op) && place_.op < claim_.end) {
      refuse(
          Kind::meaningless,
          fmt::format("sets a flag in the block of operation {} (claim), which may be skipped; set it before "
                      "or behind the block",
                      claim_.op));
    } else if (sets_flag(op) && op.value < 0) {
      refuse(Kind::meaningless, fmt::format("sets its flag to {}; give at least 0", op.value));
    } else if (!sets_flag(op) && op.value < 1) {
      refuse(Kind::meaningless, fmt::format("adds {} to its flag; give at least 1, or set it", op.value));
    }
    if (op.scope == Scope::workgroup) {
      refuse(Kind::meaningless,
             "releases at workgroup scope, which no other workgroup sees; give gpu or system");
    } else if (op.rank != kernel.rank && op.scope != Scope::system) {
      refuse(Kind::meaningless,
             fmt::format("releases at gpu scope to rank {}; another GPU sees only system scope", op.rank));
    }
  }

  void check_wait(const Op& op, const Kernel& kernel) {
    check_own_rank(op, kernel);
    if (!check_flag(op)) {
      return;
    }
    if (op.value < 1) {
      refuse(Kind::meaningless,
             fmt::format("waits for {}, which every flag has from the start; give at least 1", op.value));
    }
    if (op.scope == Scope::workgroup) {
      refuse(Kind::meaningless,
             "acquires at workgroup scope, which orders no other workgroup; give gpu or system");
    }
  }

  void check_claim(const Op& op, const Kernel& kernel, std::uint32_t operations_left) {
    check_own_rank(op, kernel);
    if (!check_flag(op)) {
      return;
    }
    if (place_.program >= kernel.workgroups.size()) {
      return refuse(Kind::meaningless, "an item claims nothing itself; claim behind the claim that runs it");
    }
    if (place_.op < claim_.end) {
      return refuse(
          Kind::meaningless,
          fmt::format("claims inside the block of operation {} (claim), which ends before operation "
                      "{}; a workgroup claims one item at a time: claim before or after that block",
                      claim_.op, claim_.end));
    }
    if (op.k_begin != 0 || op.k_end != 0) {
      return check_claimed_items(op, kernel);
    }
    if (op.value < 0) {
      refuse(Kind::meaningless, fmt::format("limit {}; give the number of items, at least 0", op.value));
    }
    if (op.rect.rows < 1 || static_cast<std::uint32_t>(op.rect.rows) > operations_left) {
      refuse(Kind::out_of_range,
             fmt::format("skips {} operations; {} follow in the workgroup", op.rect.rows, operations_left));
    }
    claim_ = {place_.op, place_.op + 1 + static_cast<std::size_t>(std::max(op.rect.rows, 0)), accumulator_};
  }

  void check_claimed_items(const Op& op, const Kernel& kernel) {
    if (op.k_begin < 0 || op.k_end <= op.k_begin ||
        !in_range(std::int64_t{op.k_end} - 1, kernel.items.size())) {
      return refuse(Kind::out_of_range, fmt::format("items [{}, {}); the kernel has {}, and a claim names at "
                                                    "least one",
                                                    op.k_begin, op.k_end, kernel.items.size()));
    }
    if (op.value != 0 || op.rect.rows != 0) {
      refuse(Kind::meaningless, fmt::format("claims items, and skips {} operations from item {} on; a claim "
                                            "does the one or the other",
                                            op.rect.rows, op.value));
    }
    accumulator_ = empty_accumulator();
  }

  Accumulator empty_accumulator() const {
    return Accumulator(schedule_.kernels[place_.kernel].registers_filled);
  }

  void check_own_rank(const Op& op, const Kernel& kernel) {
    if (op.rank != kernel.rank) {
      refuse(Kind::out_of_range,
             fmt::format("names rank {}; it can only be on its own rank {}", op.rank, kernel.rank));
    }
  }

  bool check_rank(std::int32_t rank) {
    if (rank >= 0 && rank < schedule_.ranks) {
      return true;
    }
    refuse(Kind::out_of_range, fmt::format("rank {}; the schedule has {} ranks", rank, schedule_.ranks));
    return false;
  }

  // Whether the buffer exists: every buffer has a first element.
  bool check_buffer(std::int32_t buffer) { return check_tile(buffer, {0, 0, 1, 1}); }

  bool check_tile(std::int32_t buffer, const Rect& rect) {
    std::string fault = fault_of(schedule_, buffer, rect);
    if (fault.empty()) return true;
    refuse(Kind::out_of_range, std::move(fault));
    return false;
  }

  bool check_flag(const Op& op) {
    if (!in_range(op.flag, schedule_.flags.size())) {
      refuse(Kind::out_of_range,
             fmt::format("flag array {}; the schedule has {}", op.flag, schedule_.flags.size()));
      return false;
    }
    const FlagArray& flags = schedule_.flags[static_cast<std::size_t>(op.flag)];
    if (op.index < 0 || op.index >= flags.count) {
      refuse(Kind::out_of_range,
             fmt::format("flag {}[{}]; the array has {} counters", flags.name, op.index, flags.count));
      return false;
    }
    return true;
  }

  void refuse_quietly() { refused_ = true; }  // the problem is already reported

  void refuse(Kind kind, std::string message) {
    refused_ = true;
    findings_.add(kind, describe_op(schedule_, place_.kernel, place_.program, place_.op), std::move(message));
  }

  struct Place {
    std::size_t kernel = 0;
    std::size_t program = 0;  // workgroup or item
    std::size_t op = 0;
  };

  const Schedule& schedule_;
  Findings& findings_;
  // The last claim of the workgroup, the end of the operations that it may skip, and the accumulator before
  // them.
  struct Claim {
    std::size_t op = 0;
    std::size_t end = 0;
    Accumulator accumulator;
  };

  Place place_;
  Accumulator accumulator_;
  Claim claim_;
  bool refused_ = false;  // the current operation
  std::vector<bool> sound_sparse_;
};

}  // namespace

std::string fault_of(const Schedule& schedule, std::int32_t buffer, const Rect& rect, std::string_view what) {
  if (!in_range(buffer, schedule.buffers.size())) {
    return fmt::format("buffer {}; the schedule has {} buffers", buffer, schedule.buffers.size());
  }
  const Buffer& whole = schedule.buffers[static_cast<std::size_t>(buffer)];
  const std::int64_t last_row = std::int64_t{rect.row} + rect.rows;
  const std::int64_t last_col = std::int64_t{rect.col} + rect.cols;
  if (rect.row >= 0 && rect.col >= 0 && rect.rows >= 1 && rect.cols >= 1 && last_row <= whole.rows &&
      last_col <= whole.cols) {
    return {};
  }
  return fmt::format("{}{}[{}:{}, {}:{}]; the buffer is {}×{}", what, whole.name, rect.row, last_row,
                     rect.col, last_col, whole.rows, whole.cols);
}

Finding fault_of_copy(const Schedule& schedule, const Op& copy) {
  for (const Region& side : {tile_of(copy), source_of(copy)}) {
    if (side.rank < 0 || side.rank >= schedule.ranks) {
      return {Kind::out_of_range, "",
              fmt::format("rank {}; the schedule has {} ranks", side.rank, schedule.ranks)};
    }
    std::string fault = fault_of(schedule, side.buffer, side.rect);
    if (!fault.empty()) return {Kind::out_of_range, "", std::move(fault)};
  }
  const Buffer& to = schedule.buffers[static_cast<std::size_t>(copy.buffer)];
  const Buffer& from = schedule.buffers[static_cast<std::size_t>(copy.src_buffer)];
  if (std::string fault = fault_of_codec(schedule, copy, copy.rank); !fault.empty())
    return {Kind::meaningless, "", std::move(fault)};
  if (to.dtype == from.dtype) return {};
  return {Kind::meaningless, "",
          fmt::format("copies {} of '{}' to {} of '{}'; they must be the same", name_of(from.dtype),
                      from.name, name_of(to.dtype), to.name)};
}

void check_ranges(const Schedule& schedule, Findings& findings) { RangeChecker(schedule, findings).check(); }

}  // namespace tritax

// Checks inputs and reference: regions out of range, shapes that do not fit, unknown values.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/schedule/findings.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

constexpr std::size_t kMostInputs = 65536;  // also of reference operations: all pairs of 256 ranks

std::string ranks_in_words(std::int32_t rank) {
  return rank == kEveryRank ? "every rank" : fmt::format("rank {}", rank);
}

// Regions that have values, sorted by first row per buffer and rank: a query for some rows of a buffer with
// thousands of stacked blocks visits few blocks.
class FilledRegions {
 public:
  void add(const Region& region) {
    Filled& filled = of_[{region.buffer, region.rank}];
    filled.by_row.emplace(region.rect.row, region.rect);
    filled.highest = std::max(filled.highest, region.rect.rows);
  }

  // With kEveryRank: only regions that are filled on every rank at once.
  void subtract_from(std::vector<Rect>& rests, std::int16_t buffer, std::int32_t rank) const {
    subtract_filled(rests, buffer, kEveryRank);
    if (rank != kEveryRank) subtract_filled(rests, buffer, rank);
  }

 private:
  struct Filled {
    std::multimap<std::int32_t, Rect> by_row;
    std::int32_t highest = 0;  // largest number of rows of a region
  };

  void subtract_filled(std::vector<Rect>& rests, std::int16_t buffer, std::int32_t rank) const {
    const auto found = of_.find({buffer, rank});
    if (found == of_.end() || rests.empty()) return;
    std::int32_t begin = rests.front().row, end = begin;
    for (const Rect& rest : rests) {
      begin = std::min(begin, rest.row);
      end = std::max(end, rest.row + rest.rows);
    }
    const Filled& filled = found->second;
    auto at = filled.by_row.upper_bound(begin - filled.highest);
    for (; at != filled.by_row.end() && at->first < end && !rests.empty(); ++at) subtract(rests, at->second);
  }

  std::map<std::pair<std::int16_t, std::int32_t>, Filled> of_;
};

class ReferenceChecker {
 public:
  ReferenceChecker(const Schedule& schedule, Findings& findings) : schedule_(schedule), findings_(findings) {}

  void check() {
    if (!check_count("inputs", schedule_.inputs.size()) ||
        !check_count("reference operations", schedule_.reference.size())) {
      return;
    }
    for (std::size_t i = 0; i < schedule_.inputs.size(); ++i) {
      where_ = fmt::format("input {}", i);
      sound_ = check_region("", schedule_.inputs[i].region) && sound_;
    }
    for (std::size_t i = 0; i < schedule_.reference.size(); ++i) {
      name_operation(i);
      sound_ = check_regions(schedule_.reference[i]) && sound_;
    }
    if (!sound_) return;  // known values need regions in range
    for (const Input& input : schedule_.inputs) known_.add(input.region);
    for (std::size_t i = 0; i < schedule_.reference.size() && !findings_.full(); ++i) {
      name_operation(i);
      check_values(i);
      known_.add(schedule_.reference[i].to);
    }
  }

 private:
  bool check_count(const char* what, std::size_t count) {
    if (count <= kMostInputs) return true;
    findings_.add(Kind::out_of_range, "schedule",
                  fmt::format("{} {}; a schedule has at most {}", count, what, kMostInputs));
    return false;
  }

  void name_operation(std::size_t op) {
    const auto kind = static_cast<std::size_t>(schedule_.reference[op].kind);
    where_ = fmt::format("reference operation {} ({})", op,
                         kind < kReferenceKindNames.size() ? kReferenceKindNames[kind] : "unknown");
  }

  bool check_region(const char* what, const Region& region) {
    if (region.buffer < 0 || static_cast<std::size_t>(region.buffer) >= schedule_.buffers.size()) {
      return refuse(Kind::out_of_range, fmt::format("{}buffer {}; the schedule has {} buffers", what,
                                                    region.buffer, schedule_.buffers.size()));
    }
    if (region.rank != kEveryRank && (region.rank < 0 || region.rank >= schedule_.ranks)) {
      return refuse(Kind::out_of_range,
                    fmt::format("{}rank {}; the schedule has {} ranks", what, region.rank, schedule_.ranks));
    }
    const std::string fault = fault_of(schedule_, region.buffer, region.rect, what);
    if (!fault.empty()) return refuse(Kind::out_of_range, fault);
    const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(region.buffer)];
    return buffer.codec == Codec::same ||
           refuse(Kind::meaningless, fmt::format("{}'{}' is held as {}; inputs and expected values are not",
                                                 what, buffer.name, name_of(buffer.codec)));
  }

  bool check_regions(const ReferenceOp& op) {
    const Rect& to = op.to.rect;
    const Rect& a = op.a.rect;
    const Rect& b = op.b.rect;
    switch (op.kind) {
      case ReferenceKind::product:
        if (!check_region("to: ", op.to) || !check_region("a: ", op.a) || !check_region("b: ", op.b)) {
          return false;
        }
        if (a.rows != to.rows || b.cols != to.cols || a.cols != b.rows) {
          return refuse(Kind::meaningless,
                        fmt::format("multiplies {}×{} by {}×{} to {}×{}; give M×K, K×N and M×N", a.rows,
                                    a.cols, b.rows, b.cols, to.rows, to.cols));
        }
        return check_one_rank("a", op.a) && check_one_rank("b", op.b);
      case ReferenceKind::attention:
        return check_attention(op);
      case ReferenceKind::sparse_product:
        return check_sparse_product(op);
      case ReferenceKind::rms_norm:
        return check_rms_norm(op);
      case ReferenceKind::row_dot:
        return check_row_dot(op);
      case ReferenceKind::attention_backward:
        return check_attention_backward(op);
      case ReferenceKind::copy:
      case ReferenceKind::sum:
        if (!check_region("to: ", op.to) || !check_region("a: ", op.a)) return false;
        if (a.rows != to.rows || a.cols != to.cols) {
          return refuse(Kind::meaningless, fmt::format("a is {}×{} and its target {}×{}; give the same shape",
                                                       a.rows, a.cols, to.rows, to.cols));
        }
        if (op.kind == ReferenceKind::copy) return check_one_rank("a", op.a);
        return op.a.rank == kEveryRank ||
               refuse(Kind::meaningless, fmt::format("sums a of rank {} alone; a sum is over every rank, and "
                                                     "a copy takes one rank",
                                                     op.a.rank));
    }
    return refuse(Kind::out_of_range, fmt::format("operation kind {}", static_cast<int>(op.kind)));
  }

  bool check_attention(const ReferenceOp& op) {
    const Rect& to = op.to.rect;
    const Rect& a = op.a.rect;
    const Rect& b = op.b.rect;
    const Rect& c = op.c.rect;
    if (!check_region("to: ", op.to) || !check_region("a: ", op.a) || !check_region("b: ", op.b) ||
        !check_region("c: ", op.c)) {
      return false;
    }
    const bool one_depth = a.cols == to.cols && b.cols == to.cols && c.cols == to.cols;
    if (!one_depth || a.rows != to.rows || b.rows != c.rows) {
      return refuse(
          Kind::meaningless,
          fmt::format("attends with queries of {}×{}, keys of {}×{} and values of {}×{} to {}×{}; give "
                      "M×D, N×D, N×D and M×D",
                      a.rows, a.cols, b.rows, b.cols, c.rows, c.cols, to.rows, to.cols));
    }
    if (op.limit < 0 || op.group < 1) {
      return refuse(Kind::meaningless,
                    fmt::format("limit {} and group {}; give at least 0 and 1", op.limit, op.group));
    }
    if (!check_one_rank("a", op.a)) return false;
    if (op.b.rank == kEveryRank && op.c.rank == kEveryRank) return true;
    return check_one_rank("b", op.b) && check_one_rank("c", op.c);
  }

  bool check_sparse_product(const ReferenceOp& op) {
    if (!check_region("to: ", op.to) || !check_region("a: ", op.a) || !check_region("b: ", op.b))
      return false;
    if (op.index < 0 || static_cast<std::size_t>(op.index) >= schedule_.sparse.size()) {
      return refuse(Kind::out_of_range,
                    fmt::format("sparse matrix {}; the schedule has {}", op.index, schedule_.sparse.size()));
    }
    const SparseMatrix& matrix = *schedule_.sparse[static_cast<std::size_t>(op.index)];
    const auto is = [](const Region& region, std::int32_t rows, std::int32_t cols) {
      return region.rect.rows == rows && region.rect.cols == cols;
    };
    if (!is(op.to, matrix.rows, 1) || !is(op.b, matrix.cols, 1) ||
        !is(op.a, 1, std::max(1, matrix.nonzeros()))) {
      return refuse(Kind::meaningless,
                    fmt::format("multiplies {}×{} with {} nonzeros: give values of 1×{}, b of {}×1 and a "
                                "target of {}×1",
                                matrix.rows, matrix.cols, matrix.nonzeros(), std::max(1, matrix.nonzeros()),
                                matrix.cols, matrix.rows));
    }
    return check_one_rank("a", op.a) && check_one_rank("b", op.b);
  }

  bool check_rms_norm(const ReferenceOp& op) {
    const Rect& to = op.to.rect;
    const Rect& a = op.a.rect;
    const Rect& b = op.b.rect;
    if (!check_region("to: ", op.to) || !check_region("a: ", op.a) || !check_region("b: ", op.b))
      return false;
    if (a.rows != to.rows || a.cols != to.cols || b.rows != 1 || b.cols != to.cols) {
      return refuse(Kind::meaningless,
                    fmt::format("normalises {}×{} with weights of {}×{} to {}×{}; give M×N, 1×N and M×N",
                                a.rows, a.cols, b.rows, b.cols, to.rows, to.cols));
    }
    return check_one_rank("a", op.a) && check_one_rank("b", op.b);
  }

  bool check_row_dot(const ReferenceOp& op) {
    const Rect& to = op.to.rect;
    const Rect& a = op.a.rect;
    const Rect& b = op.b.rect;
    if (!check_region("to: ", op.to) || !check_region("a: ", op.a) || !check_region("b: ", op.b))
      return false;
    if (a.rows != to.rows || to.cols != 1 || b.rows != a.rows || b.cols != a.cols) {
      return refuse(Kind::meaningless,
                    fmt::format("multiplies the rows of {}×{} and {}×{} to {}×{}; give M×N, M×N and M×1",
                                a.rows, a.cols, b.rows, b.cols, to.rows, to.cols));
    }
    return check_one_rank("a", op.a) && check_one_rank("b", op.b);
  }

  bool check_attention_backward(const ReferenceOp& op) {
    if (!check_region("to: ", op.to) || !check_region("a: ", op.a) || !check_region("b: ", op.b) ||
        !check_region("c: ", op.c) || !check_region("d: ", op.d)) {
      return false;
    }
    const Rect& to = op.to.rect;
    const Rect& a = op.a.rect;
    const Rect& b = op.b.rect;
    const bool of_queries = to.rows == a.rows && to.cols == a.cols;
    const bool of_keys = to.rows == b.rows && to.cols == b.cols;
    const bool fits = b.cols == 2 * a.cols && op.c.rect.rows == a.rows && op.c.rect.cols == a.cols &&
                      op.d.rect.rows == a.rows && op.d.rect.cols == 2;
    if (!fits || (!of_queries && !of_keys)) {
      return refuse(
          Kind::meaningless,
          fmt::format(
              "gradients of queries of {}×{} and of keys beside values of {}×{}, from gradients of {}×{} "
              "and statistics of {}×{}, to {}×{}; give M×D, N×2D, M×D and M×2, and M×D or N×2D",
              a.rows, a.cols, b.rows, b.cols, op.c.rect.rows, op.c.rect.cols, op.d.rect.rows, op.d.rect.cols,
              to.rows, to.cols));
    }
    if (op.limit < 0) return refuse(Kind::meaningless, fmt::format("limit {}; give at least 0", op.limit));
    return check_one_rank("a", op.a) && check_one_rank("b", op.b) && check_one_rank("c", op.c) &&
           check_one_rank("d", op.d);
  }

  bool check_one_rank(const char* what, const Region& region) {
    return region.rank != kEveryRank ||
           refuse(Kind::meaningless,
                  fmt::format("takes {} of every rank; give the rank that it is of", what));
  }

  void check_values(std::size_t index) {
    const ReferenceOp& op = schedule_.reference[index];
    for (const Region& operand : operands_of(op)) {
      const Region unknown = unknown_part(operand);
      if (unknown.rect.rows == 0) continue;
      refuse(Kind::meaningless,
             fmt::format("reads {}, but no input fills {} and no operation before writes it",
                         describe(operand), describe(unknown)));
      return;
    }
    if (op.add && op.to.rank == kEveryRank && schedule_.ranks > 1 && !same_everywhere(op.to, index)) {
      refuse(Kind::meaningless,
             fmt::format("adds onto {}, which may differ between ranks; add on one rank at a time",
                         describe(op.to)));
    }
  }

  // The first part of a region without values so far; empty if there is none.
  Region unknown_part(const Region& region) const {
    std::vector<Rect> rests{region.rect};
    known_.subtract_from(rests, region.buffer, region.rank);
    if (region.rank != kEveryRank || rests.empty()) return part_of(region, region.rank, rests);
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      std::vector<Rect> own = rests;
      known_.subtract_from(own, region.buffer, rank);
      if (!own.empty()) return part_of(region, rank, own);
    }
    return part_of(region, region.rank, {});
  }

  static Region part_of(const Region& region, std::int32_t rank, const std::vector<Rect>& parts) {
    return {region.buffer, rank, parts.empty() ? Rect{} : parts.front()};
  }

  bool same_everywhere(const Region& region, std::size_t before) const {
    std::vector<Rect> rests{region.rect};
    for (std::size_t i = 0; i < before; ++i) {
      const Region& to = schedule_.reference[i].to;
      if (!overlap(to, region)) continue;
      if (to.rank != kEveryRank) return false;
      subtract(rests, to.rect);
    }
    return std::none_of(schedule_.inputs.begin(), schedule_.inputs.end(), [&](const Input& input) {
      const bool same = input.values != InputValues::own && input.region.rank == kEveryRank;
      return !same && input.region.buffer == region.buffer &&
             std::any_of(rests.begin(), rests.end(),
                         [&](const Rect& rest) { return overlap(rest, input.region.rect); });
    });
  }

  std::string describe(const Region& region) const {
    const Rect& rect = region.rect;
    return fmt::format("{}[{}:{}, {}:{}] of {}",
                       schedule_.buffers[static_cast<std::size_t>(region.buffer)].name, rect.row,
                       rect.row + rect.rows, rect.col, rect.col + rect.cols, ranks_in_words(region.rank));
  }

  bool refuse(Kind kind, std::string message) {
    findings_.add(kind, where_, std::move(message));
    return false;
  }

  const Schedule& schedule_;
  Findings& findings_;
  FilledRegions known_;  // inputs, and regions written by the operations so far
  std::string where_;
  bool sound_ = true;  // all regions are in range and fit each other
};

}  // namespace

void check_reference(const Schedule& schedule, Findings& findings) {
  ReferenceChecker(schedule, findings).check();
}

}  // namespace tritax

#include "model/schedule/accesses.hpp"
#include "model/schedule/op_traits.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace tritax {

namespace {

constexpr std::int64_t kMaxSide = std::numeric_limits<std::int32_t>::max();  // rows or columns of a buffer

// Summary of the writes to one buffer of one rank.
struct WriteSummary {
  std::int64_t count = 0;
  std::int64_t rows = 0;  // sums over the groups of writes
  std::int64_t cols = 0;
};

// An index of the rectangles written to one buffer: a grid of cells of about the size of the rectangles, so
// that a cell holds few rectangles.
class RectIndex {
 public:
  RectIndex(const Buffer& buffer, const WriteSummary& writes)
      : cell_rows_(static_cast<std::int32_t>(writes.rows / writes.count)),
        cell_cols_(static_cast<std::int32_t>(writes.cols / writes.count)) {
    const std::int64_t most_cells = 4 * writes.count + 64;
    std::int64_t height = 0;
    for (;;) {
      height = (buffer.rows - 1) / cell_rows_ + 1;
      width_ = (buffer.cols - 1) / cell_cols_ + 1;
      if (height * width_ <= most_cells) {
        break;
      }
      std::int32_t& longer = height > width_ ? cell_rows_ : cell_cols_;
      longer = static_cast<std::int32_t>(std::min(std::int64_t{longer} * 2, kMaxSide));
    }
    cells_.resize(static_cast<std::size_t>(height * width_));
  }

  void add(const Rect& rect, std::uint32_t id) {
    for_each_cell(rect, [&](std::vector<std::uint32_t>& cell) { cell.push_back(id); });
  }

  template <typename Visit>
  void for_each_near(const Rect& rect, Visit visit) {
    for_each_cell(rect, [&](const std::vector<std::uint32_t>& cell) {
      for (const std::uint32_t id : cell) {
        visit(id);
      }
    });
  }

 private:
  template <typename Visit>
  void for_each_cell(const Rect& rect, Visit visit) {
    const std::int32_t last_row = (rect.row + rect.rows - 1) / cell_rows_;
    const std::int32_t last_col = (rect.col + rect.cols - 1) / cell_cols_;
    for (std::int32_t row = rect.row / cell_rows_; row <= last_row; ++row) {
      for (std::int32_t col = rect.col / cell_cols_; col <= last_col; ++col) {
        visit(cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
                     static_cast<std::size_t>(col)]);
      }
    }
  }

  std::int32_t cell_rows_;
  std::int32_t cell_cols_;
  std::int32_t width_ = 0;
  std::vector<std::vector<std::uint32_t>> cells_;
};

class Collector {
 public:
  explicit Collector(const SyncGraph& graph) : graph_(graph), schedule_(graph.schedule()) {}

  Accesses collect() {
    find_written();
    for (std::uint32_t i = 0; i < graph_.workgroups().size(); ++i) {
      const WorkgroupRun& workgroup = graph_.workgroups()[i];
      const Run& run = graph_.runs()[workgroup.run];
      const std::span<const Op> ops = graph_.ops_of(workgroup);
      for (std::uint32_t op = 0; op < ops.size(); ++op) {
        add_op(ops[op], {i, op}, run.rank);
      }
      group_writes();
    }
    return std::move(accesses_);
  }

 private:
  std::size_t slot(std::int32_t rank, std::int32_t buffer) const {
    return static_cast<std::size_t>(rank) * schedule_.buffers.size() + static_cast<std::size_t>(buffer);
  }

  void find_written() {
    written_.assign(static_cast<std::size_t>(schedule_.ranks) * schedule_.buffers.size(), false);
    stored_ = written_;
    for (const auto* ops : {&schedule_.ops, &schedule_.transfers}) {
      for (const Op& op : *ops) {
        for_each_write(op, [&](const Region& to, bool adds) {
          written_[slot(op.rank, to.buffer)] = true;
          if (!adds) stored_[slot(op.rank, to.buffer)] = true;
        });
      }
    }
  }

  void add_op(const Op& op, OpPoint at, std::int32_t own) {
    for_each_read(op, own, [&](const Region& region) { add_read(at, region); });
    for_each_write(op, [&](const Region& region, bool adds) {
      const AccessKind kind = adds ? AccessKind::atomic_add : AccessKind::write;
      of_workgroup_.push_back({at, op.rank, region.buffer, kind, region.rect});
      if (adds) add_addition(at, region);
    });
  }

  // Groups the writes of the last workgroup.
  void group_writes() {
    const auto place = [](const Access& access) {
      return std::tuple(access.rank, access.buffer, access.kind, access.rect.row, access.rect.col,
                        access.rect.rows, access.rect.cols);
    };
    std::sort(of_workgroup_.begin(), of_workgroup_.end(), [&](const Access& a, const Access& b) {
      return std::tuple(place(a), a.at.op) < std::tuple(place(b), b.at.op);
    });
    for (std::size_t i = 0; i < of_workgroup_.size(); ++i) {
      const auto end = static_cast<std::uint32_t>(accesses_.write_ops.size());
      if (i == 0 || place(of_workgroup_[i]) != place(of_workgroup_[i - 1])) {
        accesses_.writes.push_back({of_workgroup_[i], end, end});
      }
      accesses_.write_ops.push_back(of_workgroup_[i].at.op);
      accesses_.writes.back().end = end + 1;
    }
    of_workgroup_.clear();
  }

  // Whether inputs fill a region of a buffer without writes.
  bool is_input(const Region& read) const {
    if (schedule_.inputs.empty()) return true;
    for (const Input& input : schedule_.inputs) {
      const Region& filled = input.region;
      if (filled.buffer == read.buffer && is_on(filled, read.rank) && contains(filled.rect, read.rect))
        return true;
    }
    std::vector<Rect> unfilled{read.rect};
    subtract_inputs(schedule_, read.buffer, read.rank, unfilled);
    return unfilled.empty();
  }

  void add_read(OpPoint at, const Region& region) {
    if (written_[slot(region.rank, region.buffer)] || !is_input(region)) {
      accesses_.reads.push_back(
          {at, static_cast<std::int16_t>(region.rank), region.buffer, AccessKind::read, region.rect});
    }
  }

  // An atomic addition needs the values that it adds to, in any order with other additions. A buffer without
  // stores is filled from outside, unless the schedule lists its inputs.
  void add_addition(OpPoint at, const Region& region) {
    if (stored_[slot(region.rank, region.buffer)] || !is_input(region)) {
      accesses_.reads.push_back(
          {at, static_cast<std::int16_t>(region.rank), region.buffer, AccessKind::atomic_add, region.rect});
    }
  }

  const SyncGraph& graph_;
  const Schedule& schedule_;
  std::vector<bool> written_;         // by rank and buffer: whether there are writes …
  std::vector<bool> stored_;          // … other than additions
  std::vector<Access> of_workgroup_;  // writes of the current workgroup
  Accesses accesses_;
};

// Finds the groups of writes that overlap one access; every group once, although a group may lie in several
// cells.
class WriteFinder {
 public:
  WriteFinder(const std::vector<WriteGroup>& writes, const std::vector<Buffer>& buffers)
      : writes_(writes), seen_(writes.size(), 0) {
    std::map<std::pair<std::int16_t, std::int16_t>, WriteSummary> summaries;
    for (const WriteGroup& write : writes) {
      WriteSummary& summary = summaries[{write.first.rank, write.first.buffer}];
      ++summary.count;
      summary.rows += write.first.rect.rows;
      summary.cols += write.first.rect.cols;
    }
    for (const auto& [key, summary] : summaries) {
      indices_.try_emplace(key, buffers[static_cast<std::size_t>(key.second)], summary);
    }
    for (std::uint32_t i = 0; i < writes.size(); ++i) {
      const Access& access = writes[i].first;
      indices_.at({access.rank, access.buffer}).add(access.rect, i);
    }
  }

  template <typename Visit>
  void for_each_write(const Access& own, Visit visit) {
    ++search_;
    const auto index = indices_.find({own.rank, own.buffer});
    if (index == indices_.end()) {
      return;
    }
    index->second.for_each_near(own.rect, [&](std::uint32_t write) {
      if (seen_[write] != search_ && overlap(own.rect, writes_[write].first.rect)) {
        seen_[write] = search_;
        visit(write);
      }
    });
  }

 private:
  const std::vector<WriteGroup>& writes_;
  std::vector<std::uint64_t> seen_;  // by group: the last search that visited it
  std::uint64_t search_ = 0;
  std::map<std::pair<std::int16_t, std::int16_t>, RectIndex> indices_;
};

}  // namespace

Accesses find_accesses(const SyncGraph& graph) {
  Accesses accesses = Collector(graph).collect();
  WriteFinder writes(accesses.writes, graph.schedule().buffers);
  for (std::uint32_t i = 0; i < accesses.reads.size(); ++i) {
    const bool adds = accesses.reads[i].kind == AccessKind::atomic_add;
    writes.for_each_write(accesses.reads[i], [&](std::uint32_t write) {
      if (adds && accesses.writes[write].first.kind == AccessKind::atomic_add) return;
      accesses.read_write.push_back({i, write});
    });
  }
  return accesses;
}

namespace {

bool both_add(const Access& first, const Access& second) {
  return first.kind == AccessKind::atomic_add && second.kind == AccessKind::atomic_add;
}

// Pairs of groups, first <= second, that overlap, do not commute, and satisfy `counts`.
template <typename Counts>
std::vector<Conflict> meeting_writes(const SyncGraph& graph, const Accesses& accesses, Counts counts) {
  std::vector<Conflict> conflicts;
  WriteFinder writes(accesses.writes, graph.schedule().buffers);
  for (std::uint32_t i = 0; i < accesses.writes.size(); ++i) {
    const Access& access = accesses.writes[i].first;
    writes.for_each_write(access, [&](std::uint32_t other) {
      if (other < i || both_add(access, accesses.writes[other].first)) return;
      if (counts(i, other)) conflicts.push_back({i, other});
    });
  }
  return conflicts;
}

}  // namespace

std::vector<Conflict> find_write_conflicts(const SyncGraph& graph, const Accesses& accesses) {
  return meeting_writes(graph, accesses, [&](std::uint32_t first, std::uint32_t second) {
    return accesses.writes[first].first.at.workgroup_run != accesses.writes[second].first.at.workgroup_run;
  });
}

std::vector<Conflict> find_own_rewrites(const SyncGraph& graph, const Accesses& accesses) {
  return meeting_writes(graph, accesses, [&](std::uint32_t first, std::uint32_t second) {
    if (first == second) return accesses.ops_of(accesses.writes[first]).size() > 1;
    return accesses.writes[first].first.at.workgroup_run == accesses.writes[second].first.at.workgroup_run;
  });
}

}  // namespace tritax

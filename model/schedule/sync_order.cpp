// Answers queries about order: reachability in the graph of sync_graph.hpp.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

constexpr std::uint32_t kUnmarked = ~std::uint32_t{0};  // mark of no run and no workgroup run
constexpr std::uint32_t kNobody = kUnmarked - 1;        // searches, but leaves no marks

// Visits the vertices before a vertex, in two layers of marks: `base` marks what precedes the kernel
// execution and is kept for all its workgroups, `own` marks what precedes the waits of one workgroup.
class BackwardSearch {
 public:
  explicit BackwardSearch(const SyncGraph& graph)
      : graph_(graph), base_(graph.vertices().size(), kUnmarked), own_(graph.vertices().size(), kUnmarked) {}

  void begin_run(std::uint32_t run, std::uint32_t start) {
    run_ = run;
    workgroup_run_ = kNobody;  // marks of the last workgroup do not hold for this run
    visit(start, base_, run);
  }
  void begin_workgroup(std::uint32_t workgroup_run) { workgroup_run_ = workgroup_run; }
  void learn(std::uint32_t vertex) { visit(vertex, own_, workgroup_run_); }

  // Whether the operation is ordered before the point of the search.
  bool knows(OpPoint point) const {
    std::uint32_t vertex = graph_.vertex_after(point);
    while (vertex != kNoVertex && !knows(vertex)) {
      vertex = graph_.exit_of_block(vertex);  // a vertex after the block may be marked without the block
    }
    return vertex != kNoVertex;
  }
  bool knows(std::uint32_t vertex) const { return base_[vertex] == run_ || own_[vertex] == workgroup_run_; }

 private:
  void visit(std::uint32_t root, std::vector<std::uint32_t>& marks, std::uint32_t mark) {
    if (knows(root)) {
      return;
    }
    marks[root] = mark;
    stack_.push_back(root);
    while (!stack_.empty()) {
      const std::uint32_t vertex = stack_.back();
      stack_.pop_back();
      const auto [begin, end] = boost::in_edges(vertex, graph_.graph());
      const bool event = graph_.vertices()[vertex].kind == SyncVertex::Kind::event;
      for (auto edge = begin; edge != end; ++edge) {
        const auto source = static_cast<std::uint32_t>(boost::source(*edge, graph_.graph()));
        const std::uint32_t before = event ? source : graph_.behind_skipped(source);
        if (!knows(before)) {
          marks[before] = mark;
          stack_.push_back(before);
        }
      }
    }
  }

  const SyncGraph& graph_;
  std::vector<std::uint32_t> base_;  // last run that marked the vertex
  std::vector<std::uint32_t> own_;   // last workgroup run that marked the vertex
  std::vector<std::uint32_t> stack_;
  std::uint32_t run_ = kUnmarked;
  std::uint32_t workgroup_run_ = kNobody;
};

// Visits queries in the order of their points, `point_of(i)`, with a search that has marked everything before
// that point: one backward search per kernel execution, continued per workgroup.
template <typename PointOf, typename Visit>
void search_by_point(const SyncGraph& graph, std::vector<std::uint32_t> questions, PointOf point_of,
                     Visit visit) {
  const auto key = [&](std::uint32_t i) { return std::tuple(point_of(i).workgroup_run, point_of(i).op); };
  std::sort(questions.begin(), questions.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  BackwardSearch search(graph);
  std::uint32_t run = kUnmarked;
  std::uint32_t workgroup_run = kUnmarked;
  for (const std::uint32_t i : questions) {
    const OpPoint point = point_of(i);
    if (point.workgroup_run != workgroup_run) {
      workgroup_run = point.workgroup_run;
      const std::uint32_t its_run = graph.workgroups()[workgroup_run].run;
      if (its_run != run) {
        run = its_run;
        search.begin_run(run, graph.runs()[run].start);
      }
      search.begin_workgroup(workgroup_run);
    }
    search.learn(graph.vertex_before(point));
    visit(i, search);
  }
}

// Counts the operations before the point. They are always the first operations of the program.
void count_before(const SyncGraph& graph, const std::vector<SideQuery>& queries, std::vector<Sides>& sides) {
  const auto count = [&](std::uint32_t i, auto is_before) {
    const auto& ops = queries[i].ops;
    const auto first_other = std::partition_point(ops.begin(), ops.end(), is_before);
    sides[i].before = sides[i].after = static_cast<std::uint32_t>(first_other - ops.begin());
  };
  std::vector<std::uint32_t> between_workgroups;
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    const OpPoint point = queries[i].point;
    if (point.workgroup_run != queries[i].workgroup_run) {
      between_workgroups.push_back(i);
    } else {
      count(i, [&](std::uint32_t op) { return op < point.op; });
    }
  }
  search_by_point(
      graph, std::move(between_workgroups), [&](std::uint32_t i) { return queries[i].point; },
      [&](std::uint32_t i, const BackwardSearch& search) {
        count(i, [&](std::uint32_t op) { return search.knows({queries[i].workgroup_run, op}); });
      });
}

// Finds the first of the other operations that comes after the point: usually the next one, else by
// bisection.
void find_after(const SyncGraph& graph, const std::vector<SideQuery>& queries, std::vector<Sides>& sides) {
  struct Range {
    std::uint32_t query = 0;
    std::uint32_t low = 0;  // the first after the point is one of ops[low … high]; high may be past the last
    std::uint32_t high = 0;
    std::uint32_t tried = 0;
  };
  std::vector<Range> open;
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    const auto size = static_cast<std::uint32_t>(queries[i].ops.size());
    if (sides[i].before < size && queries[i].point.workgroup_run != queries[i].workgroup_run) {
      open.push_back({i, sides[i].before, size, sides[i].before});
    }
  }
  std::vector<OrderQuery> questions;
  while (!open.empty()) {
    questions.clear();
    for (const Range& range : open) {
      const SideQuery& query = queries[range.query];
      questions.push_back({query.point, {query.workgroup_run, query.ops[range.tried]}});
    }
    const std::vector<char> ordered = are_ordered(graph, questions);
    std::size_t left = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      Range range = open[i];
      (ordered[i] != 0 ? range.high : range.low) = range.tried + (ordered[i] != 0 ? 0 : 1);
      range.tried = range.low + (range.high - range.low) / 2;
      if (range.low == range.high) {
        sides[range.query].after = range.low;
      } else {
        open[left++] = range;
      }
    }
    open.resize(left);
  }
}

}  // namespace

std::vector<char> are_ordered(const SyncGraph& graph, const std::vector<OrderQuery>& queries) {
  std::vector<char> ordered(queries.size(), 0);
  std::vector<std::uint32_t> between_workgroups;
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    const auto& [before, after] = queries[i];
    if (before.workgroup_run != after.workgroup_run) {
      between_workgroups.push_back(i);
    } else {
      ordered[i] = before.op < after.op;
    }
  }
  search_by_point(
      graph, std::move(between_workgroups), [&](std::uint32_t i) { return queries[i].after; },
      [&](std::uint32_t i, const BackwardSearch& search) { ordered[i] = search.knows(queries[i].before); });
  return ordered;
}

std::vector<char> are_done(const SyncGraph& graph, const std::vector<DoneQuery>& queries) {
  std::vector<char> done(queries.size(), 0);
  std::vector<std::uint32_t> all(queries.size());
  std::iota(all.begin(), all.end(), 0);
  search_by_point(
      graph, std::move(all), [&](std::uint32_t i) { return queries[i].after; },
      [&](std::uint32_t i, const BackwardSearch& search) { done[i] = search.knows(queries[i].vertex); });
  return done;
}

std::vector<Sides> sides_of(const SyncGraph& graph, const std::vector<SideQuery>& queries) {
  std::vector<Sides> sides(queries.size());
  count_before(graph, queries, sides);
  find_after(graph, queries, sides);
  return sides;
}

std::vector<char> past_of(const SyncGraph& graph, const std::vector<std::uint32_t>& roots) {
  std::vector<char> past(graph.vertices().size(), 0);
  std::vector<std::uint32_t> stack;
  const auto add = [&](std::uint32_t vertex) {
    if (past[vertex] == 0) {
      past[vertex] = 1;
      stack.push_back(vertex);
    }
  };
  for (const std::uint32_t root : roots) {
    add(root);
  }
  while (!stack.empty()) {
    const std::uint32_t vertex = stack.back();
    stack.pop_back();
    const auto [begin, end] = boost::in_edges(vertex, graph.graph());
    for (auto edge = begin; edge != end; ++edge) {
      add(static_cast<std::uint32_t>(boost::source(*edge, graph.graph())));
    }
  }
  return past;
}

}  // namespace tritax

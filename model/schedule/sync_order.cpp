// Questions of order: reachability in the graph of sync_graph.hpp.
#include <algorithm>
#include <tuple>

#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};  // mark of no run and no workgroup run
constexpr std::uint32_t kNobody = kNone - 1;        // searches, but leaves no marks

// Visits what precedes a vertex, in two layers of marks: `base` is what precedes the kernel execution and is
// kept for all its workgroups, `own` is what one workgroup has learned since by its waits.
class BackwardSearch {
 public:
  explicit BackwardSearch(const SyncGraph& graph)
      : graph_(graph.graph()), base_(graph.vertices().size(), kNone), own_(graph.vertices().size(), kNone) {}

  void begin_run(std::uint32_t run, std::uint32_t start) {
    run_ = run;
    workgroup_run_ = kNobody;  // what the last workgroup has learned is not known to this run
    visit(start, base_, run);
  }
  void begin_workgroup(std::uint32_t workgroup_run) { workgroup_run_ = workgroup_run; }
  void learn(std::uint32_t vertex) { visit(vertex, own_, workgroup_run_); }
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
      const auto [begin, end] = boost::in_edges(vertex, graph_);
      for (auto edge = begin; edge != end; ++edge) {
        const auto before = static_cast<std::uint32_t>(boost::source(*edge, graph_));
        if (!knows(before)) {
          marks[before] = mark;
          stack_.push_back(before);
        }
      }
    }
  }

  const SyncGraph::Graph& graph_;
  std::vector<std::uint32_t> base_;  // run that marked the vertex last
  std::vector<std::uint32_t> own_;   // workgroup run that marked the vertex last
  std::vector<std::uint32_t> stack_;
  std::uint32_t run_ = kNone;
  std::uint32_t workgroup_run_ = kNobody;
};

}  // namespace

std::vector<char> are_ordered(const SyncGraph& graph, const std::vector<OrderQuery>& queries) {
  std::vector<std::uint32_t> order(queries.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  const auto key = [&](std::uint32_t i) {
    return std::tuple(queries[i].after.workgroup_run, queries[i].after.op);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });

  std::vector<char> ordered(queries.size(), 0);
  BackwardSearch search(graph);
  std::uint32_t run = kNone;
  std::uint32_t workgroup_run = kNone;
  for (const std::uint32_t i : order) {
    const auto& [before, after] = queries[i];
    if (before.workgroup_run == after.workgroup_run) {
      ordered[i] = before.op < after.op;
      continue;
    }
    if (after.workgroup_run != workgroup_run) {
      workgroup_run = after.workgroup_run;
      const std::uint32_t its_run = graph.workgroups()[workgroup_run].run;
      if (its_run != run) {
        run = its_run;
        search.begin_run(run, graph.runs()[run].start);
      }
      search.begin_workgroup(workgroup_run);
    }
    search.learn(graph.vertex_before(after));
    ordered[i] = search.knows(graph.vertex_after(before));
  }
  return ordered;
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

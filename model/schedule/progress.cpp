#include "model/schedule/progress.hpp"

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax {

namespace {

class Execution {
 public:
  Execution(const SyncGraph& graph, const std::vector<std::uint64_t>& resident)
      : graph_(graph),
        vertices_(graph.vertices()),
        pending_(vertices_.size()),
        counters_(graph.cells().size(), 0),
        skippable_reached_(graph.cells().size(), 0),
        next_event_(graph.cells().size(), 0),
        next_dispatch_(graph.runs().size(), 0) {
    for (std::uint32_t vertex = 0; vertex < vertices_.size(); ++vertex) {
      pending_[vertex] = static_cast<std::uint32_t>(boost::in_degree(vertex, graph.graph()));
      if (vertices_[vertex].kind == SyncVertex::Kind::event) {
        pending_[vertex] = 1 + skippable_signals_of(vertex);  // released by the counter, not by its edges
      } else if (vertices_[vertex].kind == SyncVertex::Kind::workgroup_begin) {
        ++pending_[vertex];  // released by dispatch
      }
    }
    for (std::uint32_t run = 0; run < graph.runs().size(); ++run) {
      const std::size_t workgroups = graph.kernel_of(graph.runs()[run]).workgroups.size();
      const std::uint64_t places = resident.empty() ? workgroups : resident[run];
      for (std::uint64_t i = 0; i < places && i < workgroups; ++i) {
        dispatch_next(run);
      }
    }
    for (std::uint32_t vertex = 0; vertex < vertices_.size(); ++vertex) {
      if (pending_[vertex] == 0) {
        ready_.push_back(vertex);
      }
    }
  }

  std::vector<char> run() {
    std::vector<char> reached(vertices_.size(), 0);
    while (!ready_.empty()) {
      const std::uint32_t vertex = ready_.back();
      ready_.pop_back();
      reached[vertex] = 1;
      if (vertices_[vertex].kind == SyncVertex::Kind::signal) {
        count(vertex);
      }
      const auto [begin, end] = boost::out_edges(vertex, graph_.graph());
      for (auto edge = begin; edge != end; ++edge) {
        const auto next = static_cast<std::uint32_t>(boost::target(*edge, graph_.graph()));
        if (vertices_[next].kind != SyncVertex::Kind::event || vertices_[vertex].may_be_skipped) {
          release(next);
        }
        if (vertices_[next].kind == SyncVertex::Kind::run_end) {
          dispatch_next(vertices_[next].owner);  // a workgroup has ended and left its place
        }
      }
    }
    return reached;
  }

 private:
  // Any of the blocks behind a queue may be the one that is executed, so all of them must be able to end.
  std::uint32_t skippable_signals_of(std::uint32_t event) const {
    const auto [begin, end] = boost::in_edges(event, graph_.graph());
    return static_cast<std::uint32_t>(std::count_if(begin, end, [&](const auto& edge) {
      return vertices_[boost::source(edge, graph_.graph())].may_be_skipped;
    }));
  }

  void release(std::uint32_t vertex) {
    TRITAX_ASSERT(pending_[vertex] > 0, "a vertex is released once for every edge");
    if (--pending_[vertex] == 0) {
      ready_.push_back(vertex);
    }
  }

  void dispatch_next(std::uint32_t run) {
    const Run& its_run = graph_.runs()[run];
    const std::uint32_t workgroup = next_dispatch_[run]++;
    if (workgroup < graph_.kernel_of(its_run).workgroups.size()) {
      const std::uint32_t begin = graph_.workgroups()[its_run.first_workgroup + workgroup].first_vertex;
      --pending_[begin];
      if (pending_[begin] == 0) {
        ready_.push_back(begin);
      }
    }
  }

  void count(std::uint32_t signal) {
    const std::uint32_t cell = graph_.cell_of_signal(signal);
    // Which of the blocks behind a queue is executed is known of none, so they count together, the least.
    if (!vertices_[signal].may_be_skipped) {
      counters_[cell] += graph_.op_of(signal).value;
    } else if (++skippable_reached_[cell] == graph_.cells()[cell].skippable) {
      counters_[cell] += graph_.cells()[cell].least_of_skippable;
    }
    const std::vector<std::uint32_t>& events = graph_.cells()[cell].events;
    for (std::size_t& next = next_event_[cell]; next < events.size(); ++next) {
      const FlagEvent& event = graph_.events()[events[next]];
      if (event.value > counters_[cell]) {
        break;
      }
      release(event.vertex);
    }
  }

  const SyncGraph& graph_;
  const std::vector<SyncVertex>& vertices_;
  std::vector<std::uint32_t> pending_;  // by vertex: what it still needs
  std::vector<std::int64_t> counters_;  // by cell
  std::vector<std::uint32_t> skippable_reached_;
  std::vector<std::size_t> next_event_;
  std::vector<std::uint32_t> next_dispatch_;  // by run
  std::vector<std::uint32_t> ready_;
};

}  // namespace

std::vector<char> reached_vertices(const SyncGraph& graph, const std::vector<std::uint64_t>& resident) {
  return Execution(graph, resident).run();
}

}  // namespace tritax

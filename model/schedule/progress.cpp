#include "model/schedule/progress.hpp"

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax {

Execution::Execution(const SyncGraph& graph)
    : graph_(graph),
      vertices_(graph.vertices()),
      pending_(vertices_.size()),
      reached_(vertices_.size(), 0),
      counters_(graph.cells().size(), 0),
      skippable_reached_(graph.cells().size(), 0),
      next_event_(graph.cells().size(), 0),
      queues_(graph.queues().size()) {
  for (std::uint32_t vertex = 0; vertex < vertices_.size(); ++vertex) {
    pending_[vertex] = static_cast<std::uint32_t>(boost::in_degree(vertex, graph.graph()));
    if (vertices_[vertex].kind == SyncVertex::Kind::event) {
      pending_[vertex] = 1 + skippable_signals_of(vertex);  // released by the counter, not by its edges
    } else if (vertices_[vertex].kind == SyncVertex::Kind::workgroup_begin) {
      ++pending_[vertex];  // released by its place, or by the draw of the item
    } else if (vertices_[vertex].kind == SyncVertex::Kind::queue_left) {
      ++pending_[vertex];  // released by the last item
    }
    if (pending_[vertex] == 0) {
      ready_.push_back(vertex);
    }
  }
}

void Execution::give_place(std::uint32_t workgroup_run) {
  release(graph_.workgroups()[workgroup_run].first_vertex);
}

std::vector<std::uint32_t> Execution::advance() {
  std::vector<std::uint32_t> news;
  while (!ready_.empty()) {
    const std::uint32_t vertex = ready_.back();
    ready_.pop_back();
    if (!may_happen(vertex)) continue;
    reached_[vertex] = 1;
    news.push_back(vertex);
    if (vertices_[vertex].kind == SyncVertex::Kind::signal) {
      count(vertex);
    }
    happened(vertex);
    if (!queues_.empty()) note_queues(vertex);
    const auto [begin, end] = boost::out_edges(vertex, graph_.graph());
    for (auto edge = begin; edge != end; ++edge) {
      const auto next = static_cast<std::uint32_t>(boost::target(*edge, graph_.graph()));
      if (vertices_[next].kind != SyncVertex::Kind::event || vertices_[vertex].may_be_skipped) {
        release(next);
      }
    }
  }
  return news;
}

// Any block after a queue's claims may be the executed one, so all blocks must be able to end.
std::uint32_t Execution::skippable_signals_of(std::uint32_t event) const {
  const auto [begin, end] = boost::in_edges(event, graph_.graph());
  return static_cast<std::uint32_t>(std::count_if(begin, end, [&](const auto& edge) {
    return vertices_[boost::source(edge, graph_.graph())].may_be_skipped;
  }));
}

void Execution::release(std::uint32_t vertex) {
  TRITAX_ASSERT(pending_[vertex] > 0, "a vertex is released once for every edge");
  if (--pending_[vertex] == 0) {
    ready_.push_back(vertex);
  }
}

void Execution::count(std::uint32_t signal) {
  const std::uint32_t cell = graph_.cell_of_signal(signal);
  if (cell == kNoVertex) return;  // of an unknown phase
  // It is unknown which blocks of a queue are executed, so their signals count together, with the least sum.
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

void Execution::note_queues(std::uint32_t vertex) {
  const SyncVertex& v = vertices_[vertex];
  if (v.kind == SyncVertex::Kind::queue_reached) {
    const std::uint32_t queue = graph_.queue_of_claim(vertex);
    ++queues_[queue].workers;
    return draw(queue);
  }
  if (v.kind != SyncVertex::Kind::workgroup_begin && v.kind != SyncVertex::Kind::signal &&
      v.kind != SyncVertex::Kind::wait)
    return;
  const WorkgroupRun& workgroup = graph_.workgroups()[v.owner];
  if (!workgroup.is_item() || workgroup.last_vertex() != vertex) return;
  const WorkQueue& its = graph_.queues()[workgroup.queue];
  QueueState& state = queues_[workgroup.queue];
  --state.running;
  if (state.drawn == its.item_count && state.running == 0) {
    for (const std::uint32_t claim : its.claims) release(claim + 1);
  }
  draw(workgroup.queue);
}

void Execution::draw(std::uint32_t queue) {
  const WorkQueue& its = graph_.queues()[queue];
  QueueState& state = queues_[queue];
  while (state.drawn < its.item_count && state.workers > state.running) {
    ++state.running;
    release(graph_.workgroups()[its.first_item + state.drawn++].first_vertex);
  }
}

std::vector<char> reached_vertices(const SyncGraph& graph) {
  Execution execution(graph);
  for (std::uint32_t i = 0; i < graph.workgroups().size(); ++i) {
    if (!graph.workgroups()[i].is_item()) execution.give_place(i);
  }
  std::vector<char> reached(graph.vertices().size(), 0);
  for (const std::uint32_t vertex : execution.advance()) {
    reached[vertex] = 1;
  }
  return reached;
}

}  // namespace tritax

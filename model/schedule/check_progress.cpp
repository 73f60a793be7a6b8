// Checks for waits that nothing can satisfy, and for cycles of waits.
#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

#include "model/core/error.hpp"
#include "model/schedule/find_phases.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/progress.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

std::string describe_event(const SyncGraph& graph, const FlagEvent& event) {
  const FlagCell& cell = graph.cells()[event.cell];
  return fmt::format("{} >= {}", describe_flag(graph.schedule(), cell.flag, cell.index, cell.rank),
                     event.value);
}

void check_host_barriers(const Schedule& schedule, Findings& findings) {
  std::vector<std::size_t> counts;
  for (const auto& program : schedule.host) {
    counts.push_back(static_cast<std::size_t>(std::count_if(
        program.begin(), program.end(), [](const HostOp& op) { return op.kind == HostOpKind::barrier; })));
  }
  const auto fewest = std::min_element(counts.begin(), counts.end());
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] > *fewest) {
      findings.add(
          Kind::deadlock, fmt::format("host program of rank {}", rank),
          fmt::format("arrives at {} host barriers, rank {} only at {}; all ranks must arrive equally often",
                      counts[rank], fewest - counts.begin(), *fewest));
    }
  }
}

std::string first_skippable(const SyncGraph& graph, const FlagCell& cell) {
  const auto found = std::find_if(cell.signals.begin(), cell.signals.end(), [&](std::uint32_t signal) {
    return graph.vertices()[signal].may_be_skipped;
  });
  return graph.describe_vertex(found == cell.signals.end() ? cell.signals.front() : *found);
}

void check_satisfiable(const SyncGraph& graph, Findings& findings) {
  for (const FlagEvent& event : graph.events()) {
    const FlagCell& cell = graph.cells()[event.cell];
    if (event.value > cell.total) {
      const std::string signals =
          cell.signals.empty() ? std::string("nothing signals this flag")
                               : fmt::format("its {} signals add up to {}", cell.signals.size(), cell.total);
      findings.add(Kind::unsatisfiable_wait, graph.describe_vertex(event.waits.front()),
                   fmt::format("waits for {}, but {}", describe_event(graph, event), signals),
                   event.waits.size());
    } else if (event.value > cell.least) {
      findings.add(
          Kind::unsatisfiable_wait, graph.describe_vertex(event.waits.front()),
          fmt::format("waits for {}, but only {} is certain: more operations claim from a queue than "
                      "it has items, and not all of their blocks signal this flag alike ({})",
                      describe_event(graph, event), cell.least, first_skippable(graph, cell)),
          event.waits.size());
    }
  }
}

// Claims increment the counter of a queue themselves and release nothing, so no wait can be ordered after a
// claim.
void check_queues(const SyncGraph& graph, Findings& findings) {
  for (const FlagCell& cell : graph.cells()) {
    if (cell.claims.empty() || (cell.signals.empty() && cell.events.empty())) {
      continue;
    }
    const bool signalled = !cell.signals.empty();
    const std::uint32_t vertex =
        signalled ? cell.signals.front() : graph.events()[cell.events.front()].waits.front();
    findings.add(Kind::meaningless, graph.describe_vertex(vertex),
                 fmt::format("{} {}, from which {} takes items; give the one or the other its own counter",
                             signalled ? "signals" : "waits for",
                             describe_flag(graph.schedule(), cell.flag, cell.index, cell.rank),
                             graph.describe(cell.claims.front())));
  }
}

// A signal from another rank is seen only by an acquire at system scope.
void check_scopes(const SyncGraph& graph, Findings& findings) {
  for (const FlagCell& cell : graph.cells()) {
    const auto remote = std::find_if(cell.signals.begin(), cell.signals.end(), [&](std::uint32_t signal) {
      return graph.runs()[graph.workgroups()[graph.vertices()[signal].owner].run].rank != cell.rank;
    });
    if (remote == cell.signals.end()) {
      continue;
    }
    for (const std::uint32_t event : cell.events) {
      for (const std::uint32_t wait : graph.events()[event].waits) {
        if (graph.op_of(wait).scope != Scope::system) {
          findings.add(Kind::meaningless, graph.describe_vertex(wait),
                       fmt::format("acquires at {} scope what another rank signals ({}); give system",
                                   kScopeNames[static_cast<std::size_t>(graph.op_of(wait).scope)],
                                   graph.describe_vertex(*remote)));
        }
      }
    }
  }
}

// If a setting may come between a signal and a wait for it, the signal or the wait is lost.
void check_races(const SyncGraph& graph, Findings& findings) {
  for (const FlagRace& race : find_races(graph)) {
    const Op& setting = graph.op_at(race.setting);
    const Op& other = graph.op_at(race.other);
    const std::string flag = describe_flag(graph.schedule(), setting.flag, setting.index, setting.rank);
    const std::string does = other.kind == OpKind::wait ? fmt::format("waits for it to be {}", other.value)
                             : sets_flag(other)         ? fmt::format("sets it to {}", other.value)
                                                        : fmt::format("adds {} to it", other.value);
    findings.add(
        Kind::flag_race, graph.describe(race.setting),
        fmt::format(
            "sets {} to {}, and {} {}; nothing orders one before the other, so {} may be lost: signal "
            "another flag between them and wait for it, or use a counter that only grows",
            flag, setting.value, graph.describe(race.other), does,
            other.kind == OpKind::wait ? "what it waits for" : "either"));
  }
}

// Dependences among the vertices that are never reached. Unlike in the order graph, an event here depends on
// every signal that could have raised the counter.
using StuckGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

void add_event_edges(const SyncGraph& graph, const std::vector<char>& reached, std::uint32_t event,
                     StuckGraph& stuck) {
  const FlagCell& cell = graph.cells()[graph.events()[event].cell];
  const auto place = std::lower_bound(
      cell.events.begin(), cell.events.end(), graph.events()[event].value,
      [&](std::uint32_t other, std::int64_t value) { return graph.events()[other].value < value; });
  const std::uint32_t vertex = graph.events()[event].vertex;
  if (place != cell.events.begin() && reached[graph.events()[*(place - 1)].vertex] == 0) {
    boost::add_edge(graph.events()[*(place - 1)].vertex, vertex,
                    stuck);  // which already has the edges of the signals
    return;
  }
  for (const std::uint32_t signal : cell.signals) {
    if (reached[signal] == 0) {
      boost::add_edge(signal, vertex, stuck);
    }
  }
}

// An item that is not certain to be drawn depends on the item before it. If that item was drawn, it depends
// on the items that may occupy all workgroups of the queue, and on the workgroups that have not reached the
// queue.
void add_draw_edges(const SyncGraph& graph, const std::vector<char>& reached, std::uint32_t item,
                    StuckGraph& stuck) {
  const std::vector<WorkgroupRun>& runs = graph.workgroups();
  const WorkQueue& queue = graph.queues()[runs[item].queue];
  const std::uint32_t begin = runs[item].first_vertex;
  if (item > queue.first_item && reached[runs[item - 1].first_vertex] == 0) {
    boost::add_edge(runs[item - 1].first_vertex, begin, stuck);
    return;
  }
  for (std::uint32_t before = queue.first_item; before < item; ++before) {
    if (reached[runs[before].last_vertex()] == 0) boost::add_edge(runs[before].last_vertex(), begin, stuck);
  }
  for (const std::uint32_t claim : queue.claims) {
    if (reached[claim] == 0) boost::add_edge(claim, begin, stuck);
  }
}

// A workgroup that has reached a queue continues when all items have ended.
void add_leave_edges(const SyncGraph& graph, const std::vector<char>& reached, std::uint32_t left,
                     StuckGraph& stuck) {
  const WorkQueue& queue = graph.queues()[graph.queue_of_claim(left - 1)];
  for (std::uint32_t i = queue.first_item; i < queue.first_item + queue.item_count; ++i) {
    const std::uint32_t last = graph.workgroups()[i].last_vertex();
    if (reached[last] == 0) boost::add_edge(last, left, stuck);
  }
}

StuckGraph stuck_graph(const SyncGraph& graph, const std::vector<char>& reached) {
  StuckGraph stuck(reached.size());
  for (std::uint32_t vertex = 0; vertex < reached.size(); ++vertex) {
    if (reached[vertex] != 0) {
      continue;
    }
    const SyncVertex& v = graph.vertices()[vertex];
    if (v.kind == SyncVertex::Kind::event) {
      add_event_edges(graph, reached, v.owner, stuck);
      continue;
    }
    if (v.kind == SyncVertex::Kind::workgroup_begin && graph.workgroups()[v.owner].is_item()) {
      add_draw_edges(graph, reached, v.owner, stuck);
    } else if (v.kind == SyncVertex::Kind::queue_left) {
      add_leave_edges(graph, reached, vertex, stuck);
    }
    const auto [begin, end] = boost::in_edges(vertex, graph.graph());
    for (auto edge = begin; edge != end; ++edge) {
      const auto before = static_cast<std::uint32_t>(boost::source(*edge, graph.graph()));
      if (reached[before] == 0) {
        boost::add_edge(before, vertex, stuck);
      }
    }
  }
  return stuck;
}

void check_cycles(const SyncGraph& graph, const std::vector<char>& reached, Findings& findings) {
  const StuckGraph stuck = stuck_graph(graph, reached);
  std::vector<std::uint32_t> component(reached.size());
  const auto count = boost::strong_components(
      stuck, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, stuck)));
  std::vector<std::vector<std::uint32_t>> waits(count);
  std::vector<std::uint32_t> size(count, 0);
  std::vector<char> of_queue(count, 0);
  for (std::uint32_t vertex = 0; vertex < reached.size(); ++vertex) {
    ++size[component[vertex]];
    if (graph.vertices()[vertex].kind == SyncVertex::Kind::wait && reached[vertex] == 0) {
      waits[component[vertex]].push_back(vertex);
    }
    const SyncVertex& v = graph.vertices()[vertex];
    const bool of_item = v.kind == SyncVertex::Kind::workgroup_begin && graph.workgroups()[v.owner].is_item();
    if (of_item || v.kind == SyncVertex::Kind::queue_left) of_queue[component[vertex]] = 1;
  }
  constexpr std::size_t kShown = 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (size[i] < 2 || waits[i].empty()) {
      continue;
    }
    std::string members;
    for (std::size_t w = 0; w < waits[i].size() && w < kShown; ++w) {
      const Op& op = graph.op_of(waits[i][w]);
      members += fmt::format("{}{} for {} >= {}", w == 0 ? "" : "; ", graph.describe_vertex(waits[i][w]),
                             describe_flag(graph.schedule(), op.flag, op.index, op.rank), op.value);
    }
    if (waits[i].size() > kShown) {
      members += fmt::format("; and {} more", waits[i].size() - kShown);
    }
    findings.add(Kind::deadlock, graph.describe_vertex(waits[i].front()),
                 fmt::format("is in a cycle of waits, each signalled only after the others: {}{}", members,
                             of_queue[i] == 0 ? ""
                                              : "; items of a queue are drawn in their order, and each keeps "
                                                "a workgroup until it ends: put the awaited items further "
                                                "ahead, or let more workgroups claim"));
  }
}

}  // namespace

void check_progress(const SyncGraph& graph, Findings& findings) {
  check_host_barriers(graph.schedule(), findings);
  check_scopes(graph, findings);
  check_queues(graph, findings);
  check_races(graph, findings);
  check_overflow(graph, findings);
  check_satisfiable(graph, findings);
  if (!findings.empty()) {
    return;  // events that are never signalled would also appear as cycles
  }
  const std::vector<char> reached = reached_vertices(graph);
  if (std::find(reached.begin(), reached.end(), 0) == reached.end()) {
    return;
  }
  check_cycles(graph, reached, findings);
  TRITAX_ASSERT(!findings.empty(), "what is never reached waits in a cycle");
}

}  // namespace tritax

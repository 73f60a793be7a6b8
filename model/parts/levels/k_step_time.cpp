// The steady state of an order: the maximum cycle ratio of the graph of its inequalities (k_step.hpp).
//
// The search starts at the ratio of some cycle. It looks for longest paths, with weights of cycles less that
// ratio for every turn passed. A path that returns to its start is a cycle with a higher ratio, and the
// search continues with this ratio until there is no such cycle (E. Lawler, Combinatorial Optimization, 1976,
// §3.13, with cycles in place of bisection). All numbers are whole, so that the last ratio is exactly the
// maximum. (Boost's Howard iteration takes ratios within 0.005 for equal and gives up after 100
// improvements.)
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "model/core/error.hpp"
#include "model/parts/levels/k_step.hpp"

namespace tritax {

namespace {

struct Ratio {
  std::int64_t cycles = 0;
  std::int64_t turns = 1;
};

struct TimeEdge {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t cycles = 0;
  std::int64_t turns = 0;
};

constexpr std::array kServingUnits{StepUnit::matrix, StepUnit::lds, StepUnit::memory, StepUnit::vector,
                                   StepUnit::special};

constexpr std::size_t unit_index(StepUnit unit) { return static_cast<std::size_t>(unit); }

// Nodes for issue and for the beginning of service in a turn, numbered so that edges within a turn go up.
class TimeGraph {
 public:
  TimeGraph(const KStep& step, const StepOrder& order);

  // The cycle of the highest ratio; empty if that is `start`.
  std::vector<std::int32_t> highest(Ratio& start) const;

  std::int32_t instruction(std::int32_t node) const { return instructions_[static_cast<std::size_t>(node)]; }

 private:
  std::int32_t add_node(std::int32_t instruction) {
    instructions_.push_back(instruction);
    return static_cast<std::int32_t>(instructions_.size()) - 1;
  }
  void add_nodes(const KStep& step, const StepOrder& order);
  void add_issue(const KStep& step, const StepOrder& order);
  void add_units(const KStep& step, const StepOrder& order);
  void add_dependences(const KStep& step);
  std::vector<std::int32_t> rising_cycle(const std::vector<std::int32_t>& parents) const;

  std::size_t slot(std::int32_t instruction, std::int32_t wave) const {
    return static_cast<std::size_t>(instruction) * waves_ + static_cast<std::size_t>(wave);
  }

  std::size_t waves_ = 1;
  std::vector<std::int32_t> instructions_;  // by node
  std::vector<std::int32_t> issues_;        // nodes, by slot
  std::vector<std::int32_t> serves_;        // nodes, by slot; equal to issues_ without a queue
  std::vector<TimeEdge> edges_;             // edges within a turn first, by `from`
};

TimeGraph::TimeGraph(const KStep& step, const StepOrder& order)
    : waves_(static_cast<std::size_t>(step.waves_per_simd)),
      issues_(order.size() * waves_),
      serves_(order.size() * waves_) {
  add_nodes(step, order);
  add_issue(step, order);
  add_units(step, order);
  add_dependences(step);
  std::stable_sort(edges_.begin(), edges_.end(), [](const TimeEdge& a, const TimeEdge& b) {
    return std::pair(a.turns > 0, a.from) < std::pair(b.turns > 0, b.from);
  });
}

void TimeGraph::add_nodes(const KStep& step, const StepOrder& order) {
  const std::int32_t waves = step.waves_per_simd;
  for (const std::int32_t index : order) {
    const StepInstruction& instruction = step.instructions[static_cast<std::size_t>(index)];
    const bool queues = instruction.unit != StepUnit::none && step.queue[unit_index(instruction.unit)] > 0;
    for (std::int32_t wave = 0; wave < waves; ++wave) {
      const bool shared = instruction.kind == InstructionKind::barrier && wave > 0;
      issues_[slot(index, wave)] = shared ? issues_[slot(index, 0)] : add_node(index);
      serves_[slot(index, wave)] = queues ? add_node(index) : issues_[slot(index, wave)];
    }
  }
}

void TimeGraph::add_issue(const KStep& step, const StepOrder& order) {
  for (std::size_t place = 0; place < order.size(); ++place) {
    const bool last = place + 1 == order.size();
    const std::int32_t index = order[place];
    const std::int32_t next = order[last ? 0 : place + 1];
    for (std::int32_t wave = 0; wave < step.waves_per_simd; ++wave) {
      edges_.push_back({issues_[slot(index, wave)], issues_[slot(next, wave)],
                        step.instructions[static_cast<std::size_t>(index)].issue, last ? 1 : 0});
    }
  }
}

void TimeGraph::add_units(const KStep& step, const StepOrder& order) {
  for (const StepUnit unit : kServingUnits) {
    std::vector<std::size_t> served;  // slots
    for (const std::int32_t index : order) {
      if (step.instructions[static_cast<std::size_t>(index)].unit != unit) continue;
      for (std::int32_t wave = 0; wave < step.waves_per_simd; ++wave) served.push_back(slot(index, wave));
    }
    const std::size_t count = served.size();
    const auto room = static_cast<std::size_t>(step.queue[unit_index(unit)]);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t next = (k + 1) % count;
      const std::int32_t busy = step.instructions[served[k] / waves_].busy;
      edges_.push_back({serves_[served[k]], serves_[served[next]], busy, next <= k ? 1 : 0});
      if (room == 0) continue;
      edges_.push_back({issues_[served[k]], serves_[served[k]], 0, 0});
      const std::size_t behind = k + room;
      edges_.push_back({serves_[served[k]], issues_[served[behind % count]], 0,
                        static_cast<std::int64_t>(behind / count)});
    }
  }
}

void TimeGraph::add_dependences(const KStep& step) {
  for (const StepDependence& dependence : step.dependences) {
    for (std::int32_t wave = 0; wave < step.waves_per_simd; ++wave) {
      edges_.push_back({serves_[slot(dependence.from, wave)], issues_[slot(dependence.to, wave)],
                        dependence.cycles, dependence.turns});
    }
  }
}

// A cycle of the edges that raised nodes, as edges; such a cycle raises its nodes without end.
std::vector<std::int32_t> TimeGraph::rising_cycle(const std::vector<std::int32_t>& parents) const {
  std::vector<std::int32_t> seen(parents.size(), -1);
  for (std::size_t begin = 0; begin < parents.size(); ++begin) {
    const auto mark = static_cast<std::int32_t>(begin);
    auto node = begin;
    while (seen[node] < 0 && parents[node] >= 0) {
      seen[node] = mark;
      node = static_cast<std::size_t>(edges_[static_cast<std::size_t>(parents[node])].from);
    }
    if (seen[node] != mark || parents[node] < 0) {
      if (seen[node] < 0) seen[node] = mark;
      continue;
    }
    std::vector<std::int32_t> cycle;
    const auto first = node;
    do {
      cycle.push_back(parents[node]);
      node = static_cast<std::size_t>(edges_[static_cast<std::size_t>(parents[node])].from);
    } while (node != first);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }
  return {};
}

std::vector<std::int32_t> TimeGraph::highest(Ratio& ratio) const {
  std::vector<std::int32_t> found;
  for (;;) {
    std::vector<std::int64_t> ways(instructions_.size(), 0);
    std::vector<std::int32_t> parents(instructions_.size(), -1);
    std::vector<std::int32_t> cycle;
    bool raised = true;
    while (raised && cycle.empty()) {
      raised = false;
      for (std::size_t i = 0; i < edges_.size(); ++i) {
        const TimeEdge& edge = edges_[i];
        const std::int64_t way =
            ways[static_cast<std::size_t>(edge.from)] + edge.cycles * ratio.turns - edge.turns * ratio.cycles;
        if (way <= ways[static_cast<std::size_t>(edge.to)]) continue;
        ways[static_cast<std::size_t>(edge.to)] = way;
        parents[static_cast<std::size_t>(edge.to)] = static_cast<std::int32_t>(i);
        raised = true;
      }
      if (raised) cycle = rising_cycle(parents);
    }
    if (cycle.empty()) return found;
    ratio = {0, 0};
    found.clear();
    for (const std::int32_t edge : cycle) {
      ratio.cycles += edges_[static_cast<std::size_t>(edge)].cycles;
      ratio.turns += edges_[static_cast<std::size_t>(edge)].turns;
      found.push_back(edges_[static_cast<std::size_t>(edge)].from);
    }
    TRITAX_ASSERT(ratio.turns > 0, "what happens within a turn goes up");
  }
}

struct Limit {
  Ratio ratio;
  StepUnit unit = StepUnit::none;  // none: issue
  std::array<double, kStepUnits> busy{};
};

// The limit of the busiest unit and of the issue of a wave; both are cycles of the graph too.
Limit busiest(const KStep& step) {
  Limit limit;
  std::array<std::int64_t, kStepUnits> busy{};
  std::int64_t issue = 0;
  for (const StepInstruction& instruction : step.instructions) {
    busy[unit_index(instruction.unit)] += std::int64_t{instruction.busy} * step.waves_per_simd;
    issue += instruction.issue;
  }
  busy[unit_index(StepUnit::none)] = issue;
  limit.ratio.cycles = issue;
  for (const StepUnit unit : kServingUnits) {
    if (busy[unit_index(unit)] < limit.ratio.cycles) continue;
    if (busy[unit_index(unit)] == limit.ratio.cycles && limit.unit != StepUnit::none) continue;
    limit.ratio.cycles = busy[unit_index(unit)];
    limit.unit = unit;
  }
  for (std::size_t i = 0; i < busy.size(); ++i) limit.busy[i] = static_cast<double>(busy[i]);
  return limit;
}

std::string bound_text(const KStep& step, const StepOrder& critical) {
  constexpr std::size_t kMostNames = 4;
  std::vector<std::string> names;
  for (const std::int32_t index : critical) {
    if (names.size() == kMostNames) {
      names.push_back(fmt::format("{} more", critical.size() - kMostNames));
      break;
    }
    names.push_back(step.instructions[static_cast<std::size_t>(index)].name);
  }
  return fmt::format("{}", fmt::join(names, " -> "));
}

}  // namespace

double StepBoard::cycles(const StepOrder& order) const {
  Ratio ratio = busiest(step_).ratio;
  TimeGraph(step_, order).highest(ratio);
  return static_cast<double>(ratio.cycles) / static_cast<double>(ratio.turns);
}

StepTime StepBoard::evaluate(const StepOrder& order) const {
  StepTime time;
  const Limit limit = busiest(step_);
  time.busy = limit.busy;
  Ratio ratio = limit.ratio;
  const TimeGraph graph(step_, order);
  const std::vector<std::int32_t> cycle = graph.highest(ratio);
  time.cycles = static_cast<double>(ratio.cycles) / static_cast<double>(ratio.turns);
  if (cycle.empty()) {
    time.bound =
        limit.unit == StepUnit::none ? "issue" : "the " + std::string(kStepUnitNames[unit_index(limit.unit)]);
    for (const std::int32_t index : order) {
      const StepUnit unit = step_.instructions[static_cast<std::size_t>(index)].unit;
      if (limit.unit == StepUnit::none || unit == limit.unit) time.critical.push_back(index);
    }
    return time;
  }
  std::vector<bool> named(step_.instructions.size(), false);
  for (const std::int32_t node : cycle) {
    const std::int32_t index = graph.instruction(node);
    if (named[static_cast<std::size_t>(index)]) continue;
    named[static_cast<std::size_t>(index)] = true;
    time.critical.push_back(index);
  }
  time.bound = bound_text(step_, time.critical);
  return time;
}

}  // namespace tritax

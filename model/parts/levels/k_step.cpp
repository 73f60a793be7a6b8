#include "model/parts/levels/k_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "model/core/error.hpp"

namespace tritax {

namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

const StepInstruction& instruction_of(const KStep& step, std::int32_t index) {
  return step.instructions[at(index)];
}

bool is_barrier(const KStep& step, std::int32_t index) {
  return instruction_of(step, index).kind == InstructionKind::barrier;
}

// An order where the instructions at `place` and `place` + 1 may have changed places.
struct Swapped {
  const StepOrder& order;
  std::int32_t place = -2;  // nothing is swapped

  std::int32_t operator[](std::int32_t where) const {
    if (where == place) return order[at(place + 1)];
    if (where == place + 1) return order[at(place)];
    return order[at(where)];
  }
};

// Whether the stall counts from an instruction to the instruction that its window protects add up. `place`:
// of `to` if `backward`, else of `from`.
bool keeps_window(const KStep& step, const Swapped& order, const StepDependence& window, std::int32_t place,
                  bool backward) {
  const auto count = static_cast<std::int32_t>(step.instructions.size());
  const std::int32_t other = backward ? window.from : window.to;
  std::int64_t stalls = backward ? 0 : instruction_of(step, window.from).issue;
  std::int32_t turns = 0;
  for (std::int32_t where = place; stalls < window.cycles;) {
    where += backward ? -1 : 1;
    if (where < 0 || where == count) {
      if (++turns > window.turns)
        return true;  // legal otherwise: the other instruction does not lie in this direction
      where = backward ? count - 1 : 0;
    }
    const std::int32_t passed = order[where];
    if (backward) stalls += instruction_of(step, passed).issue;
    if (passed == other && turns == window.turns) return stalls >= window.cycles;
    if (!backward) stalls += instruction_of(step, passed).issue;
  }
  return true;
}

std::string window_text(const KStep& step, const StepDependence& window) {
  return fmt::format("{} needs {} cycles of other instructions between {} and itself",
                     instruction_of(step, window.to).name, window.cycles,
                     instruction_of(step, window.from).name);
}

std::vector<std::int32_t> places_of(const KStep& step, const StepOrder& order) {
  std::vector<std::int32_t> places(step.instructions.size(), -1);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::int32_t index = order[place];
    if (index < 0 || at(index) >= places.size() || places[at(index)] >= 0) return {};
    places[at(index)] = static_cast<std::int32_t>(place);
  }
  return order.size() == places.size() ? places : std::vector<std::int32_t>{};
}

// The first instruction on another side of a barrier than in the written order, or the first barrier out of
// its place among the barriers; -1: none.
std::int32_t first_over_a_wall(const KStep& step, const StepOrder& order) {
  std::vector<std::int32_t> side(order.size());
  std::int32_t barriers = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    side[i] = barriers;
    barriers += step.instructions[i].kind == InstructionKind::barrier;
  }
  barriers = 0;
  for (const std::int32_t index : order) {
    if (side[at(index)] != barriers) return index;
    barriers += is_barrier(step, index);
  }
  return -1;
}

}  // namespace

StepOrder written_order(const KStep& step) {
  StepOrder order(step.instructions.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::string order_problem(const KStep& step, const StepOrder& order) {
  const std::vector<std::int32_t> places = places_of(step, order);
  if (places.size() != step.instructions.size()) {
    return fmt::format("an order names each of the {} instructions once", step.instructions.size());
  }
  for (const StepDependence& dependence : step.dependences) {
    if (dependence.turns == 0 && places[at(dependence.from)] >= places[at(dependence.to)]) {
      return fmt::format("{} needs {}, which comes behind it", instruction_of(step, dependence.to).name,
                         instruction_of(step, dependence.from).name);
    }
    if (dependence.wait == StepWait::window &&
        !keeps_window(step, {order}, dependence, places[at(dependence.to)], true)) {
      return window_text(step, dependence);
    }
  }
  if (step.barriers_are_walls) {
    const std::int32_t over = first_over_a_wall(step, order);
    if (over >= 0) return fmt::format("{} has passed a barrier", instruction_of(step, over).name);
  }
  return "";
}

StepBoard::StepBoard(const KStep& step) : step_(step), dependences_of_(step.instructions.size()) {
  for (std::size_t i = 0; i < step.dependences.size(); ++i) {
    const StepDependence& dependence = step.dependences[i];
    TRITAX_ASSERT(at(dependence.from) < step.instructions.size() &&
                      at(dependence.to) < step.instructions.size() && dependence.turns >= 0 &&
                      (dependence.turns > 0 || dependence.from != dependence.to),
                  "dependence between instructions of a step");
    dependences_of_[at(dependence.from)].push_back(static_cast<std::int32_t>(i));
    if (dependence.to != dependence.from) {
      dependences_of_[at(dependence.to)].push_back(static_cast<std::int32_t>(i));
    }
  }
}

std::string StepBoard::swap_problem(const StepOrder& order, std::int32_t place) const {
  const std::int32_t first = order[at(place)];
  const std::int32_t second = order[at(place + 1)];
  if (step_.barriers_are_walls && (is_barrier(step_, first) || is_barrier(step_, second))) {
    return "nothing passes a barrier";
  }
  for (const std::int32_t index : dependences_of_[at(first)]) {
    const StepDependence& dependence = step_.dependences[at(index)];
    if (dependence.from == first && dependence.to == second && dependence.turns == 0) {
      return fmt::format("{} needs {}", instruction_of(step_, second).name,
                         instruction_of(step_, first).name);
    }
  }
  // Only dependences from `first` and to `second` become shorter.
  const Swapped swapped{order, place};
  for (const std::int32_t index : dependences_of_[at(first)]) {
    const StepDependence& dependence = step_.dependences[at(index)];
    if (dependence.wait == StepWait::window && dependence.from == first &&
        !keeps_window(step_, swapped, dependence, place + 1, false)) {
      return window_text(step_, dependence);
    }
  }
  for (const std::int32_t index : dependences_of_[at(second)]) {
    const StepDependence& dependence = step_.dependences[at(index)];
    if (dependence.wait == StepWait::window && dependence.to == second &&
        !keeps_window(step_, swapped, dependence, place, true)) {
      return window_text(step_, dependence);
    }
  }
  return "";
}

bool StepBoard::may_swap(const StepOrder& order, std::int32_t place) const {
  return swap_problem(order, place).empty();
}

namespace {

// List scheduling of one turn.
class Lister {
 public:
  explicit Lister(const KStep& step);
  StepOrder list();

 private:
  void need(std::int32_t from, std::int32_t to, std::int32_t cycles);
  void find_ways();
  bool windows_allow(std::int32_t index) const;
  std::int64_t earliest(std::int32_t index) const;
  std::int32_t best_ready() const;

  struct Need {
    std::int32_t to = 0;
    std::int32_t cycles = 0;
  };
  const KStep& step_;
  std::vector<std::vector<Need>> needs_;  // by instruction: instructions that wait for it
  std::vector<std::int32_t> missing_;     // by instruction: number of needs that are not met
  std::vector<std::int64_t> way_;         // longest path to the end of the turn
  std::vector<std::int64_t> operands_;    // time at which operands are there
  std::vector<std::int64_t> stalls_at_;   // sum of stall counts in front of it once listed; else -1
  std::array<std::int64_t, kStepUnits> unit_free_{};
  std::int64_t now_ = 0;     // time at which the next instruction issues
  std::int64_t stalls_ = 0;  // sum over all listed instructions
};

Lister::Lister(const KStep& step)
    : step_(step),
      needs_(step.instructions.size()),
      missing_(step.instructions.size()),
      way_(step.instructions.size()),
      operands_(step.instructions.size()),
      stalls_at_(step.instructions.size(), -1) {
  for (const StepDependence& dependence : step.dependences) {
    if (dependence.turns == 0) need(dependence.from, dependence.to, dependence.cycles);
  }
  if (step.barriers_are_walls) {
    std::int32_t wall = -1;
    const auto count = static_cast<std::int32_t>(step.instructions.size());
    for (std::int32_t i = 0; i < count; ++i) {
      if (wall >= 0) need(wall, i, 0);
      if (!is_barrier(step, i)) continue;
      for (std::int32_t before = wall + 1; before < i; ++before) need(before, i, 0);
      wall = i;
    }
  }
  find_ways();
}

void Lister::need(std::int32_t from, std::int32_t to, std::int32_t cycles) {
  needs_[at(from)].push_back({to, cycles});
  ++missing_[at(to)];
}

// Computes `way_` in reverse of an order that the needs allow.
void Lister::find_ways() {
  std::vector<std::int32_t> missing = missing_;
  StepOrder sorted;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] == 0) sorted.push_back(static_cast<std::int32_t>(i));
  }
  for (std::size_t next = 0; next < sorted.size(); ++next) {
    for (const Need& of : needs_[at(sorted[next])]) {
      if (--missing[at(of.to)] == 0) sorted.push_back(of.to);
    }
  }
  TRITAX_ASSERT(sorted.size() == missing.size(), "dependences within a turn go round in a circle");
  for (std::size_t i = sorted.size(); i-- > 0;) {
    const StepInstruction& instruction = instruction_of(step_, sorted[i]);
    std::int64_t& way = way_[at(sorted[i])];
    way = std::max(instruction.issue, instruction.busy);
    for (const Need& of : needs_[at(sorted[i])]) way = std::max(way, of.cycles + way_[at(of.to)]);
  }
}

bool Lister::windows_allow(std::int32_t index) const {
  return std::all_of(step_.dependences.begin(), step_.dependences.end(), [&](const StepDependence& one) {
    return one.wait != StepWait::window || one.to != index || one.turns > 0 ||
           stalls_ - stalls_at_[at(one.from)] >= one.cycles;
  });
}

std::int64_t Lister::earliest(std::int32_t index) const {
  const auto unit = static_cast<std::size_t>(instruction_of(step_, index).unit);
  return std::max({now_, operands_[at(index)], step_.queue[unit] > 0 ? 0 : unit_free_[unit]});
}

std::int32_t Lister::best_ready() const {
  std::int32_t best = -1;
  std::int64_t best_at = std::numeric_limits<std::int64_t>::max();
  const auto count = static_cast<std::int32_t>(missing_.size());
  for (std::int32_t i = 0; i < count; ++i) {
    if (missing_[at(i)] != 0 || stalls_at_[at(i)] >= 0 || !windows_allow(i)) continue;
    const std::int64_t when = earliest(i);
    if (best < 0 || when < best_at || (when == best_at && way_[at(i)] > way_[at(best)])) {
      best = i;
      best_at = when;
    }
  }
  return best;
}

StepOrder Lister::list() {
  StepOrder order;
  while (order.size() < missing_.size()) {
    const std::int32_t next = best_ready();
    if (next < 0) return {};
    const StepInstruction& instruction = instruction_of(step_, next);
    const auto unit = static_cast<std::size_t>(instruction.unit);
    const std::int64_t issued = earliest(next);
    const std::int64_t served =
        instruction.unit == StepUnit::none ? issued : std::max(issued, unit_free_[unit]);
    unit_free_[unit] = served + instruction.busy;
    now_ = issued + instruction.issue;
    stalls_at_[at(next)] = stalls_;
    stalls_ += instruction.issue;
    order.push_back(next);
    for (const Need& of : needs_[at(next)]) {
      --missing_[at(of.to)];
      operands_[at(of.to)] = std::max(operands_[at(of.to)], served + of.cycles);
    }
  }
  return order;
}

}  // namespace

StepOrder listed_order(const KStep& step) {
  StepOrder order = Lister(step).list();
  return order_problem(step, order).empty() ? order : written_order(step);
}

}  // namespace tritax

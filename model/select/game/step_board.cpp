#include "model/select/game/step_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

StepOrderBoard::StepOrderBoard(const KStep& step) : board_(step), order_(listed_order(step)) {}

// Swaps with one neighbour after the other, without checks.
void StepOrderBoard::swap_along(std::int32_t from, std::int32_t to) {
  const std::int32_t way = to > from ? 1 : -1;
  for (std::int32_t at = from; at != to; at += way) {
    std::swap(order_[static_cast<std::size_t>(at)], order_[static_cast<std::size_t>(at + way)]);
  }
}

bool StepOrderBoard::make(const Move& move) {
  const auto size = static_cast<std::int64_t>(order_.size());
  const std::int64_t target = std::int64_t{move.place} + move.steps;
  if (move.grain != Grain::operation || move.steps == 0 || move.place >= size || target < 0 ||
      target >= size) {
    return false;
  }
  const std::int32_t picked = order_[move.place];
  if (!board_.step().instructions[static_cast<std::size_t>(picked)].movable) return false;
  const auto from = static_cast<std::int32_t>(move.place);
  const std::int32_t way = move.steps > 0 ? 1 : -1;
  for (std::int32_t at = from; at != target; at += way) {
    if (!board_.may_swap(order_, std::min(at, at + way))) {
      swap_along(at, from);
      return false;
    }
    swap_along(at, at + way);
  }
  moves_.push_back(move);
  return true;
}

void StepOrderBoard::take_back() {
  TRITAX_ASSERT(!moves_.empty(), "an instruction was moved that can be taken back");
  const auto from = static_cast<std::int32_t>(moves_.back().place);
  swap_along(from + moves_.back().steps, from);
  moves_.pop_back();
}

std::string StepOrderBoard::describe(const Move& move) const {
  if (move.place >= order_.size()) return "no instruction";
  const auto picked = static_cast<std::size_t>(order_[move.place]);
  const std::int32_t steps = std::abs(move.steps);
  return fmt::format("{} {} past {} instruction{}", board_.step().instructions[picked].name,
                     move.steps < 0 ? "up" : "down", steps, steps == 1 ? "" : "s");
}

}  // namespace tritax

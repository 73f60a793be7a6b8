// The board of a K step (model/parts/levels/k_step.hpp): the instructions of a wave, which change places as
// in CuAsmRL (arXiv:2501.08071). Its time is cycles of a turn in the steady state, exact.
//
// One track, whose units are single instructions. Only those that load, read or write are picked up; others
// are passed. The mask is the step's own: dependences, barriers, stall windows. The start is the list
// schedule, as that of the game over machine code is what the compiler's -O3 wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parts/levels/k_step.hpp"
#include "model/select/game/board.hpp"

namespace tritax {

class StepOrderBoard final : public Board {
 public:
  // `step` must outlive it.
  explicit StepOrderBoard(const KStep& step);

  std::uint32_t tracks() const override { return 1; }
  std::uint32_t wide_tracks() const override { return 1; }
  std::string track_name(std::uint32_t) const override { return "step"; }
  bool has_grain(Grain grain) const override { return grain == Grain::operation; }
  std::uint32_t places(std::uint32_t, Grain) const override {
    return static_cast<std::uint32_t>(order_.size());
  }
  bool make(const Move& move) override;
  bool make_unproved(const Move& move) override { return make(move); }
  bool lawful() override { return order_problem(board_.step(), order_).empty(); }
  void take_back() override;
  double time() override { return board_.cycles(order_); }
  std::string describe(const Move& move) const override;

  const StepOrder& order() const { return order_; }
  StepTime evaluate() const { return board_.evaluate(order_); }

 private:
  void swap_along(std::int32_t from, std::int32_t to);

  StepBoard board_;
  StepOrder order_;
  std::vector<Move> moves_;
};

}  // namespace tritax

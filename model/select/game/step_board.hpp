// Defines the board of a K step (model/parts/levels/k_step.hpp): instructions of a wave change places as in
// CuAsmRL (arXiv:2501.08071). The time of a position is the exact number of cycles per turn in the steady
// state.
//
// There is one track; its units are single instructions. Moves pick only instructions that load, read or
// write; other instructions are passed. The mask is of the step itself: dependences, barriers, stall windows.
// The game starts from the list schedule, as the game over machine code starts from the compiler's -O3 code.
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

// One K step of a matmul: its instructions in the order in which a wave issues them, and the time of the loop
// in steady state.
//
// A step is a graph: instructions, and dependences between them, some of which reach into a later turn of the
// loop. An order is a permutation of the instructions. An order is legal if every dependence within a turn
// points forward, and if every distance that hardware does not guard (a stall window) is long enough. All
// legal orders compute the same result. `may_swap` says whether two neighbours may change places, so that a
// player needs no other rule; `evaluate` says what an order costs.
//
// Time. All waves of a compute unit run the same order, and each issues in order. Let x(i, t) be the cycle at
// which instruction i of turn t issues, and s(i, t) the one at which its unit (matrix core, LDS, memory path)
// begins to serve it:
//
//   x(next, t) ≥ x(i, t) + issue(i)              in order; the first of turn t + 1 behind the last of turn t
//   s(i, t)    ≥ x(i, t),  s(i, t) ≥ s(j, u) + busy(j)    j: the unit's last instruction before i, in order
//   x(i, t)    ≥ s(j, u)                         j: as many before i on its unit as the queue in front of the
//                                                unit holds; without a queue s = x
//   x(i, t)    ≥ s(j, t - d) + c                 a dependence of c cycles over d turns
//
// Several waves of a SIMD take turns at every unit, instruction by instruction; barriers are common to them.
// These are inequalities between times of turns, so that the steady state takes exactly the maximum cycle
// ratio of their graph: the largest, over all its cycles, of cycles spent over turns passed (Reiter 1968; F.
// Baccelli et al., Synchronization and Linearity, 1992, §3.2). That is also the initiation interval of modulo
// scheduling (B. R. Rau, MICRO 1994), for a given order.
//
// Example: one wave, a load of 100 cycles (issued in 1) and a matrix instruction of 32 that needs the load.
// With one register the order is load, matrix, and the next load behind the matrix instruction; the cycle
// load → matrix → load takes 100 + 1 cycles per turn. With two registers, the load of turn t fills the
// register of turn t + 1; the cycles are (100 + 1) / 2 and the matrix core's own 32: 50.5 cycles per turn.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

enum class InstructionKind : std::uint8_t {
  load,       // from memory into registers
  load_lds,   // from memory into LDS, past the registers (cp.async, TMA, buffer_load … lds)
  prefetch,   // from memory into a cache
  lds_write,  // registers to LDS
  lds_read,   // LDS to registers
  matrix,     // a matrix instruction
  barrier,    // of the workgroup
  vector,     // plain vector instructions, one after the other
  exponential,
};
inline constexpr std::array<std::string_view, 9> kStepKindNames{
    "load", "load-lds", "prefetch", "lds-write", "lds-read", "matrix", "barrier", "vector", "exponential"};

// Units that serve instructions; a unit serves one instruction at a time, in the order of issue. `special`:
// the unit for exponentials, where there is one.
enum class StepUnit : std::uint8_t { matrix, lds, memory, vector, special, none };
inline constexpr std::size_t kStepUnits = 6;
inline constexpr std::array<std::string_view, kStepUnits> kStepUnitNames{
    "matrix core", "LDS", "memory path", "vector unit", "special function unit", "none"};

struct StepInstruction {
  InstructionKind kind = InstructionKind::matrix;
  StepUnit unit = StepUnit::none;
  std::string name;          // "read A 2, k 0": unique in its step
  std::int32_t issue = 1;    // cycles until the wave can issue its next instruction; its stall count, > 0
  std::int32_t busy = 0;     // cycles for which the instruction occupies its unit
  std::int32_t latency = 0;  // from the beginning of service to the result, without delays
  bool movable = false;      // whether a player may pick it up: all but matrix instructions and barriers
};

// Who keeps a dependence.
enum class StepWait : std::uint8_t {
  hardware,  // hardware delays the later instruction (scoreboard, wait counter)
  window,    // nothing waits: the stall counts between the two must add up to `cycles` or more
};

// `to` of turn t needs `from` of turn t - turns.
struct StepDependence {
  std::int32_t from = 0;  // instructions, by their place in KStep::instructions
  std::int32_t to = 0;
  std::int32_t turns = 0;   // 0: within a turn, so that `from` comes first in every order
  std::int32_t cycles = 0;  // from the beginning of the service of `from` to the issue of `to`
  StepWait wait = StepWait::hardware;
};

struct KStep {
  std::string title;                          // "256x256x64 fp16 on MI300X, 4 waves, double"
  std::vector<StepInstruction> instructions;  // as the lowering writes them; this order is legal
  std::vector<StepDependence> dependences;
  std::int32_t waves_per_simd = 1;
  std::array<std::int32_t, kStepUnits>
      queue{};  // in front of every StepUnit; 0: a wave waits until its turn comes
  bool barriers_are_walls =
      false;         // nothing passes a barrier, whatever the dependences say (arXiv:2501.08071)
  double flops = 0;  // of a compute unit, by all its waves, in a turn
};

// Instruction at each place.
using StepOrder = std::vector<std::int32_t>;

// What bounds the steady state from below: a cycle of the inequalities above.
struct StepTime {
  double cycles = 0;  // per turn
  // The instructions of a critical cycle, in its order; each once, even if several waves have it.
  StepOrder critical;
  // Cycles per turn for which all waves of a SIMD occupy each StepUnit; `none`: for which a wave issues. No
  // order takes fewer.
  std::array<double, kStepUnits> busy{};
  std::string bound;  // in words: "the matrix core", "issue", "load A 0 -> write A 0 -> barrier"
};

// The order in which the instructions are written down.
StepOrder written_order(const KStep& step);

// List scheduling, as a compiler's -O3 does it: of the ready instructions, it takes the one with the longest
// path of latencies to the end of the turn, as units and operands allow; of equal ones the first written.
// With stall windows it can fail to reach a legal end; then the result is written_order.
StepOrder listed_order(const KStep& step);

// The first reason why an order is not legal, in words; "" if it is legal. `order` must be a permutation.
std::string order_problem(const KStep& step, const StepOrder& order);

// Instructions and dependences of a step, prepared once for many questions about orders. Holds a reference to
// `step`, which must outlive the board.
class StepBoard {
 public:
  explicit StepBoard(const KStep& step);

  const KStep& step() const { return step_; }

  // Whether the instructions at `place` and `place` + 1 of a legal order may change places, so that the order
  // stays legal: no dependence between the two within a turn, no barrier where barriers are walls, and all
  // stall windows kept. `place` + 1 < the number of instructions. The time is proportional to the number of
  // dependences of both, and to the lengths of their windows.
  bool may_swap(const StepOrder& order, std::int32_t place) const;

  // The reason why not, in words; "" if the swap is legal.
  std::string swap_problem(const StepOrder& order, std::int32_t place) const;

  // Cycles per turn in the steady state of a legal order. Exact: cycle counts are whole numbers, and the
  // result is a fraction of two of them.
  double cycles(const StepOrder& order) const;

  // The same with the critical cycle.
  StepTime evaluate(const StepOrder& order) const;

 private:
  const KStep& step_;
  std::vector<std::vector<std::int32_t>> dependences_of_;  // by instruction: indices of its dependences
};

}  // namespace tritax

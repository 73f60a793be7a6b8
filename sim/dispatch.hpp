// Compute units as slots, and the hardware dispatcher that fills the slots.
//
// A workgroup takes waves, registers and LDS of one compute unit while it runs. Workgroup w of a kernel goes
// to die w mod X (arXiv:2511.02132 §2; X counts the dies on which the kernel may run); every die takes its
// own workgroups in order as slots become free, so other dies do not help a slow die. Within a die,
// workgroups go to the shader engines in turn (model/schedule/shader_engines.hpp), and there to the least
// loaded compute unit with room (ties: lowest number); the hardware's order is not documented. Kernels of
// different streams are served in launch order. A kernel does not block other kernels if its next workgroup
// does not fit, or if it is a gang that does not fit as a whole (engine_gang.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Resources that a workgroup of a kernel takes of a compute unit, and compute units that it may use.
struct Demand {
  std::int32_t waves = 0;
  std::int64_t registers = 0;
  std::int64_t lds = 0;
  std::int32_t cu_begin = 0, cu_end = 0;  // cu_end 0: all
  bool in_turn = false;                   // only the shader engine whose turn it is

  bool operator==(const Demand&) const = default;
};

class Dispatcher {
 public:
  explicit Dispatcher(const Gpu& gpu);

  Demand demand_of(const Kernel& kernel) const;

  // Finds a compute unit for the `turn`-th workgroup of a kernel on `die`; -1 if the workgroup has to wait.
  // If the demand is not `in_turn`, any compute unit of the die with room qualifies.
  std::int32_t place(std::int32_t die, std::uint32_t turn, const Demand& demand) {
    return place(engines_ > 1 && demand.in_turn ? engine_of(die, turn) : dies_[static_cast<std::size_t>(die)],
                 demand);
  }

  bool has_room(std::int32_t cu, const Demand& demand) const { return has_room(cus_[cu], demand); }

  void take(std::int32_t cu, const Demand& demand);
  void release(std::int32_t cu, const Demand& demand);

  std::int32_t resident(std::int32_t cu) const { return cus_[cu].workgroups; }
  std::int32_t die_of(std::int32_t cu) const { return cus_[cu].die; }

  // True if an empty compute unit can run the workgroup at all.
  bool fits(const Demand& demand) const { return has_room(empty_, demand); }

 private:
  struct ComputeUnit {
    std::int64_t registers_free = 0;
    std::int64_t lds_free = 0;
    std::int32_t waves_free = 0;
    std::int32_t workgroups = 0;
    std::int32_t die = 0;
    std::int32_t engine = 0;
  };

  struct Group {                 // of compute units: a die or a shader engine
    std::optional<Demand> full;  // demand without room: only a compute unit released since can have it
    std::int32_t released = -1;  // the only compute unit released since then; -1: none
    std::int32_t begin = 0, end = 0;
    std::int32_t fewest = 0;    // lower bound of the workgroups per compute unit
    std::int32_t first_cu = 0;  // compute units before this one have more workgroups than `fewest`
  };

  static bool has_room(const ComputeUnit& cu, const Demand& demand) {
    const bool waves = cu.waves_free >= demand.waves;
    const bool registers = cu.registers_free >= demand.registers;
    const bool lds = cu.lds_free >= demand.lds;
    return waves & registers & lds;  // without a branch
  }
  Group& engine_of(std::int32_t die, std::uint32_t turn) {
    return shader_engines_[static_cast<std::size_t>(die * engines_ + turns_[turn % turns_.size()])];
  }
  std::int32_t place(Group& group, const Demand& demand);
  static void note_release(Group& group, std::int32_t cu, std::int32_t workgroups);
  std::int32_t search(Group& group, const Demand& demand) const;

  std::vector<ComputeUnit> cus_;
  std::vector<Group> dies_;
  std::vector<Group> shader_engines_;  // of all dies
  std::vector<std::int32_t> turns_;
  std::int32_t engines_ = 1;  // per die
  ComputeUnit empty_;
  std::int32_t lanes_per_wave_ = 0;
};

}  // namespace tritax

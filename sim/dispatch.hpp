// Compute units as slots, and the hardware dispatcher that fills them.
//
// A workgroup takes waves, registers and LDS of one compute unit while it runs. Workgroup w of a kernel goes
// to die w mod X (arXiv:2511.02132 §2; X counts the dies on which the kernel may run); every die takes its
// own workgroups in order as slots become free, so a slow die is not helped by the others. Within a die the
// least loaded compute unit with room takes the workgroup (ties: lowest number); the hardware's order is not
// documented. Kernels of different streams are served in launch order; a kernel whose next workgroup does not
// fit does not block the others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// What is free on one compute unit.
struct ComputeUnit {
  std::int32_t waves_free = 0;
  std::int64_t registers_free = 0;
  std::int64_t lds_free = 0;
  std::int32_t workgroups = 0;
};

class Dispatcher {
 public:
  explicit Dispatcher(const Gpu& gpu);

  // Finds a compute unit of `die` within [cu_begin, cu_end) that can take the workgroup; -1 if none can.
  std::int32_t place(std::int32_t die, const Kernel& kernel);

  bool has_room(std::int32_t cu, const Kernel& kernel) const { return has_room(cus_[cu], needs_of(kernel)); }

  void take(std::int32_t cu, const Kernel& kernel);
  void release(std::int32_t cu, const Kernel& kernel);

  std::int32_t resident(std::int32_t cu) const { return cus_[cu].workgroups; }
  std::int32_t die_of(std::int32_t cu) const { return cu / cus_per_die_; }

  // True if an empty compute unit can run the workgroup at all.
  bool fits(const Kernel& kernel) const;

 private:
  // What a kernel asks for.
  struct Demand {
    Resources resources;
    std::int32_t cu_begin = 0, cu_end = 0;

    bool operator==(const Demand&) const = default;
  };

  // A die that had no room: since then only what was released can have some.
  struct Full {
    std::optional<Demand> demand;  // none: there may be room
    std::int32_t released = -1;    // the only compute unit; -1: none
  };

  // What a workgroup takes of a compute unit.
  struct Needs {
    std::int32_t waves = 0;
    std::int64_t registers = 0;
    std::int64_t lds = 0;
  };

  Needs needs_of(const Kernel& kernel) const;
  static bool has_room(const ComputeUnit& cu, const Needs& needs) {
    return cu.waves_free >= needs.waves && cu.registers_free >= needs.registers && cu.lds_free >= needs.lds;
  }
  std::int32_t search(std::int32_t die, const Kernel& kernel) const;

  std::vector<ComputeUnit> cus_;
  std::vector<Full> full_;  // by die
  ComputeUnit empty_;
  std::int32_t cus_per_die_ = 0;
  std::int32_t lanes_per_wave_ = 0;
};

}  // namespace tritax

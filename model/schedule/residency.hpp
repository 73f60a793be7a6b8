// Computes how many workgroups the compute units of a GPU hold at once.
//
// Workgroup w of a kernel goes to die w mod X (arXiv:2511.02132 §2), there to the least loaded compute unit
// with room, and stays: these workgroups wait for each other, so none ends before the last has started.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

class ResidentWorkgroups {
 public:
  explicit ResidentWorkgroups(const Gpu& gpu);

  // Adds up to `limit` workgroups of the kernel and returns how many found a place.
  std::uint64_t add(const Kernel& kernel, std::uint64_t limit);

  // The same for one workgroup of the kernel, by number.
  bool add_workgroup(const Kernel& kernel, std::uint64_t workgroup);
  bool has_room(const Kernel& kernel, std::uint64_t workgroup) const;

 private:
  struct ComputeUnit {
    std::int64_t waves_free = 0;
    std::int64_t registers_free = 0;
    std::int64_t lds_bytes_free = 0;
    std::int32_t workgroups = 0;
  };

  // A compute unit with room on the die of the workgroup; nothing if the die is full.
  std::optional<std::size_t> find_room(const Kernel& kernel, std::uint64_t workgroup) const;

  const Gpu& gpu_;
  std::vector<ComputeUnit> cus_;
};

// Waves and registers of a workgroup: whole waves, and registers for all their lanes.
std::int64_t waves_of(const Gpu& gpu, const Resources& resources);
std::int64_t registers_of(const Gpu& gpu, const Resources& resources);

// Whether an empty compute unit has room for a workgroup of each.
bool share_a_unit(const Gpu& gpu, const Resources& a, const Resources& b);

// The dies on which a kernel may run: [first, first + count).
struct Dies {
  std::int32_t first = 0;
  std::int32_t count = 0;
};
Dies dies_of(const Gpu& gpu, const Kernel& kernel);

// True if a workgroup of `one` finds room wherever one of `other` does.
bool fits_wherever(const Gpu& gpu, const Kernel& one, const Kernel& other);

}  // namespace tritax

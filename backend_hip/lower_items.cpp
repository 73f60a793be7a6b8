#include "backend_hip/lower_items.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax::gpu {

namespace {

struct Touched {
  Rect rect;
  bool writes = false;
  std::size_t program = 0;
};

bool overlap_across_programs(std::vector<Touched>& touched) {
  if (std::none_of(touched.begin(), touched.end(), [](const Touched& one) { return one.writes; }))
    return false;
  std::sort(touched.begin(), touched.end(),
            [](const Touched& a, const Touched& b) { return a.rect.row < b.rect.row; });
  std::vector<const Touched*> open;  // rectangles that reach the current row
  for (const Touched& one : touched) {
    std::erase_if(open,
                  [&](const Touched* other) { return other->rect.row + other->rect.rows <= one.rect.row; });
    for (const Touched* other : open) {
      const bool meet =
          other->rect.col < one.rect.col + one.rect.cols && one.rect.col < other->rect.col + other->rect.cols;
      if (meet && other->program != one.program && (other->writes || one.writes)) return true;
    }
    open.push_back(&one);
  }
  return false;
}

}  // namespace

bool programs_conflict(const Schedule& schedule, const Kernel& kernel) {
  std::map<std::pair<int, std::int16_t>, std::vector<Touched>> by_buffer;
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
      const auto add = [&](const Region& region, bool writes) {
        by_buffer[{region.rank, region.buffer}].push_back({region.rect, writes, p});
      };
      for_each_read(op, kernel.rank, [&](const Region& region) { add(region, false); });
      for_each_write(op, [&](const Region& region, bool) { add(region, true); });
    }
  }
  return std::any_of(by_buffer.begin(), by_buffer.end(),
                     [](auto& entry) { return overlap_across_programs(entry.second); });
}

std::int32_t number_of_item_claim(const Schedule& schedule, std::size_t kernel, std::size_t item) {
  std::size_t number = schedule.ops.size() + item;
  for (std::size_t k = 0; k < kernel; ++k) number += schedule.kernels[k].items.size();
  return static_cast<std::int32_t>(number);
}

std::uint32_t claim_of_item(const Schedule& schedule, const Workgroup& workgroup, std::int32_t item) {
  for (std::uint32_t i = workgroup.first_op; i < workgroup.first_op + workgroup.op_count; ++i) {
    const Op& op = schedule.ops[i];
    if (draws_items(op) && op.k_begin <= item && item < op.k_end) return i;
  }
  TRITAX_ASSERT(false, "who has run an item claims from its queue");
}

std::size_t item_total(const Schedule& schedule) {
  std::size_t total = 0;
  for (const Kernel& kernel : schedule.kernels) total += kernel.items.size();
  return total;
}

}  // namespace tritax::gpu

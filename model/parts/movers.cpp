#include "model/parts/movers.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"

namespace tritax {

std::int32_t room_beside(const Gpu& gpu, const Resources& resources, std::int32_t others,
                         std::string_view to) {
  const std::int32_t room = gpu.cu_count() * residents_at_most(gpu, resources) - others;
  if (room >= 1) return room;
  throw UserError(fmt::format("comm_cus: {} workgroups leave none of the GPU to {}; use fewer", others, to));
}

}  // namespace tritax

// Common parts of patterns where some workgroups move data and the others compute.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Workgroups of a kernel that fit a GPU beside `others` communicating workgroups of the kernel. Throws
// UserError that names comm_cus where no workgroup is left; `to`: the work of these workgroups.
std::int32_t room_beside(const Gpu& gpu, const Resources& resources, std::int32_t others,
                         std::string_view to);

}  // namespace tritax

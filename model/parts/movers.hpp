// What patterns share in which some workgroups move data and the others compute.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Workgroups of a kernel that fit a GPU beside `others` of it, which communicate. Throws UserError that
// names comm_cus where none is left to do what `to` says.
std::int32_t room_beside(const Gpu& gpu, const Resources& resources, std::int32_t others,
                         std::string_view to);

}  // namespace tritax

// All workloads: one line a folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/workload/workload.hpp"

namespace tritax {

// The first is the one that is meant where nobody names any.
std::span<const Workload* const> workloads();

// Throws UserError that lists the names, with the nearest one offered. `where` is the flag or file:line to
// blame.
const Workload& find_workload(std::string_view name, const std::string& where);

// The first that is this step of a layer; null if none is.
const Workload* find_workload(Projection projection);

}  // namespace tritax

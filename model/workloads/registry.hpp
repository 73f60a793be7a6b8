// All workloads: one line per folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/workload/workload.hpp"

namespace tritax {

// All workloads; the first is the default.
std::span<const Workload* const> workloads();

// The workload with this name, or with this former name; null if there is none.
const Workload* workload_named(std::string_view name);

// The same. Throws UserError that lists the names and offers the nearest one. `where`: the flag or file:line
// to blame.
const Workload& find_workload(std::string_view name, const std::string& where);

// The first workload for this step of a layer; null if there is none.
const Workload* find_workload(Projection projection);

// The workload that computes this block of a layer.
const Workload& find_workload(BlockRole block);

// The workload that a call of a real run looks like; null if there is none.
const Workload* find_workload(TracedCollective collective, BesideProduct beside);

}  // namespace tritax

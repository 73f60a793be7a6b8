// Which parameters are fitted together, and to which rows: the table behind `calibrate`.
#pragma once

#include <vector>

#include "sim/study/calibrate/fit.hpp"

namespace tritax {

// Groups in the order in which they are fitted; a group may rely on parameters of the groups before it, and
// on the clocks.
std::vector<FitGroup> device_groups(const Machine& machine);

// Whether what hosts take around kernels was measured apart from those. Older files have only whole steps, in
// which an error of the kernels passes for one of the hosts.
bool knows_host_times(const std::vector<Observation>& table);

// What hosts do. Kernels of their rows find overwritten caches, so that these have to be known.
std::vector<FitGroup> host_groups(const std::vector<Observation>& table, const Machine& machine);

// Traffic between GPUs that fills links: by enough workgroups, of a data kernel or storing tiles, in any
// layout, to peers in any order, on any number of GPUs. Links and ports are fitted to some of it, and laws
// say what the rest takes: fewer GPUs than the node has (store_ports), a receiver that all send to, rates of
// a link in any layout. So all of it tells how well predictions do.
bool fills_links(const MicrobenchRow& row);

}  // namespace tritax

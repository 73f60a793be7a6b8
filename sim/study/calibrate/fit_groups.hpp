// Which parameters are fitted together, and to which rows: the table behind `calibrate`.
#pragma once

#include <vector>

#include "sim/study/calibrate/fit.hpp"

namespace tritax {

// Groups in the order in which they are fitted; a group may rely on parameters of the groups before it, and
// on the clocks.
std::vector<FitGroup> device_groups(const Machine& machine);

// Whether the table has separate rows for host times around kernels. Older files have only whole steps, in
// which an error of the kernels passes for an error of the hosts.
bool knows_host_times(const std::vector<Observation>& table);

// Groups of host parameters. Kernels of their rows find overwritten caches, so cache parameters must be
// known.
std::vector<FitGroup> host_groups(const std::vector<Observation>& table, const Machine& machine);

// Traffic between GPUs that fills links: by enough workgroups, of a data kernel or storing tiles, in any
// layout, to peers in any order, on any number of GPUs. Links and ports are fitted to a part of these rows.
// Laws give the rest: fewer GPUs than the node has (store_ports), a receiver that all send to, rates of a
// link in any layout. So the rows show how good predictions are.
bool fills_links(const MicrobenchRow& row);

}  // namespace tritax

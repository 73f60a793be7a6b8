#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// One builder per mapping of rows and nonzeros to workgroups and lanes; patterns.cpp describes each.
Schedule build_spmv_library(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_thread_mapped(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_group_mapped(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_work_oriented(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_merge_path(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_bucketing(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_queue(const Problem& problem, const Machine& machine, const Values& knobs);

}  // namespace tritax

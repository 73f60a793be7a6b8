#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// How the rows and nonzeros of a sparse matrix come to workgroups and lanes; each stands in patterns.cpp.
Schedule build_spmv_library(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_thread_mapped(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_group_mapped(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_work_oriented(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_merge_path(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_bucketing(const Problem& problem, const Machine& machine, const Values& knobs);
Schedule build_spmv_queue(const Problem& problem, const Machine& machine, const Values& knobs);

}  // namespace tritax

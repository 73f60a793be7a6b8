#include "model/workloads/traced_forms.hpp"

#include <array>

#include "model/workloads/all_gather/schedule.hpp"
#include "model/workloads/all_gather_gemm/problem.hpp"
#include "model/workloads/all_reduce/workload.hpp"
#include "model/workloads/all_to_all/workload.hpp"
#include "model/workloads/broadcast/workload.hpp"
#include "model/workloads/gemm/patterns.hpp"
#include "model/workloads/gemm_all_reduce/patterns.hpp"
#include "model/workloads/gemm_all_scatter/problem.hpp"
#include "model/workloads/gemm_all_to_all/patterns.hpp"
#include "model/workloads/gemm_reduce_scatter/patterns.hpp"
#include "model/workloads/reduce_scatter/workload.hpp"

namespace tritax {

std::span<const TracedForm> traced_forms() {
  using C = TracedCollective;
  using B = BesideProduct;
  static const std::array<TracedForm, 11> forms{{
      {.collective = C::all_gather,
       .beside = B::behind,
       .workload = &gemm_all_scatter(),
       .columns_of_all = true},
      {.collective = C::all_gather, .beside = B::before, .workload = &all_gather_gemm()},
      {.collective = C::all_reduce,
       .beside = B::behind,
       .workload = &gemm_all_reduce(),
       .depth_of_all = true},
      {.collective = C::reduce_scatter,
       .beside = B::behind,
       .workload = &gemm_reduce_scatter(),
       .depth_of_all = true},
      {.collective = C::all_to_all, .beside = B::behind, .workload = &gemm_all_to_all(), .rows_of_all = true},
      {.workload = &gemm()},
      {.collective = C::all_reduce, .workload = &all_reduce()},
      {.collective = C::all_gather, .workload = &all_gather()},
      {.collective = C::reduce_scatter, .workload = &reduce_scatter()},
      {.collective = C::all_to_all, .workload = &all_to_all()},
      {.collective = C::broadcast, .workload = &broadcast()},
  }};
  return forms;
}

const TracedForm* find_traced_form(TracedCollective collective, BesideProduct beside) {
  for (const TracedForm& form : traced_forms()) {
    if (form.collective == collective && form.beside == beside) return &form;
  }
  return nullptr;
}

}  // namespace tritax

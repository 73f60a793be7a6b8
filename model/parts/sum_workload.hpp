// Limits, knob spaces and bounds of workloads of partial sums (partial_sums.hpp).
#pragma once

#include "model/parts/library_tile.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// From the fields m, n, k, dtype and gpus.
PartialSums partial_sums_of(const Problem& problem, Blocks blocks);

// The product of the rank with the largest share of K.
GemmShape shape_of(const PartialSums& sums);

// Throws UserError where a GPU gets no part of K, or no part of the side of C that `blocks` cuts; `field`:
// its name.
void require_parts(const Problem& problem, const FieldPlace& place, std::string_view field);

// Throws UserError for impossible knobs, memory or sizes. `copies_of_c`: buffers of M × N that a rank needs
// beside C.
void check_partial_sums(const PartialSums& sums, const Machine& machine, const SumKnobs& knobs,
                        double copies_of_c);

// The same where a rank needs `more_bytes` beside its operands; `more_bytes` includes C.
void check_sums_in_memory(const PartialSums& sums, const Machine& machine, const SumKnobs& knobs,
                          double more_bytes);

// The flops of the product, and the number of peers that a rank exchanges sums with.
Work product_work(const PartialSums& sums);

// Workload::bound_ns: a lower bound of the time, from the product of the rank with the largest share of K.
double sum_bound_ns(const Pattern& pattern, const PartialSums& sums, const Machine& machine,
                    const Values& knobs);

// The values of the knob `transport` of this table that the machine has, for partial sums of this type.
Axis transport_axis(const Values& table, const Machine& machine, int gpus, DType dtype);

// Knobs of the table that suit the machine.
Values default_sum_knobs(const Values& table, const PartialSums& sums, const Machine& machine);

// The space of GEMM kernels, and transport, chunks and rings.
KnobSpace sum_space(const Pattern& pattern, const PartialSums& sums, const Machine& machine,
                    const Values& table, const Values& pins);

}  // namespace tritax

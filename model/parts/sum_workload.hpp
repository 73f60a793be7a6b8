// What workloads of partial sums (partial_sums.hpp) share besides patterns: limits, knob spaces, bounds.
#pragma once

#include "model/parts/library_tile.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// Of the fields m, n, k, dtype and gpus.
PartialSums partial_sums_of(const Problem& problem, Blocks blocks);

// The product of the rank that has most of K.
GemmShape shape_of(const PartialSums& sums);

// Refuses what has no part for every GPU: K, and the side of C that `blocks` cuts, called `field`.
void require_parts(const Problem& problem, const FieldPlace& place, std::string_view field);

// Refuses knobs, memory and sizes that cannot be. `copies_of_c`: buffers of M × N that a rank needs beside C.
void check_partial_sums(const PartialSums& sums, const Machine& machine, const SumKnobs& knobs,
                        double copies_of_c);

// The same where a rank needs `more_bytes` beside its operands, of C too.
void check_sums_in_memory(const PartialSums& sums, const Machine& machine, const SumKnobs& knobs,
                          double more_bytes);

// The flops of the product, and the peers that a rank exchanges sums with.
Work product_work(const PartialSums& sums);

// Workload::bound_ns: a lower bound of the time, by the product of the rank that has most of K.
double sum_bound_ns(const Pattern& pattern, const PartialSums& sums, const Machine& machine,
                    const Values& knobs);

// Knobs of the table that suit the machine.
Values default_sum_knobs(const Values& table, const PartialSums& sums, const Machine& machine);

// The space of GEMM kernels, and transport, chunks and rings.
KnobSpace sum_space(const Pattern& pattern, const PartialSums& sums, const Machine& machine,
                    const Values& table, const Values& pins);

}  // namespace tritax

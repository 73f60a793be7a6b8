// What a vendor's kernels find a machine to be.
//
// Some parameters of a machine are costs of the backend's kernels, which interpret a schedule: reading an
// operation, fetching it from memory first if caches are cold, setting up its tile, handing operands over
// between waves, putting a finished tile together in LDS. `tritax calibrate` measures them with those
// kernels. Kernels that are compiled for one GEMM or one collective have none of them (cuBLAS on H200:
// scenarios/measured/h200-4-library-microbench.csv). Behind a switch, what stores reach is such a parameter
// too: tiles of a schedule fill the packets of NVLink less well than loads and than NCCL does (326 GB/s and
// more, there, against 317 of the backend's stores on the same node).
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// `machine` without the costs of the interpreter: K step, matmul, copy, load and store operations cost what
// their bytes and flops do, nothing is fetched before the first, a finished tile goes into LDS at the rate of
// LDS, and kernels follow each other after LibraryCosts::kernel_gap_ns where that is known. Behind a switch
// stores fill links as loads do. Throws nothing.
Machine vendor_machine(const Machine& machine);

// Makes the schedule what the backend runs: everything by its interpreter, without the set-up times and rates
// that stand for a library's kernels.
void run_by_interpreter(Schedule& schedule);

}  // namespace tritax

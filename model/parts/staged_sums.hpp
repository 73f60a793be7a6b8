// All-reduces whose kernel works on a symmetric buffer, where the caller's tensors are not: the framework
// copies the input into the buffer before the kernel, and the sum out of it behind the kernel, as vLLM does
// around PyTorch's kernels (vllm/distributed/device_communicators/symm_mem.py, all_reduce).
#pragma once

#include "model/parts/partial_sums.hpp"
#include "model/workload/values.hpp"

namespace tritax {

inline constexpr std::string_view kStagedKnob = "staged";
Spec staged_knob();

// Gives a collective alone a symmetric buffer beside its input, and an output beside C; its kernels run in
// one graph, as engines run them. Call it before the pattern's kernels are added.
void stage(SumDraft& draft);

// What a rank launches: the kernel, between the two copies if the sums are staged.
Graph staged_launches(SumDraft& draft, int rank, std::int32_t kernel);

}  // namespace tritax

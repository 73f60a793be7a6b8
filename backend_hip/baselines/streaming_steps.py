#!/usr/bin/env python3
"""Times of PyTorch's kernels, one by one, in dropout, residual and layer norm, and in rotary embedding, on one GPU.

Columns: step, rows and columns of x, element types of operands and result, median of a profiler's kernel times in
microseconds, and picoseconds per element of x. The cache is flushed before every repetition. The work of a step per element in
model/workloads/streaming_kernel/vector_work.cpp comes from the largest matrix of a step.

    python3 streaming_steps.py --output steps.csv [--commit REVISION]
"""

import statistics

import torch
from torch.profiler import ProfilerActivity, profile

import harness

REPEATS = 10
HEAD = 128


def steps(rows, cols):
    """(step, operand type, result type, call): what the steps of streaming.py launch."""
    x = harness.random_matrix(rows, cols, "bf16", 1)
    wide = x.float()
    norm = torch.nn.LayerNorm(cols, device="cuda", dtype=torch.bfloat16).requires_grad_(False)
    wide_norm = torch.nn.LayerNorm(cols, device="cuda").requires_grad_(False)
    heads = x.view(rows, -1, HEAD)
    low, high = heads.chunk(2, dim=-1)
    negated = -high
    table = harness.random_matrix(rows, HEAD, "bf16", 2)[:, None]
    return [("dropout", "bf16", "bf16", lambda: torch.nn.functional.dropout(x, p=0.1)),
            ("add", "bf16", "bf16", lambda: x + x),
            ("cast", "bf16", "fp32", lambda: x.float()),
            ("norm", "bf16", "bf16", lambda: norm(x)),
            ("norm", "fp32", "fp32", lambda: wide_norm(wide)),
            ("strided", "bf16", "bf16", lambda: -high),
            ("concatenate", "bf16", "bf16", lambda: torch.cat((negated, low), dim=-1)),
            ("broadcast", "bf16", "bf16", lambda: heads * table)]


def kernel_us(call, flush):
    """The median time of the longest kernel of a call."""
    for _ in range(3):
        call()
    times = []
    for _ in range(REPEATS):
        flush.fill_(1)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            call()
            torch.cuda.synchronize()
        times.append(max(event.device_time for event in found.events()))
    return statistics.median(times)


def main():
    arguments = harness.parser_of(__doc__).parse_args()
    flush = torch.empty(256_000_000, dtype=torch.int8, device="cuda")
    with open(arguments.output, "w") as out:
        out.write(harness.origin(arguments.commit) + "step,rows,cols,operand,result,kernel_us,ps_per_element\n")
        for rows, cols in ((4096, 4096), (16384, 2048), (131072, 2048), (32768, 8192)):
            for step, operand, result, call in steps(rows, cols):
                us = kernel_us(call, flush)
                out.write(f"{step},{rows},{cols},{operand},{result},{us:.2f},{us * 1e6 / (rows * cols):.3f}\n")
                out.flush()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

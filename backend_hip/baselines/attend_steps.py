#!/usr/bin/env python3
"""How long one block of keys takes in a Triton kernel of attention whose workgroup has a compute unit for itself.

One new token of one sequence, 8 heads of keys, 128 columns, keys in the L2: eight workgroups, each on a unit of its own, go
through their keys step by step. The part of a step that does not grow with its keys is `attend_chain_time` of a machine file.

    python3 attend_steps.py --output steps.csv [--commit REVISION]
"""

import statistics

import torch

import harness
import paged_attention

KEYS = 8192
REPEATS = 10


def graph_us(call):
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(REPEATS):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def main():
    arguments = harness.parser_of(__doc__).parse_args()
    with open(arguments.output, "w") as out:
        out.write(harness.origin(arguments.commit) + "head_dim,tile,waves,stages,keys,device_us,step_us\n")
        for columns in (64, 128):
            problem = paged_attention.Problem(
                {"sequences_count": 1, "sequences_query": 1, "sequences_context": KEYS, "second_count": 0, "ragged": 0,
                 "page": 16, "q_heads": 32, "kv_heads": 8, "head_dim": columns, "dtype": "bf16"}, 0, 1)
            for tile in (16, 32, 64, 128):
                for waves in (4, 8):
                    for stages in (2, 3):
                        paged_attention.FORMS["step"] = (tile, 16, 1, waves, stages)
                        us = graph_us(lambda: problem.run("step"))
                        out.write(f"{columns},{tile},{waves},{stages},{KEYS},{us:.2f},{us * tile / KEYS:.3f}\n")
                        out.flush()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""All-reduce alone as a library user writes it: torch.distributed.all_reduce (NCCL, RCCL).

Every rank has a matrix and ends with the sum of all, in place: calls behind the first run on what it left. One form:

  library  the collective

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 all_reduce.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """The matrix of one rank, and the call."""

    def __init__(self, shape, rank, world):
        rows, cols, dtype = shape["rows"], shape["cols"], shape["dtype"]
        self.dtype, self.rank, self.world = dtype, rank, world
        self.own = harness.random_matrix(rows, cols, dtype, 1 + rank)

    def run(self, form):
        dist.all_reduce(self.own)

    def check(self):
        """Relative error against fp64, of matrices that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        want = sum(harness.random_matrix(*self.own.shape, self.dtype, 1 + rank).double() for rank in range(self.world))
        return float((self.own.double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "all-reduce",
        "fields": {"rows": None, "cols": None, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""Broadcast alone as a library user writes it: torch.distributed.broadcast (NCCL, RCCL).

Every rank ends with the matrix of rank 0, in place. One form:

  library  the collective

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 broadcast.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """The matrix of one rank, and the call."""

    def __init__(self, shape, rank, world):
        rows, cols, dtype = shape["rows"], shape["cols"], shape["dtype"]
        self.dtype, self.rank, self.world = dtype, rank, world
        self.data = harness.random_matrix(rows, cols, dtype, 1 + rank)

    def run(self, form):
        dist.broadcast(self.data, 0)

    def check(self):
        """Relative error against fp64, of matrices that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        want = harness.random_matrix(*self.data.shape, self.dtype, 1).double()
        return float((self.data.double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "broadcast",
        "fields": {"rows": None, "cols": None, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

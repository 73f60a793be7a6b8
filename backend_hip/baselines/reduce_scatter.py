#!/usr/bin/env python3
"""Reduce-scatter alone as a library user writes it: torch.distributed.reduce_scatter_tensor (NCCL, RCCL).

Every rank has a matrix and ends with its rows of the sum of all. One form:

  library  the collective

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 reduce_scatter.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """The matrix of one rank, and the call."""

    def __init__(self, shape, rank, world):
        rows, cols, dtype = shape["rows"], shape["cols"], shape["dtype"]
        if rows % world != 0:
            raise ValueError(f"{shape}: cannot be split over {world} GPUs by reduce_scatter_tensor")
        self.dtype, self.rank, self.world = dtype, rank, world
        self.own = harness.random_matrix(rows, cols, dtype, 1 + rank)
        self.sum = torch.empty(rows // world, cols, device="cuda", dtype=harness.DTYPES[dtype])

    def run(self, form):
        dist.reduce_scatter_tensor(self.sum, self.own)

    def check(self):
        """Relative error against fp64, of matrices that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        matrices = [harness.random_matrix(*self.own.shape, self.dtype, 1 + rank) for rank in range(self.world)]
        want = sum(matrix.double().chunk(self.world)[self.rank] for matrix in matrices)
        return float((self.sum.double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "reduce-scatter",
        "fields": {"rows": None, "cols": None, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

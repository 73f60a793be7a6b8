#!/usr/bin/env python3
"""All-to-all alone as a library user writes it: torch.distributed.all_to_all_single (NCCL, RCCL).

Every rank has a matrix, cut by rows into a block for each rank, and ends with the blocks that all have for it. One
form:

  library  the collective

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 all_to_all.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """The matrix of one rank, and the call."""

    def __init__(self, shape, rank, world):
        rows, cols, dtype = shape["rows"], shape["cols"], shape["dtype"]
        if rows % world != 0:
            raise ValueError(f"{shape}: cannot be split over {world} GPUs by all_to_all_single")
        self.dtype, self.rank, self.world = dtype, rank, world
        self.own = harness.random_matrix(rows, cols, dtype, 1 + rank)
        self.received = torch.empty_like(self.own)

    def run(self, form):
        dist.all_to_all_single(self.received, self.own)

    def check(self):
        """Relative error against fp64, of matrices that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        matrices = [harness.random_matrix(*self.own.shape, self.dtype, 1 + rank) for rank in range(self.world)]
        want = torch.cat([matrix.double().chunk(self.world)[self.rank] for matrix in matrices])
        return float((self.received.double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "all-to-all",
        "fields": {"rows": None, "cols": None, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

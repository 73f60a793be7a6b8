#!/usr/bin/env python3
"""GEMM + all-reduce as a library user writes it: torch.mm (cuBLAS, hipBLASLt), then all_reduce (NCCL, RCCL) in place.

Every rank has some columns of A (M x K/W) and the same rows of B (K/W x N), and ends with the sum of all products. Two
forms:

  gemm     the product alone
  library  the product and the all-reduce; nothing waits for the host

each eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the
same names). Columns: harness.py.

    python3 gemm_all_reduce.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Operands of one shape on one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        m, n, k, dtype = shape["m"], shape["n"], shape["k"], shape["dtype"]
        if k % world != 0:
            raise ValueError(f"{shape}: K cannot be split over {world} GPUs evenly")
        self.dtype, self.world = dtype, world
        self.a = harness.random_matrix(m, k // world, dtype, 1 + rank)
        self.b = harness.random_matrix(k // world, n, dtype, 1001 + rank)
        self.c = torch.empty(m, n, device="cuda", dtype=harness.DTYPES[dtype])

    def run(self, form):
        torch.mm(self.a, self.b, out=self.c)
        if form == "library":
            dist.all_reduce(self.c)

    def check(self):
        """Relative error against fp64 on some rows, of operands that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        rows = torch.randperm(self.c.shape[0], device="cuda")[:64]
        want = 0
        for rank in range(self.world):
            a = harness.random_matrix(*self.a.shape, self.dtype, 1 + rank)
            b = harness.random_matrix(*self.b.shape, self.dtype, 1001 + rank)
            want = want + a[rows].double() @ b.double()
        return float((self.c[rows].double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "gemm-all-reduce",
        "fields": {"m": None, "n": None, "k": None, "dtype": "fp16"},
        "forms": ("gemm", "library"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""GEMM + reduce-scatter as a library user writes it: torch.mm (cuBLAS, hipBLASLt), then reduce_scatter (NCCL, RCCL).

Every rank has some columns of A (M x K/W) and the same rows of B (K/W x N), and ends with its rows or columns of the
sum of all products. Two forms:

  gemm     the product alone
  library  the product, for columns a copy into contiguous blocks, and the reduce-scatter; nothing waits for the host

each eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the
same names). Columns: harness.py.

    python3 gemm_reduce_scatter.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Operands of one shape on one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        m, n, k, dtype = shape["m"], shape["n"], shape["k"], shape["dtype"]
        self.by_rows = shape["scatter"] == "rows"
        if (m if self.by_rows else n) % world != 0 or k % world != 0:
            raise ValueError(f"{shape}: cannot be split over {world} GPUs by reduce_scatter")
        empty = lambda *sides: torch.empty(*sides, device="cuda", dtype=harness.DTYPES[dtype])
        self.dtype, self.rank, self.world = dtype, rank, world
        self.a = harness.random_matrix(m, k // world, dtype, 1 + rank)
        self.b = harness.random_matrix(k // world, n, dtype, 1001 + rank)
        self.partial = empty(m, n)
        self.blocks = None if self.by_rows else empty(world, m, n // world)
        self.c = empty(m // world, n) if self.by_rows else empty(m, n // world)

    def run(self, form):
        torch.mm(self.a, self.b, out=self.partial)
        if form == "gemm":
            return
        partial = self.partial
        if not self.by_rows:
            self.blocks.copy_(self.partial.view(self.partial.shape[0], self.world, -1).permute(1, 0, 2))
            partial = self.blocks.view(-1, self.blocks.shape[2])
        dist.reduce_scatter_tensor(self.c, partial)

    def check(self):
        """Relative error against fp64 on some rows, of operands that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        rows = torch.randperm(self.c.shape[0], device="cuda")[:64]
        want = 0
        for rank in range(self.world):
            a = harness.random_matrix(*self.a.shape, self.dtype, 1 + rank)
            b = harness.random_matrix(*self.b.shape, self.dtype, 1001 + rank)
            if self.by_rows:
                a = a[self.rank * self.c.shape[0] :]
            else:
                b = b[:, self.rank * self.c.shape[1] : (self.rank + 1) * self.c.shape[1]]
            want = want + a[rows].double() @ b.double()
        return float((self.c[rows].double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "gemm-reduce-scatter",
        "fields": {"m": None, "n": None, "k": None, "dtype": "fp16", "scatter": "rows"},
        "forms": ("gemm", "library"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""GEMM + all-to-all as a library user writes it: torch.mm (cuBLAS, hipBLASLt), then all_to_all_single (NCCL, RCCL).

Every rank has some rows of A (M/W x K) and all of B (K x N), and ends with all rows of its columns of C: the way into
attention under sequence parallelism (Ulysses). Two forms:

  gemm     the product alone
  library  the product, a copy into contiguous blocks, and the all-to-all; nothing waits for the host

each eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the
same names). Columns: harness.py.

    python3 gemm_all_to_all.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Operands of one shape on one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        m, n, k, dtype = shape["m"], shape["n"], shape["k"], shape["dtype"]
        if m % world != 0 or n % world != 0:
            raise ValueError(f"{shape}: cannot be split over {world} GPUs by all_to_all_single")
        empty = lambda *sides: torch.empty(*sides, device="cuda", dtype=harness.DTYPES[dtype])
        self.dtype, self.rank, self.world = dtype, rank, world
        self.a = harness.random_matrix(m // world, k, dtype, 1 + rank)
        self.b = harness.random_matrix(k, n, dtype, 1001)
        self.product = empty(m // world, n)
        self.blocks = empty(world, m // world, n // world)
        self.c = empty(m, n // world)

    def run(self, form):
        torch.mm(self.a, self.b, out=self.product)
        if form == "gemm":
            return
        self.blocks.copy_(self.product.view(self.product.shape[0], self.world, -1).permute(1, 0, 2))
        dist.all_to_all_single(self.c, self.blocks.view(-1, self.blocks.shape[2]))

    def check(self):
        """Relative error against fp64 on some rows of every rank, of operands that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        rows = torch.randperm(self.a.shape[0], device="cuda")[:16]
        b = self.b[:, self.rank * self.c.shape[1] : (self.rank + 1) * self.c.shape[1]].double()
        want, got = [], []
        for rank in range(self.world):
            a = harness.random_matrix(*self.a.shape, self.dtype, 1 + rank)
            want.append(a[rows].double() @ b)
            got.append(self.c[rank * self.a.shape[0] + rows].double())
        want, got = torch.cat(want), torch.cat(got)
        return float((got - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "gemm-all-to-all",
        "fields": {"m": None, "n": None, "k": None, "dtype": "fp16"},
        "forms": ("gemm", "library"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

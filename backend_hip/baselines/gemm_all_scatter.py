#!/usr/bin/env python3
"""GEMM + all-scatter as a library user writes it: torch.mm (cuBLAS, hipBLASLt), then all_gather (NCCL, RCCL).

Every rank multiplies A (M x K) with its columns of B (K x N/W) and gathers the blocks of all ranks. Four forms:

  gemm      the local product alone
  gathered  product and all-gather; the result lies as W blocks, one below the other
  library   the same and a copy into column slices, so that C is one row-major matrix, as the tile schedules leave it
  stepwise  the same with a host synchronisation behind the product, as the reference of ROCm/iris examples has it

each eager and, where the libraries allow, as a replayed graph (not stepwise). Runs on CUDA and on ROCm (whose PyTorch answers to the
same names). Columns: harness.py.

    python3 gemm_all_scatter.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Operands of one shape on one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        m, n, k, dtype = shape["m"], shape["n"], shape["k"], shape["dtype"]
        if n % world != 0:
            raise ValueError(f"N = {n} cannot be split over {world} GPUs by all_gather")
        self.a = harness.random_matrix(m, k, dtype, 1)
        self.b = harness.random_matrix(k, n // world, dtype, 2 + rank)
        self.own = torch.empty(m, n // world, device="cuda", dtype=harness.DTYPES[dtype])
        self.blocks = torch.empty(world, m, n // world, device="cuda", dtype=harness.DTYPES[dtype])
        self.c = torch.empty(m, n, device="cuda", dtype=harness.DTYPES[dtype])
        self.world = world

    def run(self, form):
        torch.mm(self.a, self.b, out=self.own)
        if form == "gemm":
            return
        if form == "stepwise":
            torch.cuda.synchronize()
        dist.all_gather_into_tensor(self.blocks, self.own)
        if form != "gathered":
            self.c.view(self.a.shape[0], self.world, -1).copy_(self.blocks.permute(1, 0, 2))

    def check(self):
        """Relative error of the rank's own column block and of its neighbour's, against fp64 on some rows."""
        self.run("library")
        torch.cuda.synchronize()
        rows = torch.randperm(self.a.shape[0], device="cuda")[:64]
        want = self.a[rows].double() @ self.b.double()
        columns = self.b.shape[1]
        got = self.c[rows][:, dist.get_rank() * columns : (dist.get_rank() + 1) * columns].double()
        return float((got - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "gemm-all-scatter",
        "fields": {"m": None, "n": None, "k": None, "dtype": "fp16"},
        "forms": ("gemm", "gathered", "library", "stepwise"),
        "not_as_graph": ("stepwise",),
        "problem": Problem,
        "names_workload": False,
    })

#!/usr/bin/env python3
"""All-gather + GEMM as a library user writes it: all_gather (NCCL, RCCL), then torch.mm (cuBLAS, hipBLASLt).

Every rank has a part of A, some of its rows or all rows over a range of K, gathers all of A (M x K), and multiplies it
with a B (K x N) of its own. Two forms:

  gemm     the product alone, with A gathered before
  library  all-gather, along K a copy of the blocks into place, and the product; nothing waits for the host in between

each eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the
same names). Columns: harness.py.

    python3 all_gather_gemm.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Operands of one shape on one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        m, n, k, dtype = shape["m"], shape["n"], shape["k"], shape["dtype"]
        self.by_rows = shape["sharding"] == "rows"
        if (m if self.by_rows else k) % world != 0:
            raise ValueError(f"{shape}: A cannot be split over {world} GPUs by all_gather")
        empty = lambda *sides: torch.empty(*sides, device="cuda", dtype=harness.DTYPES[dtype])
        rows, cols = (m // world, k) if self.by_rows else (m, k // world)
        self.shard = harness.random_matrix(rows, cols, dtype, 1 + rank)
        self.b = harness.random_matrix(k, n, dtype, 1001 + rank)
        self.a = empty(m, k)
        self.blocks = None if self.by_rows else empty(world, m, k // world)
        self.c = empty(m, n)
        self.world = world

    def gather(self):
        if self.by_rows:
            dist.all_gather_into_tensor(self.a, self.shard)
        else:
            dist.all_gather_into_tensor(self.blocks, self.shard)
            self.a.view(self.a.shape[0], self.world, -1).copy_(self.blocks.permute(1, 0, 2))

    def run(self, form):
        if form != "gemm":
            self.gather()
        torch.mm(self.a, self.b, out=self.c)

    def check(self):
        """Relative error against fp64 on some rows, of operands that every rank draws by itself."""
        self.run("library")
        torch.cuda.synchronize()
        dtype = next(name for name, one in harness.DTYPES.items() if one == self.a.dtype)
        shards = [harness.random_matrix(*self.shard.shape, dtype, 1 + rank) for rank in range(self.world)]
        a = torch.cat(shards, dim=0 if self.by_rows else 1)
        rows = torch.randperm(a.shape[0], device="cuda")[:64]
        want = a[rows].double() @ self.b.double()
        return float((self.c[rows].double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "all-gather-gemm",
        "fields": {"m": None, "n": None, "k": None, "dtype": "fp16", "sharding": "rows"},
        "forms": ("gemm", "library"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

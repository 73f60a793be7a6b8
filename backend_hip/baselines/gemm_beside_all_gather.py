#!/usr/bin/env python3
"""A GEMM beside an all-gather as a library user writes it: torch.mm (cuBLAS, hipBLASLt) and all_gather_into_tensor (NCCL, RCCL).

Every rank has a product of its own (M x N x K) and a block (rows x cols) that all ranks want: weights of the next layer
under sharded parameters. Three forms:

  gemm     the product alone
  library  the product, then the all-gather, in one stream
  streams  the all-gather in a stream of its own, posted first, beside the product

each eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the
same names). Columns: harness.py.

    python3 gemm_beside_all_gather.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Operands of one shape on one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        m, n, k, rows, cols, dtype = (shape[field] for field in ("m", "n", "k", "rows", "cols", "dtype"))
        self.dtype, self.rank, self.world = dtype, rank, world
        self.a = harness.random_matrix(m, k, dtype, 1 + rank)
        self.b = harness.random_matrix(k, n, dtype, 101 + rank)
        self.c = torch.empty(m, n, device="cuda", dtype=harness.DTYPES[dtype])
        self.block = harness.random_matrix(rows, cols, dtype, 201 + rank)
        self.gathered = torch.empty(world * rows, cols, device="cuda", dtype=harness.DTYPES[dtype])
        self.side = torch.cuda.Stream()

    def run(self, form):
        if form == "streams":
            here = torch.cuda.current_stream()
            self.side.wait_stream(here)
            with torch.cuda.stream(self.side):
                dist.all_gather_into_tensor(self.gathered, self.block)
            torch.mm(self.a, self.b, out=self.c)
            here.wait_stream(self.side)
            return
        torch.mm(self.a, self.b, out=self.c)
        if form == "library":
            dist.all_gather_into_tensor(self.gathered, self.block)

    def check(self):
        """Relative error of some rows of the product against fp64; a wrong block counts as 1."""
        errors = []
        for form in ("library", "streams"):
            self.c.zero_()
            self.gathered.zero_()
            self.run(form)
            torch.cuda.synchronize()
            rows = torch.randperm(self.a.shape[0], device="cuda")[:16]
            want = self.a[rows].double() @ self.b.double()
            errors.append(float((self.c[rows].double() - want).norm() / want.norm()))
            blocks = [harness.random_matrix(*self.block.shape, self.dtype, 201 + rank) for rank in range(self.world)]
            if not torch.equal(self.gathered, torch.cat(blocks)):
                errors.append(1.0)
        return harness.worst(errors)


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "gemm-beside-collective",
        "former_name": "gemm-beside-all-gather",
        "fields": {"m": None, "n": None, "k": None, "rows": None, "cols": None, "dtype": "fp16"},
        "forms": ("gemm", "library", "streams"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

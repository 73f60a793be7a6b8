#!/usr/bin/env python3
"""Attention as a library user writes it: torch.nn.functional.scaled_dot_product_attention, its flash kernel, or cuDNN's.

One GPU, queries, keys and values of all heads and batches; key heads may be fewer than query heads. One form:

  library  the call

eager and as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same names). Columns: harness.py.

    python3 attention.py SCENARIOS.toml --gpus 1 --output library.csv [--backend cudnn]
"""

import os

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import harness


BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


class Problem:
    """Operands of one shape, batch x heads x tokens x columns, and the call."""

    def __init__(self, shape, rank, world):
        heads, dtype = shape["q_heads"], shape["dtype"]
        kv_heads = shape["kv_heads"] or heads
        tokens, columns, batch = shape["context"], shape["head_dim"], shape["batch"]
        draw = lambda count, seed: harness.random_matrix(batch * count * tokens, columns, dtype, seed).view(
            batch, count, tokens, columns)
        self.q, self.k, self.v = draw(heads, 1), draw(kv_heads, 2), draw(kv_heads, 3)
        self.causal = shape["causal"]
        self.grouped = kv_heads != heads

    def run(self, form):
        with sdpa_kernel([BACKENDS[os.environ["TRITAX_BACKEND"]]]):
            self.out = torch.nn.functional.scaled_dot_product_attention(
                self.q, self.k, self.v, is_causal=self.causal, enable_gqa=self.grouped)

    def check(self):
        """Relative error against fp64, of some rows of the last head."""
        self.run("library")
        torch.cuda.synchronize()
        tokens, columns = self.q.shape[2:]
        rows = torch.randperm(tokens, device="cuda")[:64]
        scores = self.q[-1, -1, rows].double() @ self.k[-1, -1].double().T / columns**0.5
        if self.causal:
            scores.masked_fill_(torch.arange(tokens, device="cuda")[None] > rows[:, None], float("-inf"))
        want = scores.softmax(dim=1) @ self.v[-1, -1].double()
        return float((self.out[-1, -1, rows].double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "attention",
        "fields": {"context": None, "batch": 1, "q_heads": 32, "kv_heads": 0, "head_dim": 128, "causal": False,
                   "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
        "backends": tuple(BACKENDS),
    })

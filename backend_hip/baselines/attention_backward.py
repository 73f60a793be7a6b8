#!/usr/bin/env python3
"""The backward pass of attention as a library user runs it: gradients of torch.nn.functional.scaled_dot_product_attention.

One GPU, one form:

  library  gradients of queries, keys and values from the gradient of the results; the forward pass runs once, before

eager and as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same names). Columns: harness.py.

    python3 attention_backward.py SCENARIOS.toml --gpus 1 --output library.csv [--backend cudnn]
"""

import os

import torch
from torch.nn.attention import sdpa_kernel

import attention
import harness


class Problem(attention.Problem):
    def __init__(self, shape, rank, world):
        super().__init__(shape, rank, world)
        for operand in (self.q, self.k, self.v):
            operand.requires_grad_(True)
        super().run("library")
        self.gradient = harness.random_matrix(self.out.numel() // self.out.shape[-1], self.out.shape[-1], shape["dtype"],
                                              4).view_as(self.out)

    def run(self, form):
        with sdpa_kernel([attention.BACKENDS[os.environ["TRITAX_BACKEND"]]]):
            self.gradients = torch.autograd.grad(self.out, (self.q, self.k, self.v), self.gradient, retain_graph=True)

    def check(self):
        """The largest relative error of the three gradients against fp64, of the last batch and its last head of keys."""
        self.run("library")
        torch.cuda.synchronize()
        group = self.q.shape[1] // self.k.shape[1]
        tokens, columns = self.q.shape[2:]
        if tokens > 4096:  # fp64 scores of a longer sequence take too much memory
            return 0.0
        q, k, v = (operand.detach()[-1, -heads:].double().requires_grad_(True)
                   for operand, heads in ((self.q, group), (self.k, 1), (self.v, 1)))
        scores = q @ k.transpose(1, 2) / columns**0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(tokens, tokens, device="cuda", dtype=torch.bool).triu(1), float("-inf"))
        want = torch.autograd.grad(scores.softmax(dim=2) @ v, (q, k, v), self.gradient[-1, -group:].double())
        got = (gradient[-1, -heads:].double() for gradient, heads in zip(self.gradients, (group, 1, 1)))
        return harness.worst([float((one - other).norm() / other.norm()) for one, other in zip(got, want)])


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "attention-backward",
        "fields": {"context": None, "batch": 1, "q_heads": 32, "kv_heads": 0, "head_dim": 128, "causal": False, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
        "backends": tuple(attention.BACKENDS),
    })

#!/usr/bin/env python3
"""Ulysses attention as a library user writes it: all-to-alls of heads around scaled_dot_product_attention.

Every rank has a part of the tokens with all heads. torch.distributed.all_to_all_single (NCCL, RCCL) gives it all tokens
of a part of the heads, one call each for queries, keys and values; the flash kernel attends; a fourth call brings the
results back. Heads are sorted by rank before a call and results after it, by copies. One form:

  library  everything in one stream; nothing waits for the host in between

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 ulysses.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist
from torch.nn.attention import SDPBackend, sdpa_kernel

import harness


class Problem:
    """Queries, keys and values of one rank, tokens x heads x columns, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        heads, context = shape["q_heads"], shape["context"]
        kv_heads = shape["kv_heads"] or heads
        if context % world or heads % world or kv_heads % world:
            raise ValueError(f"{shape}: tokens and heads cannot be split over {world} GPUs by all_to_all_single")
        self.shape, self.rank, self.world = shape, rank, world
        self.heads, self.tokens = {"q": heads, "k": kv_heads, "v": kv_heads}, context // world
        self.own = {name: self.drawn(name, rank) for name in self.heads}

    def drawn(self, name, rank):
        seed = 100 * (1 + "qkv".index(name)) + rank
        columns = self.shape["head_dim"]
        rows = harness.random_matrix(self.tokens, self.heads[name] * columns, self.shape["dtype"], seed)
        return rows.view(self.tokens, self.heads[name], columns)

    def to_heads(self, own):
        """All tokens of the own heads: 1 x heads x tokens x columns."""
        tokens, heads, columns = own.shape
        sorted_ = own.view(tokens, self.world, heads // self.world, columns).transpose(0, 1).contiguous()
        received = torch.empty_like(sorted_)
        dist.all_to_all_single(received, sorted_)
        return received.view(1, self.world * tokens, heads // self.world, columns).transpose(1, 2)

    def run(self, form):
        q, k, v = (self.to_heads(self.own[name]) for name in "qkv")
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            out = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=self.shape["causal"], enable_gqa=k.shape[1] != q.shape[1])
        _, heads, _, columns = out.shape
        by_rank = out.transpose(1, 2).reshape(self.world, self.tokens, heads, columns)
        received = torch.empty_like(by_rank)
        dist.all_to_all_single(received, by_rank)
        self.out = received.transpose(0, 1).reshape(self.tokens, self.world * heads, columns)

    def check(self):
        """Relative error against fp64, of some own tokens of the last head, of parts that every rank draws itself."""
        self.run("library")
        torch.cuda.synchronize()
        k, v = (torch.cat([self.drawn(name, rank)[:, -1] for rank in range(self.world)]).double() for name in "kv")
        rows = torch.randperm(self.tokens, device="cuda")[:64]
        scores = self.own["q"][rows, -1].double() @ k.T / k.shape[1] ** 0.5
        if self.shape["causal"]:
            places = rows + self.rank * self.tokens
            scores.masked_fill_(torch.arange(len(k), device="cuda")[None] > places[:, None], float("-inf"))
        want = scores.softmax(dim=1) @ v
        return float((self.out[rows, -1].double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "ulysses",
        "fields": {"context": None, "q_heads": 32, "kv_heads": 0, "head_dim": 128, "causal": False, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""Flash decode as a library user writes it: attention to the own keys in splits, an all-gather, and a merge.

Every rank holds the keys and values of a part of every sequence, and one query token of all heads. PyTorch's flash
kernel gives results and log-sum-exps of the own keys (its decode form splits the keys); both are gathered (NCCL, RCCL),
and the parts of all ranks merged in fp32. One form:

  library  attention, gather, merge; nothing waits for the host in between

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 flash_decode.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


class Problem:
    """Queries, keys and values of one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        self.shape, self.rank, self.world = shape, rank, world
        batch, heads, columns = shape["batch"], shape["q_heads"], shape["head_dim"]
        self.q = harness.random_matrix(batch * heads, columns, shape["dtype"], 1).view(batch, 1, heads, columns)
        self.k, self.v = self.cache(rank)
        self.partial = torch.empty(batch, heads, columns + 1, device="cuda", dtype=torch.float32)
        self.gathered = torch.empty(world, batch, heads, columns + 1, device="cuda", dtype=torch.float32)

    def cache(self, rank):
        shape = self.shape
        rows = shape["batch"] * shape["kv_length"]
        kv_heads = shape["kv_heads"] or shape["q_heads"]
        draw = lambda seed: harness.random_matrix(rows, kv_heads * shape["head_dim"], shape["dtype"], seed).view(
            shape["batch"], shape["kv_length"], kv_heads, shape["head_dim"])
        return draw(100 + rank), draw(200 + rank)

    def run(self, form):
        # Query heads of one key head stand as query rows, so that its keys are read once.
        batch, length, kv_heads, columns = self.k.shape
        group = self.q.shape[2] // kv_heads
        q = self.q.view(batch, kv_heads, group, columns).transpose(1, 2)
        result = torch.ops.aten._flash_attention_forward(
            q, self.k, self.v, None, None, group, length, 0.0, False, False)
        out, log_sums = result[0], result[1]  # batch x group x kv_heads x columns; batch x kv_heads x group
        self.partial[..., :columns].view(batch, kv_heads, group, columns).copy_(out.transpose(1, 2))
        self.partial[..., columns].view(batch, kv_heads, group).copy_(log_sums)
        dist.all_gather_into_tensor(self.gathered, self.partial)
        weights = torch.softmax(self.gathered[..., columns], dim=0)
        self.out = (weights[..., None] * self.gathered[..., :columns]).sum(dim=0).to(self.q.dtype)

    def check(self):
        """Relative error against fp64, of caches that every rank draws by itself, of the last sequence."""
        self.run("library")
        torch.cuda.synchronize()
        caches = [self.cache(rank) for rank in range(self.world)]
        k = torch.cat([one[0][-1] for one in caches]).double()
        v = torch.cat([one[1][-1] for one in caches]).double()
        heads, columns = self.q.shape[2:]
        group = heads // k.shape[1]
        q = self.q[-1, 0].double().view(k.shape[1], group, columns)
        scores = torch.einsum("hgc,khc->hgk", q, k) / columns**0.5
        want = torch.einsum("hgk,khc->hgc", scores.softmax(dim=2), v).reshape(heads, columns)
        return float((self.out[-1].double() - want).norm() / want.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "flash-decode",
        "fields": {"batch": 1, "q_heads": 96, "kv_heads": 8, "head_dim": 128, "kv_length": None, "dtype": "fp16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

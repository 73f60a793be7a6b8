#!/usr/bin/env python3
"""Ring attention as a library user writes it: flash attention a block, and sends of keys and values between.

Every rank has a part of the sequence. In W steps it attends to the block of keys and values that it has, merges the
result by log-sum-exps in fp32, and passes the block on to the next rank (torch.distributed, NCCL, RCCL). With a causal
mask ranks have an early and a late part of the sequence (zigzag), so that all have the same work, as in
zhuzilin/ring-flash-attention. Two forms:

  library  attention, then the send, in turn
  streams  the send starts before the attention of the block that is sent, in a stream of its own

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 ring_attention.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import torch
import torch.distributed as dist

import harness


def attend(q, k, v, causal):
    """Result and log-sum-exps in fp32 of tokens x heads x columns, heads x tokens."""
    result = torch.ops.aten._flash_attention_forward(
        q[None], k[None], v[None], None, None, q.shape[0], k.shape[0], 0.0, causal, False)
    return result[0][0].float(), result[1][0]


class Problem:
    """Queries, keys and values of one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        self.shape, self.rank, self.world = shape, rank, world
        self.parts = 2 if shape["causal"] else 1  # of the sequence, of one rank
        if shape["context"] % (world * self.parts):
            raise ValueError(f"{shape}: tokens cannot be split over {world} GPUs in equal parts")
        self.tokens = shape["context"] // world
        # Sequences of a batch are further heads of a token (sequence first).
        self.heads = {"q": shape["batch"] * shape["q_heads"], "k": shape["batch"] * (shape["kv_heads"] or shape["q_heads"])}
        self.heads["v"] = self.heads["k"]
        self.q, k, v = (self.drawn(name, rank) for name in "qkv")
        self.blocks = [(k, v), (torch.empty_like(k), torch.empty_like(v)), (torch.empty_like(k), torch.empty_like(v))]

    def drawn(self, name, rank):
        seed = 100 * (1 + "qkv".index(name)) + rank
        columns = self.shape["head_dim"]
        rows = harness.random_matrix(self.tokens, self.heads[name] * columns, self.shape["dtype"], seed)
        return rows.view(self.tokens, self.heads[name], columns)

    def places(self, rank):
        """Where the tokens of a rank lie in the sequence."""
        tokens = torch.arange(self.tokens, device="cuda")
        if self.parts == 1:
            return tokens + rank * self.tokens
        half = self.tokens // 2
        late = (2 * self.world - 1 - rank) * half
        return torch.where(tokens < half, tokens + rank * half, tokens - half + late)

    def start_send(self, own, received):
        """Sends the block to the next rank and receives that of the one before; a list to wait for."""
        following, before = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        pairs = list(zip(own, received))
        return dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, following) for mine, _ in pairs]
                                      + [dist.P2POp(dist.irecv, theirs, before) for _, theirs in pairs])

    def merge(self, rows, part):
        """Adds a partial result of the query tokens from `rows` on."""
        out, log_sums = part
        mine, mine_sums = self.out[rows:], self.log_sums[:, rows:]
        both = torch.logaddexp(mine_sums, log_sums)
        mine.mul_((mine_sums - both).exp().T[..., None])
        mine.add_(out * (log_sums - both).exp().T[..., None])
        mine_sums.copy_(both)

    def attend_block(self, source, k, v):
        if source == self.rank:
            self.out, self.log_sums = attend(self.q, k, v, self.shape["causal"])
        elif not self.shape["causal"]:
            self.merge(0, attend(self.q, k, v, False))
        elif source < self.rank:  # its early part, which all own tokens see
            self.merge(0, attend(self.q, k[:self.tokens // 2], v[:self.tokens // 2], False))
        else:  # both its parts, which the late own tokens see
            self.merge(self.tokens // 2, attend(self.q[self.tokens // 2:], k, v, False))

    def run(self, form):
        block = self.blocks[0]
        for step in range(self.world):
            received = self.blocks[1 + step % 2]
            last = step + 1 == self.world
            sends = self.start_send(block, received) if form == "streams" and not last else []
            self.attend_block((self.rank - step) % self.world, *block)
            if form == "library" and not last:
                sends = self.start_send(block, received)
            for send in sends:
                send.wait()
            block = received
        self.result = self.out.to(self.q.dtype)

    def check(self):
        """Relative error against fp64, of some tokens of the last head, of parts that every rank draws itself."""
        errors = []
        for form in ("library", "streams"):
            self.run(form)
            torch.cuda.synchronize()
            k, v = (torch.cat([self.drawn(name, rank)[:, -1] for rank in range(self.world)]).double() for name in "kv")
            rows = torch.randperm(self.tokens, device="cuda")[:64]
            scores = self.q[rows, -1].double() @ k.T / k.shape[1] ** 0.5
            if self.shape["causal"]:
                keys = torch.cat([self.places(rank) for rank in range(self.world)])
                scores.masked_fill_(keys[None] > self.places(self.rank)[rows][:, None], float("-inf"))
            want = scores.softmax(dim=1) @ v
            errors.append(float((self.result[rows, -1].double() - want).norm() / want.norm()))
        return harness.worst(errors)


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "ring-attention",
        "fields": {"context": None, "batch": 1, "q_heads": 32, "kv_heads": 0, "head_dim": 128, "causal": False, "dtype": "fp16"},
        "forms": ("library", "streams"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""Attention over a paged cache as a Triton kernel on one GPU: the patterns `flexible-tile` and `split-kv` of the workload.

A program has `block_m` rows (tokens times the query heads that share a head of keys), and goes through its keys `tile` at a time;
with several segments it has one part of the keys, and a second kernel merges. Sequences of one batch are equal. The structure is
that of the published kernels (arXiv:2511.11581); the code is this project's.

Forms: TILExBLOCK_MxSEGMENTS, of those in FORMS that fit the batch; eager and as a replayed graph. Columns: harness.py.

    python3 paged_attention.py SCENARIOS.toml --gpus 1 --output library.csv
"""

import torch
import triton
import triton.language as tl

import harness

# keys at a time, rows, segments, warps, stages
FORMS = {
    "16x16x1": (16, 16, 1, 4, 3),
    "32x16x1": (32, 16, 1, 4, 4),
    "128x16x1": (128, 16, 1, 8, 2),
    "64x64x1": (64, 64, 1, 4, 3),
    "128x128x1": (128, 128, 1, 8, 2),
    "16x16x16": (16, 16, 16, 4, 3),
    "32x16x16": (32, 16, 16, 4, 4),
}


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, sums_ptr, tops_ptr, table_ptr, pages, tokens, keys, scale, Q_HEADS: tl.constexpr,
           KV_HEADS: tl.constexpr, DEPTH: tl.constexpr, PAGE: tl.constexpr, TILE: tl.constexpr, BLOCK_M: tl.constexpr,
           SEGMENTS: tl.constexpr):
    GROUP: tl.constexpr = Q_HEADS // KV_HEADS
    BLOCK_Q: tl.constexpr = BLOCK_M // GROUP
    blocks = tl.cdiv(tokens, BLOCK_Q)
    sequence = tl.program_id(0) // blocks
    first = tl.program_id(0) % blocks * BLOCK_Q
    head = tl.program_id(1)
    segment = tl.program_id(2)
    row = tl.arange(0, BLOCK_M)
    token = first + row // GROUP
    there = token < tokens
    col = tl.arange(0, DEPTH)
    q_at = ((sequence * tokens + token) * Q_HEADS + head * GROUP + row % GROUP).to(tl.int64)
    q = tl.load(q_ptr + q_at[:, None] * DEPTH + col[None, :], mask=there[:, None], other=0.0)
    top = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, DEPTH], dtype=tl.float32)
    seen = tl.minimum(keys, keys - tokens + first + BLOCK_Q)
    each = tl.cdiv(keys, SEGMENTS * TILE) * TILE
    begin = segment * each
    end = tl.minimum(seen, begin + each)
    for key in range(begin, end, TILE):
        at = key + tl.arange(0, TILE)
        page = tl.load(table_ptr + sequence * pages + at // PAGE, mask=at < keys, other=0).to(tl.int64)
        line = (page * PAGE + at % PAGE) * KV_HEADS + head
        k = tl.load(k_ptr + line[None, :] * DEPTH + col[:, None], mask=(at < end)[None, :], other=0.0)
        v = tl.load(v_ptr + line[:, None] * DEPTH + col[None, :], mask=(at < end)[:, None], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(there[:, None] & (at[None, :] <= keys - tokens + token[:, None]) & (at < end)[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        new = tl.where(new > float("-inf"), new, 0.0)
        p = tl.exp(s - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, axis=1)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    if SEGMENTS == 1:
        tl.store(o_ptr + q_at[:, None] * DEPTH + col[None, :], (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=there[:, None])
    else:
        part = q_at * SEGMENTS + segment
        tl.store(o_ptr + part[:, None] * DEPTH + col[None, :], acc, mask=there[:, None])
        tl.store(sums_ptr + part, total, mask=there)
        tl.store(tops_ptr + part, top, mask=there)


@triton.jit
def merge(o_ptr, parts_ptr, sums_ptr, tops_ptr, Q_HEADS: tl.constexpr, DEPTH: tl.constexpr, SEGMENTS: tl.constexpr):
    row = (tl.program_id(0) * Q_HEADS + tl.program_id(1)).to(tl.int64)
    part = row * SEGMENTS + tl.arange(0, SEGMENTS)
    col = tl.arange(0, DEPTH)
    tops = tl.load(tops_ptr + part)
    weight = tl.exp(tops - tl.max(tops))
    total = tl.sum(tl.load(sums_ptr + part) * weight)
    acc = tl.sum(tl.load(parts_ptr + part[:, None] * DEPTH + col[None, :]) * weight[:, None], axis=0)
    tl.store(o_ptr + row * DEPTH + col, (acc / total).to(o_ptr.dtype.element_ty))


class Problem:
    def __init__(self, shape, rank, world):
        if shape["ragged"] or shape["second_count"]:
            raise ValueError("sequences of a batch must be equal")
        self.count, self.tokens, self.keys = (shape[f"sequences_{part}"] for part in ("count", "query", "context"))
        self.heads, self.kv_heads, self.depth, self.page = (shape[key] for key in ("q_heads", "kv_heads", "head_dim", "page"))
        self.pages = -(-self.keys // self.page)
        rows = self.count * self.pages * self.page
        draw = lambda height, heads, seed: harness.random_matrix(height, heads * self.depth, shape["dtype"], seed)
        self.q = draw(self.count * self.tokens, self.heads, 1)
        self.k, self.v = draw(rows, self.kv_heads, 2), draw(rows, self.kv_heads, 3)
        self.table = torch.randperm(self.count * self.pages, device="cuda", dtype=torch.int32)
        self.out = torch.empty_like(self.q)

    def fits(self, form):
        tile, block_m, segments, _, _ = FORMS[form]
        return (segments == 1 or self.tokens == 1) and (block_m == 16 or self.tokens * self.heads >= 64 * self.kv_heads)

    def run(self, form):
        tile, block_m, segments, warps, stages = FORMS[form]
        blocks = self.count * -(-self.tokens // (block_m // (self.heads // self.kv_heads)))
        out, sums, tops = self.out, self.out, self.out
        if segments > 1:
            rows = self.q.shape[0] * self.heads * segments
            out = torch.empty(rows, self.depth, device="cuda")
            sums, tops = torch.empty(2, rows, device="cuda")
        attend[(blocks, self.kv_heads, segments)](
            self.q, self.k, self.v, out, sums, tops, self.table, self.pages, self.tokens, self.keys, self.depth**-0.5,
            Q_HEADS=self.heads, KV_HEADS=self.kv_heads, DEPTH=self.depth, PAGE=self.page, TILE=tile, BLOCK_M=block_m,
            SEGMENTS=segments, num_warps=warps, num_stages=stages)
        if segments > 1:
            merge[(self.q.shape[0], self.heads)](self.out, out, sums, tops, Q_HEADS=self.heads, DEPTH=self.depth, SEGMENTS=segments)

    def check(self):
        """The largest relative error of the forms against fp64, of the last sequence's first head."""
        errors = []
        rows = (self.table[-self.pages:].long()[:, None] * self.page + torch.arange(self.page, device="cuda")).flatten()[:self.keys]
        k, v = (cache.view(-1, self.kv_heads, self.depth)[rows, 0].double() for cache in (self.k, self.v))
        q = self.q.view(self.count, self.tokens, self.heads, self.depth)[-1, :, 0].double()
        scores = q @ k.T * self.depth**-0.5
        seen = self.keys - self.tokens + torch.arange(self.tokens, device="cuda")
        scores.masked_fill_(torch.arange(self.keys, device="cuda")[None] > seen[:, None], float("-inf"))
        want = scores.softmax(dim=1) @ v
        for form in self.forms():
            self.out.fill_(float("nan"))
            self.run(form)
            torch.cuda.synchronize()
            got = self.out.view(self.count, self.tokens, self.heads, self.depth)[-1, :, 0].double()
            errors.append(float((got - want).norm() / want.norm()))
        return harness.worst(errors)

    def forms(self):
        return [form for form in FORMS if self.fits(form)]


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "paged-attention",
        "fields": {"sequences_count": 1, "sequences_query": 1, "sequences_context": 1, "second_count": 0, "ragged": 0, "page": 16, "q_heads": 32, "kv_heads": 8, "head_dim": 128,
                   "dtype": "fp16"},
        "forms": tuple(FORMS),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""Kernels bound by memory as users write them: dropout, residual and layer norm, and rotary embedding, on one GPU.

Forms:

  eager     PyTorch, a kernel a step
  compiled  the same through torch.compile
  one       one Triton kernel, a workgroup a row; tl.rand, which keeps one of the four numbers of a Philox call
  four      the same with tl.rand4x, which keeps all four; like `one` where nothing is random

eager and as a replayed graph. Where gradients are wanted, the steps keep what the backward pass needs. Runs on CUDA and on
ROCm (whose PyTorch answers to the same names). Columns: harness.py.

    python3 streaming.py SCENARIOS.toml --gpus 1 --output library.csv
"""

import torch
import triton
import triton.language as tl

import harness

DROPPED = 0.1
HEAD = 128  # columns of a head of rotary embedding


@triton.jit
def add_norm_kernel(x_ptr, r_ptr, z_ptr, y_ptr, w_ptr, b_ptr, keep_ptr, seed, cols, p, BLOCK: tl.constexpr, NUMBERS: tl.constexpr,
                    KEEPS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    there = col < cols
    at = row * cols + col
    x = tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32)
    if NUMBERS == 1:
        kept = tl.rand(seed, row * cols + col) >= p
    if NUMBERS == 4:
        a, b, c, d = tl.rand4x(seed, row * (BLOCK // 4) + tl.arange(0, BLOCK // 4))
        kept = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), (BLOCK,)) >= p
    if NUMBERS > 0:
        x = tl.where(kept, x / (1.0 - p), 0.0)
        if KEEPS:
            tl.store(keep_ptr + at, kept.to(tl.int8), mask=there)
    z = x + tl.load(r_ptr + at, mask=there, other=0.0).to(tl.float32)
    tl.store(z_ptr + at, z.to(z_ptr.dtype.element_ty), mask=there)
    mean = tl.sum(z, axis=0) / cols
    apart = tl.where(there, z - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=0) / cols + 1e-5)
    w = tl.load(w_ptr + col, mask=there).to(tl.float32)
    b = tl.load(b_ptr + col, mask=there).to(tl.float32)
    tl.store(y_ptr + at, (apart * scale * w + b).to(y_ptr.dtype.element_ty), mask=there)


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, cols, HALF: tl.constexpr, HEADS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)[:, None]
    col = tl.arange(0, HALF)[None, :]
    there = head * (2 * HALF) < cols
    at = row * cols + head * (2 * HALF) + col
    cos = tl.load(cos_ptr + row * HALF + col).to(tl.float32)
    sin = tl.load(sin_ptr + row * HALF + col).to(tl.float32)
    low = tl.load(x_ptr + at, mask=there).to(tl.float32)
    high = tl.load(x_ptr + at + HALF, mask=there).to(tl.float32)
    tl.store(y_ptr + at, (low * cos - high * sin).to(y_ptr.dtype.element_ty), mask=there)
    tl.store(y_ptr + at + HALF, (high * cos + low * sin).to(y_ptr.dtype.element_ty), mask=there)


def add_norm(x, residual, norm, dropped):
    if dropped > 0:
        x = torch.nn.functional.dropout(x, p=dropped)
    z = x + residual
    return norm(z.to(norm.weight.dtype)), z


def rotary(x, cos, sin):
    low, high = x.chunk(2, dim=-1)
    turned = torch.cat((-high, low), dim=-1)
    return x * torch.cat((cos, cos), dim=-1)[:, None] + turned * torch.cat((sin, sin), dim=-1)[:, None]


class Problem:
    def __init__(self, shape, rank, world):
        rows, self.cols, dtype = shape["rows"], shape["cols"], shape["dtype"]
        self.rows, self.rotates, self.training = rows, shape["operation"] == "rotary", shape["training"]
        self.dropped = DROPPED if shape["dropout"] else 0.0
        self.x = harness.random_matrix(rows, self.cols, dtype, 1)
        self.seed = 1
        torch._dynamo.reset()
        if self.rotates:
            angle = torch.rand(rows, HEAD // 2, device="cuda") * 6
            self.cos, self.sin = angle.cos().to(self.x.dtype), angle.sin().to(self.x.dtype)
            self.compiled = torch.compile(rotary, dynamic=False)
        else:
            self.residual = harness.random_matrix(rows, self.cols, dtype, 2)
            wide = torch.float32 if shape["norm_dtype"] == "fp32" else self.x.dtype
            self.norm = torch.nn.LayerNorm(self.cols, device="cuda", dtype=wide)
            self.norm.requires_grad_(self.training)
            self.x.requires_grad_(self.training)
            self.residual.requires_grad_(self.training)
            self.compiled = torch.compile(add_norm, dynamic=False)

    def run(self, form):
        if form in ("one", "four"):
            self.run_kernel(1 if form == "one" else 4)
            return
        call = self.compiled if form == "compiled" else (rotary if self.rotates else add_norm)
        with torch.set_grad_enabled(self.training):
            if self.rotates:
                heads = self.x.view(self.rows, -1, HEAD)
                self.out = (call(heads, self.cos, self.sin).view(self.rows, self.cols),)
            else:
                self.out = call(self.x, self.residual, self.norm, self.dropped)

    def run_kernel(self, numbers):
        block = triton.next_power_of_2(self.cols)
        if self.rotates:
            y = torch.empty_like(self.x)
            rotary_kernel[(self.rows,)](self.x, self.cos, self.sin, y, self.cols, HALF=HEAD // 2, HEADS=max(1, block // HEAD),
                                        num_warps=4)
            self.out = (y,)
            return
        x, residual = self.x.detach(), self.residual.detach()
        z, y = torch.empty_like(x), torch.empty_like(x, dtype=self.norm.weight.dtype)
        keeps = self.training and self.dropped > 0
        keep = torch.empty_like(x, dtype=torch.int8) if keeps else x
        add_norm_kernel[(self.rows,)](x, residual, z, y, self.norm.weight.detach(), self.norm.bias.detach(), keep, self.seed,
                                      self.cols, self.dropped, BLOCK=block, NUMBERS=numbers if self.dropped > 0 else 0,
                                      KEEPS=keeps, num_warps=4 if block <= 2048 else 8)
        self.out = (y, z)

    def check(self):
        """The largest relative error of the forms against fp64; dropped elements are read off the sum."""
        errors = []
        for form in ("eager", "compiled", "one", "four"):
            self.run(form)
            torch.cuda.synchronize()
            rows = torch.randperm(self.rows, device="cuda")[:64]
            x = self.x.detach()[rows].double()
            if self.rotates:
                halves = x.view(len(rows), -1, 2, HEAD // 2)
                cos, sin = self.cos[rows].double()[:, None], self.sin[rows].double()[:, None]
                want = torch.stack((halves[:, :, 0] * cos - halves[:, :, 1] * sin, halves[:, :, 1] * cos + halves[:, :, 0] * sin), 2)
                got = self.out[0][rows].double().view_as(want)
                errors.append(float((got - want).norm() / want.norm()))
                continue
            y, z = (out.detach()[rows].double() for out in self.out)
            residual = self.residual.detach()[rows].double()
            kept = residual + x / (1 - self.dropped)
            is_kept = (z - kept).abs() <= (z - residual).abs()
            want = torch.where(is_kept, kept, residual)
            share = 1 - float(is_kept.double().mean())
            if abs(share - self.dropped) > 0.02:
                errors.append(float("inf"))
            normed = torch.nn.functional.layer_norm(want, (self.cols,))
            errors += [float((z - want).norm() / want.norm()), float((y - normed).norm() / normed.norm())]
        return harness.worst(errors)


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "streaming-kernel",
        "fields": {"rows": None, "cols": None, "operation": "add-norm", "dtype": "bf16", "dropout": False, "norm_dtype": "same",
                   "training": False},
        "forms": ("eager", "compiled", "one", "four"),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

#!/usr/bin/env python3
"""A layer of experts as a library user writes it: all-to-alls of tokens around products of the own experts.

Tokens are sorted by expert, go to the ranks of their experts (torch.distributed.all_to_all_single of uneven blocks; NCCL,
RCCL), are sorted there by expert, multiplied twice (torch._grouped_mm where it is there for the type, else a product an
expert), sorted back, returned, and added up. Activation and weights of choices are left out, as Tritax leaves them out,
and every rank knows beforehand how many tokens come. Who goes where is drawn as Tritax draws it
(model/parts/expert_routing.hpp), block for block. One form:

  library  everything in one stream; nothing waits for the host in between

eager and, where the libraries allow, as a replayed graph. Runs on CUDA and on ROCm (whose PyTorch answers to the same
names). Columns: harness.py.

    python3 moe.py SCENARIOS.toml --gpus 2,4 --output library.csv
"""

import math

import torch
import torch.distributed as dist

import harness

MASK = 2**64 - 1
MOST_ROUTED = 4096  # blocks times choices of all ranks, where the scenario gives no block


def mixed(x):
    """SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def drawn(seed, source, block, expert):
    x = mixed(seed & MASK)
    for part in (source, block, expert):
        x = mixed(x ^ (part & MASK))
    return ((x >> 11) + 0.5) / 2**53


def weights_of(shape):
    """Of every expert."""
    experts, seed = shape["experts"], shape["routing_seed"]
    weights = [1.0] * experts
    if shape["routing"] == "zipf":
        order = sorted(range(experts), key=lambda expert: drawn(seed, -1, -1, expert))
        for place, expert in enumerate(order):
            weights[expert] = (place + 1) ** (-shape["skew"] / 100)
    return weights


def block_of(shape, world):
    block = shape["block"] or 1
    while not shape["block"] and shape["tokens"] * shape["top_k"] * world // block > MOST_ROUTED:
        block *= 2
    return block


def choices_of(shape, world, source):
    """Experts of every token of a rank: a list of top_k."""
    block, experts, top_k = block_of(shape, world), shape["experts"], shape["top_k"]
    blocks, weights, choices = math.ceil(shape["tokens"] / block), weights_of(shape), []
    for number in range(blocks):
        if shape["routing"] == "balanced":
            first = (source * blocks + number) * top_k
            own = [(first + i) % experts for i in range(top_k)]
        else:
            keys = [-math.log(drawn(shape["routing_seed"], source, number, e)) / weights[e] for e in range(experts)]
            own = sorted(range(experts), key=keys.__getitem__)[:top_k]
        choices += [sorted(own)] * min(block, shape["tokens"] - number * block)
    return choices


def share_of(size, rank, world):
    """The first size mod world ranks have one more."""
    begin = rank * (size // world) + min(rank, size % world)
    return range(begin, begin + size // world + (rank < size % world))


class Problem:
    """Tokens and experts of one rank, and its work as a list of calls."""

    def __init__(self, shape, rank, world):
        if shape["capacity"] or shape["histogram"]:
            raise ValueError(f"{shape}: capacities and histograms are not in this baseline")
        self.shape, self.rank, self.world = shape, rank, world
        self.choices = [choices_of(shape, world, source) for source in range(world)]
        self.own = share_of(shape["experts"], rank, world)
        columns = shape["ffn"] * (2 if shape["gated"] else 1)
        self.tokens = self.drawn_tokens(rank)
        self.up = torch.stack([self.weights(expert, shape["hidden"], columns, 1) for expert in self.own])
        self.down = torch.stack([self.weights(expert, shape["ffn"], shape["hidden"], 2) for expert in self.own])
        self.plan()

    def drawn_tokens(self, rank):
        return harness.random_matrix(self.shape["tokens"], self.shape["hidden"], self.shape["dtype"], 1 + rank)

    def weights(self, expert, rows, cols, which):
        return harness.random_matrix(rows, cols, self.shape["dtype"], 1000 * which + expert) / rows**0.5

    def rows_of(self, source):
        """(expert, token) of a rank's rows, by expert."""
        return sorted((expert, token) for token, own in enumerate(self.choices[source]) for expert in own)

    def plan(self):
        index = lambda places: torch.tensor(places, dtype=torch.int64, device="cuda")
        rows = self.rows_of(self.rank)
        self.token_of_row = index([token for _, token in rows])
        self.sent = [sum(expert in share_of(self.shape["experts"], peer, self.world) for expert, _ in rows)
                     for peer in range(self.world)]
        arriving = [[expert for expert, _ in self.rows_of(source) if expert in self.own] for source in range(self.world)]
        self.received = [len(experts) for experts in arriving]
        experts = [expert for of_source in arriving for expert in of_source]
        by_expert = sorted(range(len(experts)), key=lambda row: experts[row])  # stable: then by source
        back = [0] * len(by_expert)
        for place, row in enumerate(by_expert):
            back[row] = place
        self.by_expert, self.by_source = index(by_expert), index(back)
        self.counts = [experts.count(expert) for expert in self.own]
        self.ends = torch.tensor(self.counts, device="cuda").cumsum(0).to(torch.int32)
        self.grouped = self.shape["dtype"] == "bf16" and hasattr(torch, "_grouped_mm")

    def products(self, rows, weights):
        if self.grouped:
            return torch._grouped_mm(rows, weights, offs=self.ends)
        out = torch.empty(len(rows), weights.shape[2], dtype=rows.dtype, device="cuda")
        begin = 0
        for count, weight in zip(self.counts, weights):
            torch.mm(rows[begin:begin + count], weight, out=out[begin:begin + count])
            begin += count
        return out

    def run(self, form):
        arrived = torch.empty(sum(self.received), self.shape["hidden"], dtype=self.tokens.dtype, device="cuda")
        dist.all_to_all_single(arrived, self.tokens[self.token_of_row], self.received, self.sent)
        hidden = self.products(arrived[self.by_expert], self.up)
        results = self.products(hidden[:, :self.shape["ffn"]], self.down)
        back = torch.empty(sum(self.sent), self.shape["hidden"], dtype=self.tokens.dtype, device="cuda")
        dist.all_to_all_single(back, results[self.by_source], self.sent, self.received)
        sums = torch.zeros(self.tokens.shape, dtype=torch.float32, device="cuda")
        self.out = sums.index_add_(0, self.token_of_row, back.float()).to(self.tokens.dtype)

    def check(self):
        """Relative error against fp64, of some tokens, with weights of all experts that every rank draws itself."""
        self.run("library")
        torch.cuda.synchronize()
        some = torch.randperm(len(self.tokens))[:8].tolist()
        columns = self.up.shape[2]
        want = []
        for token in some:
            row = self.tokens[token].double()
            total = torch.zeros_like(row)
            for expert in self.choices[self.rank][token]:
                hidden = row @ self.weights(expert, self.shape["hidden"], columns, 1).double()
                down = self.weights(expert, self.shape["ffn"], self.shape["hidden"], 2).double()
                total += hidden[:self.shape["ffn"]] @ down
            want.append(total)
        expected = torch.stack(want)
        return float((self.out[some].double() - expected).norm() / expected.norm())


if __name__ == "__main__":
    harness.main(__doc__, {
        "workload": "moe",
        "fields": {"tokens": None, "hidden": 2048, "ffn": 1024, "gated": True, "experts": 64, "top_k": 4,
                   "routing": "uniform", "skew": 100, "histogram": "", "routing_seed": 1, "capacity": 0, "block": 0,
                   "dtype": "bf16"},
        "forms": ("library",),
        "not_as_graph": (),
        "problem": Problem,
        "names_workload": True,
    })

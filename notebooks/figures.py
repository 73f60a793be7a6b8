"""Shared by the notebooks: colours, kinds of figures, and how pictures of the documentation are saved."""

import hashlib
import json
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tritax
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

ROOT = Path(__file__).resolve().parent.parent
IMAGES = Path(os.environ.get("TRITAX_IMAGES", ROOT / "docs" / "images"))

# Okabe-Ito colours: they stay apart for every common kind of colour blindness.
PATTERN_COLOURS = {"library": "#BBBBBB", "bulk-synchronous": "#E69F00", "producer-consumer": "#56B4E9",
                   "fused-sequential": "#CC79A7", "workgroup-specialised": "#2CB593"}
PARTS = {"compute_ns": ("compute", "#0072B2"), "memory_ns": ("memory", "#882255"), "wire_ns": ("wire", "#56B4E9"),
         "launch_ns": ("launch tax", "#E69F00"), "bulk_synchronous_ns": ("bulk-synchronous tax", "#D55E00"),
         "locality_ns": ("locality tax", "#F0E442"), "contention_ns": ("contention", "#999999")}
DARK_PARTS = ("compute_ns", "memory_ns", "bulk_synchronous_ns")  # those with white text on them
KINDS = {"matmul": ("matrix multiply", "#0072B2"), "wait": ("wait for a tile", "#DDDDDD"),
         "store": ("store to own memory", "#000000"), "sent": ("send to peers", "#E69F00")}
HOST = {"barrier": ("host: barrier", "#D55E00"), "launch": ("host: launch", "#CC79A7"),
        "device_synchronize": ("host: wait for the GPU", "#F0E442")}
plt.rcParams.update({"font.size": 10, "figure.dpi": 80, "savefig.dpi": 110, "axes.spines.top": False,
                     "axes.spines.right": False})


def save(fig, name, data):
    """Writes a picture; its metadata tell which numbers it was drawn from, so that a stale one is found out."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    fig.savefig(IMAGES / name, metadata={"tritax-data": digest})


def rounded(frame):
    """The numbers of a table, as text that does not depend on the last bits."""
    return [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] for row in frame.itertuples()]


def draw_accounts(ax, frame, names):
    """The parts of the critical path of every row of `frame` as a bar, with its time behind it."""
    names = list(names)
    left = np.zeros(len(frame))
    longest_us = frame["makespan_ns"].max() / 1e3
    for part, (label, colour) in PARTS.items():
        width = frame[part].to_numpy() / 1e3
        ax.barh(names, width, left=left, color=colour, edgecolor="white", linewidth=0.6, label=label)
        for y, (start, us) in enumerate(zip(left, width)):
            if us > 0.035 * longest_us:
                ax.text(start + us / 2, y, f"{us:.0f}", ha="center", va="center", fontsize=9,
                        color="white" if part in DARK_PARTS else "black")
        left += width
    for y, time_us in enumerate(frame["makespan_ns"] / 1e3):
        ax.text(time_us + 0.01 * longest_us, y, f"{time_us:.0f} µs", va="center", fontweight="bold")
    ax.set(xlabel="time on the critical path (µs)", xlim=(0, longest_us * 1.14))
    ax.tick_params(axis="y", length=0)


def sent_gb_per_s(timeline, rank, edges_ns, efficiency):
    """What a GPU stores to its peers between the edges: its link counters at the middles, without packets' headers."""
    middles = (edges_ns[1:] + edges_ns[:-1]) / 2
    total = np.zeros(len(middles))
    for number, name in enumerate(timeline.link_names):
        if name.startswith(f"gpu{rank}->"):
            samples = timeline.links[timeline.links["link"] == number]
            if len(samples):
                at = np.searchsorted(samples["time_ns"], middles, side="right") - 1
                total += np.where(at >= 0, samples["gb_per_s"][at], 0)
    return efficiency * total


def spans_of(ops, rank):
    """The operations of a GPU by the kinds of KINDS."""
    moves = np.isin(ops["kind"], (tritax.OpKind.store, tritax.OpKind.copy))
    remote = moves & (ops["peer"] != rank)
    return {"wait": ops[ops["kind"] == tritax.OpKind.wait], "matmul": ops[ops["kind"] == tritax.OpKind.matmul],
            "store": ops[moves & ~remote], "sent": ops[remote]}


def draw_timeline(axes, run, machine, rank=0):
    """One GPU of a run: its host, its compute units, and what it sends. Returns the spans that were drawn."""
    host_ax, cu_ax, link_ax = axes
    timeline = run.timeline
    host = timeline.host[timeline.host["rank"] == rank]
    for kind in tritax.HostOpKind:
        rows = host[host["kind"] == kind]
        if len(rows):
            host_ax.broken_barh(list(zip(rows["begin_ns"] / 1e3, (rows["end_ns"] - rows["begin_ns"]) / 1e3)), (0, 1),
                                color=HOST[kind.name][1])
    host_ax.set(yticks=[0.5], yticklabels=["host"], ylim=(0, 1))
    host_ax.tick_params(axis="y", length=0)

    ops = timeline.ops[timeline.ops["rank"] == rank]
    spans = spans_of(ops, rank)
    for kind, rows in spans.items():
        boxes = [Rectangle((begin, cu), end - begin, 1) for begin, end, cu
                 in zip(rows["service_begin_ns"] / 1e3, rows["end_ns"] / 1e3, rows["cu"])]
        cu_ax.add_collection(PatchCollection(boxes, facecolor=KINDS[kind][1], edgecolor="none", rasterized=True))
    cu_ax.set(ylabel="compute unit (those in use)", ylim=(ops["cu"].max() + 1, 0), xlim=(0, run.makespan_ns / 1e3))

    edges_ns = np.linspace(0, run.makespan_ns, 401)
    rate = sent_gb_per_s(timeline, rank, edges_ns, machine["fabric.store_efficiency"])
    link_ax.fill_between(edges_ns[:-1] / 1e3, rate, step="post", color=KINDS["sent"][1], linewidth=0)
    link_ax.set(ylabel=f"sent by\nGPU {rank} (GB/s)", xlabel="time (µs)", ylim=(0, None))
    present = [HOST[kind.name] for kind in tritax.HostOpKind if (host["kind"] == kind).any()]
    present += [KINDS[kind] for kind, rows in spans.items() if len(rows)]
    link_ax.legend(handles=[Patch(color=colour, label=label) for label, colour in present], loc="upper center",
                   bbox_to_anchor=(0.5, -0.42), ncols=4, frameon=False)
    return spans


def draw_beside_baseline(ax, frame, sizes, patterns, letters, top):
    """For every size the patterns side by side: the parts of their critical paths, in times of the first pattern.

    `frame` has a row for each size and pattern with the columns of PARTS; what is higher than `top` ends there, with
    its number. Below a size stands the time of the first pattern.
    """
    ticks, width = [], 0.8
    for i, size in enumerate(sizes):
        of_size = frame[frame["size"] == size].set_index("pattern")
        unit_ns = of_size.loc[patterns[0], "makespan_ns"]
        for j, pattern in enumerate(patterns):
            x, bottom = i * (len(patterns) + 1) + j, 0.0
            for part, (label, colour) in PARTS.items():
                height = of_size.loc[pattern, part] / unit_ns
                ax.bar(x, max(0.0, min(height, top - bottom)), width, bottom=bottom, color=colour, edgecolor="white",
                       linewidth=0.3, label=label if i == j == 0 else None)
                bottom += height
            if bottom > top:
                ax.text(x, 0.985 * top, f"{bottom:.1f}", ha="center", va="top", fontsize=8, fontweight="bold")
            ax.text(x, -0.02 * top, letters[j], ha="center", va="top", fontsize=8)
        ticks.append(i * (len(patterns) + 1) + (len(patterns) - 1) / 2)
        ax.text(ticks[-1], -0.085 * top, f"{size}", ha="center", va="top", fontweight="bold", fontsize=9)
        ax.text(ticks[-1], -0.15 * top, f"{unit_ns / 1e3:.0f} µs", ha="center", va="top", fontsize=8, color="#555555")
    ax.axhline(1, color="black", linewidth=0.8, linestyle=":")
    ax.set(xlim=(-0.8, ticks[-1] + (len(patterns) - 1) / 2 + 0.8), ylim=(0, top))
    ax.set_xticks([])

"""GEMM + all-scatter, fused sequential, written in Python: every workgroup computes a tile of C and stores it to all GPUs.

    PYTHONPATH=build/release/python python3 python/examples/fused_sequential.py

It is the shipped pattern of that name again, operation by operation, and takes the same time to the bit.
"""

from typing import Tuple

import tritax


def fused_sequential(
    machine: tritax.Machine, m: int, n: int, k: int, gpus: int, tile: Tuple[int, int, int], waves: int
) -> tritax.Schedule:
    """C = A·[B_0 … B_{gpus-1}], of which every GPU computes its n / gpus columns and ends with all of them."""
    columns = n // gpus
    rows_of_tiles, cols_of_tiles = -(-m // tile[0]), -(-columns // tile[1])
    builder = tritax.ScheduleBuilder("fused-sequential", gpus)
    a = builder.buffer("A", "fp16", m, k, tile[0], tile[2])
    b = builder.buffer("B", "fp16", k, columns, tile[2], tile[1])
    c = builder.buffer("C", "fp16", m, n, tile[0], tile[1])
    builder.result(c)
    builder.input(builder.region(a), "same")  # on every GPU, A is the same and B its own
    builder.input(builder.region(b))
    resources = tritax.matmul_resources(machine, tile, waves)
    for rank in range(gpus):
        block = builder.region(c, (0, rank * columns, m, columns))
        builder.expect_product(block, builder.region(a, rank=rank), builder.region(b, rank=rank))
        kernel = builder.kernel(
            "gemm_scatter", rank, tile=tile, waves=waves, pipeline="overlapped", placement="persistent", **resources
        )
        for workgroup in range(machine.cu_count):
            builder.workgroup(kernel)
            # The own copy comes last; workgroups begin at different peers, so that all links carry at once.
            peers = [(rank + 1 + (workgroup + i) % (gpus - 1)) % gpus for i in range(gpus - 1)]
            for t in range(workgroup, rows_of_tiles * cols_of_tiles, machine.cu_count):
                row, col = t // cols_of_tiles * tile[0], t % cols_of_tiles * tile[1]
                rows, cols = min(tile[0], m - row), min(tile[1], columns - col)
                builder.matmul(a, b, (row, col, rows, cols), (0, k))
                for to in [*peers, rank]:
                    builder.store(c, (row, rank * columns + col, rows, cols), to)
        builder.launch(rank, kernel)
        builder.device_synchronize(rank)
    return builder.finish()


def main() -> None:
    machine = tritax.machine("h200-4")
    shape = {"m": 1024, "n": 2048, "k": 4096, "gpus": 4}
    own = fused_sequential(machine, **shape, tile=(128, 128, 64), waves=8)
    assert not tritax.check(own, machine)
    shipped = tritax.schedule(
        tritax.problem("gemm-all-scatter", **shape),
        machine,
        "fused-sequential",
        tile=(128, 128, 64),
        waves=8,
        group_m=1,  # tiles row by row
        xcd_remap=False,
        peer_order="staggered",
    )
    for schedule in (own, shipped):
        run = tritax.simulate(schedule, machine)
        print(f"{schedule!r}: {run.makespan_ns:.3f} ns, of which launches {run.account.launch_ns:.3f} ns")


if __name__ == "__main__":
    main()

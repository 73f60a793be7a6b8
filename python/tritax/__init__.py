"""Tritax: which overlap pattern, tile and CU split, and where does the time go?

    import tritax

    machine = tritax.machine("mi300x-8")
    problem = tritax.problem("gemm-all-scatter", m=8192, n=4608, k=36864, gpus=8)
    print(tritax.advise(problem, machine).frame())

    run = tritax.simulate(tritax.schedule(problem, machine, "fused-sequential"), machine)
    print(run.makespan_ns, run.account.parts())

Names and units are those of the C++: times in ns, data in bytes, rates in GB/s. What a user can get wrong is a
`UserError`, whose message says where, what was given and what is allowed. pandas is imported by `frame` alone.
"""

from enum import IntEnum

from ._core import (
    Advice,
    Calibration,
    Candidate,
    Execution,
    Explanation,
    Find,
    Finding,
    Game,
    Machine,
    Problem,
    Region,
    Reproduction,
    Run,
    Schedule,
    ScheduleBuilder,
    Spread,
    Taxes,
    TimeAccount,
    Timeline,
    UserError,
    Validation,
    Workload,
    __version__,
    advise,
    calibrate,
    check,
    copy_resources,
    execute,
    explain,
    frame,
    host_op_kinds,
    machine,
    machines,
    matmul_resources,
    model,
    op_kinds,
    players,
    problem,
    read_schedule,
    reproduce,
    schedule,
    schedule_from_json,
    simulate,
    validate,
    workload,
    workloads,
)
from .ppo import play
from .sweeps import read_sweep


class OpKind(IntEnum):
    """Kinds of tile operations: the column `kind` of `Timeline.ops`."""

    matmul = op_kinds.index("matmul")
    load = op_kinds.index("load")
    store = op_kinds.index("store")
    copy = op_kinds.index("copy")
    reduce = op_kinds.index("reduce")
    atomic_add = op_kinds.index("atomic_add")
    attend = op_kinds.index("attend")
    combine = op_kinds.index("combine")
    signal = op_kinds.index("signal")
    wait = op_kinds.index("wait")
    barrier = op_kinds.index("barrier")
    claim = op_kinds.index("claim")
    sparse_product = op_kinds.index("sparse_product")
    rms_norm = op_kinds.index("rms_norm")
    row_dot = op_kinds.index("row_dot")
    attend_backward = op_kinds.index("attend_backward")


class HostOpKind(IntEnum):
    """Kinds of host operations: the column `kind` of `Timeline.host`."""

    launch = host_op_kinds.index("launch")
    graph_launch = host_op_kinds.index("graph_launch")
    stream_synchronize = host_op_kinds.index("stream_synchronize")
    device_synchronize = host_op_kinds.index("device_synchronize")
    barrier = host_op_kinds.index("barrier")
    event_record = host_op_kinds.index("event_record")
    event_wait = host_op_kinds.index("event_wait")
    copy = host_op_kinds.index("copy")
    host_work = host_op_kinds.index("host_work")


__all__ = [
    "Advice",
    "Calibration",
    "Candidate",
    "Execution",
    "Explanation",
    "Find",
    "Finding",
    "Game",
    "HostOpKind",
    "Machine",
    "OpKind",
    "Problem",
    "Region",
    "Reproduction",
    "Run",
    "Schedule",
    "ScheduleBuilder",
    "Spread",
    "Taxes",
    "TimeAccount",
    "Timeline",
    "UserError",
    "Validation",
    "Workload",
    "__version__",
    "advise",
    "calibrate",
    "check",
    "copy_resources",
    "execute",
    "explain",
    "frame",
    "machine",
    "machines",
    "matmul_resources",
    "play",
    "players",
    "model",
    "problem",
    "read_schedule",
    "read_sweep",
    "reproduce",
    "schedule",
    "schedule_from_json",
    "simulate",
    "validate",
    "workload",
    "workloads",
]

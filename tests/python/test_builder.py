"""Tests of schedules written in Python: tritax.ScheduleBuilder."""

import json

import pytest

import tritax


@pytest.fixture(scope="module")
def machine():
    return tritax.machine("h200-4")


def relay(rank_signals=True):
    """Rank 0 sends a block to rank 1, which sends it on; without the signal nothing orders the two."""
    builder = tritax.ScheduleBuilder("relay", 3)
    block = builder.buffer("block", "fp16", 64, 64)
    got = builder.buffer("got", "fp16", 64, 64)
    ready = builder.flags("ready", 1)
    builder.input(builder.region(block))
    everything = (0, 0, 64, 64)
    for rank in range(3):
        if rank > 0:
            builder.expect_copy(builder.region(got, rank=rank), builder.region(block, rank=0))
        kernel = builder.kernel("relay", rank)
        builder.workgroup(kernel)
        if rank == 1 and rank_signals:
            builder.wait(ready, 0, scope="system")
        if rank < 2:
            builder.copy(got, everything, rank + 1, got if rank else block, (0, 0), rank)
        if rank == 0:
            builder.signal(ready, 0, 1, scope="system")
        builder.launch(rank, kernel)
        builder.device_synchronize(rank)
    return builder.finish()


def sum_of_peers(way):
    """Rank 0 adds the blocks of three peers: one after the other, with all loads in flight at once, or in the switch."""
    builder = tritax.ScheduleBuilder("sum", 4)
    block, total = (builder.buffer(name, "fp16", 64, 64) for name in ("block", "total"))
    builder.input(builder.region(block))
    builder.expect_sum(builder.region(total, rank=0), builder.region(block))
    everything = (0, 0, 64, 64)
    builder.workgroup(builder.kernel("sum", 0))

    def loads():
        builder.load(block, everything, 0)
        for peer in range(1, 4):
            builder.reduce(block, everything, peer)

    if way == "in turn":
        loads()
    else:
        getattr(builder, way)(loads)
    builder.store(total, everything, 0)
    builder.launch(0, 0)
    builder.device_synchronize(0)
    return builder.finish()


def test_what_nothing_orders_is_found_refused_and_seen_when_executed(machine):
    good, bad = relay(), relay(rank_signals=False)
    assert tritax.check(good, machine) == [] and tritax.execute(good, machine).right
    finding = tritax.check(bad)[0]
    assert finding.kind == "unordered-read" and "relay" in finding.where
    for run in (tritax.simulate, tritax.explain):
        with pytest.raises(tritax.UserError, match="relay"):
            run(bad, machine)
    assert not tritax.execute(bad, machine).right


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda b, k: tritax.ScheduleBuilder("none", 0), ["ranks: 0"]),
        (lambda b, k: b.kernel("late", 5), ["rank: 5", "0 to 1"]),
        (lambda b, k: b.kernel("odd", 0, tile=(1, 2)), ["tile"]),
        (lambda b, k: b.kernel("odd", 0, colour=1), ["colour"]),
        (lambda b, k: b.kernel("odd", 0, placement="everywhere"), ["persistent"]),
        (lambda b, k: b.kernel("odd", 0, start_ns=float("nan")), ["start_ns"]),
        (lambda b, k: b.kernel("odd", 0, library={"routine": "all-red"}), ["library", "all-red"]),
        (lambda b, k: b.kernel("odd", 0, library={"routine": "gemm", "rate": 1}), ["library", "rate"]),
        (lambda b, k: b.workgroup(7), ["kernel", "7"]),
        (lambda b, k: (b.workgroup(k), b.load(3, (0, 0, 1, 1), 0)), ["buffer", "3"]),
        (lambda b, k: (b.workgroup(k), b.wait(0, 0)), ["flags", "0"]),
        (lambda b, k: b.barrier(), ["workgroup"]),
        (lambda b, k: b.buffer("B", "fp16", 1 << 40, 1), ["rows"]),
        (lambda b, k: b.host_work(0, "rest", -1.0), ["duration_ns"]),
        (lambda b, k: (b.finish(), b.launch(0, k)), ["finished"]),
    ],
)
def test_the_builder_refuses_at_once_what_cannot_be(call, words):
    builder = tritax.ScheduleBuilder("mine", 2)
    kernel = builder.kernel("work", 0)
    with pytest.raises(tritax.UserError) as caught:
        call(builder, kernel)
    for word in words:
        assert word in str(caught.value)


def test_operations_of_a_group_start_together(machine):
    grouped, in_turn = sum_of_peers("together"), sum_of_peers("in turn")
    assert json.loads(grouped.to_json()) != json.loads(in_turn.to_json())
    for schedule in (grouped, in_turn):
        assert not tritax.check(schedule, machine)
        assert tritax.execute(schedule, machine).right
    assert tritax.simulate(grouped, machine).kernels_ns < 0.7 * tritax.simulate(in_turn, machine).kernels_ns


def test_the_switch_adds_up_what_a_workgroup_loads():
    machine = tritax.machine("h200-8")
    in_switch = sum_of_peers("multimem")
    assert not tritax.check(in_switch, machine)
    assert tritax.execute(in_switch, machine).right
    loaded = tritax.simulate(sum_of_peers("together"), machine)
    assert tritax.simulate(in_switch, machine).kernels_ns < loaded.kernels_ns
    with pytest.raises(tritax.UserError, match="fabric.multicast"):
        tritax.simulate(in_switch, tritax.machine("mi300x-8"))


def test_a_workgroup_posts_a_copy_to_a_copy_engine():
    machine = tritax.machine("mi300x-8")
    builder = tritax.ScheduleBuilder("post", 2)
    block, got = (builder.buffer(name, "fp16", 1024, 1024) for name in ("block", "got"))
    builder.input(builder.region(block))
    builder.expect_copy(builder.region(got, rank=1), builder.region(block, rank=0))
    builder.workgroup(builder.kernel("post", 0))
    builder.post(got, (0, 0, 1024, 1024), 1, block, (0, 0), 0)
    builder.launch(0, 0)
    builder.device_synchronize(0)
    schedule = builder.finish()
    assert not tritax.check(schedule, machine)
    assert tritax.execute(schedule, machine).right
    rate = 1024 * 1024 * 2 / (tritax.simulate(schedule, machine).kernels_ns - machine["copy_engine.packet"])
    assert 0.5 * machine["copy_engine.rate"] < rate <= machine["copy_engine.rate"]


def test_the_builder_has_attention(machine):
    builder = tritax.ScheduleBuilder("attention", 1)
    q, k, v, o = (builder.buffer(name, "fp16", 48, 16, 16, 16) for name in "QKVO")
    for buffer in (q, k, v):
        builder.input(builder.region(buffer))
    # Causal: the first query sees one key, each further one more.
    builder.expect_attention(*(builder.region(buffer, rank=0) for buffer in (o, q, k, v)), limit=1)
    kernel = builder.kernel("attend", 0, tile=(64, 16, 16), waves=4, pipeline="overlapped")
    for row in range(0, 48, 16):
        builder.workgroup(kernel)
        for key in range(0, 48, 16):
            builder.attend(q, (row, 0, 16, 16), k, v, 0, (key, key + 16), limit=row + 1)
        builder.store(o, (row, 0, 16, 16), 0)
    builder.launch(0, kernel)
    builder.device_synchronize(0)
    schedule = builder.finish()
    assert tritax.check(schedule, machine) == [] and tritax.execute(schedule, machine).right


def test_the_builder_has_queues_graphs_events_and_copy_engines(machine):
    builder = tritax.ScheduleBuilder("queue", 2)
    block = builder.buffer("block", "fp16", 64, 64, 16)
    moved = builder.buffer("moved", "fp16", 64, 64, 16)
    far = builder.buffer("far", "fp16", 64, 64)
    queue = builder.flags("queue", 1)
    builder.input(builder.region(block))
    for rank in range(2):
        builder.expect_copy(builder.region(far, rank=1 - rank), builder.region(block, rank=rank))
        kernel = builder.kernel("work", rank)
        for _ in range(2):
            builder.workgroup(kernel)
            builder.claim_items(queue, 0, 0, 4)
        for row in range(0, 64, 16):
            builder.item(kernel)
            builder.copy(moved, (row, 0, 16, 64), rank, block, (row, 0), rank)
        builder.graph_launch(rank, [(kernel, 0)])
        builder.record_event(rank, 0, stream=0)
        builder.wait_event(rank, 0, stream=1)
        builder.host_copy(rank, 1, far, (0, 0, 64, 64), 1 - rank, moved, (0, 0), rank)
        builder.host_work(rank, "rest", 1000.0)
        builder.stream_synchronize(rank, 1)
        builder.device_synchronize(rank)
        builder.host_barrier(rank)
    schedule = builder.finish()
    assert tritax.check(schedule, machine) == [] and tritax.execute(schedule, machine).right
    assert schedule.kernels[0]["items"] == 4
    timeline = tritax.simulate(schedule, machine, timeline=True).timeline
    assert set(timeline.copies["to_rank"]) == {0, 1}
    drawn = timeline.ops[timeline.ops["kind"] == tritax.OpKind.copy]  # items, wherever they were drawn
    assert list(drawn["bytes"]) == [16 * 64 * 2] * 8

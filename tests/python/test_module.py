"""Tests of `import tritax`: the calls and examples of docs/python.md."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tritax

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "examples"))
from fused_sequential import fused_sequential  # noqa: E402

SHAPE = {"m": 512, "n": 1024, "k": 1024, "gpus": 4}
TILE = (128, 128, 64)


@pytest.fixture(scope="module")
def machine():
    return tritax.machine("h200-4")


@pytest.fixture(scope="module")
def problem():
    return tritax.problem("gemm-all-scatter", **SHAPE)


@pytest.fixture(scope="module")
def own(machine):
    return fused_sequential(machine, **SHAPE, tile=TILE, waves=8)


def shipped_like(own_machine, problem):
    return tritax.schedule(problem, own_machine, "fused-sequential", tile=TILE, waves=8, group_m=1,
                           xcd_remap=False, peer_order="staggered")


# Machines, workloads, problems


def test_machines_are_loaded_by_name_or_path_and_changed(machine, tmp_path):
    assert "h200-4" in tritax.machines()
    slow = machine.changed(set={"fabric.link": "225GB/s"}, scale={"host.launch_call_time": 2})
    assert slow["fabric.link"] == 225
    assert slow["fabric.store_egress"] < machine["fabric.store_egress"]  # it follows
    assert slow["host.launch_call_time"] == 2 * machine["host.launch_call_time"]
    assert any("fabric.link" in line for line in slow.changes)
    assert machine.changed(set={"gpu.async_tile_copy": False})["gpu.async_tile_copy"] == 0
    path = tmp_path / "slow.toml"
    path.write_text(slow.toml())
    assert tritax.machine(path)["fabric.link"] == 225
    assert {row["how"] for row in machine.parameters} <= {"datasheet", "measured", "derived", "calibrated", "assumed"}


def test_workloads_say_what_they_take():
    for name in tritax.workloads():
        workload = tritax.workload(name)
        assert workload.name == name and workload.fields and workload.patterns
    workload = tritax.workload("gemm-all-scatter")
    assert workload.baseline == "library"
    assert [row["name"] for row in workload.fields] == ["m", "n", "k", "dtype", "gpus"]
    assert {row["name"]: row["usual"] for row in workload.fields}["dtype"] == "fp16"


def test_gpus_default_to_all_of_the_machine(machine):
    problem = tritax.problem("gemm-all-scatter", m=512, n=1024, k=1024, dtype="bf16")
    assert problem.gpus is None
    assert tritax.schedule(problem, machine, "fused-sequential").ranks == machine.gpu_count


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda m, p: tritax.machine("h200"), ["h200", "shipped"]),
        (lambda m, p: m.changed(set={"fabric.lnk": "3GB/s"}), ["fabric.lnk", "did you mean 'fabric.link'"]),
        (lambda m, p: m.changed(scale={"nodes": 2}), ["scale nodes=2: only set changes it"]),
        (lambda m, p: m.changed(set={"fabric.link": True}), ["set fabric.link=true: 'true'"]),
        (lambda m, p: m["fabric.lnk"], ["did you mean 'fabric.link'"]),
        (lambda m, p: tritax.problem("gemm-all-scater", m=1), ["did you mean 'gemm-all-scatter'"]),
        (lambda m, p: tritax.problem("gemm-all-scatter", m=0, n=1, k=1), ["m: 0", "1 to"]),
        (lambda m, p: tritax.problem("gemm-all-scatter", m=1.5, n=1, k=1), ["m: '1.5'", "whole number"]),
        (lambda m, p: tritax.problem("gemm-all-scatter", m=1), ["n, k", "missing"]),
        (lambda m, p: tritax.problem("gemm-all-scatter", m=1, n=1, k=1, dtype="f16"), ["did you mean", "fp16"]),
        (lambda m, p: tritax.schedule(p, m, "fused"), ["did you mean 'fused-sequential'"]),
        (lambda m, p: tritax.schedule(p, m, "fused-sequential", comm_cus=3), ["comm_cus", "group_m"]),
        (lambda m, p: tritax.schedule(p, m, "fused-sequential", tile=(256, 64)), ["256x64", "3"]),
        (lambda m, p: tritax.schedule(tritax.problem("gemm-all-scatter", m=1, n=8, k=1, gpus=8), m), ["gpus: 8", "4"]),
        (lambda m, p: tritax.advise(p, m, selector="serch"), ["search"]),
        (lambda m, p: tritax.reproduce(group="no such"), ["no such"]),
        (lambda m, p: tritax.validate(clock="moon"), ["wall", "device"]),
        (lambda m, p: tritax.schedule_from_json('{"schema": 3}', "mine"), ["mine"]),
        (lambda m, p: tritax.read_schedule("/nowhere.json"), ["/nowhere.json"]),
    ],
)
def test_mistakes_are_user_errors_that_say_where_and_what_is_allowed(machine, problem, call, words):
    with pytest.raises(tritax.UserError) as caught:
        call(machine, problem)
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value, ValueError)


# Schedules


def test_a_pattern_of_python_takes_the_time_of_the_same_pattern_of_cpp_to_the_bit(machine, problem, own):
    shipped = shipped_like(machine, problem)
    a, b = tritax.simulate(own, machine, taxes=True), tritax.simulate(shipped, machine, taxes=True)
    assert a.makespan_ns == b.makespan_ns
    assert a.account.parts() == b.account.parts()
    assert a.taxes.all_removed_ns == b.taxes.all_removed_ns
    assert a.gpus == b.gpus
    assert own.to_json() == shipped.to_json()


def test_a_pattern_of_python_is_sound_and_right(machine, own):
    assert tritax.check(own) == []
    assert tritax.check(own, machine) == []
    ragged = fused_sequential(machine, m=200, n=360, k=72, gpus=4, tile=TILE, waves=8)
    execution = tritax.execute(ragged, machine, seed=3)
    assert execution.right and execution.stale_reads == []
    assert len(execution.error_of_rank) == 4


def test_json_keeps_all_of_a_schedule(machine, own, tmp_path):
    path = tmp_path / "own.json"
    own.save(path)
    again = tritax.read_schedule(path)
    assert again.to_json() == own.to_json()
    assert tritax.simulate(again, machine).makespan_ns == tritax.simulate(own, machine).makespan_ns
    assert json.loads(path.read_text())["schema"] == "tritax.schedule/1"


# Runs and timelines


def test_a_run_says_where_its_time_went(machine, problem):
    schedule = tritax.schedule(problem, machine, "bulk-synchronous")
    run = tritax.simulate(schedule, machine, taxes=True, spread=True)
    assert run.account.sum_ns == pytest.approx(run.makespan_ns, rel=1e-12)
    assert sum(run.account.parts().values()) == pytest.approx(run.makespan_ns, rel=1e-12)
    assert run.taxes.all_removed_ns < run.makespan_ns
    assert run.spread.times_ns[0] == run.makespan_ns
    assert len(run.gpus) == 4 and sum(link["bytes"] for link in run.links) > 0
    for row in run.caches:
        assert row["asked_bytes"] >= row["l2_hit_bytes"]
    frame = tritax.frame([run, run])
    assert list(frame["makespan_ns"]) == [run.makespan_ns] * 2
    assert tritax.simulate(schedule, machine).taxes is None


def test_timelines_are_arrays_that_agree_with_the_run(machine, problem, own):
    run = tritax.simulate(own, machine, timeline=True)
    ops = run.timeline.ops
    assert isinstance(ops, np.ndarray) and len(ops) == own.operations == run.tile_operations
    assert (ops["end_ns"] >= ops["service_begin_ns"]).all() and (ops["service_begin_ns"] >= ops["begin_ns"]).all()
    assert (np.diff(ops["begin_ns"]) >= 0).all()
    stores = ops[ops["kind"] == tritax.OpKind.store]
    remote = stores[stores["peer"] != stores["rank"]]
    assert remote["bytes"].sum() == 3 * 512 * 1024 * 2  # every block goes to three peers
    assert run.timeline.kernels["end_ns"].max() - run.timeline.kernels["begin_ns"].min() == run.kernels_ns
    assert set(run.timeline.host["kind"]) == {tritax.HostOpKind.launch, tritax.HostOpKind.device_synchronize}
    assert len(run.timeline.links) > 0 and run.timeline.links["link"].max() < len(run.timeline.link_names)
    assert json.loads(run.timeline.perfetto_json())["traceEvents"]
    copying = tritax.simulate(
        tritax.schedule(tritax.problem("gemm-all-to-all", m=512, n=512, k=512, gpus=2), machine, "copy-engine"),
        machine, timeline=True)
    copies = copying.timeline.copies
    assert len(copies) > 0 and (copies["from_rank"] != copies["to_rank"]).all() and (copies["bytes"] > 0).all()


def test_every_kind_of_operation_has_a_name():
    assert [kind.name for kind in sorted(tritax.OpKind)] == tritax._core.op_kinds
    assert [kind.name for kind in sorted(tritax.HostOpKind)] == tritax._core.host_op_kinds


# Questions


def test_advice_is_ranked_with_ties_and_can_be_run_again(machine, problem):
    advice = tritax.advise(problem, machine, tile=TILE, taxes=False)
    times = [candidate.time_ns for candidate in advice.candidates]
    assert times == sorted(times) and advice.best.rank == 1
    assert advice["library"].speedup == 1
    for candidate in advice.candidates:
        first = advice.candidates[candidate.tie_with_rank - 1].time_ns
        assert candidate.tie_with_rank <= candidate.rank
        widest = max(advice.band or 0, advice.ratio_band or 0)
        assert candidate.tie_with_rank == candidate.rank or candidate.time_ns < first * (1 + 2 * widest)
        again = tritax.schedule(problem, machine, candidate.pattern, **candidate.knobs)
        assert tritax.simulate(again, machine).makespan_ns == candidate.time_ns
    assert advice.best.knobs["tile"] == TILE
    frame = advice.frame()
    assert list(frame["pattern"]) == [candidate.pattern for candidate in advice.candidates]
    assert advice.explanation and advice.evaluated > advice.given_up
    library = advice["library"].time_ns
    others = min(candidate.time_ns for candidate in advice.candidates if candidate.pattern != "library")
    assert (advice.decision == "leave it") == (library > 0 and others > library * (1 + (advice.ratio_band or 0)))


def test_an_explanation_varies_machine_and_knobs(machine, problem, own):
    schedule = tritax.schedule(problem, machine, "producer-consumer", tile=(64, 64, 64), gemm_cus=16)  # many rounds
    explanation = tritax.explain(schedule, machine)
    frame = explanation.frame()
    assert {"fabric.link", "knob tile_m"} <= set(frame["input"])
    assert explanation.sentences and explanation.run.taxes is not None
    for row in explanation.overlaps:
        together = row["computing_ns"] + row["communicating_ns"] - row["both_ns"]
        assert row["idle_ns"] == pytest.approx(explanation.run.makespan_ns - together)
        assert row["hidden"] == row["both_ns"] / row["communicating_ns"] > 0
        causes = [row[f"idle_{cause}_ns"] for cause in ("launch", "flag", "kernel", "other")]
        assert sum(causes) == pytest.approx(row["idle_ns"]) and min(causes) >= 0
    assert len(explanation.overlaps) == 4
    assert not any(name.startswith("knob") for name in tritax.explain(own, machine).frame()["input"])


def test_published_numbers_are_predicted(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("""
        [[entry]]
        id = "mine"
        group = "my group"
        metric = "time"
        clock = "host"
        unit = "us"
        value = 50
        source = "a bench"
        confidence = "A"
        scenario = { machine = "h200-4", workload = "gemm-all-scatter", pattern = "fused-sequential", m = 512, n = 1024, k = 1024, gpus = 4 }
    """)
    reproduction = tritax.reproduce(path)
    frame = reproduction.frame()
    assert list(frame["id"]) == ["mine"] and frame["predicted"][0] > 0
    assert frame["error"][0] == pytest.approx(frame["predicted"][0] / 50 - 1)
    assert reproduction.summary[0]["predictions"] == 1 and reproduction.summary[0]["group"] == "my group"


def test_measurements_are_predicted(tmp_path):
    shipped = ROOT / "scenarios" / "measured"
    lines = (shipped / "h100-2-gemm-all-to-all.csv").read_text().splitlines()
    path = tmp_path / "few.csv"
    path.write_text("\n".join(lines[:6]) + "\n")  # two remarks, the names, three patterns of one shape
    validation = tritax.validate(path, scenarios=shipped / "gemm-all-to-all.toml", clock="device")
    assert validation.summary["rows"] == len(validation.rows) == 3
    assert validation.frame()["error"].abs().median() == pytest.approx(validation.summary["median_abs_error"])
    assert sorted(validation.choices[0]["measured_order"]) == ["chunked", "copy-engine", "fused-stores"]
    slower = tritax.validate(path, scenarios=shipped / "gemm-all-to-all.toml", scale={"fabric.link": 0.25})
    assert slower.summary["median_error"] > validation.summary["median_error"]


# Long calls


LONG = {"m": 8192, "n": 8192, "k": 8192, "gpus": 8}


def test_progress_is_told_on_the_calling_thread_and_its_exception_stops_the_call():
    machine = tritax.machine("mi300x-8")
    told = []

    def progress(done, total):
        told.append((done, threading.current_thread()))
        if len(told) == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tritax.advise(tritax.problem("gemm-all-scatter", **LONG), machine, progress=progress)
    assert told[0][0] < told[1][0] and told[1][1] is threading.current_thread()


def test_ctrl_c_stops_a_long_call_while_other_threads_go_on():
    machine = tritax.machine("mi300x-8")
    schedule = tritax.schedule(tritax.problem("gemm-all-scatter", **LONG), machine, "producer-consumer")
    turns = []

    def interrupt():
        for _ in range(3):
            time.sleep(0.05)
            turns.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        other.start()
        tritax.explain(schedule, machine)
    other.join()
    assert len(turns) == 3


def launches_alone(tmp_path):
    """The rows of launches of a shipped file: what is fitted to them takes tens of milliseconds."""
    lines = (ROOT / "scenarios/measured/h200-4-microbench.csv").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.startswith(("#", "group,", "launch,st"))]
    path = tmp_path / "launches.csv"
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return path


def test_a_machine_is_calibrated_with_progress(tmp_path):
    told = []
    found = tritax.calibrate(
        tritax.machine("h200-4"), launches_alone(tmp_path), name="mine", progress=lambda done, total: told.append((done, total))
    )
    assert found.machine.name == "mine" and told and told[-1][0] > 0 and {total for _, total in told} == {0}
    parameters = found.frame().set_index("key")
    assert parameters.loc["host.launch_call_time", "determined"]
    assert found.machine["host.launch_call_time"] > 0 and all(row["simulated_us"] > 0 for row in found.rows)
    with pytest.raises(tritax.UserError, match="microbench: give one file"):
        tritax.calibrate(found.machine, [])


def test_ctrl_c_stops_a_calibration():
    base = tritax.machine("h200-4")
    began = time.monotonic()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        tritax.calibrate(base, ROOT / "scenarios/measured/h200-4-microbench.csv")
    assert time.monotonic() - began < 5


def test_the_code_of_the_documentation_runs(monkeypatch, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)  # it writes files
    advise = tritax.advise  # a whole search takes seconds
    monkeypatch.setattr(tritax, "advise", lambda *question: advise(*question, selector="defaults", taxes=False))
    exec("\n".join(blocks).replace("4096", "512"), {})  # what it copies is checked element by element
    assert len(blocks) > 2 and (tmp_path / "push.json").exists()


def test_pandas_is_imported_only_when_asked_for():
    code = "import sys, tritax; assert 'pandas' not in sys.modules; tritax.frame([]); assert 'pandas' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_is_a_frame_of_its_combinations(machine, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text("hidden_size = 256\nnum_hidden_layers = 3\nvocab_size = 1000\nnum_attention_heads = 4\n"
                    "num_key_value_heads = 2\nhead_dim = 32\nintermediate_size = 256\n", encoding="utf-8")
    frame = tritax.model(str(file), machine, batch=[2, 4], context=[128], tp=[1, 2], ep=[1, 2], selector="defaults")
    assert len(frame) == 8
    answered = frame[frame.refused.isna()]
    assert list(answered.ep) == [1, 1, 1, 1]
    assert (answered[answered.tp == 1].tpot_communication_ns == 0).all()
    assert (answered.tpot_ns >= answered.tpot_roofline_ns).all()
    assert "ep: small has no experts" in frame[frame.ep == 2].refused.iloc[0]
    with pytest.raises(tritax.UserError, match="batch: empty"):
        tritax.model(str(file), machine, batch=[])
    with pytest.raises(tritax.UserError, match="batch: .* 65536"):  # limits are those of the command
        tritax.model(str(file), machine, batch=[65537])
    many = list(range(1, 102))
    with pytest.raises(tritax.UserError, match="10201 combinations are too many; give up to 10000"):
        tritax.model(str(file), machine, batch=many, context=many, tp=[1])
    for engine_us in (-1, 1e7 + 1, float("nan")):
        with pytest.raises(tritax.UserError, match="engine_us: .* from 0 to 10000000"):
            tritax.model(str(file), machine, engine_us=engine_us)


def test_a_verdict_is_on_the_fastest_of_the_libraries(machine):
    problem = tritax.problem("gemm-beside-collective", m=1024, n=1024, k=4096, gpus=4, rows=4096, cols=4096)
    advice = tritax.advise(problem, machine, selector="defaults", taxes=False)
    libraries = {"library": advice["library"].time_ns, "library-streams": advice["library-streams"].time_ns}
    own = min(one.time_ns for one in advice.candidates if one.pattern not in libraries)
    fastest = min(libraries, key=libraries.get)
    assert fastest in advice.verdict
    if own > libraries[fastest]:
        assert advice.decision == "unknown"  # default knobs do not say that nothing is faster
    else:
        assert advice.decision in ("pays", "may pay", "tie", "unknown")

#!/usr/bin/env python3
"""Runs the examples of docs/sweep.md for several computers: the export of each equals that of one process, byte for byte.
Tools that are not installed are skipped and named.

    clusters.py FOLDER-OF-TRITAX DOCS/SWEEP.MD
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FILE = re.compile(r"<!-- file: (?P<name>\S+) -->\n```[a-z]*\n(?P<text>.*?)```", re.DOTALL)


def run(command, folder, environment):
    done = subprocess.run(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def has_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def condor_jobs(submit):
    """The calls that a submit file stands for: its macros replaced, a job an item of `queue NAME in (…)`."""
    said = dict(re.findall(r"^(\w+) *= *(.*)$", submit, re.MULTILINE))
    name, items = re.search(r"^queue (\w+) in \((.*)\)$", submit, re.MULTILINE).groups()

    def replaced(text, item):
        macro = re.compile(r"\$\((\w+)\)")
        while macro.search(text):
            text = macro.sub(lambda found: item if found[1] == name else said[found[1]], text)
        return text

    program = Path(said["executable"]).name
    return [[program, *replaced(said["arguments"], item).strip('"').split()] for item in items.split()]


def main():
    programs = Path(sys.argv[1]).resolve()
    files = {found["name"]: found["text"] for found in FILE.finditer(Path(sys.argv[2]).read_text(encoding="utf-8"))}
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    python = sys.executable
    ways = {  # name: what it needs, its commands
        "GNU parallel": (shutil.which("parallel"), [["bash", "-e", "parallel.sh"]]),
        "Dask": (has_module("dask.distributed"), [[python, "dask_shards.py"]]),
        "MPI": (shutil.which("mpirun") and (programs / "tritax-mpi").exists(), [["bash", "-e", "mpi.sh"]]),
        "Slurm array": (True, [["env", f"SLURM_ARRAY_TASK_ID={i}", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_CPUS_PER_TASK=1",
                                "bash", "-e", "array.sh"] for i in range(1, 5)]
                        + [["bash", "-e", "-c", "tritax merge links.db part-*.db"]]),
        "calls of HTCondor": (True, condor_jobs(files["condor.sub"]) + [["bash", "-e", "-c", "tritax merge links.db part-*.db"]]),
    }

    def export(name, commands):
        with tempfile.TemporaryDirectory() as folder:
            for file, text in files.items():
                (Path(folder) / file).write_text(text, encoding="utf-8")
            for command in commands:
                run(command, folder, environment)
            return run(["tritax", "export", "links.db"], folder, environment)

    whole = export("one process", [["tritax", "sweep", "links.toml"]])
    assert whole.count("\n") == 25, whole
    for name, (possible, commands) in ways.items():
        if not possible:
            print(f"{name}: not installed, skipped")
            continue
        assert export(name, commands) == whole, f"{name}: its answers differ from those of one process"
        print(f"{name}: equal to one process")
    if has_module("optuna"):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "search.py").write_text(files["search.py"], encoding="utf-8")
            print("Optuna:", run([python, "search.py"], folder, environment).splitlines()[-1])
    else:
        print("Optuna: not installed, left out")


main()

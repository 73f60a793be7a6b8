#!/usr/bin/env python3
"""Kills a rank of a sweep on MPI: the answers must equal those of one process (Open MPI with --enable-recovery).

    lost_rank.py TRITAX TRITAX-MPI
"""
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = """[point]
machine = "mi300x-8"
pattern = "producer-consumer"
[random]
samples = 3000
problem.m = { from = 512, to = 4096 }
problem.n = { from = 512, to = 4096 }
problem.k = { from = 512, to = 4096 }
"""


def process_of_rank(rank, word):
    """Of the job whose command line has `word`; none before it has begun."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (process / "cmdline").read_bytes() \
                    and f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in (process / "environ").read_bytes():
                return int(process.name)
        except OSError:  # it has ended
            continue
    return None


def stored(database):
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        count, = connection.execute("SELECT count(*) FROM points").fetchone()
        connection.close()
        return count
    except sqlite3.OperationalError:  # there is no file or table yet
        return 0


def main():
    tritax, tritax_mpi = (str(Path(argument).resolve()) for argument in sys.argv[1:3])
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    if "Open MPI" not in version:
        print("skipped: the MPI is another than Open MPI")
        return
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "s.toml").write_text(SWEEP, encoding="utf-8")
        database = str(Path(folder) / "ranks.db")
        log = Path(folder) / "log"
        with log.open("w") as out:
            job = subprocess.Popen(["mpirun", "--enable-recovery", "--oversubscribe", "-n", "3", tritax_mpi, "s.toml",
                                    "--lost-after", "3", "-o", database], cwd=folder, env=environment, stdout=out,
                                   stderr=subprocess.STDOUT)
            victim = None
            while victim is None and job.poll() is None:
                victim = process_of_rank(2, database)
            while stored(database) == 0 and job.poll() is None:  # a job that has not begun yet would never begin
                time.sleep(0.05)
            if victim is None or job.poll() is not None:
                print("skipped: the job ended before a rank could be killed\n" + log.read_text(encoding="utf-8"))
                return
            os.kill(victim, signal.SIGKILL)
            job.wait()
        told = log.read_text(encoding="utf-8")
        assert "rank 2 has been silent for 3 s and is given up" in told, told
        subprocess.run([tritax, "sweep", "s.toml", "-o", "whole.db"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        exports = [subprocess.run([tritax, "export", name], cwd=folder, check=True, capture_output=True).stdout
                   for name in ("whole.db", "ranks.db")]
        assert exports[0] == exports[1], told
        print(re.search(r"rank 2 .*", told)[0])


main()

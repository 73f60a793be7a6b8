#!/usr/bin/env python3
"""Ends a sweep by kill -9 at random moments: it must continue where it was, and end with the same answers.

    kill_and_resume.py TRITAX KILLS POINTS [SEED]

After every kill the database is whole, what was in it is there still and as it was, and the next run answers only what is
missing. At the end the export is, byte for byte, that of a run that nothing disturbed.
"""
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = """ask = "closed-form"
[point]
machine = "mi300x-8"
workload = "gemm-all-scatter"
pattern = "fused-sequential"
[random]
samples = {points}
problem.m = {{ from = 64, to = 16384 }}
problem.n = {{ from = 64, to = 16384 }}
problem.k = {{ from = 64, to = 16384 }}
scale.fabric.link = {{ from = 0.5, to = 2.0 }}
"""


def stored(database):
    """All rows, of a database that is whole."""
    if not database.exists():
        return set()
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        try:
            rows = set(connection.execute("SELECT key, answer, error FROM points"))
        except sqlite3.OperationalError:  # killed before the tables were there
            rows = set()
    connection.close()
    return rows


def main():
    tritax, kills, points = str(Path(sys.argv[1]).resolve()), int(sys.argv[2]), int(sys.argv[3])
    random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "killed.db"
        (Path(folder) / "s.toml").write_text(SWEEP.format(points=points), encoding="utf-8")

        def command(*arguments):
            return [tritax, *arguments]

        begin = time.monotonic()
        subprocess.run(command("sweep", "s.toml", "-o", "whole.db"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        whole_seconds = time.monotonic() - begin
        refused = [error for _, _, error in stored(Path(folder) / "whole.db") if error]
        assert not refused, f"{len(refused)} points have no answer, one of them: {refused[0]}"
        begin = time.monotonic()
        subprocess.run(command("sweep", "s.toml", "-o", "whole.db"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        start_seconds = time.monotonic() - begin  # all is stored: what is left is reading and looking up
        before, landed, early = set(), 0, 0
        for _ in range(kills):
            run = subprocess.Popen(command("sweep", "s.toml", "-o", "killed.db"), cwd=folder, stdout=subprocess.DEVNULL)
            time.sleep(random.uniform(0.5 * start_seconds, 1.2 * start_seconds + 1.6 * whole_seconds / kills))
            run.send_signal(signal.SIGKILL)
            landed += run.wait() == -signal.SIGKILL
            now = stored(database)
            assert before <= now, f"{len(before - now)} rows are lost"
            early += before == now
            before = now
        last = subprocess.run(command("sweep", "s.toml", "-o", "killed.db"), cwd=folder, check=True, capture_output=True,
                              text=True).stdout
        answered = int(re.search(r"(\d+) points answered", last).group(1))
        assert answered == points - len(before), f"{answered} answered of {points - len(before)} that were missing"
        exports = [subprocess.run(command("export", name), cwd=folder, check=True, capture_output=True).stdout
                   for name in ("whole.db", "killed.db")]
        assert exports[0] == exports[1], "the answers differ"
        print(f"{points} points, undisturbed in {whole_seconds:.1f} s; {landed} runs of {kills} killed, {early} of them before "
              f"they had stored a batch; {len(before)} points stored by them, {answered} by the last run; exports equal")


main()

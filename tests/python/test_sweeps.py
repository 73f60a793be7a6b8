"""Tests that Python reads the database of `tritax sweep`."""

import json
import sqlite3

import pytest

import tritax


@pytest.fixture
def database(tmp_path):
    """As sim/study/sweep/sweep_store.cpp lays it out; two sweeps share a point."""
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA application_id = 1416778616; PRAGMA user_version = 1;"
        "CREATE TABLE points (key TEXT PRIMARY KEY, version TEXT NOT NULL, point TEXT NOT NULL, answer TEXT, error TEXT)"
        " WITHOUT ROWID;"
        "CREATE TABLE asked (sweep TEXT NOT NULL, number INTEGER NOT NULL, key TEXT NOT NULL,"
        " PRIMARY KEY (sweep, number)) WITHOUT ROWID;")
    point = {"ask": "advise", "problem": {"m": 64}, "knobs": {"waves": 8}}
    answer = {"time_us": 12.5, "knobs": {"waves": 8}, "critical_path": {"launch_us": 2.0}, "candidates": [{"pattern": "a"}]}
    connection.execute("INSERT INTO points VALUES ('x', '1', ?, ?, NULL)", (json.dumps(point), json.dumps(answer)))
    connection.execute("INSERT INTO points VALUES ('y', '1', ?, NULL, 'm: too small')",
                       (json.dumps({"ask": "advise", "problem": {"m": 1}}),))
    connection.executemany("INSERT INTO asked VALUES (?, ?, ?)", [("a", 1, "x"), ("a", 0, "y"), ("b", 0, "x"), ("b", 1, "z")])
    connection.commit()
    connection.close()
    return path


def test_a_sweep_is_a_frame_with_a_row_a_point(database):
    frame = tritax.read_sweep(database)
    assert list(frame.columns) == ["sweep", "number", "version", "ask", "problem.m", "knobs.waves", "time_us",
                                   "answer.knobs.waves", "critical_path.launch_us", "candidates", "error"]
    assert list(zip(frame["sweep"], frame["number"])) == [("a", 0), ("a", 1), ("b", 0)]
    assert frame["problem.m"].tolist() == [1, 64, 64]
    assert frame["error"][0] == "m: too small"
    assert frame["time_us"][1] == 12.5
    assert frame["candidates"][2] == [{"pattern": "a"}]
    assert len(tritax.read_sweep(str(database), "b")) == 1


def test_what_is_no_sweep_is_refused(database, tmp_path):
    with pytest.raises(tritax.UserError, match="no such file"):
        tritax.read_sweep(tmp_path / "none.db")
    with pytest.raises(tritax.UserError, match="it has a, b"):
        tritax.read_sweep(database, "c")
    (tmp_path / "text").write_text("x" * 5000)
    with pytest.raises(tritax.UserError, match="not a database"):
        tritax.read_sweep(tmp_path / "text")
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(tritax.UserError, match="newer Tritax"):
        tritax.read_sweep(database)

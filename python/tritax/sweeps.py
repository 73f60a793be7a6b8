"""Reads the database of `tritax sweep` into a pandas frame. Needs only the errors of the compiled module."""

import json
import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from ._core import UserError

_APPLICATION = 0x54725378  # as sim/study/sweep/sweep_store.hpp
_LAYOUT = 1


def _flat(tree: Dict[str, Any], prefix: str = "") -> Dict[str, Any]:
    """Values by dotted names; lists stay as they are."""
    flat: Dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _require_sweeps(connection: sqlite3.Connection, path: Path) -> None:
    application, = connection.execute("PRAGMA application_id").fetchone()
    layout, = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise UserError(f"{path}: it is no database of 'tritax sweep'")
    if layout > _LAYOUT:
        raise UserError(f"{path}: a newer Tritax wrote it (layout {layout}; this one knows {_LAYOUT})")


def read_sweep(path: Union[str, "Path"], sweep: Optional[str] = None) -> Any:
    """A frame with a row a point, in the order of `tritax export` and with its columns.

    `sweep` names one where the database has several. Lists (the candidates of `advise`, the steps of `layer`) stay lists.
    Parquet is `read_sweep(path).to_parquet(file)`, where pandas finds pyarrow or fastparquet.
    """
    pd: Any = import_module("pandas")  # which has no types

    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; give a database that 'tritax sweep' writes")
    rows: List[Dict[str, Any]] = []
    points: Dict[str, None] = {}
    answers: Dict[str, None] = {}
    connection = sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True)
    try:
        _require_sweeps(connection, path)
        found = connection.execute(
            "SELECT sweep, number, version, point, answer, error FROM asked JOIN points USING (key) "
            "WHERE ?1 IS NULL OR sweep = ?1 ORDER BY sweep, number", (sweep,)).fetchall()
        if sweep is not None and not found:
            names = [name for name, in connection.execute("SELECT DISTINCT sweep FROM asked ORDER BY sweep")]
            raise UserError(f"{path}: there is nothing of a sweep '{sweep}'; it has {', '.join(names) or 'none'}")
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: {error}") from None
    finally:
        connection.close()
    parsed = [(name, number, version, _flat(json.loads(point)), _flat(json.loads(answer or "{}")), reason)
              for name, number, version, point, answer, reason in found]
    for _, _, _, point, answer, _ in parsed:
        points.update(dict.fromkeys(point))
        answers.update(dict.fromkeys(answer))
    own = ("sweep", "number", "version", "error")
    column_of = {name: f"answer.{name}" if name in points or name in own else name for name in answers}
    for name, number, version, point, answer, reason in parsed:
        row: Dict[str, Any] = {"sweep": name, "number": number, "version": version, **point, "error": reason}
        row.update({column_of[key]: value for key, value in answer.items()})
        rows.append(row)
    return pd.DataFrame(rows, columns=["sweep", "number", "version", *points, *column_of.values(), "error"])

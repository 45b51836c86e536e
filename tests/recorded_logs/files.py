"""Logs that are read from files, or stay there and are scanned."""

from __future__ import annotations

import atexit
import csv
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import podium
from recorded_logs.case import Case, recorded
from recorded_logs.rows import VISIT_ACTIONS, Rows, visits


@cache
def folder() -> Path:
    """A folder that is removed when the program ends."""
    path = Path(tempfile.mkdtemp(prefix="podium-record-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def write_csv(path: Path, records: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def written(seed: int, ending: str, rows: int = 300) -> tuple[Path, Rows]:
    """A file of visits with propensities and policies of all actions."""
    columns, made = visits(seed, rows)
    columns |= {"time": np.random.default_rng(seed).permutation(rows), "propensity": made.propensities}
    for j, label in enumerate(VISIT_ACTIONS):
        columns |= {f"pi_{name}:{label}": policy[:, j] for name, policy in made.policies.items()}
    path = folder() / f"visits-{seed}.{ending}"
    records = [
        dict(zip(columns, values, strict=True))
        for values in zip(*map(np.ndarray.tolist, columns.values()), strict=True)
    ]
    if ending == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), path)
    elif ending == "jsonl":
        path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    else:
        write_csv(path, records)
    return path, made


@recorded
def csv_file() -> Case:
    return Case(podium.read_log(written(90, "csv")[0]), gates=("p3 > p1",))


@recorded
def parquet_file() -> Case:
    path, _ = written(91, "parquet")
    return Case(podium.read_log(path, state=["age", "plan"], unit="region"), more={"compare one": {"estimator": "LDE"}})


@recorded
def json_lines_file() -> Case:
    return Case(podium.read_log(written(94, "jsonl")[0]), ["p1", "p3"])


@recorded
def policies_in_files() -> Case:
    path, rows = written(95, "csv", 200)
    log = podium.read_log(path)
    row_by_row, by_state = folder() / "row by row.csv", folder() / "by state.csv"
    write_csv(row_by_row, [dict(zip(VISIT_ACTIONS, p, strict=True)) for p in rows.policies["p2"].tolist()])
    columns = [log.columns[header].tolist() for header in ("age", "plan", "region")]
    chosen = [VISIT_ACTIONS[action] for action in rows.choices["p3"]]
    lines = dict.fromkeys(zip(*columns, chosen, strict=True))  # each state once
    write_csv(by_state, [dict(zip(("age", "plan", "region", "action"), line, strict=True)) for line in lines])
    return Case(log, {"row by row": str(row_by_row), "by state": str(by_state), "p1": "column:pi_p1"})


@recorded
def scanned_csv_file() -> Case:
    return Case(podium.scan_log(written(92, "csv")[0], engine="duckdb"), gates=("p3 > p1",))


@recorded
def scanned_parquet_file() -> Case:
    path, _ = written(93, "parquet")
    log = podium.scan_log(path, engine="duckdb", state=["age", "region"])
    policies = {"p1": "column:pi_p1", "rule": "sql:CASE WHEN age > 50 THEN 'call' ELSE 'wait' END", "even": "uniform"}
    return Case(log, policies)

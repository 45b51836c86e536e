"""How much memory there is and how much a question needs; what cannot fit is refused before it starts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import podium
from podium.command.cli import main
from podium.engines.choosing import choose_engine
from podium.engines.fits import Question, gives_table
from podium.engines.memory import amount, available
from podium.engines.sizes import Size, size_of

SET = "PODIUM_MEMORY=8GB sets how much memory podium may use.\n"
MODEL = """
import numpy as np

class Classifier:
    def __init__(self, seed):
        self.classes_ = np.arange(300)
        self.weights = np.random.default_rng(seed).normal(size=(2, 300))

    def predict_proba(self, states):
        assert len(states) <= 61_440
        scores = np.exp(np.asarray(states, dtype=float) @ self.weights)
        return scores / scores.sum(axis=1, keepdims=True)

a, b, c = (Classifier(k) for k in range(3))

def rule(states):
    return np.zeros(len(states), dtype=int)
"""
MODELS = [x for name in "abc" for x in ("--policy", f"{name}=models_of_memory:{name}")]


def table(rows: int, actions: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "x": rng.integers(0, 50, rows) / 25,
            "y": rng.integers(0, 50, rows) / 25,
            "action": np.arange(rows) % actions,
            "reward": rng.random(rows),
            "propensity": np.full(rows, 1 / actions),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models_of_memory.py").write_text(MODEL)
    monkeypatch.delitem(sys.modules, "models_of_memory", raising=False)  # of another test's folder
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- what there is -------------------------------------------------------------------------------------------------


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


MEMINFO = {"proc/meminfo": "MemTotal:       16000 kB\nMemAvailable:    8000 kB\n"}
V2 = {"proc/self/cgroup": "0::/app/worker\n"}
V1 = {"proc/self/cgroup": "5:cpu:/x\n3:memory:/docker/1\n"}
GROUPS: dict[str, tuple[dict[str, str], int | None]] = {
    "no system to ask": ({}, None),
    "a machine": (MEMINFO, 8000 * 1024),
    "a group without a limit": (
        MEMINFO | V2 | {"sys/fs/cgroup/app/memory.max": "max\n", "sys/fs/cgroup/app/memory.current": "5\n"},
        8000 * 1024,
    ),
    "a group": (
        MEMINFO
        | V2
        | {"sys/fs/cgroup/app/worker/memory.max": "5000000", "sys/fs/cgroup/app/worker/memory.current": "3000000"}
        | {"sys/fs/cgroup/app/worker/memory.stat": "anon 7\ninactive_file 1000000\n"},
        3_000_000,
    ),
    "a group above": (
        MEMINFO | V2 | {"sys/fs/cgroup/app/memory.max": "900", "sys/fs/cgroup/app/memory.current": "1000"},
        0,
    ),
    "a container seen from within": (
        MEMINFO
        | {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "700", "sys/fs/cgroup/memory.current": "100"},
        600,
    ),
    "the first version of groups": (
        MEMINFO
        | V1
        | {"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "9000"}
        | {"sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": "4000"}
        | {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}
        | {"sys/fs/cgroup/memory/memory.usage_in_bytes": "1"},
        5000,
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_available_is_the_least_of_all_limits(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.delenv("PODIUM_MEMORY", raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    files, expected = GROUPS[name]
    assert available(machine(tmp_path, files)) == expected


def test_a_limit_on_addresses_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.delenv("PODIUM_MEMORY", raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (5_000_000, 5_000_000))
    assert available(machine(tmp_path, MEMINFO | {"proc/self/status": "VmPeak: 9 kB\nVmSize:  1000 kB\n"})) == 3_976_000


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2e9), ("500 MB", 5e8), ("1.5GiB", 1.5 * 2**30), ("64k", 64e3), ("123", 123), ("3 tb", 3e12)],
)
def test_amounts(text: str, size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_MEMORY", f" {text} ")
    assert amount(text) == available() == size


@pytest.mark.parametrize("text", ["much", "2XB", "-1GB", "0", "GB", "1e9"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(podium.PodiumError) as error:
        amount(text)
    assert str(error.value) == (
        f"PODIUM_MEMORY is {text!r}, which is not an amount of memory\n\nHint: write PODIUM_MEMORY=2GB."
    )


# --- what a file holds -----------------------------------------------------------------------------------------------


def test_sizes_come_from_metadata_and_from_a_few_lines(tmp_path: Path) -> None:
    log = table(50_000, 300)
    parquet.write_table(log, tmp_path / "log.parquet")
    csv.write_csv(log, tmp_path / "log.csv")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log.to_pylist()))
    assert size_of(tmp_path / "log.parquet", "action") == Size("parquet", 50_000, 5, 300)
    assert size_of(tmp_path / "log.csv", "action") == Size("text", 50_000 - 1, 5, 300)
    assert size_of(tmp_path / "log.jsonl", "action") == Size("json", 50_000, 5, 300)
    assert size_of(tmp_path / "log.parquet", "other") == Size("parquet", 50_000, 5, 0)
    csv.write_csv(log.slice(0, 7), tmp_path / "short.csv")
    assert size_of(tmp_path / "short.csv", "action") == Size("text", 7, 5, 7)
    for name, content in (("a.parquet", b"PAR1"), ("b.jsonl", b"{"), ("c.csv", b""), ("d.xlsx", b"PK")):
        (tmp_path / name).write_bytes(content)
        assert size_of(tmp_path / name, "action") is None


def test_auto_decides_by_rows_actions_and_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet.write_table(table(50_000), tmp_path / "log.parquet")
    path = tmp_path / "log.parquet"

    def chosen(**question: Any) -> str:
        return choose_engine(path, "auto", "action", Question(**question))

    assert chosen(policies=3) == "memory"
    assert chosen(policies=34) == "duckdb"  # 50,000 x 300 x 34 > 5e8
    assert chosen(policies=3, actions=4000) == "duckdb"
    assert chosen(policies=34, whole=True) == "memory"  # what needs all rows in memory gets them there
    assert chosen(policies=34, at_once=True) == "memory"
    monkeypatch.setenv("PODIUM_MEMORY", "15MB")  # the log takes 10 MB, more than half
    assert chosen(policies=3) == "duckdb"
    monkeypatch.setattr("podium.engines.fits.find_spec", lambda _: None)  # duckdb is not installed
    assert chosen(policies=3) == "memory"


def test_which_policies_give_tables(folder: Path) -> None:
    columns = ["pi_new", "pi_new:a", "pi_old"]
    for policy, gives in {
        "models_of_memory:a": True, "models_of_memory:rule": False, "constant:1": False, "uniform": False,
        "shares:a=.4,b=.6": False, "column:pi_new": True, "pi_old": False, "sql:x:y": False, "table.csv": True,
        "vw:pi.txt": True, "sb3:PPO:model.zip": False,
    }.items():  # fmt: skip
        assert gives_table(policy, columns) is gives, policy
    assert gives_table(np.zeros((3, 2)))
    assert not gives_table(np.zeros(3))
    assert gives_table(podium.Policy("pi_new", kind="column"), columns)


# --- what is refused -------------------------------------------------------------------------------------------------


def files_here() -> list[Path]:
    """What the folder holds; Python itself may keep the bytecode of policies there."""
    return sorted(path for path in Path().iterdir() if path.name != "__pycache__")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before, start = files_here(), time.process_time()
    code = main(["compare", *arguments, *MODELS, "--html", "report.html"])
    assert time.process_time() - start < 5
    assert (code, files_here()) == (2, before)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_a_file_that_memory_cannot_hold(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads it: the names of its columns are all wrong, and still it is its size that is told of."""
    start = parquet.ParquetWriter(folder / "long.parquet", pa.schema([("a", pa.int8()), ("b", pa.int8())]))
    with start as file:
        part = pa.table({"a": np.zeros(10_000_000, np.int8), "b": np.zeros(10_000_000, np.int8)})
        for _ in range(5):
            file.write_table(part.cast(pa.schema([("a", pa.int8()), ("b", pa.int8())])))
    monkeypatch.setenv("PODIUM_MEMORY", "2GB")
    assert refusal(capsys, "long.parquet", "--engine", "memory") == (
        "podium: this needs about 4.0 GB of memory, and 2.0 GB are available: 50,000,000 rows x 2 columns of "
        "long.parquet\n\n"
        f"Hint: use engine='duckdb' (--engine duckdb), which reads the rows in parts. {SET}"
    )
    monkeypatch.setattr("podium.engines.memory.find_spec", lambda _: None)
    assert refusal(capsys, "long.parquet", "--engine", "memory") == (
        "podium: this needs about 4.0 GB of memory, and 2.0 GB are available: 50,000,000 rows x 2 columns of "
        "long.parquet\n\n"
        "Hint: run: pip install 'podium[duckdb]', and use engine='duckdb' (--engine duckdb), which reads the rows in "
        f"parts. {SET}"
    )


@pytest.mark.parametrize("engine", ["auto", "memory", "duckdb"])
def test_a_sample_that_memory_cannot_hold(
    engine: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(table(1_000_000), "log.parquet")
    monkeypatch.setenv("PODIUM_MEMORY", "2GB")
    total = 21.6 + (0.2 if engine == "memory" else 0.0)
    assert refusal(capsys, "log.parquet", "--engine", engine, "--sample-rows", "1000000") == (
        f"podium: this needs about {total:.1f} GB of memory, and 2.0 GB are available: 3 policies x 1,000,000 rows x "
        f"300 actions\n\nHint: use fewer policies, or sample_rows=20000 (--sample-rows 20000). {SET}"
    )


def test_all_rows_at_once(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    parquet.write_table(table(200_000), "log.parquet")
    monkeypatch.setenv("PODIUM_MEMORY", "1GB")
    assert refusal(capsys, "log.parquet", "--normalize", "states") == (
        "podium: this needs about 4.4 GB of memory, and 1.0 GB are available: 3 policies x 200,000 rows x 300 "
        'actions\n\nHint: leave normalize="states" (--normalize states) out, so that policies are asked part by part; '
        f"or use fewer policies. {SET}"
    )
    assert refusal(capsys, "log.parquet", "--engine", "memory", "--behavior", "models_of_memory:a") == (
        "podium: this needs about 1.9 GB of memory, and 1.0 GB are available: the behavior policy at 200,000 rows x "
        "300 actions\n\nHint: use engine='duckdb' (--engine duckdb), or add the probability of each logged action as "
        f"a column propensity. {SET}"
    )


def test_a_log_in_python_is_refused_before_any_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def predict_proba(self, states: Any) -> Any:
            raise AssertionError

    log = podium.Log(np.zeros(500), np.arange(500), np.zeros(500))
    monkeypatch.setenv("PODIUM_MEMORY", "10MB")
    with pytest.raises(podium.PodiumError) as error:
        podium.compare(log, {"a": Silent(), "b": Silent()})
    assert str(error.value) == (
        "this needs about 0.0120 GB of memory, and 0.0100 GB are available: 2 policies x 500 rows x 500 actions\n\n"
        "Hint: use fewer policies, or sample_rows=200 (--sample-rows 200). " + SET.strip()
    )


# --- what is held ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_three_models_on_many_rows_and_actions_stay_within_two_gigabytes(kind: str, folder: Path) -> None:
    """400,000 rows x 300 actions x 3 models are 2.9 GB of probabilities, if they were held at once."""
    write = {"csv": csv.write_csv, "parquet": parquet.write_table}[kind]
    write(table(400_000), folder / f"log.{kind}")
    code = (
        "import json, resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, '-m', 'podium', *sys.argv[1:]], capture_output=True, text=True)\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024\n"
        "print(json.dumps({'code': done.returncode, 'peak': peak, 'said': done.stderr[-2000:]}))\n"
    )
    command = [sys.executable, "-c", code, "compare", f"log.{kind}", *MODELS, "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert told["code"] == 0, told["said"]
    assert told["peak"] < 2e9

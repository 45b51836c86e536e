"""SQL policies choose by their row alone: the same row gives the same answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.data.errors import PodiumError
from podium.policies.sql import NOT_ALONE, NOT_ITS_ROW, chosen_actions, refused_part

COLUMNS = frozenset({"a", "random", "user", "ts"})

REPEATABLE = [
    "random > 3", "log.random > 3", '"random" > 3', "'random()' = 'a' /* now() */", "hash(a) % 2 = 0", "user = 1",
    "len([v for v in range(a) if v > 1]) > 0", "list_sum([a, 2]) > 3", "list_transform([a], lambda v: v + 1)[1] > 1",
    "age(ts::TIMESTAMP, TIMESTAMP '2021-01-01') > INTERVAL 1 DAY", "split_part('x,y', ',', 1) = 'x'",
    "a = 1 OR error('bad') IS NULL", "'SELECT' = 'OVER ()' -- avg(a)",
]  # fmt: skip
CHANGING = {
    "random() > 0.5": "random()", '"RANDOM" () > 0.5': "random()", "system.main.random() > 0.5": "random()",
    "now() > ts": "now()", "current_timestamp > ts": "current_timestamp", "CURRENT_DATE > ts": "CURRENT_DATE",
    "localtime IS NULL": "localtime", "today() > ts": "today()", "uuid() IS NULL": "uuid()",
    "ago(INTERVAL 1 DAY) > ts": "ago()", "age(ts::TIMESTAMP) > INTERVAL 1 DAY": "age()",
    "getvariable('x') IS NULL": "getvariable()", "current_setting('threads') = '1'": "current_setting()",
    "setseed(0.1) IS NULL": "setseed()", "nextval('s') > 1": "nextval()", "txid_current() > 1": "txid_current()",
    "list_transform([1], lambda v: v + random())[1] > 1": "random()", "stats(a) = 'x'": "stats()",
    "version() = 'v1.4.0'": "version()", "current_localtimestamp() > ts": "current_localtimestamp()",
    "vector_type(a) = 'FLAT'": "vector_type()",
}  # fmt: skip
OTHER_ROWS = {
    "a > (SELECT avg(a) FROM log)": "SELECT", "a > (SELECT 1)": "SELECT", "EXISTS (FROM log)": "SELECT",
    "a IN (SELECT a FROM log)": "SELECT", "len(ARRAY(SELECT a FROM log)) > 3": "SELECT",
    "a > avg(a) OVER ()": "OVER", "row_number() OVER () > 2": "OVER", "lag(a) OVER (ORDER BY a) = 1": "OVER",
    "a > avg(a)": "avg()", "count(*) > 2": "count_star()", "geomean(a) > 2": "geomean()",
    "unnest([a, 1]) > 1": "unnest()", "generate_subscripts([a], 1) = 1": "generate_subscripts()",
    "rowid > 1": "rowid", "log.rowid > 1": "rowid", "#1 > 1": "a column by its position",
    "hash(log) > 1": "all columns at once", "COLUMNS(*) > 1": "*",
}  # fmt: skip


def rule(condition: str) -> str:
    return f"CASE WHEN {condition}\n THEN 'x' ELSE 'y' END"


@pytest.mark.parametrize("condition", REPEATABLE)
def test_what_depends_on_its_row_alone_is_accepted(condition: str) -> None:
    assert refused_part(rule(condition), COLUMNS) is None


@pytest.mark.parametrize("condition", CHANGING)
def test_what_can_change_from_run_to_run_is_found(condition: str) -> None:
    assert refused_part(rule(condition), COLUMNS) == (CHANGING[condition], NOT_ALONE)


@pytest.mark.parametrize("condition", OTHER_ROWS)
def test_what_looks_at_other_rows_is_found(condition: str) -> None:
    """A large log shows a policy some rows at a time, so that such a rule would answer by the size of the parts."""
    found = refused_part(rule(condition), COLUMNS)
    assert found is not None
    assert found[1] == NOT_ITS_ROW
    assert found[0] in (OTHER_ROWS[condition], "count()")  # older versions of DuckDB call count(*) so


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("sample", [100, 1000])
def test_a_policy_of_other_rows_is_refused_on_every_engine(engine: str, sample: int, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,action,reward\n" + "1,x,1\n2,y,2\n3,x,3\n" * 40)
    scanned = podium.scan_log(tmp_path / "log.csv", engine=engine)
    with pytest.raises(PodiumError) as caught:
        podium.compare(scanned, {"p": "sql:" + rule("a > avg(a) OVER ()"), "u": "uniform"}, sample_rows=sample)
    assert str(caught.value) == (
        "policy 'p': the SQL uses OVER, which looks at more than the named columns of one row\n\n"
        "Hint: a policy chooses row by row: add what you need of other rows, such as an average, as a column."
    )


@pytest.mark.parametrize("expression", ["'x') FROM log WHERE (a > 1", "'x'), ('y'", "'x') FROM range(3) t(a", "$1"])
def test_what_is_more_than_an_expression_is_refused(expression: str) -> None:
    with pytest.raises(PodiumError, match="must be one expression with one value per row"):
        chosen_actions("p", expression, log())


def test_no_column_of_podium_is_visible() -> None:
    with pytest.raises(PodiumError, match='Referenced column "podium row number" not found'):
        chosen_actions("p", "CASE WHEN \"podium row number\" > 1 THEN 'x' ELSE 'y' END", log())


NUMBERS: dict[str, tuple[Any, str]] = {
    "BIGINT": (np.array([1, 2], dtype=np.int8), "x + 1000 = 1001"),
    "BIGINT unsigned": (np.array([1, 2], dtype=np.uint8), "x - 5 = -4"),
    "DOUBLE": (np.array([0.1, 0.2], dtype=np.float32), "x > 0.1 AND x < 0.15"),
    "DOUBLE decimals": (np.array([Decimal("0.1"), Decimal("0.2")], dtype=object), "x * 3 > 0.3 AND x < 0.15"),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_have_one_of_two_types(kind: str) -> None:
    values, condition = NUMBERS[kind]
    given = podium.Log.from_columns({"x": values, "action": ["x", "y"], "reward": [1, 2]})
    assert chosen_actions("p", "typeof(x)", given).tolist() == [kind.split()[0]] * 2
    assert chosen_actions("p", rule(condition), given).tolist() == ["x", "y"]


@pytest.mark.parametrize("gap", [None, float("nan"), Decimal("nan")])
def test_every_gap_is_null(gap: Any) -> None:
    values = np.array([gap, 0.5], dtype=object)
    given = podium.Log.from_columns({"s": [1, 2], "x": values, "action": ["x", "y"], "reward": [1, 2]}, state="s")
    assert chosen_actions("p", rule("x IS NULL"), given).tolist() == ["x", "y"]


def log() -> podium.Log:
    return podium.Log.from_columns(
        {"a": [1, 2, 3], "random": [1, 5, 6], "action": ["x", "y", "x"], "reward": [1, 2, 3]}
    )


def test_chance_is_refused_with_the_reason() -> None:
    with pytest.raises(PodiumError) as caught:
        podium.evaluate(log(), {"p": "sql:CASE WHEN random() > 0.5 THEN 'x' ELSE 'y' END"})
    assert str(caught.value) == (
        "policy 'p': the SQL uses random(), which does not depend on the log alone\n\n"
        "Hint: use columns of the log alone: add what you need as a column; for chance, give probabilities."
    )


def test_a_column_may_be_called_random() -> None:
    assert chosen_actions("p", "CASE WHEN random > 3 THEN 'x' ELSE 'y' END", log()).tolist() == ["y", "x", "x"]


def test_times_do_not_depend_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        rule = "CASE WHEN hour('2024-01-01 00:30:00+00'::TIMESTAMPTZ) = 0 THEN 'x' ELSE 'y' END"
        assert chosen_actions("p", rule, log()).tolist() == ["x", "x", "x"]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_many_columns_are_checked_in_time() -> None:
    """A pair of columns that SQL cannot tell apart is found among many, and a hint lists some of them."""
    wide = {f"c{i}": [1, 2, 3] for i in range(3000)}
    named = podium.Log.from_columns({**wide, "action": ["x", "y", "x"], "reward": [1, 2, 3], "C2999": [1, 2, 3]})
    with pytest.raises(PodiumError, match="SQL cannot tell the columns 'c2999' and 'C2999' apart"):
        chosen_actions("p", "'x'", named)
    with pytest.raises(PodiumError) as caught:
        chosen_actions(
            "p", "nowhere", podium.Log.from_columns({**wide, "action": ["x", "y", "x"], "reward": [1, 2, 3]})
        )
    assert " and 2,950 more; " in caught.value.hint


SLOW = "CASE WHEN list_sum([hash(v + a) % 7 for v in range(4000)]) > 1 THEN 'x' END"


@pytest.mark.slow
def test_ctrl_c_inside_sql_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,action,reward\n" + "1,x,1\n2,y,2\n3,x,3\n" * 30_000)
    policies = ["--policy", f"p=sql:{SLOW}", "--policy", "q=constant:x"]
    command = [sys.executable, "-m", "podium", "compare", str(tmp_path / "log.csv"), *policies]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asked:
        try:
            while cpu_seconds(asked.pid) < 3.0:  # beyond what starting takes
                assert asked.poll() is None, asked.communicate()
                time.sleep(0.05)
            asked.send_signal(signal.SIGINT)
            _, said = asked.communicate(timeout=20)
        finally:
            asked.kill()
    assert asked.returncode == 130
    assert "Traceback" not in said


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

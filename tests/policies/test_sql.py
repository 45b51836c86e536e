"""SQL policies choose by the log alone: the same log gives the same answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import podium
from podium.data.errors import PodiumError
from podium.policies.sql import changing_part, chosen_actions

COLUMNS = frozenset({"a", "random", "user", "ts"})

REPEATABLE = [
    "random > 3", "log.random > 3", '"random" > 3', "'random()' = 'a' /* now() */", "hash(a) % 2 = 0", "user = 1",
    "a > (SELECT avg(a) FROM log)", "dense_rank() OVER (ORDER BY a) <= 1", "len([v for v in range(a) if v > 1]) > 0",
    "(WITH t AS (SELECT 1 AS q) SELECT q FROM t) = a", "age(ts::TIMESTAMP, TIMESTAMP '2021-01-01') > INTERVAL 1 DAY",
    "(SELECT count(*) FROM range(3)) = 3", "split_part('x,y', ',', 1) = 'x'", "a = 1 OR error('bad') IS NULL",
]  # fmt: skip
CHANGING = {
    "random() > 0.5": "random()", '"RANDOM" () > 0.5': "random()", "system.main.random() > 0.5": "random()",
    "now() > ts": "now()", "current_timestamp > ts": "current_timestamp", "CURRENT_DATE > ts": "CURRENT_DATE",
    "localtime IS NULL": "localtime", "today() > ts": "today()", "uuid() IS NULL": "uuid()",
    "ago(INTERVAL 1 DAY) > ts": "ago()", "age(ts::TIMESTAMP) > INTERVAL 1 DAY": "age()",
    "getvariable('x') IS NULL": "getvariable()", "current_setting('threads') = '1'": "current_setting()",
    "setseed(0.1) IS NULL": "setseed()", "nextval('s') > 1": "nextval()", "txid_current() > 1": "txid_current()",
    "(SELECT random()) > 0.5": "random()", "list_transform([1], lambda v: v + random())[1] > 1": "random()",
    "a = (SELECT a FROM log ORDER BY random() LIMIT 1)": "random()", "sum(random()) OVER () > 1": "random()",
    "(SELECT max(a) FROM log TABLESAMPLE 10%) = 1": "a random sample",
    "(SELECT a FROM log USING SAMPLE 1 ROWS) = 1": "a random sample",
    "(SELECT count(*) FROM duckdb_settings()) > 3": "duckdb_settings()",
    "(SELECT count(*) FROM duckdb_settings) > 3": "the table 'duckdb_settings'",
    "(SELECT count(*) FROM read_csv('x.csv')) > 3": "read_csv()",
}  # fmt: skip


def query(condition: str) -> str:
    return f"SELECT (CASE WHEN {condition} THEN 'x' ELSE 'y' END\n) FROM log"


@pytest.mark.parametrize("condition", REPEATABLE)
def test_what_depends_on_the_log_alone_is_accepted(condition: str) -> None:
    assert changing_part(query(condition), COLUMNS) is None


@pytest.mark.parametrize("condition", CHANGING)
def test_what_can_change_from_run_to_run_is_found(condition: str) -> None:
    assert changing_part(query(condition), COLUMNS) == CHANGING[condition]


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


ENDLESS = "CASE WHEN (SELECT sum(hash(p.range + q.range) % 7) FROM range(10000000) p, range(100000) q) > 1 THEN 'x' END"


@pytest.mark.slow
def test_ctrl_c_inside_sql_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,action,reward\n1,x,1\n2,y,2\n3,x,3\n")
    policies = ["--policy", f"p=sql:{ENDLESS}", "--policy", "q=constant:x"]
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

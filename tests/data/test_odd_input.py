"""Odd but valid input works through the command, and means what a person would expect."""

import datetime as dt
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import podium
from podium.command.cli import main

LOG = """\
age,action,reward,propensity,pi_now,pi_new
30,sms,1,0.5,0.5,0.2
30,call,0,0.5,0.5,0.8
40,sms,0.5,0.25,0.5,0.3
50,call,0,0.25,0.5,0.6
50,sms,0.75,0.75,0.5,0.4
"""
ROWS = [line.split(",") for line in LOG.splitlines()[1:]]
COLUMNS: dict[str, list[Any]] = {
    "age": [30, 30, 40, 50, 50],
    "action": ["sms", "call", "sms", "call", "sms"],
    "reward": [1.0, 0.0, 0.5, 0.0, 0.75],
    "propensity": [0.5, 0.5, 0.25, 0.25, 0.75],
    "pi_now": [0.5] * 5,
    "pi_new": [0.2, 0.8, 0.3, 0.6, 0.4],
}
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command on a log in every output; the answer is its JSON."""
    monkeypatch.chdir(tmp_path)

    def run(content: str | bytes, *options: str, command: str = "compare", file: str = "log.csv") -> dict[str, Any]:
        (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
        html = ("--html", "report.html") if command == "compare" else ()
        code = main([command, file, *options, *html])
        out, error = capsys.readouterr()
        assert (code, error) == (0, "")
        assert "\x1b" not in out
        if html:
            page = (tmp_path / "report.html").read_text(encoding="utf-8")
            assert page.startswith("<!doctype html>")
            assert page.count("<table") == page.count("</table>") >= 6
        assert main([command, file, *options, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
        assert isinstance(answer, dict)
        return answer

    return run


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def numbers(answer: dict[str, Any]) -> Any:
    """What must not change when the same log is written in another way."""
    return answer["log"], answer["policies"], answer["pairs"]


def policies(*specs: str) -> list[str]:
    return [part for spec in specs for part in ("--policy", spec)]


def to_parquet(table: pa.Table) -> bytes:
    memory = io.BytesIO()
    parquet.write_table(table, memory)
    return memory.getvalue()


# --- little and much -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["compare", "evaluate", "states", "check"])
def test_one_row(ask: Ask, command: str):
    answer = ask("\n".join(LOG.splitlines()[:2]), command=command)
    assert answer["log"]["rows"] == 1


def test_one_row_decides_nothing(ask: Ask):
    answer = ask("\n".join(LOG.splitlines()[:2]))
    [pair] = answer["pairs"]
    assert [p["rank"] for p in answer["policies"]] == [1, 1]
    assert (pair["difference"], pair["low"], pair["high"], pair["p_better"]) == (0, None, None, 0.5)
    assert pair["verdict"] == "cannot tell"
    assert pair["reasons"]


@pytest.mark.parametrize("reward", ["0", "1", "-3.5"])
def test_equal_rewards_leave_every_policy_equal(ask: Ask, reward: str):
    header = LOG.splitlines()[0]
    answer = ask("\n".join([header, *(",".join([a, b, reward, *rest]) for a, b, _, *rest in ROWS)]))
    assert [p["rank"] for p in answer["policies"]] == [1, 1]
    assert [p["score"] for p in answer["policies"]] == [float(reward)] * 2
    assert answer["pairs"][0]["verdict"] == "cannot tell"


@pytest.mark.parametrize(("command", "count"), [("compare", 200), ("evaluate", 200), ("states", 200), ("check", 80)])
def test_many_policies(ask: Ask, command: str, count: int):
    rng = np.random.default_rng(7)
    probabilities = rng.random((60, count)).round(3)
    lines = [",".join(["age,action,reward", *(f"pi_p{k:03d}" for k in range(count))])]
    lines += [
        f"{n % 7},{'ab'[n % 2]},{rng.random():.3f}," + ",".join(map(str, row)) for n, row in enumerate(probabilities)
    ]
    answer = ask("\n".join(lines), command=command)
    if command == "compare":
        assert len(answer["pairs"]) == count * (count - 1) // 2
    if command != "states":
        assert len(answer["policies"]) == count


def test_two_hundred_policies_are_shown_briefly(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lines = [",".join(["age,action,reward", *(f"pi_p{k:03d}" for k in range(200))])]
    lines += [f"{n},{'ab'[n % 2]},{n % 3}," + ",".join(f"0.{(n * k) % 10}" for k in range(200)) for n in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    assert main(["compare", str(tmp_path / "log.csv")]) == 0
    text = capsys.readouterr().out
    assert "(397 of 19900)" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "label"), [("compare", "{}"), ("compare", "user-{}"), ("states", "user-{}"), ("check", "{}")]
)
def test_a_hundred_thousand_states(command: str, label: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = (f"{label.format(i)},{'ab'[i % 2]},{i % 3},0.5,0.{i % 9}\n" for i in range(100_000))
    (tmp_path / "log.csv").write_text("who,action,reward,pi_now,pi_new\n" + "".join(rows))
    start = time.process_time()
    assert main([command, str(tmp_path / "log.csv")]) == 0
    assert time.process_time() - start < 10  # seconds, not minutes
    text = " ".join(capsys.readouterr().out.split())
    assert "100,000" in text
    if command != "states":
        assert "the state column 'who' looks like an ID (20,000 different values in 20,000 rows)" in text


def test_many_actions(ask: Ask):
    log = "age,action,reward\n" + "".join(f"{i % 7},{i},{i % 3}\n" for i in range(8000))
    rule = "rule=sql:CASE WHEN age > 3 THEN 1 ELSE 2 END"
    answer = ask(log, *policies("zero=constant:0", "any=uniform", rule))
    assert answer["log"]["actions"] == 8000


# --- the same log, written in another way ----------------------------------------------------------------------

WAYS = {
    "semicolons": LOG.replace(",", ";"),
    "tabs": LOG.replace(",", "\t"),
    "byte order mark": "\ufeff" + LOG,
    "Windows line ends": LOG.replace("\n", "\r\n"),
    "old Mac line ends": LOG.replace("\n", "\r"),
    "no last line end": LOG.rstrip(),
    "blank lines at the end": LOG + "\n\n\r\n   \n",
    "blank lines between": LOG.replace("\n", "\n\n"),
    "blank line first": "\n" + LOG.replace(",", ";"),
    "spaces around numbers": LOG.replace("30,", " 30 ,").replace(",0.5,", ", 0.5 ,").replace("age,", " age ,"),
    "quotes everywhere": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in LOG.splitlines()),
    "plus signs and exponents": LOG.replace("30,", "+30,").replace("0.5", "5e-1").replace("0.25", ".25"),
    "columns in another order": "\n".join(",".join(reversed(line.split(","))) for line in LOG.splitlines()),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_csv_log_may_be_written_in_many_ways(ask: Ask, way: str):
    expected, answer = ask(LOG), ask(WAYS[way])
    if way == "columns in another order":  # then the policies come in another order too
        assert sorted(p["score"] for p in answer["policies"]) == sorted(p["score"] for p in expected["policies"])
    else:
        assert numbers(answer) == numbers(expected)


@pytest.mark.parametrize("file", ["log.tsv", "LOG.TSV", "log.txt", "log.CSV"])
def test_endings_of_text_files(ask: Ask, file: str):
    separator = "\t" if "tsv" in file.lower() else ";"
    assert numbers(ask(LOG.replace(",", separator), file=file)) == numbers(ask(LOG))


def test_a_comma_in_a_quoted_header_is_no_separator(ask: Ask):
    log = LOG.replace(",", ";").replace("age", '"age, in years"')
    answer = ask(log, command="states")
    assert [s["state"] for s in answer["states"]] == [30, 40, 50]


def test_json_lines_say_the_same(ask: Ask):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    lines = "\n\n".join(json.dumps(row) for row in rows)
    for file in ("log.jsonl", "log.ndjson", "log.json"):
        assert numbers(ask(lines, file=file)) == numbers(ask(LOG))


PARQUET = {
    "plain": pa.table(COLUMNS),
    "float32": pa.table(COLUMNS | {"reward": pa.array(COLUMNS["reward"], pa.float32())}),
    "small integers": pa.table(COLUMNS | {"age": pa.array(COLUMNS["age"], pa.int8())}),
    "unsigned integers": pa.table(COLUMNS | {"age": pa.array(COLUMNS["age"], pa.uint64())}),
    "decimals": pa.table(COLUMNS | {"reward": [Decimal(str(r)) for r in COLUMNS["reward"]]}),
    "dictionaries": pa.table(COLUMNS | {"action": pa.array(COLUMNS["action"]).dictionary_encode()}),
    "large strings": pa.table(COLUMNS | {"action": pa.array(COLUMNS["action"], pa.large_string())}),
    "several chunks": pa.concat_tables([pa.table(COLUMNS).slice(0, 2), pa.table(COLUMNS).slice(2)]),
}


@pytest.mark.parametrize("kind", PARQUET)
def test_parquet_says_the_same(ask: Ask, kind: str):
    assert numbers(ask(to_parquet(PARQUET[kind]), file="log.parquet")) == numbers(ask(LOG))


def test_parquet_with_nulls_in_unused_columns(ask: Ask):
    extra = {
        "note": [None, "late", None, None, "x"],
        "score": [1.5, None, 2.0, None, None],
        "count": [1, None, 2, None, None],
        "flag": [True, None, False, None, None],
        "seen": [dt.date(2024, 1, 1), None, None, None, None],
        "empty": pa.nulls(5),
        "list": [[1, 2], None, [3], [], None],
    }
    table = to_parquet(pa.table(COLUMNS | extra))
    answer = ask(table, "--state", "age", file="log.parquet")
    assert numbers(answer) == numbers(ask(LOG))
    rule = "rule=sql:CASE WHEN note IS NULL AND count IS NULL THEN 'sms' ELSE 'call' END"
    assert ask(table, "--state", "age", *policies(rule, "any=uniform"), file="log.parquet")["warnings"] == []


FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas categories": pd.DataFrame(COLUMNS).astype({"action": "category", "age": "category"}),
    "pandas string": pd.DataFrame(COLUMNS).astype({"action": "string"}),
    "pandas object": pd.DataFrame(COLUMNS).astype({"action": object, "age": object, "reward": object}),
    "pandas nullable": pd.DataFrame(COLUMNS).astype({"age": "Int64", "reward": "Float64"}),
    "pandas float32": pd.DataFrame(COLUMNS).astype({"reward": "float32"}),
    "pandas index": pd.DataFrame(COLUMNS, index=[9, 3, 5, 1, 7]),
    "polars": pl.DataFrame(COLUMNS),
    "polars categories": pl.DataFrame(COLUMNS).with_columns(pl.col("action").cast(pl.Categorical)),
    "polars enum": pl.DataFrame(COLUMNS).with_columns(pl.col("action").cast(pl.Enum(["sms", "call"]))),
    "polars float32": pl.DataFrame(COLUMNS).with_columns(pl.col("reward").cast(pl.Float32)),
    "polars decimal": pl.DataFrame(COLUMNS).with_columns(pl.col("reward").cast(pl.Decimal(10, 4))),
    "arrow": pa.table(COLUMNS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_many_dtypes_say_the_same(kind: str):
    expected = podium.compare(podium.Log.from_frame(FRAMES["pandas"])).to_dict()
    assert podium.compare(podium.Log.from_frame(FRAMES[kind])).to_dict() == expected


# --- labels ----------------------------------------------------------------------------------------------------

LABELS = [
    "a,b",
    'say "hi"',
    "two\nlines",
    "<script>alert(1)</script>",
    "日本語",
    "🙂",
    "naïve & co",
    "x\u2028y",
    "tab\there",
]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def test_labels_of_all_kinds(ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    header = ["state", "action", "reward", *(f"pi_{label}" for label in LABELS)]
    rows = [
        [f"s {a}", a, str(n % 3), *(f"0.{(n * k) % 10}" for k in range(len(LABELS)))] for n, a in enumerate(LABELS * 2)
    ]
    log = "\n".join(",".join(map(quoted, row)) for row in [header, *rows])
    answer = ask(log)
    assert {p["name"] for p in answer["policies"]} == set(LABELS)
    assert answer["log"]["actions"] == answer["log"]["states"] == len(LABELS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2  # the page's own
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    states = ask(log, command="states")["states"]
    assert {s["state"] for s in states} == {f"s {label}" for label in LABELS}
    main(["compare", "log.csv"])
    text = capsys.readouterr().out
    assert "two\\nlines" in text
    assert "\u2028" not in text
    for command in ("evaluate", "check"):
        ask(log, command=command)


def test_labels_that_are_not_quoted(ask: Ask):
    log = (
        "state,action,reward,pi_now,pi_new\nx\u2028y,l,1,0.5,0.2\nform\x0cfeed,r,0,0.5,0.8\nnext\x85line,r,1,0.5,0.3\n"
    )
    states = ask(log, command="states")["states"]
    assert {s["state"] for s in states} == {"x\u2028y", "form\x0cfeed", "next\x85line"}


def test_names_on_the_command_line(ask: Ask):
    names = ["<b>é</b>", "日本", "two\nlines", "\udcff"]
    specs = ["uniform", "constant:sms", "logged", "sql:CASE WHEN age = 40 THEN 'sms' ELSE 'call' END"]
    answer = ask(LOG, *policies(*(f"{name}={spec}" for name, spec in zip(names, specs, strict=True))))
    assert {p["name"] for p in answer["policies"]} == set(names)


def test_a_terminal_that_knows_only_ascii(tmp_path: Path):
    (tmp_path / "log.csv").write_text(LOG.replace("pi_new", "pi_日本 🙂"), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-m", "podium", "compare", "log.csv"]
    settings = {"cwd": tmp_path, "capture_output": True, "check": True, "env": {"PYTHONIOENCODING": "ascii"}}
    text = subprocess.run(command, **settings).stdout.decode("ascii")  # type: ignore[call-overload]
    assert "\\u65e5\\u672c" in text
    answer = json.loads(subprocess.run([*command, "--json"], **settings).stdout)  # type: ignore[call-overload]
    assert {p["name"] for p in answer["policies"]} == {"now", "日本 🙂"}


def test_codes_stay_texts(ask: Ask):
    log = "code,action,reward,pi_now,pi_new\n007,01,1,0.5,0.2\n7,01,0,0.5,0.2\n 007,02,0,0.5,0.2\n"
    assert [s["state"] for s in ask(log, command="states")["states"]] == [" 007", "007", "7"]
    answer = ask(log, *policies("one=constant:01", "two=constant:02"))
    assert answer["log"]["actions"] == 2


def test_text_option_keeps_numbers_apart(ask: Ask):
    log = "zip,action,reward,pi_now,pi_new\n7,a,1,0.5,0.2\n7.0,a,0,0.5,0.2\n1e1,b,0,0.5,0.2\n"
    assert [s["state"] for s in ask(log, command="states")["states"]] == [7, 10]
    texts = [s["state"] for s in ask(log, "--text", "zip", command="states")["states"]]
    assert texts == ["1e1", "7", "7.0"]


def test_text_option_in_json_and_parquet(ask: Ask):
    lines = '{"zip": 7, "action": "a", "reward": 1, "pi_now": 1, "pi_new": 0}\n'
    mixed = lines + lines.replace("7", '"x"')
    assert [s["state"] for s in ask(mixed, "--text", "zip", command="states", file="log.jsonl")["states"]] == ["7", "x"]
    table = to_parquet(pa.table(COLUMNS))
    states = ask(table, "--text", "age", command="states", file="log.parquet")["states"]
    assert [s["state"] for s in states] == ["30", "40", "50"]


def test_long_numbers_are_not_rounded(ask: Ask):
    first = 1212092628029698048  # such ids are one apart, which a float cannot tell
    log = "who,age,action,reward,pi_now,pi_new\n" + "".join(f"{first + i},30,a,{i},0.5,0.2\n" for i in range(4))
    assert ask(log, "--state", "who")["log"]["states"] == 4
    assert ask(log.replace(str(first)[:6], "9" * 20), "--state", "who")["log"]["states"] == 4
    assert ask(log, "--unit", "who")["settings"]["unit"] == "who"


def test_units_may_mix_numbers_and_texts(ask: Ask):
    log = "who,age,action,reward,pi_now,pi_new\n7,1,a,1,0.5,0.2\n7b,1,b,0,0.5,0.8\n7,2,a,2,0.5,0.1\n8,2,b,0,0.5,0.4\n"
    mixed = ask(log, "--unit", "who")
    texts = ask(log.replace("7b", "b").replace("\n7,", "\na,").replace("\n8,", "\nc,"), "--unit", "who")
    assert numbers(mixed) == numbers(texts)


def test_a_mixed_column_that_nobody_uses(ask: Ask):
    log = "note,age,action,reward\n,30,a,1\n3,30,b,0\nlate,40,a,0.5\n"
    rule = "rule=sql:CASE WHEN note = 'late' THEN 'b' ELSE 'a' END"
    assert ask(log, "--state", "age", *policies(rule, "any=uniform"))["policies"][0]["name"] == "rule"


def test_colons_in_names(ask: Ask):
    log = "a:b,action,reward,pi_x:l,pi_x:a:b,pi_y,pi_y:l,pi_y:a:b\n" + "".join(
        f"{s},{a},{r},0.5,0.5,{p},0.1,0.9\n" for s, a, r, p in [(1, "l", 1, 0.1), (1, "a:b", 0, 0.9), (2, "l", 3, 0.1)]
    )
    answer = ask(log)
    assert {p["name"] for p in answer["policies"]} == {"x", "y"}
    assert answer["log"]["actions"] == 2
    assert [s["state"] for s in ask(log, command="states")["states"]] == [1, 2]
    assert ask(log, "--baseline", "linear")["settings"]["baseline"] == "linear"  # the distributions are whole


# --- values ----------------------------------------------------------------------------------------------------


def test_truth_values_in_json(ask: Ask):
    line = '{{"sunny": {0}, "action": {1}, "reward": {2}, "propensity": 0.5}}\n'
    cells = [
        ("true", "true", "true"),
        ("false", "true", "false"),
        ("true", "false", "false"),
        ("false", "false", "true"),
    ]
    log = "".join(line.format(*row) for row in cells)
    answer = ask(log, *policies("yes=constant:true", "no=constant:False"), "--actions", "true,false", file="log.jsonl")
    assert (answer["log"]["states"], answer["log"]["actions"]) == (2, 2)
    states = ask(log, *policies("yes=constant:true", "same=sql:sunny"), command="states", file="log.jsonl")["states"]
    assert [s["state"] for s in states] == [False, True]


def test_truth_values_in_csv_are_labels(ask: Ask):
    log = "sunny,action,reward\nTrue,true,1\nFalse,false,0\n"
    answer = ask(log, *policies("yes=constant:true", "no=constant:false"))
    assert answer["policies"][0]["name"] == "yes"


@pytest.mark.parametrize("size", [1e-90, 1e-9, 1e9, 1e90])
@pytest.mark.parametrize("verdicts", ["paired t", "bootstrap t", "sign flip"])
def test_huge_and_tiny_rewards(ask: Ask, size: float, verdicts: str):
    lines = [",".join([a, b, repr(float(r) * size), *rest]) for a, b, r, *rest in ROWS]
    how = ["--estimator", "LDE", "--verdicts", verdicts]
    expected, answer = ask(LOG, *how), ask("\n".join([LOG.splitlines()[0], *lines]), *how)
    for before, after in zip(expected["policies"], answer["policies"], strict=True):
        assert (after["name"], after["rank"]) == (before["name"], before["rank"])
        assert after["score"] == pytest.approx(before["score"] * size, rel=1e-9)
    for before, after in zip(expected["pairs"], answer["pairs"], strict=True):
        assert after["verdict"] == before["verdict"]
        assert after["p_better"] == pytest.approx(before["p_better"], rel=1e-9)
        assert after["low"] == pytest.approx(before["low"] * size, rel=1e-9)


@pytest.mark.parametrize(
    ("full", "size"), [(full, size) for full in (True, False) for size in (1e-90, 1e-9, 1e9, 1e90)]
)
def test_the_unit_of_the_reward_changes_no_verdict(full: bool, size: float):
    """By the posterior and by the gated procedure."""
    rng = np.random.default_rng(4)
    actions = rng.integers(0, 3, 90)
    rewards = rng.normal(size=90) + 2 * actions
    pi = {name: rng.dirichlet(np.ones(3) * weight, 90) for name, weight in (("even", 9.0), ("odd", 0.3))}
    pi["last"] = np.tile([0.02, 0.08, 0.9], (90, 1))
    if not full:
        pi = {name: matrix[np.arange(90), actions] for name, matrix in pi.items()}
    made = [
        podium.compare(podium.Log(rng.permutation(90), actions, rewards * x, np.full(90, 1 / 3)), pi)
        for rng, x in ((np.random.default_rng(5), 1.0), (np.random.default_rng(5), size))
    ]
    assert made[0].settings["verdicts"] == ("posterior" if full else "gated")
    assert {p.verdict for p in made[0].pairs} == {"better", "cannot tell"}
    assert made[0].ranking == made[1].ranking
    for before, after in zip(made[0].pairs, made[1].pairs, strict=True):
        assert (after.verdict, after.path) == (before.verdict, before.path)
        assert after.p_better == pytest.approx(before.p_better, abs=1e-6)
        assert before.interval is not None
        assert after.interval is not None
        assert after.interval.low == pytest.approx(before.interval.low * size, rel=1e-5)
    shares = [[p.p_best for p in result.policies] for result in made]
    assert shares[1] == pytest.approx(shares[0], abs=1e-6)


def test_negative_rewards_are_costs(ask: Ask):
    lines = [",".join([a, b, str(-float(r)), *rest]) for a, b, r, *rest in ROWS]
    expected = ask(LOG)
    answer = ask("\n".join([LOG.splitlines()[0], *lines]), "--lower-is-better")
    assert [p["name"] for p in answer["policies"]] == [p["name"] for p in expected["policies"]]
    assert [p["score"] for p in answer["policies"]] == pytest.approx([-p["score"] for p in expected["policies"]])
    assert [p["verdict"] for p in answer["pairs"]] == [p["verdict"] for p in expected["pairs"]]


@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-02", "2024-01-01T10:00", "2024-01-02", "2023-12-31"],
        ["2024-01-02T00:00Z", "2024-01-02T00:30+01:00", "2024-01-02T01:00+01:00", "2024-01-01T00:00-05:00"],
        ["2", "1.5", "2.0", "-1"],
        ["20240102", "20240101", "20240102", "20231231"],
    ],
)
def test_times_decide_which_row_is_the_latest(ask: Ask, times: list[str]):
    rows = [("1", "0.2"), ("5", "0.3"), ("3", "0.4"), ("9", "0.5")]
    header = "time,age,action,reward,pi_now,pi_new\n"
    other = f"{times[0]},40,b,2,0.5,0.7\n"
    log = header + other + "".join(f"{t},30,a,{r},0.5,{p}\n" for t, (r, p) in zip(times, rows, strict=True))
    answer = ask(log, "--estimator", "LDE")
    assert answer["log"]["distinct"] == 2
    assert any("different probabilities in rows of one (state, action)" in w for w in answer["warnings"])
    kept = ask(
        header + other + f"{times[2]},30,a,3,0.5,0.4\n", "--estimator", "LDE"
    )  # of two rows at the last time, the later one
    assert [p["score"] for p in answer["policies"]] == [p["score"] for p in kept["policies"]]


def test_parquet_dates_as_times(ask: Ask):
    days = [dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (3, 1, 2, 2, 1)]
    table = pa.table(COLUMNS | {"time": days})
    answer = ask(to_parquet(table), file="log.parquet")
    assert numbers(answer) == numbers(ask(LOG))


def test_json_lists_and_objects(ask: Ask):
    lines, rows = (
        "",
        ["state[0],state[1],place:lat,place:at:0,action,reward,pi_x:a,pi_x:b,pi_y:b,pi_y:a,propensity:a,propensity:b"],
    )
    for n in range(6):
        a, p = "ab"[n % 2], 0.1 * (n + 1)
        record = {
            "state": [n % 3, n % 2],
            "place": {"lat": n % 2, "at": {"0": 1}},
            "action": a,
            "reward": n / 2,
            "pi_x": {"a": p, "b": 1 - p},
            "pi_y": {"b": 1.0, "a": 0.0},
            "propensity": {"a": 0.25, "b": 0.75},
        }
        lines += json.dumps(record) + "\n"
        rows.append(f"{n % 3},{n % 2},{n % 2},1,{a},{n / 2},{p},{1 - p},1,0,0.25,0.75")
    answer = ask(lines, "--baseline", "linear", file="log.jsonl")
    assert answer["log"]["propensities"] == "full"
    assert numbers(answer) == numbers(ask("\n".join(rows), "--baseline", "linear"))
    states = ask(lines, command="states", file="log.jsonl")["states"]
    assert states[0]["state"] == {"state[0]": 0, "state[1]": 0, "place:lat": 0, "place:at:0": 1}


def test_whole_numbers_in_pi_columns_are_probabilities(ask: Ask):
    floats = LOG.replace("pi_now,pi_new", "pi_now,pi_sms")
    lines = floats.splitlines()
    whole = [lines[0], *(f"{','.join(row[:5])},{int(row[1] == 'sms')}" for row in ROWS)]
    half = [lines[0], *(f"{','.join(row[:5])},{float(row[1] == 'sms')}" for row in ROWS)]
    answer = ask("\n".join(whole))
    assert numbers(answer) == numbers(ask("\n".join(half)))
    assert answer["log"]["actions"] == 2
    numeric = "\n".join(whole).replace("sms,", "0,").replace("call,", "1,").replace("pi_0", "pi_sms")
    assert [p["score"] for p in ask(numeric)["policies"]] == [p["score"] for p in answer["policies"]]


def test_float32_probabilities_sum_to_1(ask: Ask):
    thirds = np.full((5, 3), 1 / 3, dtype=np.float32)
    table = pa.table(COLUMNS | {f"pi_x:{a}": thirds[:, j] for j, a in enumerate(["sms", "call", "letter"])})
    answer = ask(to_parquet(table), file="log.parquet")
    assert answer["log"]["actions"] == 3
    assert answer["warnings"] == ["policy 'x' can play actions that the log's action space lacks: 'letter'."]


def test_a_parquet_file_whose_text_is_not_utf_8_is_refused_by_name(tmp_path: Path) -> None:
    wrong = pa.array([b"\xf2ome", b"oslo"], pa.binary())
    city = pa.StringArray.from_buffers(2, *wrong.buffers()[1:])
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"city": city, "action": ["a", "b"], "reward": [1.0, 0.0]}), path)
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(path)
    assert str(error.value) == "log.parquet: the column 'city' is not UTF-8\n\nHint: write the file again."

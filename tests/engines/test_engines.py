"""One suite for all engines: whatever reads the rows, the answer is that of the log in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from logs import ENGINES, ROWS, assert_alike, table

import podium
from podium.data.scan import ScannedLog

OPENERS = Callable[..., Any]
WHOLE = {
    "always": "constant:call",
    "uniform": "uniform",
    "rule": "sql:CASE WHEN state % 2 = 0 THEN 'mail' ELSE 'sms' END",
    "function": lambda states: np.where(np.asarray(states) % 3 == 0, "call", "none"),
}
ASKED: dict[str, Callable[[Any], Any]] = {
    "compare": podium.compare,
    "evaluate": podium.evaluate,
    "check": podium.diagnose,
    "states": podium.compare_states,
    "states by DRE": lambda log: podium.compare_states(log, None, "DRE", lower_is_better=True),
    "plan": lambda log: podium.plan(log, difference=0.01),
    "paired t": lambda log: podium.compare(log, estimator="DRE", verdicts="paired t", bootstrap=100),
    "bootstrap t": lambda log: podium.compare(log, ["p0", "p1"], verdicts="bootstrap t", duplicates="all"),
    "sign flip": lambda log: podium.compare(log, ["p0", "p1"], verdicts="sign flip"),
    "all draws": lambda log: podium.evaluate(log, duplicates="all"),
    "latest rows": lambda log: podium.evaluate(log, duplicates="latest"),
    "a number": lambda log: podium.compare(log, baseline=0.25),
    "the state's mean": lambda log: podium.compare(log, baseline="state"),
    "a learned baseline": lambda log: podium.compare(log, WHOLE, baseline="linear"),
    "a critic": lambda log: podium.compare(log, baseline=lambda states: np.asarray(states) * 1e-3),
    "whole policies": lambda log: podium.compare(log, WHOLE),
    "check whole policies": lambda log: podium.diagnose(log, WHOLE),
    "plan whole policies": lambda log: podium.plan(log, WHOLE, difference=0.01),
    "a model of rewards": lambda log: podium.compare(
        log, WHOLE, baseline=lambda states, actions: np.asarray(states) * 1e-4 + (np.asarray(actions) == "call")
    ),
    "more actions": lambda log: podium.compare(log, actions=["none", "sms", "call", "mail", "visit"]),
    "one policy": lambda log: podium.diagnose(log, {"u": "uniform"}),
    "the behaviour": lambda log: podium.compare(log, {"now": "logged", "new": "column:pi_p1"}),
}


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("asked", ASKED)
def test_answers_do_not_depend_on_the_engine(asked: str, offset: float, engine: str, open_table: OPENERS) -> None:
    rows = table(offset=offset)
    wanted = ASKED[asked](open_table(rows, "memory", state="state")).to_dict()
    found = ASKED[asked](open_table(rows, engine, state="state")).to_dict()
    if asked in ("all draws", "bootstrap t"):  # nobody has counted the states
        for answer in (wanted, found):
            answer["log"] |= {"distinct": None, "states": None}
    assert_alike(found, wanted, max(1.0, offset))


VARIANTS: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "texts as states": (table(state=np.array([f"s{i % 4321}é" for i in range(ROWS)])), {"state": "state"}),
    "several state columns": (
        table(region=np.array([f"r{i % 7}" for i in range(ROWS)]), age=(np.arange(ROWS) % 61).astype(float)),
        {"state": ["region", "age", "state"]},
    ),
    "float32": (
        table(
            reward=np.random.default_rng(1).normal(size=ROWS).astype(np.float32),
            pi_p0=np.random.default_rng(2).random(ROWS).astype(np.float32),
        ),
        {"state": "state"},
    ),
    "one state": (table(state=np.zeros(ROWS, dtype=np.int64)), {"state": "state"}),
    "a state of its own for every row": (table(state=np.arange(ROWS)), {"state": "state"}),
    "no propensities": (table().drop_columns(["propensity"]), {"state": "state"}),
    "row order for time": (table().drop_columns(["time"]), {"state": "state"}),
    "dates": (table(time=np.datetime64("2026-01-01") + np.arange(ROWS) % 30), {"state": "state"}),
    "numbers as actions": (table(action=np.arange(ROWS) % 3 + 0.5), {"state": "state"}),
    "truth values as actions": (table(action=np.arange(ROWS) % 3 == 0), {"state": "state"}),
    "units": (table(user=np.random.default_rng(3).integers(0, 500, ROWS)), {"state": "state", "unit": "user"}),
    "many units": (table(user=np.array([f"u{i % 9000}" for i in range(ROWS)])), {"state": "state", "unit": "user"}),
    "equal rewards": (table(reward=np.full(ROWS, 0.1)), {"state": "state"}),
    "a single row": (table(1), {"state": "state"}),
    "few rows": (table(300), {"state": "state"}),
}


@pytest.mark.parametrize("unseen", [0.0, 0.3])
def test_weights_speak_for_what_is_not_known_on_every_engine(unseen: float, engine: str, open_table: OPENERS) -> None:
    """A logger that seeks reward, with p at the logged actions; part of what 'p1' does may never be logged."""
    rng = np.random.default_rng(8)
    good = rng.random(ROWS) < 0.7
    action = np.where(good, "call", rng.choice(["mail", "none", "sms"], ROWS))
    columns = {
        "state": np.arange(ROWS),
        "action": action,
        "propensity": np.where(good, 0.7, 0.1),
        "reward": rng.normal(size=ROWS) + good,
        "pi_p0": np.where(good, 0.1, 0.3),
        "pi_p1": np.where(good, 0.85 - unseen, 0.05),
    }
    rows = pa.table(columns)
    wanted = podium.compare(open_table(rows, "memory", state="state"))
    found = podium.compare(open_table(rows, engine, state="state"))
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)
    (pair,) = found.pairs
    assert (pair.verdict, pair.path) == ("cannot tell" if unseen else "better", "DRE")
    assert bool(pair.reasons) == bool(unseen)


SHARES = {"call": 0.4, "mail": 0.3, "none": 0.2, "sms": 0.1}


@pytest.mark.parametrize("known", ["propensities", "rounded", "given space", "spec", "mapping", "false"])
def test_fixed_shares_are_known_on_every_engine(known: str, engine: str, open_table: OPENERS) -> None:
    rng, many = np.random.default_rng(9), 3_000
    shares = dict.fromkeys(["call", "mail", "none"], 1 / 3) if known == "rounded" else SHARES
    labels = np.array(list(shares))
    action = rng.choice(len(labels), many, p=list(shares.values()))
    reward = 0.3 * action + rng.normal(size=many)
    columns = {"state": rng.integers(0, 50, many), "action": labels[action], "reward": reward}
    roles: dict[str, Any] = {"state": "state"}
    behavior: Any = {"spec": "shares:" + ",".join(f"{a}={p}" for a, p in SHARES.items()), "mapping": SHARES}.get(known)
    if known == "false":
        behavior = "uniform"
    if known in ("propensities", "rounded", "given space"):
        columns["propensity"] = np.round(np.array(list(shares.values())), 3)[action]
    if known == "given space":
        columns = {name: column[action < 3] for name, column in columns.items()}
        roles["actions"] = list(labels)
    policies = {"call": "constant:call", "none": "constant:none", "now": "logged"}
    logs = [open_table(pa.table(columns), name, **roles) for name in ("memory", engine)]
    wanted, found = (podium.compare(log, policies, behavior=behavior) for log in logs)
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)
    assert found.log.knows == "full"
    assert ("fixed shares" in [note.code for note in found.settings.notes]) == (known != "false")
    doubted = known in ("given space", "false")  # an action that has a tenth of the probability never came up
    assert (found.warnings[0].code if found.warnings else "") == ("false propensities" if doubted else "")
    for log in logs:
        with pytest.raises(podium.PodiumError, match=r"no probability to 'none'|must agree with the shares"):
            podium.compare(log, policies, behavior="shares:call=.5,mail=.5")


@pytest.mark.parametrize("asked", ["compare", "check", "states", "plan"])
def test_answers_show_themselves(asked: str, engine: str, open_table: OPENERS) -> None:
    found = ASKED[asked](open_table(table(), engine, state="state"))
    assert f"{ROWS:,} rows" in repr(found) or "p0" in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("variant", VARIANTS)
def test_logs_of_every_kind_are_read_alike(variant: str, engine: str, open_table: OPENERS) -> None:
    rows, roles = VARIANTS[variant]
    for ask in (podium.compare, podium.diagnose):
        wanted = ask(open_table(rows, "memory", **roles)).to_dict()
        assert_alike(ask(open_table(rows, engine, **roles)).to_dict(), wanted, 1.0)


def test_full_distributions_in_columns(engine: str, open_table: OPENERS) -> None:
    rng = np.random.default_rng(5)
    columns = {}
    for name in ("pi_a", "pi_b", "propensity"):
        weights = rng.dirichlet(np.ones(3), ROWS)
        columns |= {f"{name}:{label}": weights[:, j] for j, label in enumerate("xyz")}
    action = rng.integers(0, 3, ROWS)
    rows = pa.table(
        {
            "state": rng.integers(0, 400, ROWS),
            "action": np.array(list("xyz"))[action],
            "reward": rng.normal(size=ROWS) + (action == 1),
            **columns,
        }
    )
    for ask in (podium.compare, podium.diagnose, lambda log: podium.plan(log, difference=0.01)):
        wanted = ask(open_table(rows, "memory", state="state"))
        found = ask(open_table(rows, engine, state="state"))
        assert_alike(found.to_dict(), wanted.to_dict(), 1.0)
        assert found.log.knows == "full"


def test_policies_of_every_form(engine: str, open_table: OPENERS) -> None:
    rng = np.random.default_rng(6)
    rows = table().select(["state", "action", "reward", "propensity", "time"])
    states = np.unique(rows["state"].to_numpy())
    weights = rng.dirichlet(np.ones(4), len(states))
    frame = pa.table({"state": states, **dict(zip(["call", "mail", "none", "sms"], weights.T, strict=True))})

    class Model:
        classes_ = np.array(["call", "mail"], dtype=object)

        def predict_proba(self, given: Any) -> Any:
            share = (np.asarray(given, dtype=float).reshape(-1) % 10) / 10
            return np.column_stack([share, 1 - share])

    policies = {
        "array": rng.random(ROWS),
        "matrix": rng.dirichlet(np.ones(4), ROWS),
        "chosen": np.array(["call", "sms"])[rng.integers(0, 2, ROWS)],
        "table": frame,
        "mapping": {int(s): ("mail" if s % 2 else "none") for s in states},
        "model": Model(),
    }
    wanted = podium.compare(open_table(rows, "memory", state="state"), policies)
    found = podium.compare(open_table(rows, engine, state="state"), policies)
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)


@pytest.mark.parametrize("engine", ["memory", *ENGINES])
def test_the_difference_of_nearly_equal_policies_keeps_its_digits(engine: str, open_table: OPENERS) -> None:
    rng = np.random.default_rng(7)
    rows = table(reward=1e6 + rng.normal(size=ROWS))
    first, second = (np.asarray(rows[name]) for name in ("pi_p2", "pi_twin"))
    result = podium.compare(
        open_table(rows, engine, state="state"), verdicts="paired t", estimator="IPS", duplicates="all"
    )
    reward, p = np.asarray(rows["reward"]), np.asarray(rows["propensity"])
    terms = reward * ((first - second) / p)
    pair = result.pair("p2", "twin")
    assert pair.difference == pytest.approx(terms.mean(), rel=1e-9)
    assert pair.std_error == pytest.approx(terms.std(ddof=1) / np.sqrt(ROWS), rel=1e-9)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_answers_do_not_depend_on_the_partitioning(parts: int, engine: str, open_table: OPENERS) -> None:
    rows = table()
    wanted = podium.compare(open_table(rows, engine, state="state")).to_dict()
    found = podium.compare(open_table(rows, engine, parts=parts, state="state")).to_dict()
    assert_alike(found, wanted, 1.0)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_answers_repeat_to_the_last_bit_for_any_number_of_threads(threads: int, open_table: OPENERS) -> None:
    rows = table(60_000)
    wanted = podium.compare(open_table(rows, "duckdb", state="state"), bootstrap=50).to_dict()
    log = open_table(rows, "duckdb", state="state", options={"threads": threads, "memory_limit": "200MB"})
    assert podium.compare(log, bootstrap=50).to_dict() == wanted
    assert podium.compare(log, bootstrap=50).to_dict() == wanted


def test_answers_do_not_depend_on_the_size_of_batches_and_parts(
    monkeypatch: pytest.MonkeyPatch, open_table: OPENERS
) -> None:
    rows = table(state=np.arange(ROWS) % 3, user=np.arange(ROWS) % 700)
    ask = [
        lambda log: podium.compare(log, unit="user", bootstrap=20),
        podium.diagnose,
        lambda log: podium.compare(log, WHOLE),
        podium.compare_states,
    ]
    whole = [f(open_table(rows, "memory", state="state")).to_dict() for f in ask]
    monkeypatch.setattr("podium.engines.duckdb.ROWS", 3000)
    monkeypatch.setattr("podium.engines.parts.PIECE", 700)
    monkeypatch.setattr("podium.engines.parts.CELLS", 1 << 14)
    for engine in ("memory", "duckdb"):
        for f, wanted in zip(ask, whole, strict=True):
            assert_alike(f(open_table(rows, engine, state="state")).to_dict(), wanted, 1.0)


def test_pairs_that_the_first_rows_do_not_show_to_be_near(open_table: OPENERS) -> None:
    rng = np.random.default_rng(8)
    first, other = rng.random(ROWS), rng.random(ROWS)
    late = np.arange(ROWS) > 9000
    near = np.where(late, np.clip(other + 1e-7 * rng.random(ROWS), 0, 1), np.clip(other + 1e-3, 0, 1))
    weight = np.where(late, 1.0, 1e-6)
    rows = table(pi_p0=first, pi_p1=other * weight, pi_p2=near * weight)
    wanted = podium.compare(podium.Log.from_frame(rows, state="state"), ["p0", "p1", "p2"])
    found = podium.compare(open_table(rows, "duckdb", state="state"), ["p0", "p1", "p2"])
    assert_alike(found.to_dict(), wanted.to_dict(), 1.0)


def test_a_policy_may_play_an_action_that_the_first_rows_do_not_show(engine: str, open_table: OPENERS) -> None:
    states = np.arange(ROWS) % 500
    states[-1] = 9999
    rows = table(state=states).select(["state", "action", "reward", "propensity"])

    def late(given: Any) -> Any:
        return np.where(np.asarray(given) == 9999, "visit", "call")

    policies = {"late": late, "u": "uniform", "later": {int(s): "fax" if s == 9999 else "sms" for s in states}}
    for ask in (podium.compare, podium.evaluate, podium.diagnose):
        if engine == "spark" and ask is not podium.compare:
            continue  # sent once is sent
        wanted = ask(open_table(rows, "memory", state="state"), policies)
        found = ask(open_table(rows, engine, state="state"), policies)
        assert_alike(found.to_dict(), wanted.to_dict(), 1.0)
        assert found.log.n_actions == 6
    assert "policy 'late' can play actions that the log's action space lacks: 'visit'." in wanted.warnings


def test_small_logs_are_judged_in_memory_and_say_which_engine_read_them(open_table: OPENERS) -> None:
    log = open_table(table(300), "duckdb", state="state")
    result = podium.compare(log, WHOLE)
    assert result.settings["engine"] == "duckdb"
    assert result.settings["verdicts"] == "posterior"
    assert "\nLog (duckdb): 300 rows" in str(result)


def test_large_logs_say_which_engine_ran(open_table: OPENERS) -> None:
    log = open_table(table(), "duckdb", state="state")
    assert isinstance(log, ScannedLog)
    result = podium.compare(log)
    assert result.settings["engine"] == "duckdb"
    assert "\nLog (duckdb): 24,000 rows" in str(result)


SHOWN = ("compare", "paired t", "the state's mean", "whole policies", "evaluate", "check", "states", "plan")


@pytest.mark.parametrize("rows", [300, ROWS])
@pytest.mark.parametrize("asked", SHOWN)
def test_what_is_shown_differs_in_the_name_of_the_engine_alone(asked: str, rows: int, open_table: OPENERS) -> None:
    wanted, found = (str(ASKED[asked](open_table(table(rows), name, state="state"))) for name in ("memory", "duckdb"))
    assert found == wanted.replace("Log (memory)", "Log (duckdb)")


@pytest.mark.parametrize("rows", [300, ROWS])
@pytest.mark.parametrize("name", ["memory", *ENGINES])
def test_every_answer_says_which_engine_ran(name: str, rows: int, open_table: OPENERS, tmp_path: Path) -> None:
    log = open_table(table(rows), name, state="state")
    for asked in ("compare", "evaluate", "check", "states", "plan"):
        result = ASKED[asked](log)
        assert f"\nLog ({name})" in f"\n{result}", asked
        assert result.to_dict()["settings"]["engine"] == name
        assert f"Log ({name})" in result._repr_html_()
    page = podium.compare(log).report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"· engine {name}<" in page

"""The table of docs/peers.md: a proof for each cell of podium's column."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from samples import sample

import podium
from podium.cli import build_parser
from podium.completion import actions_of
from podium.engines import NAMES
from podium.estimators import EPISODIC, FAMILY

ROOT = Path(__file__).parents[1]


def cells() -> dict[str, str]:
    """Row -> podium's cell."""
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    rows = [[c.strip() for c in line.strip("|\n").split("|")] for line in page.splitlines() if line.startswith("|")]
    assert rows[0][:2] == ["", "podium"]
    assert len({len(row) for row in rows}) == 1
    return {row[0]: row[1] for row in rows[2:]}


def proves_input() -> None:
    log, _ = sample(20, 3, 1)
    frame = log.to_frame()
    assert podium.Log.from_frame(frame).to_frame().equals(frame)
    for module in ("podium.adapters.obp", "podium.adapters.vowpal"):
        importlib.import_module(module)
    assert callable(podium.read_log)


def proves_log_without_propensities() -> None:
    log, policies = sample(80, 3, 2, knows="none", distinct=20)
    found = podium.evaluate(log, policies)
    assert found.values["p0"]["LDE"] is not None
    assert found.values["p0"]["DiM"] is not None
    assert found.unavailable["IPS"] == "IPS needs the probability of each logged action, and the log has none"
    pytest.importorskip("sklearn")
    estimated = podium.evaluate(log, policies, "IPS", behavior="estimate")
    assert estimated.values["p0"]["IPS"] is not None
    assert estimated.to_dict()["log"]["propensities"] == "estimated"


def proves_estimators() -> None:
    named = {
        "LDE": "LDE", "DiM": "DiM", "IPS": "IPS", "DRE": "DRE", "SNIPS": "SNIPS", "SNDR": "SNDR", "clipped": "cIPS:10",
        "Switch-DR": "SwitchDR:10", "DRos": "DRos:100", "subgaussian": "sgDR:0.1", "model": "DirectModel",
    }  # fmt: skip
    listed = set(cells()["estimators"].split(", "))
    assert listed == {*named, "loggers", *EPISODIC}
    assert set(named.values()) <= set(FAMILY)
    log, policies = sample(80, 3, 2)
    assert podium.evaluate(log, policies, list(named.values()), "linear").unavailable == {}
    plain = podium.Log(log.states, log.actions, log.rewards, action_space=(0, 1, 2))
    loggers = podium.Loggers({"a": log.behavior, "b": "uniform"}, by=["a", "b"] * 40)
    assert podium.evaluate(plain, policies, "IPS", behavior=loggers).unavailable == {}
    steps = [podium.episodes.Episode([[0.0]], [1], [1.0], propensities=[0.5])]
    assert podium.episodes.evaluate(steps, {"a": lambda o, a: np.zeros(len(a))}).unavailable == {}


class Remembers:
    """A model that knows every reward that it has seen."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> Remembers:
        self.known = {tuple(row): r for row, r in zip(x, y, strict=True)}
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.array([self.known.get(tuple(row), 0.0) for row in x])


def proves_cross_fitting() -> None:
    """A model that remembers gains nothing: no row, and no row of its unit, is predicted by what has seen it."""
    log, policies = sample(60, 3, 2, units=12)
    assert podium.evaluate(log, policies, "DRE", Remembers()).values["p0"]["DRE"] == pytest.approx(
        podium.evaluate(log, policies, "IPS").values["p0"]["IPS"]
    )


def proves_ranking() -> None:
    log, policies = sample(60, 3, 2)
    result = podium.compare(log, {**policies, "same": policies["p1"]}, "cIPS:1")
    ranks = {p.name: p.rank for p in result.policies}
    assert ranks["same"] == ranks["p1"]
    assert all(1 <= p.rank_low <= p.rank_high <= 3 for p in result.policies)
    assert any("can turn a ranking round" in w for w in result.warnings)


def proves_p_a_beats_b_per_state_planning() -> None:
    log, policies = sample(60, 3, 2, distinct=12)
    assert 0 <= podium.compare(log, policies).pairs[0].p_better <= 1
    assert len(podium.compare_states(log, policies).states) == log.n_states
    assert podium.plan(log, policies, difference=0.1).pairs


def proves_intervals() -> None:
    log, policies = sample(60, 3, 2)
    clustered, _ = sample(60, 3, 2, units=6)
    for verdicts in ("posterior", "paired t", "bootstrap t", "sign flip"):
        for some in (log, clustered):
            assert podium.compare(some, policies, verdicts=verdicts).pairs[0].interval is not None
    assert podium.compare(log, policies, bootstrap=50).pairs[0].bootstrap is not None
    plain, units = (podium.compare(some, policies, "DRE", verdicts="paired t").pairs[0] for some in (log, clustered))
    assert plain.std_error != units.std_error


def proves_ess_overlap() -> None:
    log, policies = sample(60, 3, 2)
    row = podium.diagnose(log, policies).to_dict()["policies"][0]
    assert 0 < row["ess"] <= 60
    assert 0 < row["mass_on_logged"] <= 1


def proves_continuous_actions() -> None:
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (200, 2))
    log = podium.continuous.ContinuousLog(
        np.zeros(200), actions, -(actions**2).sum(axis=1), densities=np.full(200, 0.25)
    )
    found = log.evaluate({"centre": np.zeros((200, 2))}, ["SNIPS", "DRE"], "linear")
    assert found.unavailable == {}


def proves_trajectories() -> None:
    rng = np.random.default_rng(0)
    steps = [(s := rng.normal(size=(5, 1)), np.clip(s, -1, 1), -np.abs(s[:, 0])) for _ in range(4)]
    policies = {"follow": lambda s: s, "stay": lambda s: 0 * s}
    assert set(podium.episodes.compare(steps, policies, bounds=(-9, 9)).ranking) == set(policies)


def proves_html_command(tmp_path: Path) -> None:
    log, policies = sample(40, 3, 2)
    page = podium.compare(log, policies).report(tmp_path / "report.html")
    assert page.read_text(encoding="utf-8").startswith("<!")
    assert {"json", "html", "gate"} <= {a.dest for a in actions_of(build_parser())}


def proves_out_of_core_distributed(tmp_path: Path) -> None:
    """DuckDB reads a file that stays where it is; tests/engines asks Spark itself where Java is at hand."""
    from podium.engines.spark import SparkEngine

    assert {"duckdb", "spark"} <= set(NAMES)
    assert callable(SparkEngine.fold)
    log, _ = sample(20_200, 3, 1, distinct=20)
    log.to_frame().to_parquet(tmp_path / "log.parquet")
    scanned = podium.scan_log(tmp_path / "log.parquet", engine="duckdb")
    assert isinstance(scanned, podium.ScannedLog)
    there, here = (podium.evaluate(some, {"a": "uniform"}, ["LDE", "SNIPS"]).values["a"] for some in (scanned, log))
    assert there == pytest.approx(here, rel=1e-9)


def proves_typed() -> None:
    assert (Path(podium.__file__).parent / "py.typed").exists()


def proof(row: str) -> Callable[..., None]:
    name = "proves_" + re.sub(r"\W+", "_", row.lower()).strip("_")
    found: Callable[..., None] = globals()[name]
    return found


@pytest.mark.parametrize("row", cells())
def test_cell(row: str, tmp_path: Path) -> None:
    made = proof(row)
    made(*([tmp_path] if "tmp_path" in made.__code__.co_varnames else []))


def test_every_proof_has_its_row() -> None:
    assert {proof(row).__name__ for row in cells()} == {name for name in globals() if name.startswith("proves_")}

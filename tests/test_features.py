"""Every cell of podium's column in docs/peers.md is true: each has a proof here."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from samples import fitted, sample

import podium
from podium.command.cli import main
from podium.estimates.estimators import EPISODIC

ROOT = Path(__file__).parents[1]
Proof = Callable[[Path], None]
PROOFS: dict[str, tuple[str, Proof]] = {}


def proves(feature: str, cell: str) -> Callable[[Proof], Proof]:
    """Keeps a function as the proof of a cell."""

    def keep(proof: Proof) -> Proof:
        PROOFS[feature] = (cell, proof)
        return proof

    return keep


@proves("input", "CSV, Parquet, JSON lines, frames, arrays")
def every_input_gives_the_same_log(folder: Path) -> None:
    frame = pd.DataFrame(
        {"age": [30, 41, 30], "action": ["a", "b", "b"], "reward": [1.0, 0.5, 0.0], "propensity": [0.5, 0.25, 0.5]}
    )
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_parquet(folder / "log.parquet")
    frame.to_json(folder / "log.jsonl", orient="records", lines=True)
    files = [podium.read_log(folder / f"log.{ending}") for ending in ("csv", "parquet", "jsonl")]
    columns = frame.to_dict("list")
    frames = [podium.Log.from_frame(f) for f in (frame, pl.DataFrame(columns), pa.table(columns))]
    arrays = podium.Log(frame[["age"]], frame["action"], frame["reward"], frame["propensity"])
    assert len({log.digest for log in (*files, *frames, arrays)}) == 1


@proves("log without propensities", "compared as it is, or estimated and labelled")
def propensities_are_not_needed_and_never_made_up(folder: Path) -> None:
    log, policies = sample(knows="none", noise=0.1)
    result = podium.compare(log, policies)
    assert result.pairs[0].verdict == "better"
    assert result.estimates["p0"]["IPS"] is None
    assert "has none" in result.unavailable["IPS"]
    estimated = podium.compare(log, policies, behavior="estimate").to_dict()
    assert estimated["log"]["propensities"] == "estimated"


@proves(
    "estimators",
    "DiM, LDE, IPS, DRE, SNIPS, SNDR, clipped, Switch-DR, DRos, subgaussian, direct model, several loggers, "
    "TIS, PDIS, WIS, PDWIS",
)
def every_estimator_gives_a_number(folder: Path) -> None:
    named = {
        "DiM": "DiM", "LDE": "LDE", "IPS": "IPS", "DRE": "DRE", "SNIPS": "SNIPS", "SNDR": "SNDR", "clipped": "cIPS:10",
        "Switch-DR": "SwitchDR:10", "DRos": "DRos:100", "subgaussian": "sgDR:0.1", "direct model": "DirectModel",
    }  # fmt: skip
    assert PROOFS["estimators"][0].split(", ") == [*named, "several loggers", *EPISODIC]
    log, policies = sample()
    found = podium.evaluate(log, policies, list(named.values()), "linear")
    assert None not in found.values["p0"].values()
    plain = podium.Log(log.states, log.actions, log.rewards, action_space=(0, 1, 2))
    loggers = podium.Loggers({"a": log.behavior, "b": "uniform"}, by=["a", "b"] * 40)
    assert podium.evaluate(plain, policies, "IPS", behavior=loggers).values["p0"]["IPS"] is not None


@proves("cross-fitting", "yes, by unit")
def no_unit_is_predicted_by_a_model_that_has_seen_it(folder: Path) -> None:
    log, _ = sample(units=9)
    assert log.units is not None
    fits: list[set[float]] = []

    class Watched:
        """Remembers the rewards that it was fitted on, and predicts which fit it is."""

        def fit(self, features: np.ndarray, rewards: np.ndarray) -> Watched:
            fits.append(set(rewards.tolist()))
            self.own = fits[-1]
            return self

        def predict(self, features: np.ndarray) -> np.ndarray:
            return np.full(len(features), float(fits.index(self.own)))

    for n, fold in enumerate(fitted(Watched(), log).logged.astype(int)):
        of_unit = log.rewards[log.units == log.units[n]]
        assert not fits[fold] & set(of_unit.tolist())


@proves("ranking", "with ties and ranges of ranks")
def ranks_have_ties_and_ranges(folder: Path) -> None:
    log, policies = sample()
    found = podium.compare(log, {**policies, "twin": policies["p2"]}).to_dict()["policies"]
    ranks = {p["name"]: p["rank"] for p in found}
    assert ranks["twin"] == ranks["p2"] == 1
    assert all(p["rank_low"] <= p["rank"] <= p["rank_high"] for p in found)
    assert any(p["rank_low"] < p["rank_high"] for p in found)


@proves("P(A beats B)", "yes, calibrated")
def the_bench_has_measured_it(folder: Path) -> None:
    log, policies = sample()
    assert all(0 <= pair.p_better <= 1 for pair in podium.compare(log, policies).pairs)
    lines = pd.read_csv(ROOT / "docs" / "calibration.csv")
    mine = lines[lines["procedure"] == "posterior"]
    assert mine["claims"].sum() > 1000
    assert (mine["wrong_better"] + mine["wrong_worse"]).sum() < 0.05 * mine["claims"].sum()


@proves("state by state", "yes")
def states_are_compared(folder: Path) -> None:
    log, policies = sample(distinct=4)
    assert len(podium.compare_states(log, policies).to_dict()["states"]) == 4


@proves("planning", "rows needed, what to log")
def a_plan_says_how_many_rows_and_which(folder: Path) -> None:
    log, policies = sample(effect=0.1, noise=1.0)
    plan = podium.plan(log, policies, difference=0.05).to_dict()
    assert plan["pairs"][0]["rows_80"] > len(log)
    assert plan["log_more"]


@proves("intervals", "of differences, clustered; posterior, t, bootstrap")
def differences_have_intervals_of_several_kinds(folder: Path) -> None:
    log, policies = sample(units=8)
    alone = podium.Log(log.states, log.actions, log.rewards, behavior=log.behavior)
    for procedure in ("posterior", "paired t", "bootstrap t"):
        pair = podium.compare(log, policies, estimator="DRE", verdicts=procedure).pairs[0]
        assert pair.interval is not None
        assert pair.interval.low < pair.difference < pair.interval.high
        other = podium.compare(alone, policies, estimator="DRE", verdicts=procedure).pairs[0]
        assert pair.interval != other.interval


@proves("ESS / overlap", "yes")
def the_trust_panel_knows_the_overlap(folder: Path) -> None:
    log, policies = sample()
    for policy in podium.diagnose(log, policies).to_dict()["policies"]:
        assert 0 < policy["ess"] <= len(log)
        assert 0 < policy["mass_on_logged"] <= 1


@proves("continuous actions", "kernels, several coordinates")
def kernels_find_the_peak(folder: Path) -> None:
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (2000, 2))
    rewards = -(actions**2).sum(axis=1)
    log = podium.continuous.ContinuousLog(np.zeros(2000), actions, rewards, densities=np.full(2000, 0.25))
    policies = {"centre": np.zeros((2000, 2)), "corner": np.full((2000, 2), 0.8)}
    for kernel in podium.continuous.KERNELS:
        values = log.evaluate(policies, "SNIPS", kernel=kernel, bandwidth=0.2).values
        assert values["centre"]["SNIPS"] == pytest.approx(0, abs=0.1)
        assert values["corner"]["SNIPS"] == pytest.approx(-1.28, abs=0.3)


@proves("trajectories", "yes")
def episodes_are_weighted_whole_and_by_step(folder: Path) -> None:
    """Two steps, a fair coin each; a policy that always plays 1 earns 2."""
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (4000, 2))
    episodes = [
        podium.episodes.Episode(np.zeros((2, 1)), c, c.astype(float), propensities=np.full(2, 0.5)) for c in coins
    ]
    with np.errstate(divide="ignore"):
        found = podium.episodes.evaluate(episodes, {"ones": lambda o, a: np.log(np.ravel(a) == 1)}).values["ones"]
    assert set(found) == set(EPISODIC)
    assert list(found.values()) == pytest.approx([2] * 4, abs=0.2)


@proves("HTML / command", "yes / yes")
def the_command_writes_a_page(folder: Path) -> None:
    assert main(["demo", "--out", str(folder / "demo")]) == 0
    log = str(folder / "demo" / "log.csv")
    assert main(["compare", log, "--html", str(folder / "page.html"), "--json"]) == 0
    assert (folder / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@proves("out-of-core / distributed", "DuckDB / Spark")
def duckdb_gives_the_numbers_of_memory(folder: Path) -> None:
    """Spark is held against memory by the same tests (`make test-system` runs tests/engines on a cluster)."""
    from podium.engines import NAMES
    from podium.simulator import Programme

    assert set(NAMES) == {"auto", "memory", "duckdb", "spark"}
    frame = Programme().draw(rows=500, seed=1).columns()
    pd.DataFrame(frame).to_parquet(folder / "log.parquet")
    scanned = podium.compare(podium.scan_log(folder / "log.parquet", engine="duckdb"))
    assert scanned.to_dict()["settings"]["engine"] == "duckdb"
    assert scanned.ranking == podium.compare(podium.read_log(folder / "log.parquet")).ranking


@proves("typed", "yes")
def every_function_is_annotated(folder: Path) -> None:
    """`make lint` runs mypy --strict on all of it, and `make test-release` on what a user writes."""
    assert (ROOT / "src" / "podium" / "py.typed").exists()
    bare = []
    for path in (ROOT / "src" / "podium").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                named = [a for a in arguments if a.arg not in ("self", "cls") and a.annotation is None]
                bare += [f"{path.name}: {node.name}"] if named or node.returns is None else []
    assert bare == []


@proves("works on Python 3.11 with NumPy 2.4", "yes")
def these_tests_run_there(folder: Path) -> None:
    """On the newest NumPy, whichever that is; `make test-lowest` has the oldest."""
    assert sys.version_info >= (3, 11)
    assert tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 4)


def table() -> dict[str, str]:
    """podium's cell of each row."""
    lines = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert rows[0][1] == "podium"
    assert len({len(row) for row in rows}) == 1
    return {row[0]: row[1] for row in rows[1:]}


def test_every_cell_has_a_proof() -> None:
    assert {feature: cell for feature, (cell, _) in PROOFS.items()} == table()


@pytest.mark.parametrize("feature", PROOFS)
def test_the_cell_is_true(feature: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PROOFS[feature][1](tmp_path)

"""Logs that are larger than the sample: which rows are looked at, what all rows give, and logs that are their own."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import PROCEDURES, sample

import podium
from podium.estimates.evaluate import rows_of
from podium.estimates.options import Options

approx = pytest.approx


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs beyond the sample are cut into parts of 40 rows."""
    monkeypatch.setattr("podium.engines.parts.LEAST", 40)
    monkeypatch.setattr("podium.engines.parts.CELLS", 1)


def written(log: podium.Log, policies: dict[str, np.ndarray], path: Path) -> Path:
    """The log as a file, with every policy in columns."""
    frame = log.to_frame()
    for name, matrix in policies.items():
        for a in log.action_space:
            frame[f"pi_{name}:{a}"] = matrix[:, a]
    frame.to_parquet(path)
    return path


def without_engine(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"settings": content["settings"] | {"engine": None}}


# --- a log that is its own sample ----------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_the_size_of_the_sample_means_nothing_to_a_smaller_log(procedure: str) -> None:
    log, policies = sample(150)
    usual = podium.compare(log, policies, verdicts=procedure, bootstrap=10).to_dict()
    for rows in (150, 151, 10**9):
        assert podium.compare(log, policies, verdicts=procedure, bootstrap=10, sample_rows=rows).to_dict() == usual
    assert podium.compare(log, policies, verdicts=procedure, bootstrap=10, sample_rows=149).sample == {
        "rows": 149,
        "of": 150,
    }


def test_one_row_more_than_usual_is_no_border(tmp_path: Path) -> None:
    """20,001 rows that the sample holds: the same numbers from arrays and from a file that stays where it is."""
    log, policies = sample(20_001, 3, 3, distinct=500)
    path = written(log, policies, tmp_path / "log.parquet")
    options: dict[str, Any] = {"verdicts": "gated", "bootstrap": 20, "sample_rows": 30_000}
    arrays = podium.compare(podium.read_log(path), **options)
    scanned = podium.compare(podium.scan_log(path, engine="duckdb"), **options)
    assert arrays.sample is None
    assert scanned.sample is None
    assert without_engine(scanned.to_dict()) == without_engine(arrays.to_dict())
    judged = podium.compare(podium.read_log(path), verdicts="gated", bootstrap=20)
    assert judged.sample == {"rows": 20_000, "of": 20_001}
    for pair in arrays.pairs:  # one row of 20,001 changes little
        assert judged.pair(pair.a, pair.b).difference == approx(pair.difference, abs=0.1 * pair.std_error)
    for name, values in arrays.estimates.items():
        for method in ("LDE", "DRE", "IPS", "DiM"):
            assert judged.estimates[name][method] == approx(values[method], rel=1e-9)


# --- the sample ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [0, 60])
@pytest.mark.parametrize("seed", [0, 3])
def test_memory_and_duckdb_draw_the_same_rows(units: int, seed: int, tmp_path: Path) -> None:
    log, policies = sample(500, units=units)
    path = written(log, policies, tmp_path / "log.parquet")
    unit = "unit" if units else None
    options = Options(sample_rows=200, seed=seed, unit=unit)
    arrays = rows_of(podium.read_log(path, unit=unit), None, options)
    scanned = rows_of(podium.scan_log(path, engine="duckdb", unit=unit), None, options)
    assert np.array_equal(arrays.numbers, scanned.numbers)
    assert np.array_equal(arrays.sample.rewards, scanned.sample.rewards)
    assert arrays.sample.rewards.tolist() == log.rewards[arrays.numbers].tolist()
    if units:
        drawn = set(arrays.sample.units.tolist())
        others = set(np.delete(arrays.log.units, arrays.numbers).tolist())
        assert not drawn & others  # units are drawn whole
        assert len(arrays.numbers) <= 200
    else:
        assert len(arrays.numbers) == 200
    again = rows_of(podium.read_log(path, unit=unit), None, Options(sample_rows=200, seed=seed + 1, unit=unit))
    assert not np.array_equal(arrays.numbers, again.numbers)


def test_a_row_that_drives_a_pair_is_named_by_its_number_in_the_log() -> None:
    log, policies = sample(400, count=2, effect=0.0)
    drawn = rows_of(log, policies, Options(sample_rows=200)).numbers
    rewards = log.rewards.copy()
    rewards[drawn[150]] = 500.0
    log = podium.Log(log.states, log.actions, rewards, behavior=log.behavior, action_space=log.action_space)
    found = podium.diagnose(log, policies, verdicts="gated", sample_rows=200)
    assert drawn[150] != 150
    assert found.pairs[0].rows[0].label == drawn[150] + 1


# --- differences on all rows ---------------------------------------------------------------------------------------


def exact_difference(log: podium.Log, a: np.ndarray, b: np.ndarray, method: str) -> float:
    """In exact arithmetic; no (state, action) may repeat."""
    rewards = [Fraction(r) for r in log.rewards.tolist()]
    centre = sum(rewards) / len(log)
    total = Fraction(0)
    for n, code in enumerate(log.action_codes.tolist()):
        weight = Fraction(log.n_actions) if method == "LDE" else 1 / Fraction(float(log.propensities[n]))
        total += (rewards[n] - centre) * weight * (Fraction(float(a[n, code])) - Fraction(float(b[n, code])))
    return float(total / len(log))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("method", ["LDE", "DRE"])
def test_nearly_equal_policies_keep_their_differences_in_parts(method: str, offset: float) -> None:
    log, policies = sample(400)
    log = podium.Log(
        log.states, log.actions, log.rewards + offset, behavior=log.behavior, action_space=log.action_space
    )
    p0, p1 = policies["p0"], policies["p1"]
    near = {"p0": p0, "near": p0 + 1e-9 * (p1 - p0), "p1": p1, "twin": p0.copy(), "p2": policies["p2"]}
    result = podium.compare(log, near, method, verdicts="paired t", sample_rows=150)
    assert not result.basis.rows.whole
    for a, b in (("near", "p0"), ("p1", "p0"), ("near", "p1")):
        wanted = exact_difference(log, near[a], near[b], method)
        assert result.pair(a, b).difference == approx(wanted, rel=1e-7 if offset else 1e-9)
    twins = result.pair("p0", "twin")
    assert (twins.difference, twins.std_error, twins.verdict) == (0, None, "cannot tell")
    assert result.pair("twin", "p1").difference == result.pair("p0", "p1").difference
    assert result.estimates["twin"] == result.estimates["p0"]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("method", ["LDE", "DRE", "SNIPS"])
def test_policies_that_differ_in_rows_outside_the_sample_alone(method: str) -> None:
    log, policies = sample(400)
    drawn = rows_of(log, policies, Options(sample_rows=150)).numbers
    other = np.roll(policies["p0"], 1, axis=1)
    other[drawn] = policies["p0"][drawn]
    both = {"p0": policies["p0"], "other": other, "p1": policies["p1"]}
    whole = podium.compare(log, both, method, verdicts="paired t")
    parts = podium.compare(log, both, method, verdicts="paired t", sample_rows=150)
    for pair in whole.pairs:
        found = parts.pair(pair.a, pair.b)
        assert found.difference == approx(pair.difference, rel=1e-9)
        assert found.std_error == approx(pair.std_error, rel=1e-9)
    assert abs(parts.pair("p0", "other").difference) > 0


# --- what is not known ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [200, 150])
@pytest.mark.parametrize("procedure", [None, *PROCEDURES])
@pytest.mark.parametrize("reward", [1.0, 0.1, 1e6 + 0.1])
def test_nobody_is_the_best_where_nothing_is_known(reward: float, procedure: str | None, rows: int) -> None:
    log, policies = sample(200)
    log = podium.Log(log.states, log.actions, np.full(200, reward), behavior=log.behavior, action_space=(0, 1, 2))
    result = podium.compare(log, policies, verdicts=procedure, sample_rows=rows)
    assert {(p.difference, p.p_better, p.verdict) for p in result.pairs} == {(0.0, 0.5, "cannot tell")}
    assert [p.rank for p in result.policies] == [1, 1, 1]
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [(p["p_best"], p["regret"]) for p in content["policies"]] == [(None, None)] * 3
    assert [row[-1] for row in result.ranking_table().rows] == ["-"] * 3
    assert result.to_frame()["p_best"].isna().all()

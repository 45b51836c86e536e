"""Weight rules of users' own, used as a stranger would: from a module of their own, by public names alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import sample

import podium

MODULE = """
import numpy as np
import podium

def tamed(weights):
    return weights / (1 + weights / 20)

TAMED = podium.Estimator("tamed", uses_propensity=True, uses_baseline=True, rule=tamed)

if __name__ == "__main__":
    log = podium.read_log("log.csv")
    found = podium.evaluate(log, None, [TAMED, "DRE"])
    result = podium.compare(log, None, TAMED, verdicts="paired t", bootstrap=50)
    assert result.settings.estimator == "tamed" and result.pairs[0].bootstrap is not None
    assert "tamed" in str(podium.spectrum(log, None, ["mean"], [TAMED, "DRE"]))
    parts = podium.evaluate(podium.scan_log("log.csv"), None, [TAMED])
    for name, values in found.values.items():
        assert abs(parts.values[name]["tamed"] - values["tamed"]) < 1e-12
    print(result.ranking)
"""
HINT = "\n\nHint: "
FORM = "write a function of an array of weights that returns as many, such as lambda w: np.minimum(w, 5)."


def own(rule: Any, **more: Any) -> podium.Estimator:
    return podium.Estimator("mine", **{"uses_propensity": True, "uses_baseline": False, "rule": rule, **more})


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("units", [0, 15])
def test_a_rule_that_clips_is_the_clipped_method(baseline: bool, units: int) -> None:
    log, policies = sample(90, units=units)
    mine = own(lambda w: np.minimum(w, 1.5), uses_baseline=baseline)
    known = podium.estimators.clipped(1.5, baseline=baseline)
    values = podium.evaluate(log, policies, [mine, known]).values
    assert all(v["mine"] == v[known.name] for v in values.values())
    results = [podium.compare(log, policies, e, verdicts="paired t", bootstrap=30) for e in (mine, known)]
    for p, q in zip(*(r.pairs for r in results), strict=True):
        assert (p.difference, p.std_error, p.interval, p.bootstrap) == (
            q.difference,
            q.std_error,
            q.interval,
            q.bootstrap,
        )
    assert [w.replace("mine", known.name) for w in results[0].warnings] == list(results[1].warnings)


def test_the_identity_is_the_method_that_it_changes() -> None:
    log, policies = sample(70)
    for e in podium.ESTIMATORS.values():
        mine = own(lambda w: w, uses_propensity=e.uses_propensity, uses_baseline=e.uses_baseline)
        values = podium.evaluate(log, policies, [mine, e], duplicates="all").values
        assert all(v["mine"] == pytest.approx(v[e.name], rel=1e-12) for v in values.values())


def test_self_normalized_rules() -> None:
    log, policies = sample(70)
    mine = own(lambda w: w, self_normalized=True)
    values = podium.evaluate(log, policies, [mine, "SNIPS"]).values
    assert all(v["mine"] == v["SNIPS"] for v in values.values())


def test_no_policy_moves_the_weights_of_another() -> None:
    log, policies = sample(70, count=3)
    seen: list[tuple[int, ...]] = []

    def rule(w: np.ndarray) -> np.ndarray:
        seen.append(w.shape)
        w[:] = np.minimum(w, 2)  # writes into a copy
        return w

    alone = podium.evaluate(log, dict(list(policies.items())[:1]), [own(rule)]).values
    among = podium.evaluate(log, policies, [own(rule), "IPS"]).values
    name = next(iter(policies))
    assert among[name]["mine"] == alone[name]["mine"]
    assert {len(shape) for shape in seen} == {1}
    assert among[name]["IPS"] == podium.evaluate(log, policies, ["IPS"]).values[name]["IPS"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda w: w[:3], f"must return 50 numbers, shape (50,); it returned shape (3,){HINT}{FORM}"),
        (lambda w: 1.0, f"must return 50 numbers, shape (50,); it returned shape (){HINT}{FORM}"),
        (lambda w: "x", f"must return 50 numbers, shape (50,); it returned 'x'{HINT}{FORM}"),
        (lambda w: None, f"must return 50 numbers, shape (50,); it returned None{HINT}{FORM}"),
        (lambda w: 1 / 0, f"failed: ZeroDivisionError: division by zero{HINT}{FORM}"),
        (
            lambda w: np.where(w == w.max(), np.nan, w),
            "must return finite weights; the weight 3 became nan (50 rows)"
            f"{HINT}return a finite weight for every finite weight from 0 on.",
        ),
    ],
)
def test_what_is_no_weight_is_refused(rule: Any, message: str) -> None:
    log = podium.Log(
        np.arange(50) % 5, ["a"] * 50, np.arange(50.0), propensities=np.full(50, 1 / 3), action_space=["a", "b"]
    )
    joined = f"the rule of estimator 'mine' {message}"
    with pytest.raises(podium.PodiumError, match=f"^{re.escape(joined)}$"):
        podium.evaluate(log, {"x": "constant:a"}, [own(rule)])


@pytest.mark.parametrize(
    "rule", [lambda w: w / w.mean(), np.cumsum, lambda w: np.minimum(w, np.quantile(w, 0.9)), np.sort]
)
def test_a_rule_that_looks_at_other_rows_is_refused(rule: Any) -> None:
    log, policies = sample(80)
    message = (
        r"^the rule of estimator 'mine' gives a row another weight where other rows are left out \(\d+ rows? of 40\)"
    )
    message += re.escape(
        f"{HINT}let each weight depend on itself alone; weights divided by their mean are self_normalized=True."
    )
    with pytest.raises(podium.PodiumError, match=message + "$"):
        podium.evaluate(log, policies, [own(rule)])


def test_a_rule_of_your_own_takes_no_parameter() -> None:
    message = f"a rule of your own takes no parameter; it is 3.0{HINT}"
    message += "put it into the function: rule=lambda w: np.minimum(w, 5)."
    with pytest.raises(podium.PodiumError, match=f"^{re.escape(message)}$"):
        own(np.sqrt, parameter=3.0)


def test_a_name_that_another_method_has_is_refused() -> None:
    log, policies = sample(40)
    with pytest.raises(podium.PodiumError, match=r"^the estimator 'IPS' is not the method of that name"):
        podium.evaluate(log, policies, [podium.Estimator("IPS", True, False, rule=np.sqrt)])


def test_what_it_assumes_is_said() -> None:
    assert own(np.sqrt).assumes == (
        "the propensities are right, and every action that a policy plays could have been logged; what the rule does "
        "to the weights is alike for all policies"
    )


def test_from_outside_the_package(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(MODULE, encoding="utf-8")
    log, policies = sample(120)
    frame = log.to_frame()
    for name, policy in policies.items():
        for j, action in enumerate(log.action_space):
            frame[f"pi_{name}:{action}"] = policy[:, j]
    frame.to_csv(tmp_path / "log.csv", index=False)
    done = subprocess.run([sys.executable, "theirs.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['")

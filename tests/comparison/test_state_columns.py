"""State columns that look like IDs, times or units, and mean weights that are not 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import podium
from podium import Log
from podium.comparison.state_columns import state_warnings

N = 60
RNG = np.random.default_rng(0)


def log_of(unit: str | None = None, **states: Any) -> Log:
    columns = {**states, "action": ["a", "b"] * (N // 2), "reward": RNG.normal(size=N)}
    return Log.from_columns(columns, unit=unit)


def kinds(**states: Any) -> list[str]:
    log = log_of(**states)
    return [fact.code for fact in state_warnings(log, len(log))]


AGES = (np.arange(N) * 7 % 50).tolist()
COLUMNS: dict[str, tuple[str, Any, list[str]]] = {
    "continuous": ("income", RNG.normal(size=N).tolist(), []),
    "whole incomes": ("income", (RNG.permutation(100_000)[:N] + 20_000).tolist(), []),
    "ages": ("age", AGES, []),
    "ages of patients": ("Patient Age", AGES, []),
    "patients": ("Patient", [i // 4 for i in range(N)], ["state is a unit"]),
    "few texts": ("region", ["n", "s", "e"] * (N // 3), []),
    "row numbers": ("row", list(range(N)), ["state is an ID"]),
    "random ids": ("customerId", (RNG.permutation(10**6)[:N]).tolist(), ["state is an ID"]),
    "texts": ("code", [f"x{i * 37 % 1000}" for i in range(N)], ["state is an ID"]),
    "dates": ("day", [f"2024-03-{1 + i % 28:02d}" for i in range(N)], ["state is a time"]),
    "seconds": ("ts", [1_700_000_000 + i * 61 for i in range(N)], ["state is a time"]),
    "people": ("user_id", [i // 4 for i in range(N)], ["state is a unit"]),
    "patient numbers": ("patient_no", [i // 4 for i in range(N)], ["state is a unit"]),
    "category id": ("segment_id", [i % 3 for i in range(N)], []),
}


@pytest.mark.parametrize(("name", "column", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_each_column_is_judged_by_itself(name: str, column: Any, expected: list[str]) -> None:
    assert kinds(**{name: column, "height": RNG.normal(size=N).tolist()}) == expected


def test_a_unit_that_is_named_is_no_warning() -> None:
    log = log_of(unit="user_id", user_id=[i // 4 for i in range(N)], age=AGES)
    assert state_warnings(log, N) == ()


def test_the_warning_names_the_remedy() -> None:
    log = log_of(user_id=[i // 4 for i in range(N)], age=AGES)
    result = podium.compare(log, {"a": "constant:a", "b": "constant:b"}, verdicts="gated")
    assert result.warnings == (
        "the state column 'user_id' seems to identify people or devices (15 values, each in 4 rows on average), whose "
        "rows depend on each other. Name it as the unit (--unit user_id --state age).",
    )


def test_a_policy_that_was_trained_on_the_log_has_a_mean_weight_off_1() -> None:
    rng = np.random.default_rng(1)
    n = 400
    x, actions = rng.normal(size=n), rng.choice(["a", "b"], n)
    log = Log(x, actions, rng.normal(size=n), behavior=np.full((n, 2), 0.5), action_space=["a", "b"])
    seen = np.where(rng.random(n) < 0.8, actions, "a")  # mostly repeats what was logged
    result = podium.compare(log, {"new": seen, "any": "uniform"}, verdicts="gated")
    (warning,) = result.warnings
    assert warning == (
        f"the importance weights of policy 'new' average {warning.fields['mean']:.3g}, not 1 "
        f"({warning.fields['errors']:.1f} standard errors away): it was trained on rows of this log, or the "
        "propensities are wrong. If the policy was trained on this log, judge how it learns: podium.Learned(estimator)."
    )
    assert warning.fields["mean"] > 1.5
    assert podium.compare(log, {"a": "constant:a", "any": "uniform"}, verdicts="gated").warnings == ()


def test_an_export_that_was_written_twice_is_not_taken_for_twice_as_many_rows() -> None:
    rng = np.random.default_rng(2)
    columns = (rng.normal(size=80), rng.choice(["a", "b"], 80), rng.random(80))
    twice = [np.tile(column, 2) for column in columns]
    policies = {"a": "constant:a", "b": "constant:b"}
    assert podium.compare(Log(*columns), policies, verdicts="gated").warnings == ()
    (warning,) = podium.compare(Log(*twice), policies, verdicts="gated").warnings
    assert warning == (
        "80 of the 160 rows repeat another one in state, action and reward. If the log holds rows twice, remove the "
        "copies: as independent rows they make every answer look surer than it is."
    )
    known = Log(*twice, units=np.tile(np.arange(80), 2))
    assert podium.compare(known, policies, verdicts="gated").warnings == ()

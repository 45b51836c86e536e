"""An answer does not move, or only so far, when a log changes in ways that should not matter.

`ALLOWED` says how far each number may move; docs/invariances.md shows the same table. `make test` asks for it on a few
small logs, `make test-slow` on random ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from invariances import (
    CASES,
    CHANGES,
    Case,
    Change,
    Numbers,
    add_irrelevant,
    answer,
    drawn,
    duplicate_policy,
    make,
    movement,
)

import podium
from podium.verdicts import posterior

EXACT = 1e-9
DRAWS = 36  # random logs of `make test-slow`
ANY = 1.0  # of a probability: not limited
DOCUMENT = Path(__file__).parents[1] / "docs" / "invariances.md"


@dataclass(frozen=True)
class Allowed:
    """How far numbers may move.

    Parameters
    ----------
    methods : estimates by LDE, DRE, IPS and DiM, in standard deviations of the reward
    differences : differences, their errors and intervals, in the same unit
    values : the values that the posterior or the gated path gives to single policies, in the same unit; None for the
        limit of the differences
    better, best, adjusted : P(better), P(best) and the adjusted p value
    verdict : "same"; or "not reversed": a claim may become "cannot tell" or the other way round, never its opposite
    order : whether the ranking stays the same
    t_p : T_p, relative to 1 or to itself; other numbers of the trust panel never move
    """

    methods: float = EXACT
    differences: float = EXACT
    better: float = EXACT
    best: float = EXACT
    adjusted: float = EXACT
    verdict: str = "same"
    order: bool = True
    t_p: float = EXACT
    values: float | None = None

    def limits(self) -> dict[str, float]:
        """The limit of each kind of number."""
        trust = ("mass_on_logged", "ess", "max_weight", "top_row_share", "alarms", "path")
        return {
            **{f"estimate {method}": self.methods for method in ("LDE", "DRE", "IPS", "DiM")},
            **dict.fromkeys(("difference", "error", "low", "high"), self.differences),
            **dict.fromkeys(("score", "estimate posterior", "estimate gated"), self.of_values),
            **dict.fromkeys(trust, max(EXACT, self.methods)),
            "P(better)": self.better,
            "P(best)": self.best,
            "P adjusted": self.adjusted,
            "verdict": 0.0 if self.verdict == "same" else 1.0,
            "order": 0.0 if self.order else 1.0,
            "T_p": self.t_p,
        }

    @property
    def of_values(self) -> float:
        return self.differences if self.values is None else self.values


DEFAULT = Allowed()
DRAWN = Allowed(best=0.03)  # P(best) is counted over 10,000 draws, and the draws are others
CORRECTED = Allowed(adjusted=0.5, verdict="not reversed")  # more pairs are corrected for
COMPANY = replace(CORRECTED, values=0.03)
NAMES = Allowed(differences=0.5, better=0.4, best=0.4, adjusted=0.6, verdict="not reversed", order=False, t_p=2.0)
# (change, procedure) -> what is allowed; whatever is not listed moves nothing.
ALLOWED = {
    ("rewards plus 1e6", "posterior"): Allowed(*[1e-8] * 5, t_p=1e-8),
    ("rewards plus 1e6", "gated"): Allowed(*[1e-8] * 5, t_p=1e-8),
    ("rewards plus 1e9", "posterior"): Allowed(*[1e-5] * 5, t_p=1e-5),
    ("rewards plus 1e9", "gated"): Allowed(*[1e-5] * 5, t_p=1e-5),
    ("policies in another order", "posterior"): DRAWN,
    ("policies in another order", "gated"): DRAWN,
    ("a constant state column", "posterior"): Allowed(
        differences=0.02, better=0.03, best=0.04, adjusted=0.06, verdict="not reversed"
    ),
    ("a policy listed twice", "posterior"): COMPANY,
    ("a policy listed twice", "gated"): CORRECTED,
    ("a policy listed nearly twice", "posterior"): replace(COMPANY, best=0.1),
    ("a policy listed nearly twice", "gated"): replace(CORRECTED, best=0.25),
    ("an irrelevant policy", "posterior"): replace(COMPANY, best=0.1),
    ("an irrelevant policy", "gated"): replace(CORRECTED, best=ANY),
    ("states as texts", "posterior"): NAMES,
    ("states as texts", "gated"): NAMES,
}
FORMS = ("a pandas", "a polars", "an arrow", "a CSV", "a Parquet")
SIZES = (
    "rewards plus 1e9",
    "rewards times 1e-170",
    "states in",
    "states times",
    "states plus",
    "a policy listed nearly",
)
SOME = ("bundled example", "logged probabilities, continuous", "no propensities, continuous")


@cache
def made(name: str | int) -> tuple[Case, Numbers]:
    """A log and its own answer."""
    case = drawn(name) if isinstance(name, int) else CASES[name]()
    return case, answer(case)


def hold(title: str, name: str | int) -> None:
    case, before = made(name)
    procedure = "posterior" if "estimate posterior" in before else "gated"
    limits = ALLOWED.get((title, procedure), DEFAULT).limits()
    moved = movement(before, answer(case, CHANGES[title]), float(case.rewards.std()))
    if CHANGES[title].shift:
        del moved["estimate DiM"], moved["estimate IPS"]  # see `test_what_a_shift_does_to_ips_and_dim`
    assert {kind: x for kind, x in moved.items() if x > limits[kind]} == {}


def cases_of(title: str) -> Iterator[str]:
    return (name for name in CASES if name in SOME or not title.startswith((*FORMS, *SIZES)))


@pytest.mark.parametrize("title", CHANGES)
def test_answers_move_no_further_than_allowed(title: str) -> None:
    for name in cases_of(title):
        hold(title, name)


@pytest.mark.slow
@pytest.mark.parametrize("title", CHANGES)
def test_answers_of_random_logs_move_no_further_than_allowed(title: str) -> None:
    for seed in range(DRAWS):
        hold(title, seed)


def test_what_a_shift_does_to_ips_and_dim() -> None:
    """They multiply the whole reward by a weight, so they add the shift times the mean weight."""
    case, _ = made("logged probabilities, continuous")

    def estimates(rewards: Any) -> dict[tuple[str, str], float]:
        log = podium.Log.from_columns(replace(case, rewards=rewards).columns())
        found = podium.evaluate(log, estimators=["IPS", "DiM"]).to_dict()["policies"]
        return {(p["name"], method): x for p in found for method, x in p["estimates"].items()}

    before, weight, after = map(estimates, (case.rewards, np.ones_like(case.rewards), case.rewards + 10))
    assert after == pytest.approx({key: x + 10 * weight[key] for key, x in before.items()}, rel=EXACT)
    assert max(abs(weight[key] - 1) for key in weight) > 0.1


@pytest.mark.parametrize("name", ["all probabilities, continuous", "logged probabilities, continuous"])
@pytest.mark.parametrize("add", [duplicate_policy, add_irrelevant])
def test_other_policies_move_a_gate_no_further_than_its_pair(name: str, add: Any) -> None:
    """A gate does not correct for other pairs, and its own pair is judged alone."""
    case, _ = made(name)
    first, second = (
        podium.compare(podium.Log.from_columns(c.columns())).gate("p1 > p0").to_dict() for c in (case, add(case))
    )
    for number in ("probability", "difference", "low", "high"):
        assert second.pop(number) == pytest.approx(first.pop(number), abs=EXACT)
    assert first == second


@pytest.mark.parametrize(
    ("known", "seed", "block"), [("all", 7, 2000), ("all", 15, 50), ("logged", 7, 2000), ("none", 7, 2000)]
)
def test_a_gate_two_policies_and_ten_policies_agree_on_a_pair(
    known: str, seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pair is judged alone: difference, interval and P(better) are the same in any company, also from blocks."""
    monkeypatch.setattr(posterior, "WHOLE_ROWS", 2 * block)
    monkeypatch.setattr(posterior, "BLOCK_ROWS", block)
    ten = make(150, known, "continuous", seed, count=10)
    two = replace(ten, policies={name: ten.policies[name] for name in ("p0", "p1")})
    many, alone = (podium.compare(podium.Log.from_columns(case.columns())) for case in (ten, two))
    one, other = many.pair("p1", "p0"), alone.pair("p1", "p0")
    assert one.interval is not None
    assert other.interval is not None
    expected = [one.difference, one.interval.low, one.interval.high, one.p_better]
    found = [other.difference, other.interval.low, other.interval.high, other.p_better]
    assert found == pytest.approx(expected, abs=EXACT)
    for result in (many, alone):
        gate = result.gate("p1 > p0")
        assert [gate.difference, gate.low, gate.high, gate.probability] == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("name", SOME)
def test_a_pair_read_the_other_way_round(name: str) -> None:
    case, _ = made(name)
    result = podium.compare(podium.Log.from_columns(case.columns()))
    a, b = list(case.policies)[:2]
    one, two = result.pair(a, b), result.pair(b, a)
    assert two.p_better == pytest.approx(1 - one.p_better, abs=EXACT)
    assert two.difference == -one.difference
    assert one.interval is None or (two.interval is not None and two.interval.low == -one.interval.high)


def test_movements_are_noticed() -> None:
    """The measure of all this: other rewards move it, also where verdicts stay the same."""
    case, before = made("all probabilities, continuous")
    other = Change(lambda c: replace(c, rewards=c.rewards + 0.01 * (c.actions == 1)))
    moved = movement(before, answer(case, other), 1.0)
    assert min(moved[kind] for kind in ("estimate LDE", "difference", "P(better)", "P(best)")) > 1e-5
    turned = movement(before, answer(case, Change(lambda c: replace(c, rewards=-c.rewards))), 1.0)
    assert (turned["verdict"], turned["order"]) == (2.0, 1.0)


# --- the document ----------------------------------------------------------------------------------------------------


def table() -> str:
    """The limits as the documentation shows them."""
    head = ("change", "LDE, DRE, IPS, DiM", "values", "differences, errors, intervals", "P(better)", "P(best)")
    lines = ["| " + " | ".join([*head, "adjusted p", "verdict", "order"]) + " |", "|---" * 9 + "|"]
    for title in CHANGES:
        rules = {p: ALLOWED.get((title, p), DEFAULT) for p in ("posterior", "gated")}
        if rules["posterior"] == rules["gated"]:
            lines.append(line(title, rules["posterior"]))
        else:
            lines += [line(f"{title} ({procedure})", rule) for procedure, rule in rules.items()]
    return "\n".join(lines)


def line(title: str, rule: Allowed) -> str:
    numbers = [rule.methods, rule.of_values, rule.differences, rule.better, rule.best, rule.adjusted]
    return "| " + " | ".join([title, *map(shown, numbers), rule.verdict, "same" if rule.order else "may change"]) + " |"


def shown(limit: float) -> str:
    return "exact" if limit <= EXACT else "no limit" if limit == ANY else f"{limit:g}"


def test_the_documentation_shows_these_limits() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8")

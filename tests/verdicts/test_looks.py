"""Planned looks at a growing log: the error of all looks together stays what it is for one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import podium
from podium.experiments.calibration.looks import LOOKS, RULES, figures, watch
from podium.verdicts.looks import MOST, OFTEN, Look, nominal_errors, parse_look, spend

HINT = 'Hint: use look="3/16" for the third of 16 planned looks, or look="rows:3200" where 3,200 rows are planned.'


def crossed(looks: int, errors: tuple[float, ...], shift: float = 0.0, draws: int = 40_000) -> float:
    """How often a random walk is ever beyond the limits."""
    from scipy.special import ndtri

    steps = np.random.default_rng(3).standard_normal((draws, looks)) + shift / np.sqrt(looks)
    z = np.cumsum(steps, axis=1) / np.sqrt(np.arange(1, looks + 1))
    return float((np.abs(z) >= -ndtri(np.array(errors) / 2)).any(axis=1).mean())


@pytest.mark.parametrize(("looks", "level"), [(2, 0.95), (16, 0.95), (16, 0.8), (64, 0.95)])
def test_all_looks_together_err_as_often_as_the_level_says(looks: int, level: float) -> None:
    errors = nominal_errors(looks, level)
    assert crossed(looks, errors) == pytest.approx(1 - level, abs=4 * np.sqrt(level * (1 - level) / 40_000))
    assert list(errors) == sorted(errors)  # later looks may claim more easily


def test_two_looks_by_hand() -> None:
    """At half time a quarter of the error is spent; the bivariate normal distribution gives the rest."""
    from scipy.special import ndtri
    from scipy.stats import multivariate_normal

    first, second = nominal_errors(2, 0.95)
    assert first == pytest.approx(0.05 / 4)
    a, b = -ndtri(first / 2), -ndtri(second / 2)
    both = multivariate_normal([0, 0], [[1, np.sqrt(0.5)], [np.sqrt(0.5), 1]])
    inside = both.cdf([a, b]) - both.cdf([-a, b]) - both.cdf([a, -b]) + both.cdf([-a, -b])
    assert 1 - inside == pytest.approx(0.05, abs=1e-5)


def test_one_look_is_no_plan() -> None:
    assert spend(Look(1, 1), 0.95) == pytest.approx(0.05)
    assert spend(None, 0.9) == pytest.approx(0.1)


def test_many_looks_are_still_exact() -> None:
    errors = nominal_errors(200, 0.95)
    assert crossed(200, errors, draws=20_000) == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize(
    ("text", "rows", "look"),
    [
        ("3/16", 10, Look(3, 16)),
        (" 3 / 16 ", 10, Look(3, 16)),
        ("rows:3200", 800, Look(OFTEN // 4, OFTEN)),
        ("rows:3200", 801, Look(OFTEN // 4 + 1, OFTEN)),
        ("rows:3200", 1, Look(1, OFTEN)),
        ("rows:3200", 4_000, Look(OFTEN, OFTEN)),  # more than planned: the last look
    ],
)
def test_spellings(text: str, rows: int, look: Look) -> None:
    assert parse_look(text, rows) == look


LOG = podium.Log([0, 0, 1, 1] * 20, ["a", "b"] * 40, np.random.default_rng(0).random(80))
POLICIES = {"a": "constant:a", "b": "constant:b"}


@pytest.mark.parametrize(
    ("look", "message"),
    [
        ("17/16", f"look '17/16' must be K/N with K from 1 to N, and N at most {MOST}; it is 17 of 16"),
        ("0/3", f"look '0/3' must be K/N with K from 1 to N, and N at most {MOST}; it is 0 of 3"),
        ((1, 5000), f"look '1/5000' must be K/N with K from 1 to N, and N at most {MOST}; it is 1 of 5000"),
        ("third", "look 'third' is not of the form K/N or rows:N"),
        ("rows:0", "look 'rows:0' plans no rows"),
        (3, "look must be a text such as '3/16'; it is 3"),
        ((1.5, 3), "look must be a text such as '3/16'; it is (1.5, 3)"),
        ((True, 3), "look must be a text such as '3/16'; it is (True, 3)"),
    ],
)
def test_wrong_looks_are_explained(look: Any, message: str) -> None:
    with pytest.raises(podium.PodiumError) as caught:
        podium.compare(LOG, POLICIES, look=look)
    assert str(caught.value) == f"{message}\n\n{HINT}"


# --- in a comparison ---------------------------------------------------------------------------------------------


def drawn(effect: float) -> podium.Log:
    rng = np.random.default_rng(1)
    action = rng.integers(2, size=400)
    reward = effect * action + rng.standard_normal(400)
    return podium.Log(rng.standard_normal(400), np.where(action == 1, "a", "b"), reward, propensities=np.full(400, 0.5))


def asked(log: podium.Log, **options: Any) -> podium.Comparison:
    return podium.compare(log, POLICIES, verdicts="paired t", **options)


def test_a_look_raises_what_claims_and_gates_need() -> None:
    log = drawn(0.44)
    once, early, last = (asked(log, look=look) for look in (None, "3/16", (16, 16)))
    p = once.pairs[0].p_adjusted
    error = spend(Look(3, 16), 0.95)
    assert error < p < spend(Look(16, 16), 0.95)
    assert early.pairs[0].p_adjusted == pytest.approx(p * 0.05 / error)
    assert [r.pairs[0].verdict for r in (once, early, last)] == ["better", "cannot tell", "better"]
    assert [r.gate("a > b").verdict for r in (once, early, last)] == ["holds", "cannot tell", "holds"]
    gate = early.gate("a > b")
    assert gate.low < 0 < gate.high  # the interval at the level that the gate needs
    assert early.gate("b > a").low == -gate.high
    assert early.pairs[0].p_better == once.pairs[0].p_better
    assert early.pairs[0].interval == once.pairs[0].interval
    assert early.pairs[0].reasons == (
        "Sure enough for a single look at the log, but not for this one of the planned looks",
    )


def test_a_strong_difference_is_claimed_early() -> None:
    assert asked(drawn(2.0), look="1/16").pairs[0].verdict == "better"


def test_the_header_and_json_tell_the_look() -> None:
    result = asked(drawn(0.44), look=(3, 16))
    needed = 1 - spend(Look(3, 16), 0.95)
    line = f"Look 3 of 16: claims and gates need level {needed:.4g} now, so that all looks together keep level 0.95"
    assert line in result.header()
    settings = json.loads(json.dumps(result.to_dict()))["settings"]
    assert settings["look"] == "3/16"
    assert settings["look_level"] == pytest.approx(needed)
    assert "look" not in asked(drawn(0.44)).to_dict()["settings"]
    assert result.basis.options.as_python() == "podium.compare(log, policies, verdicts='paired t', look='3/16')"


def test_rows_planned_count_the_rows_of_the_log() -> None:
    result = asked(drawn(0.44), look="rows:1600")
    assert result.settings.look_level == pytest.approx(1 - spend(Look(OFTEN // 4, OFTEN), 0.95))


def test_ever_claimed_and_decided_at_the_last_look() -> None:
    limits = np.full(LOOKS, 0.05)
    p = np.full((LOOKS, 3), 0.5)
    p[4, 0] = 0.01  # a tie that is claimed once
    p[7:, 1] = 0.0  # a difference that is claimed from the 8th look on
    p[3, 2] = -0.01  # a difference that is once claimed wrongly
    assert figures(p, np.array([0.0, 1.0, 1.0]), limits).tolist() == [1, 1, 2, 1, 1, 2, 1, 600]


@pytest.mark.slow
def test_growing_logs_without_a_difference_are_rarely_claimed() -> None:
    """Of some 300 tied pairs looked at 16 times, at most 5% are ever claimed; without spending it is more."""
    found = [watch("stress: ties, coins", repetition, 23, "gated") for repetition in range(60)]
    total = {rule: sum(figures(p, truth, RULES[rule]) for p, _, truth in found) for rule in RULES}
    ties, claimed, *_ = total["podium (t^2)"]
    assert ties == 300
    assert claimed / ties <= 0.05
    assert total["no spending"][1] > 2 * claimed


def test_the_last_look_keeps_most_of_the_power_of_a_single_one() -> None:
    """The figure of docs/monitoring.md: a difference of 2 standard errors, found half of the time by a single look."""
    from scipy.special import ndtr, ndtri

    def power(error: float) -> float:
        limit = -ndtri(error / 2)
        return float(ndtr(2.0 - limit) + ndtr(-2.0 - limit))

    assert power(0.05) == pytest.approx(0.516, abs=1e-3)
    assert power(spend(Look(16, 16), 0.95)) / power(0.05) == pytest.approx(0.81, abs=5e-3)

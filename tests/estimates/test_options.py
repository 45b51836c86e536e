"""The options of every question: what is refused, what is suggested, and how they are written as code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from samples import sample

import podium
from podium.estimates.evaluate import EVALUATE
from podium.estimates.options import Options

LOG, POLICIES = sample(60, 3, 2)
QUESTIONS: dict[str, Callable[..., Any]] = {
    "evaluate": podium.evaluate,
    "compare_states": podium.compare_states,
    "spectrum": podium.spectrum,
    "diagnose": podium.diagnose,
    "plan": lambda *given, **options: podium.plan(*given, difference=0.1, **options),
}


@pytest.mark.parametrize(
    ("question", "wrong", "right"),
    [
        ("evaluate", "normalise", "normalize"),
        ("compare_states", "lower_better", "lower_is_better"),
        ("spectrum", "lvel", "level"),
        ("diagnose", "verdict", "verdicts"),
        ("plan", "sampel_rows", "sample_rows"),
    ],
)
def test_a_misspelt_option_is_named_with_the_right_one(question: str, wrong: str, right: str) -> None:
    message = re.escape(f"unknown option {wrong!r}\n\nHint: did you mean {right}?")
    with pytest.raises(podium.PodiumError, match=f"^{message}$"):
        QUESTIONS[question](LOG, POLICIES, **{wrong: 1})


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_option_that_resembles_none_is_refused_too(question: str) -> None:
    with pytest.raises(podium.PodiumError, match=r"^unknown option 'zzz'\n\nHint: the options are .*sample_rows.*\.$"):
        QUESTIONS[question](LOG, POLICIES, zzz=1)


def test_the_options_are_listed() -> None:
    with pytest.raises(podium.PodiumError) as error:
        podium.evaluate(LOG, POLICIES, joint=True)  # an option of compare, and of it alone
    assert error.value.hint == "the options are " + ", ".join(EVALUATE) + "."


@pytest.mark.parametrize("question", [*QUESTIONS, "compare"])
def test_options_are_checked_alike(question: str) -> None:
    ask = QUESTIONS.get(question, podium.compare)
    message = re.escape("seed must be a whole number from 0 on; it is -1\n\nHint: use seed=0.")
    with pytest.raises(podium.PodiumError, match=f"^{message}$"):
        ask(LOG, POLICIES, seed=-1)
    for rows in (99, 1e4, True):
        message = re.escape(
            f"sample_rows must be a whole number from 100 on; it is {rows!r}\n\nHint: use sample_rows=20000."
        )
        with pytest.raises(podium.PodiumError, match=f"^{message}$"):
            ask(LOG, POLICIES, sample_rows=rows)


PYTHON = {
    "podium.compare(log, policies)": Options(),
    "podium.compare(log, policies, baseline='linear', level=0.9)": Options(baseline="linear", level=0.9),
    "podium.compare(log, policies, baseline=0.25)": Options(baseline=np.float64(0.25)),
    "podium.compare(log, policies, actions=['a', 'b'], joint=True)": Options(actions=("a", "b"), joint=True),
    "podium.compare(log, policies, estimator='DRE', behavior=behavior)": Options(
        estimator="DRE", behavior=np.full((60, 3), 1 / 3)
    ),
    "podium.compare(log, policies, baseline=baseline, seed=3)": Options(baseline=np.zeros(60), seed=3),
    "podium.compare(log, policies, sample_rows=500)": Options(sample_rows=500),
}


@pytest.mark.parametrize("code", PYTHON)
def test_options_as_python(code: str) -> None:
    assert PYTHON[code].as_python() == code


def test_what_is_written_as_python_gives_the_same_answer() -> None:
    options = Options(estimator="DRE", baseline="linear", level=0.9, verdicts="paired t", actions=[0, 1, 2], seed=4)
    wanted = podium.compare(LOG, POLICIES, "DRE", "linear", level=0.9, verdicts="paired t", actions=[0, 1, 2], seed=4)
    found = eval(options.as_python(), {"podium": podium, "log": LOG, "policies": POLICIES})
    assert found.to_dict() == wanted.to_dict()
    assert wanted.basis.options.as_python() == options.as_python()

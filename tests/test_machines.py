"""Every processor gives the same answers: the same questions in processes that imitate other processors."""

from __future__ import annotations

from typing import Any

import pytest
from machines import CASES, ask_all, contradictions, machines, numbers_apart, unlike


@pytest.mark.slow  # asks every question on every imitated processor
def test_every_machine_gives_the_same_answers() -> None:
    """Numbers agree to six significant digits; ranks, verdicts, rows needed and words are equal."""
    asked = machines()
    first, *others = ask_all(asked)
    assert {name.partition(":")[0] for name in first["answers"]} == set(CASES)

    # The processes are the machines that they should be, and compute differently: else equal answers prove nothing.
    every = [first, *others]
    assert [line for m, told in zip(asked, every, strict=True) for line in unlike(m, told["machine"])] == []
    if len({tuple(told["machine"]["architectures"]) for told in every}) > 1:
        assert len({tuple(told["machine"]["bits"]) for told in every}) > 1
        assert any(max(numbers_apart(first["answers"], told["answers"]).values()) > 0 for told in others)

    found = [
        f"{machine.name}: {line}"
        for machine, told in zip(asked[1:], others, strict=True)
        for line in contradictions(first["answers"], told["answers"])
    ]
    assert not found, "\n".join([f"{len(found)} contradictions", *found[:20]])


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ({"p": 0.1234567}, {"p": 0.1234568}, 0),
        ({"p": 0.123456}, {"p": 0.123457}, 1),
        ({"p": 1e-17}, {"p": -2e-16}, 0),
        ({"rows": 3015}, {"rows": 3018}, 1),
        ({"rows": 3015}, {"rows": 3015.0}, 1),
        ({"verdict": "better"}, {"verdict": "cannot tell"}, 1),
        ({"text": "by 0.123 of 400"}, {"text": "by 0.124 of 400"}, 0),
        ({"text": "by 0.123 of 400"}, {"text": "by 0.123 of 401"}, 1),
        ({"low": None}, {"low": 0.1}, 1),
        ({"pairs": [1, 2]}, {"pairs": [1]}, 1),
    ],
)
def test_what_counts_as_a_contradiction(a: Any, b: Any, said: int) -> None:
    assert len(contradictions(a, b)) == said

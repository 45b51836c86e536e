"""Frames of probabilities are read by the names of their columns, whoever gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from podium import Log, PodiumError, Policy
from podium.policies import resolve_policies

LOG = Log(range(6), list("ababab"), [1.0, 0.1, 0.9, 0.2, 0.8, 0.4])
CELLS = np.tile([0.9, 0.1], (6, 1))


class Geo(pd.DataFrame):
    """A frame of a library that derives its own, as geopandas does."""


class Model:
    """A model that names the columns of its probabilities."""

    def __init__(self, classes: list[str] | None = None) -> None:
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, states: Any) -> pd.DataFrame:
        return pd.DataFrame(CELLS[: len(states)], columns=["b", "a"])


def matrix(policy: Any) -> Any:
    _, (read,) = resolve_policies(LOG, {"p": policy})
    return read.matrix


@pytest.mark.parametrize(
    "policy",
    [Policy(Geo(CELLS, columns=["b", "a"]), kind="distribution"), Model(), Model(["a", "b"]), Model(["b", "a"])],
)
def test_the_names_say_which_action_is_which(policy: Any) -> None:
    assert np.allclose(matrix(policy), CELLS[:, ::-1])


def test_classes_that_contradict_the_names_are_refused() -> None:
    with pytest.raises(PodiumError, match=r"policy 'p': predict_proba names its columns .*; classes_ names"):
        matrix(Model(["a", "c"]))


def test_a_derived_frame_as_behavior_is_read_by_its_names() -> None:
    frame = Geo(CELLS, columns=["b", "a"])
    log = Log(LOG.states, LOG.actions, LOG.rewards, behavior=Policy(frame, kind="distribution"))
    assert np.allclose(np.asarray(log.propensities), [0.1, 0.9] * 3)

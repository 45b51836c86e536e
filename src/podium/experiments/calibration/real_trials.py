"""Real randomized trials by name: six that podium ships, and others from a folder of the user's.

A trial is a CSV table with one row per person: state columns, `action` (the arm, assigned at random) and `reward`
(larger is better). The probability of an arm is its share of the rows, so part of a trial can serve as a log and the
rest as the truth. See `real_trial_tables/README.md` for the studies, their licenses and their columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from podium.data.columns import Column, Floats, labels_column, numbers_column
from podium.data.errors import PodiumError
from podium.data.read import parse_csv, read_text
from podium.data.roles import available
from podium.data.shipped import damaged, shipped_text

CHECKSUMS = {  # SHA-256 of the tables that podium ships
    "dating": "470e274ec7f23c710f091b45b0f1ebfd2ebbaafb84aa700a73219d218c48dd66",
    "gums": "0019ee639b0ce9f1df2e200674711c7a14b994421b7f4fb7a40f80182bad3aed",
    "insurance": "9f77e057e879332e8a64d55f023ee3ffeaed3abcb11835a245e19d03accd3b4d",
    "party": "cfdf7bed5ef8fff702e88931acfc23e313182d163a1d7e81d3397e24e1e93044",
    "throat": "ea573187ff53ae77f910e8cea88fe88ac2473cba85a38fb3773357fdc0e3e8c2",
    "training": "374ddf1b7c5768c58fdd9b68fb7cb762acdc51eb40ca6193f2a0d66bbe5f6c29",
}
PACKAGE, TABLES = "podium.experiments.calibration", "real_trial_tables"


@dataclass(frozen=True, eq=False)
class RealTrial:
    """A randomized trial: one row per person, in the order of its source.

    Attributes
    ----------
    states : name of a state column -> (N,) its values, numbers or texts
    actions : (N,) the arm of each person
    rewards : (N,) the outcome of each person; larger is better
    shares : arm -> its share of the rows, in sorted order of the arms
    """

    name: str
    states: Mapping[str, Column]
    actions: Column
    rewards: Floats

    @cached_property
    def shares(self) -> dict[str | int | float, float]:
        arms, counts = np.unique(self.actions, return_counts=True)
        return dict(zip(arms.tolist(), (counts / counts.sum()).tolist(), strict=True))


def trial_names(folder: str | Path | None = None) -> tuple[str, ...]:
    """Return the names of the trials that podium ships and of those in a folder, sorted.

    >>> trial_names()
    ('dating', 'gums', 'insurance', 'party', 'throat', 'training')
    """
    return tuple(sorted({*CHECKSUMS, *tables_in(folder)}))


def load_trial(name: str, folder: str | Path | None = None) -> RealTrial:
    """Return a trial by name.

    Parameters
    ----------
    name : dating, gums, insurance, party, throat, training; or the name of a CSV file in `folder`, without its ending
    folder : a folder with further trials of the same form, one CSV file each; its files win over the shipped ones

    Examples
    --------
    >>> trial = load_trial("throat")
    >>> list(trial.states), len(trial.rewards)
    (['male', 'bmi', 'age', 'smoking', 'size'], 233)
    >>> {arm: round(share, 3) for arm, share in trial.shares.items()}
    {'licorice': 0.502, 'sugar': 0.498}
    """
    path = tables_in(folder).get(name)
    if path is not None:
        return read_trial(name, read_text(path), path)
    if name not in CHECKSUMS:
        raise PodiumError(f"no trial {name!r}", hint="the trials are " + ", ".join(trial_names(folder)) + ".")
    packed = f"{TABLES}/{name}.csv.gz"
    text = shipped_text(PACKAGE, packed)
    if hashlib.sha256(text.encode()).hexdigest() != CHECKSUMS[name]:
        raise damaged(packed)
    return read_trial(name, text, Path(f"{name}.csv"))


def tables_in(folder: str | Path | None) -> dict[str, Path]:
    """Return name -> path of the CSV files in a folder; none where no folder is given."""
    if folder is None:
        return {}
    if not Path(folder).is_dir():
        raise PodiumError(f"there is no folder {str(folder)!r}", hint="name a folder with one CSV file per trial.")
    return {path.stem: path for path in sorted(Path(folder).glob("*.csv"))}


def read_trial(name: str, text: str, path: Path) -> RealTrial:
    """Return the trial in a CSV text; what is wrong with it is said with the name of its file."""
    columns = parse_csv(text, path)
    for role in ("action", "reward"):
        if role not in columns:
            raise PodiumError(f"{path.name} has no column {role!r}", hint=available(columns))
    actions = labels_column(columns.pop("action"), f"{path.name}: column 'action'")
    rewards = numbers_column(columns.pop("reward"), f"{path.name}: column 'reward'", "give one number per row.")
    states = {key: labels_column(column, f"{path.name}: column {key!r}") for key, column in columns.items()}
    if not states:
        raise PodiumError(f"{path.name} has no state columns", hint="add a column that describes each person.")
    if len(set(actions.tolist())) < 2:
        raise PodiumError(f"{path.name}: column 'action' holds one arm only", hint="a trial compares two arms or more.")
    return RealTrial(name, states, actions, rewards)

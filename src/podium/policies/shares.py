"""Fixed shares: a policy that takes each action with the same probability in every row.

As a SPEC, shares:a=.4,b=.6, or with JSON for names of any kind, shares:{"a": 0.4, "b": 0.6}; in Python also a mapping
{"a": 0.4, "b": 0.6}. A logger that acts so is known in full from the propensities of the logged actions alone.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podium.data.columns import REAL, Codes, Floats, match_label, plain
from podium.data.errors import PodiumError, listed, show_value
from podium.data.log import Log
from podium.data.probabilities import AGREE, MOST_ROUNDED, ROUNDED
from podium.policies.drafts import Draft, Policy, may_be_action
from podium.policies.labels import refuse_shifted

HINT = 'write shares:a=.4,b=.6, with "quotes" around a name that holds a comma, or JSON: shares:{"a": 0.4, "b": 0.6}.'


def parse_shares(text: str) -> dict[str, float]:
    """The shares that a SPEC names, as they are written.

    >>> parse_shares('a=.4,"b, late"=2/5,x=y=.2')
    {'a': 0.4, 'b, late': 0.4, 'x=y': 0.2}
    """
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text, object_pairs_hook=list)
        except ValueError as error:
            raise PodiumError(f"shares:{text} is not valid JSON: {error}", hint=HINT) from error
        entries = [(name, share) for name, share in found] if isinstance(found, list) else []
    else:
        cells = next(csv.reader([text], skipinitialspace=True), [])
        parts = [cell.rpartition("=") for cell in cells]
        wrong = [cell for cell, (name, _, share) in zip(cells, parts, strict=True) if not (name.strip() and share)]
        if wrong or not cells:
            raise PodiumError(f"shares:{text}: {show_value(wrong[0] if wrong else '')} is not ACTION=SHARE", hint=HINT)
        entries = [(name.strip(), as_number(share.strip(), text)) for name, _, share in parts]
    for name, _ in entries:
        if sum(other == name for other, _ in entries) > 1:
            raise PodiumError(f"shares:{text} names the action {name!r} twice", hint="name each action once.")
    return dict(entries)


def as_number(written: str, text: str) -> float:
    above, slash, below = written.partition("/")
    try:
        return float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError) as error:
        if written.endswith("%"):
            raise PodiumError(f"shares:{text}: {written!r} is a percent", hint="divide by 100: .4 for 40%.") from error
        raise PodiumError(f"shares:{text}: {written!r} is not a number", hint=HINT) from error


def normalized(shares: Mapping[Any, Any], what: str) -> dict[Any, float]:
    """Shares that sum to 1; those that are rounded to three decimals are divided by their sum."""
    refuse_percent(shares, what)
    for label, share in shares.items():
        number = isinstance(share, REAL) and not isinstance(share, bool | np.bool_)
        if not (number and 0 <= share <= 1):  # nan is neither
            raise PodiumError(
                f"{what}: the share of {show_value(label)} must be a number from 0 to 1; it is {show_value(share)}",
                hint="give each action its probability, such as 0.4.",
            )
    numbers = {plain(label): float(share) for label, share in shares.items()}
    total = sum(numbers.values())
    if not is_whole(total, len(numbers)):
        raise PodiumError(
            f"{what}: the shares sum to {total:.6g}, not to 1",
            hint="give every action its share, with three decimals or more, or as a fraction such as 1/3.",
        )
    return numbers if abs(total - 1) <= AGREE / 2 else {label: share / total for label, share in numbers.items()}


def refuse_percent(shares: Mapping[Any, Any], what: str) -> None:
    """Refuse shares that sum to 100."""
    if not shares or not all(isinstance(x, REAL) and not isinstance(x, bool | np.bool_) for x in shares.values()):
        return
    if abs(float(sum(shares.values())) - 100) <= 0.5 and len(shares) > 1:
        divided = ", ".join(f"{show_value(plain(label))}: {float(x) / 100:.6g}" for label, x in shares.items())
        raise PodiumError(
            f"{what}: the shares sum to {float(sum(shares.values())):.6g}; they look like percents",
            hint=f"divide them by 100: {{{divided}}}.",
        )


def is_whole(total: float, many: int) -> bool:
    """Whether so many shares sum to 1, but for rounding to three decimals."""
    return abs(total - 1) <= AGREE + min(ROUNDED * many, MOST_ROUNDED)


def is_shares(table: Mapping[Any, Any], log: Log) -> bool:
    """Whether a mapping holds an action's share for each of its keys, rather than an action for each state."""
    values = list(table.values())
    if not values or not all(isinstance(x, REAL) and not isinstance(x, bool | np.bool_) for x in values):
        return False
    known = set(log.action_space)
    if not all(plain(x) in known or may_be_action(plain(x), log) for x in table):
        return False
    by_state = all(label in table for label in log.state_labels) and all(plain(x) in known for x in values)
    return not by_state and abs(float(sum(values)) - 1) <= 0.5 and any(plain(x) in known for x in table)


def read_shares(name: str, policy: Policy, log: Log) -> Draft:
    """Fixed shares as a policy on the rows of a log."""
    shares = normalized(policy.source, f"policy {name!r}")
    named = {match_label(x, log.action_space) if isinstance(x, str) else x: share for x, share in shares.items()}
    refuse_shifted(name, tuple(named), log.action_space)
    return fixed(named, log)


def fixed(shares: Mapping[Any, float], log: Log, proxy: bool = False) -> Draft:
    """One row of probabilities for every row of the log; it takes the memory of one."""
    labels = tuple(dict.fromkeys([*log.action_space, *shares]))
    row = np.array([[shares.get(label, 0.0) for label in labels]])
    row.flags.writeable = False
    return Draft("shares", labels=labels, matrix=np.broadcast_to(row, (len(log), len(labels))), proxy=proxy)


def constant_shares(space: Sequence[Any], counts: Codes, low: Floats, high: Floats) -> dict[Any, float] | None:
    """The share of every action where propensities show that it never changes; None where they do not.

    They do if they are the same in all rows of an action, and sum to 1 over the actions. An action without a row then
    has probability 0, or, if it is the only one and the others leave a rest, that rest.

    Parameters
    ----------
    counts, low, high : (A,) rows of each action, and their least and largest propensity
    """
    seen = counts > 0
    if counts.sum() < 2 * seen.sum() or np.any(high[seen] - low[seen] > AGREE):
        return None
    shares = np.where(seen, (low + high) / 2, 0.0)
    total = float(shares.sum())
    if not is_whole(total, int(seen.sum())):
        if total > 1 or np.count_nonzero(~seen) != 1:
            return None
        shares[~seen] = 1 - total
    return normalized(dict(zip(space, shares.tolist(), strict=True)), "the propensities")


def shares_in(log: Log) -> dict[Any, float] | None:
    """The share of every action where the propensities of a log show that it never changes."""
    if log.propensities is None:
        return None
    low, high = np.full(log.n_actions, np.inf), np.full(log.n_actions, -np.inf)
    np.minimum.at(low, log.action_codes, log.propensities)
    np.maximum.at(high, log.action_codes, log.propensities)
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    unseen = counts == 0
    return constant_shares(log.action_space, counts, np.where(unseen, 0, low), np.where(unseen, 0, high))


def refuse_unshared(shares: Mapping[Any, float], counts: Mapping[Any, int]) -> None:
    """A logged action has a positive share."""
    without = [label for label, rows in counts.items() if rows and not shares.get(label, 0.0) > 0]
    if without:
        raise PodiumError(
            f"the behavior policy gives no probability to {listed(without, 5)}, which the log holds",
            hint="give every logged action a positive share.",
        )

"""Files of recorded steps, one row per step, to episodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from podium.data.arguments import checked, text, texts
from podium.data.arguments import path as at_path
from podium.data.columns import Column, Floats, factorize, first_rows, labels_column, numbers_column, plain
from podium.data.errors import PodiumError, show_value
from podium.data.read import read_columns
from podium.data.roles import available
from podium.episodes.recordings import Episode


@checked(
    path=at_path, episode=text, step=text, action=text, reward=text, behavior=text, propensity=text, observation=texts
)
def read(
    path: str | Path,
    *,
    episode: str = "episode",
    step: str = "step",
    action: str = "action",
    reward: str = "reward",
    behavior: str = "behavior",
    propensity: str = "propensity",
    observation: Sequence[str] = (),
) -> list[Episode]:
    """Episodes from a CSV, Parquet or JSON lines file that has one row per step.

    Parameters
    ----------
    path : a file that ends in .csv, .tsv, .jsonl, .ndjson, .json, .parquet or .pq
    episode : the column that says which episode a step belongs to; episodes keep the order of their first rows
    step : a column that orders the steps of an episode; without it, the order of the rows
    action : a column of this name, or several: action[0], action[1], ... or action_0, action_1, ...
    reward : the column of rewards
    behavior : a column with the name of the policy that acted, if there is one
    propensity : a column with the probability, or density, of each logged action, if there is one
    observation : the columns of observations; every column that plays no other role by default. A column
        `terminated` says whether the environment ended the episode
    """
    columns = read_columns(path)
    name = Path(path).name
    actions = numbered(action, columns)
    if not actions:
        raise PodiumError(f"{name} has no column {action!r}, nor {action}[0]", hint=available(columns))
    for header in (episode, reward, *observation):
        if header not in columns:
            raise PodiumError(f"{name} has no column {header!r}", hint=available(columns))
    roles = {episode, step, reward, behavior, propensity, "terminated", "truncated", *actions}
    seen = list(observation) or [h for h in columns if h not in roles]
    if not seen:
        raise PodiumError(f"{name} has no columns of observations", hint=available(columns))
    matrix = {"observations": numbers(columns, seen), "actions": numbers(columns, actions)}
    rewards = numbers(columns, [reward])[:, 0]
    ended = numbers(columns, ["terminated"])[:, 0] != 0 if "terminated" in columns else None
    names = labels_column(columns[behavior], f"column {behavior!r}") if behavior in columns else None
    chances = numbers(columns, [propensity])[:, 0] if propensity in columns else None
    return [
        Episode(
            matrix["observations"][rows],
            matrix["actions"][rows],
            rewards[rows],
            terminated=None if ended is None else bool(ended[rows].any()),
            behavior=None if names is None else one_name(names[rows], behavior, rows),
            propensities=None if chances is None else chances[rows],
        )
        for rows in rows_of_episodes(columns, episode, step)
    ]


def numbered(name: str, columns: Mapping[str, Column]) -> list[str]:
    """The column of this name, or those with a number behind it in the order of the numbers."""
    if name in columns:
        return [name]
    found = {h: re.fullmatch(re.escape(name) + r"(?:\[(\d+)\]|_?(\d+))", h) for h in columns}
    return sorted((h for h, m in found.items() if m), key=lambda h: int(re.findall(r"\d+", h)[-1]))


def numbers(columns: Mapping[str, Column], headers: Sequence[str]) -> Floats:
    """(N, d) those columns."""
    hint = "a step has finite numbers; name other columns with observation=[...], or leave them out of the file."
    return np.column_stack([numbers_column(columns[h], f"column {h!r}", hint) for h in headers])


def rows_of_episodes(columns: Mapping[str, Column], episode: str, step: str) -> list[Column]:
    """The rows of each episode, in the order of its steps."""
    codes, distinct = factorize(labels_column(columns[episode], f"column {episode!r}"))
    rows = np.arange(len(codes))
    if step in columns:
        steps = numbers_column(columns[step], f"column {step!r}", "number the steps of each episode.")
        rows = np.lexsort((steps, codes))
        twice = np.flatnonzero((np.diff(codes[rows]) == 0) & (np.diff(steps[rows]) == 0))
        if twice.size:
            a, b = rows[twice[0]], rows[twice[0] + 1]
            raise PodiumError(
                f"column {step!r} must differ within an episode; rows {a + 1} and {b + 1} are both step "
                f"{show_value(plain(columns[step][a]))} of episode {show_value(plain(distinct[codes[a]]))}",
                hint="number the steps of each episode, or leave the column out.",
            )
    else:
        rows = np.argsort(codes, kind="stable")
    parts = np.split(rows, np.cumsum(np.bincount(codes))[:-1])
    return [parts[j] for j in np.argsort(first_rows(codes, len(distinct)))]


def one_name(names: Column, header: str, rows: Column) -> str:
    """The policy that acted in one episode."""
    other = np.flatnonzero(names != names[0])
    if other.size:
        raise PodiumError(
            f"column {header!r} must be the same in all steps of an episode; row {rows[0] + 1} holds "
            f"{show_value(plain(names[0]))}, row {rows[other[0]] + 1} {show_value(plain(names[other[0]]))}",
            hint="one policy acts in an episode.",
        )
    return str(plain(names[0]))

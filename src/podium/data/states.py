"""States and units in the forms in which people hold them, as columns of a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Column, boxed, is_missing, labels_column, to_array
from podium.data.errors import PodiumError, refuse_rows
from podium.data.frames import ColumnTable, frame_names, frame_to_columns, is_frame, named_arrays
from podium.data.nested import refuse_ragged
from podium.data.owned import lent, owned

ALONE = ("actions", "rewards", "propensities", "behavior", "action_space", "times", "units", "eligible")


def state_columns(states: Any, name: str) -> tuple[Any, dict[str, Column]]:
    """States as policies are handed them, and their columns by header."""
    if isinstance(states, Mapping) and not isinstance(states, ColumnTable):
        states = ColumnTable({header: owned(column) for header, column in named_arrays(states).items()})
    if is_frame(states):
        states = states if isinstance(states, ColumnTable) else lent(states)
        columns = frame_to_columns(states)
        refuse_ragged(columns)
        return states, columns
    array = owned(to_array(states))
    if array.ndim == 2:
        return array, {f"{name}[{j}]": array[:, j] for j in range(array.shape[1])}
    if array.ndim == 1 and array.dtype == object and is_row(array[:1]):
        raw = spread_rows(array, name)
        return to_array([list(row) for row in array]), raw
    return array, {name: array}


def table_alone(fields: Mapping[str, Any]) -> Any:
    """The dict or frame that is all that a log was given: its columns `action` and `reward` are those of the log."""
    table = fields["states"]
    if not (isinstance(table, Mapping) or is_frame(table)):
        raise PodiumError(
            f"a log needs {'actions' if fields['actions'] is None else 'rewards'}",
            hint="give podium.Log(states, actions, rewards), or one dict of columns with 'action' and 'reward'.",
        )
    beside = [name for name, value in fields.items() if name in ALONE and value is not None and len(value)]
    if beside:
        raise PodiumError(
            f"{beside[0]} cannot be given beside a dict or frame that holds the whole log",
            hint=f"put {beside[0]} into its columns and use podium.Log.from_frame(table, ...), which takes their names,"
            " or give podium.Log(states, actions, rewards, ...).",
        )
    return table


def is_row(values: NDArray[Any]) -> bool:
    """Whether states are rows of features given as tuples or lists."""
    return len(values) > 0 and isinstance(values[0], tuple | list | np.ndarray)


def spread_rows(states: Column, name: str) -> dict[str, Column]:
    """Rows of features, given as tuples, as one column per feature."""
    width = len(states[0])
    ragged = [not is_row([x]) or len(x) != width for x in states]  # type: ignore[arg-type]
    rule = f"must hold {width} features in every row"
    refuse_rows(f"column {name!r}", rule, ragged, states, "give rows of one length.")
    return {f"{name}[{j}]": to_array([row[j] for row in states]) for j in range(width)}


def states_given(columns: Mapping[str, Column], chosen: list[str], frame: Any) -> Any:
    """What policies are handed as states: one column as an array, several as a frame."""
    if len(chosen) == 1:
        return columns[chosen[0]]
    if frame is not None and not isinstance(frame, ColumnTable):
        names = {str(name): name for name in frame_names(frame)}
        if all(name in names for name in chosen):  # no list has become columns
            own = [names[name] for name in chosen]
            return frame.select(own) if hasattr(frame, "select") else frame[own]
    return ColumnTable({name: columns[name] for name in chosen})


def units_column(values: Any, what: str) -> Column:
    """A clean column of units; a unit is only a name, so 7 and "7b" may stand side by side."""
    units = to_array(values)
    if units.dtype == object and len({isinstance(x, str) for x in units[~is_missing(units)]}) > 1:
        units = boxed([x if gap else str(x) for x, gap in zip(units, is_missing(units), strict=True)])
    return labels_column(units, what)

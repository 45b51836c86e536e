"""Which actions were possible in each row: lists, texts, columns of 0 and 1, or a matrix, as truth values (N, A).

A list column holds the labels of a row's actions: a list, a text such as "a|b|c", or a JSON list. Columns
`eligible:<action>` hold 1 where the action was possible and 0 where it was not.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Codes, Column, Floats, combine_codes, factorize, kind_of, match_label, plain, sort_key
from podium.data.errors import PodiumError, count, listed, refuse_rows, show_value

Mask = NDArray[np.bool_]

RULES = ("refuse", "renormalize")  # what becomes of a policy that plays what was not possible
SEPARATORS = "|;,"
TRUE, FALSE = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no"}
LIST_HINT = 'write the eligible actions as a|b|c or as a JSON list such as ["a", "b"].'
MASS = 1e-6  # of probability that rounding may leave on other actions


# --- columns -----------------------------------------------------------------------------------------------------


def eligible_headers(columns: Mapping[str, Any], name: str | None) -> tuple[str, ...]:
    """The columns that hold the eligible actions: a list column, its cells, or one column per action."""
    if name is None:
        found = tuple(h for h in columns if h.startswith("eligible:"))
        lists = [h for h in ("eligible", "slots") if holds_lists(columns.get(h))]
        return found or tuple(lists[:1]) or tuple(h for h in columns if h.startswith("eligible["))
    if name in columns:
        return (name,)
    return tuple(h for h in columns if h.startswith(f"{name}:")) or tuple(
        h for h in columns if h.startswith(f"{name}[")
    )


def holds_lists(column: Any) -> bool:
    """Whether the cells of a column are lists; of one behind an engine, its kind is given."""
    if not isinstance(column, np.ndarray):
        return bool(column == "other")
    return column.ndim == 2 or (column.dtype == object and len(column) > 0 and isinstance(column[0], list | np.ndarray))


def eligible_given(columns: Mapping[str, Column], headers: Sequence[str], name: str) -> Any:
    """Those columns as `podium.Log` takes them; None where there are none."""
    if not headers:
        return None
    if headers[0] == name:
        return list(columns[name])
    if headers[0].startswith(f"{name}:"):
        return {h[len(name) + 1 :]: columns[h] for h in headers}
    rows = zip(*(columns[h].tolist() for h in headers), strict=True)
    return [[x for x in row if not is_gap(x)] for row in rows]


def is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartOf:
    """Eligible actions of some rows of a log, to be read as in the whole of it."""

    given: Any
    space: tuple[Any, ...]  # that labels are matched with
    separator: str


def eligible_fields(log: Any, named: bool) -> dict[str, Any]:
    """The fields of a log that its eligible actions set, checked; `named`: the action space was given.

    The log's actions are coded already. Without a given action space, actions that are only eligible join it.
    """
    what = log.column("eligible")
    labels, cells, shown = read_cells(log.eligible, log.action_space, len(log), what)
    if len(cells) != len(log):
        raise PodiumError(
            f"{what} has {count(len(cells), 'row')}; {log.column('reward')} has {len(log):,}",
            hint="every column describes the same rows, in the same order.",
        )
    space = joined_space(labels, log.action_space, named, what)
    matrix = over_space(labels, cells, space)
    place = {label: j for j, label in enumerate(space)}
    codes = np.array([place[x] for x in log.action_space], dtype=np.int64)[log.action_codes]
    refuse_rows(what, "must name at least one action", ~matrix.any(axis=1), shown, LIST_HINT)
    bad = ~matrix[np.arange(len(log)), codes]
    if bad.any():
        n = int(np.argmax(bad))
        possible = listed([x for x, yes in zip(space, matrix[n], strict=True) if yes])
        hint = f"that row lists {possible}; correct the action or {what}."
        if any(sign in str(log.actions[n]) for sign in SEPARATORS):
            hint += " Where names hold | ; or , write lists as JSON."
        refuse_rows(log.column("action"), "must be eligible in its row", bad, log.actions, hint)
    return {"eligible": matrix, "action_space": space, "action_codes": codes}


def joined_space(labels: Iterable[Any], space: tuple[Any, ...], named: bool, what: str) -> tuple[Any, ...]:
    """The action space with those that are only eligible; refused where it was given, or they are of another kind."""
    known = set(space)
    new = [x for x in labels if x not in known]
    strange = new if named else [x for x in new if kind_of(x) != kind_of(space[0])]
    if strange:
        raise PodiumError(
            f"{what} names the action {show_value(min(strange, key=sort_key))}, which the action space lacks",
            hint=f"the action space is {listed(space)}; name every action that may be taken.",
        )
    return tuple(sorted((*space, *new), key=sort_key)) if new else space


def over_space(labels: Sequence[Any], cells: Mask, space: Sequence[Any]) -> Mask:
    """(N, A) truth values of labels over an action space that holds them."""
    place = {label: j for j, label in enumerate(space)}
    matrix = np.zeros((len(cells), len(space)), dtype=bool)
    matrix[:, [place[x] for x in labels]] = cells
    return matrix


def read_cells(
    given: Any, space: tuple[Any, ...], size: int, what: str, separator: str = ""
) -> tuple[tuple[Any, ...], Mask, Any]:
    """Labels, truth values (N, labels), and the cells as messages show them; `size`: the rows of the log."""
    if isinstance(given, PartOf):
        return read_cells(given.given, given.space, size, what, given.separator)
    if isinstance(given, Mapping):
        columns = {match(label, space): truths(column, f"{what[:-1]}:{label}'") for label, column in given.items()}
        odd = [label for label, column in columns.items() if len(column) != size]
        if odd:
            raise PodiumError(
                f"{what[:-1]}:{odd[0]}' has {count(len(columns[odd[0]]), 'row')}; the log has {size:,}",
                hint="every column describes the same rows, in the same order.",
            )
        cells = np.column_stack([*columns.values()]) if columns else np.zeros((size, 0), dtype=bool)
        return tuple(columns), cells, np.full(len(cells), None)
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind in "biuf":
        if given.shape[1] != len(space):
            raise PodiumError(
                f"{what} has {given.shape[1]} columns; the action space has {len(space)}",
                hint=f"columns follow action_space, which is {listed(space)}; name all actions with action_space.",
            )
        refuse_rows(what, "must hold 0 and 1", ((given != 0) & (given != 1)).any(axis=1), given, "give truth values.")
        return space, given.astype(bool), np.full(len(given), None)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise PodiumError(f"{what} must hold the actions of every row; it is {show_value(given)}", hint=LIST_HINT)
    rows = list(given.tolist() if isinstance(given, np.ndarray) else given)
    if rows and all(isinstance(row, list | tuple | np.ndarray) and all_truths(row) for row in rows):
        return read_cells(truth_table(rows, what), space, size, what)
    return list_cells(rows, space, what, separator or separator_of(rows, space))


def all_truths(row: Any) -> bool:
    return len(row) > 0 and all(isinstance(x, bool | np.bool_) for x in row)


def truths(column: Any, what: str) -> Mask:
    """A column of 0 and 1, or of words for them."""
    cells = np.atleast_1d(np.asarray(column))
    if cells.dtype.kind == "b" and cells.ndim == 1:
        return cells.astype(bool)
    words = [str(plain(x)).strip().lower() for x in cells]
    bad = [word not in TRUE and word not in FALSE for word in words]
    refuse_rows(
        what, "must be 0 or 1", bad, cells, "1 means that the action was possible in the row, 0 that it was not."
    )
    return np.array([word in TRUE for word in words], dtype=bool)


def truth_table(rows: Sequence[Any], what: str) -> Mask:
    """(N, A) rows of truth values, which must be equally long."""
    sizes = np.array([len(row) for row in rows])
    hint = "columns follow action_space; or name the eligible actions of each row."
    refuse_rows(what, f"must have {sizes[0]} truth values in every row", sizes != sizes[0], rows, hint)
    return np.array([list(row) for row in rows], dtype=bool)


def list_cells(
    rows: Sequence[Any], space: Sequence[Any], what: str, separator: str
) -> tuple[tuple[Any, ...], Mask, Any]:
    """Cells that list labels; each distinct cell is read once."""
    known: dict[Any, tuple[Any, ...] | None] = {}
    matched: dict[Any, Any] = {}
    keys = [row if isinstance(row, str) else cell_key(row) for row in rows]
    logged = {str(x) for x in space}
    for key in dict.fromkeys(keys):
        found = split_cell(key, separator, logged) if isinstance(key, str) else key
        for x in found or ():
            if (type(x), x) not in matched:
                matched[type(x), x] = match(x, space)
        known[key] = None if found is None else tuple(dict.fromkeys(matched[type(x), x] for x in found))
    bad = [known[key] is None for key in keys]
    shown = np.empty(len(rows), dtype=object)
    shown[:] = [list(row) if isinstance(row, tuple | np.ndarray) else row for row in rows]
    refuse_rows(what, "must be a list of actions", bad, shown, LIST_HINT)
    labels = tuple(dict.fromkeys(x for found in known.values() for x in found or ()))
    place = {label: j for j, label in enumerate(labels)}
    patterns = np.zeros((len(known), len(labels)), dtype=bool)
    for i, found in enumerate(known.values()):
        patterns[i, [place[x] for x in found or ()]] = True
    order = {key: i for i, key in enumerate(known)}
    return labels, patterns[[order[key] for key in keys]], shown


def cell_key(cell: Any) -> tuple[Any, ...] | None:
    """The labels of a cell that is no text; None where it holds more than labels."""
    if is_gap(cell):
        return ()
    if isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        labels = tuple(plain(x) for x in cell if not is_gap(x))
        return labels if all(isinstance(x, Hashable) for x in labels) else None
    return (plain(cell),) if isinstance(cell, Hashable) else None


def separator_of(rows: Sequence[Any], space: Sequence[Any]) -> str:
    """What separates labels in texts that are no JSON: the first of | ; , that a cell holds which is no action."""
    return first_sign(signs_in(rows, space))


def signs_in(rows: Iterable[Any], space: Sequence[Any]) -> Codes:
    """(3,) in how many distinct texts, which are no JSON and no action, each separator stands."""
    logged = {str(x) for x in space}
    texts = [x for x in dict.fromkeys(r for r in rows if isinstance(r, str)) if x[:1] != "[" and x not in logged]
    return np.array([sum(s in x for x in texts) for s in SEPARATORS], dtype=np.int64)


def first_sign(counts: Codes) -> str:
    return SEPARATORS[int(np.argmax(counts > 0))]


def split_cell(text: str, separator: str, logged: Container[str] = ()) -> tuple[Any, ...] | None:
    """The labels in a text, which is one label where it names an action; None where it cannot be read."""
    text = text.strip()
    if not text.startswith("["):
        parts = [text] if text in logged else text.split(separator)
        return tuple(x.strip() for x in parts if x.strip())
    for read in (json.loads, ast.literal_eval):  # a frame writes lists as Python does
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list) and not any(isinstance(x, list | dict | set | tuple) or is_gap(x) for x in found):
            return tuple(found)
    return None


def match(label: Any, space: Sequence[Any]) -> Any:
    """The action that a label names: the number 1 and the text "1" are one where only one of them is an action."""
    label = plain(label)
    if isinstance(label, str):
        return match_label(label, space)
    return match_label(str(label), space) if label not in space and str(label) in space else label


# --- what follows ------------------------------------------------------------------------------------------------


def set_codes(eligible: Mask) -> Codes:
    """(N,) which distinct set of eligible actions each row has."""
    packed = np.packbits(eligible, axis=1)
    return combine_codes([(codes, len(distinct)) for codes, distinct in map(factorize, packed.T)])


def uniform_over(eligible: Mask) -> Floats:
    """(N, A) the same probability for every eligible action."""
    shares: Floats = eligible / eligible.sum(axis=1, keepdims=True)
    return shares


def widened(eligible: Mask | None, more: int) -> Mask | None:
    """Over further actions, which were never possible."""
    if eligible is None or not more:
        return eligible
    return np.hstack([eligible, np.zeros((len(eligible), more), dtype=bool)])


def reordered(log: Any, space: Sequence[Any]) -> Mask | None:
    """Over another action space, which must hold every action that is eligible somewhere."""
    if log.eligible is None:
        return None
    place = {label: j for j, label in enumerate(space)}
    lost = [x for x, used in zip(log.action_space, log.eligible.any(axis=0), strict=True) if used and x not in place]
    if lost:
        raise PodiumError(
            f"the action space lacks {show_value(lost[0])}, which is eligible in some rows",
            hint="name every action that may be taken.",
        )
    matrix = np.zeros((len(log.eligible), len(space)), dtype=bool)
    for j, label in enumerate(log.action_space):
        if label in place:
            matrix[:, place[label]] = log.eligible[:, j]
    return matrix


def restricted(what: str, matrix: Floats, log: Any, scores: bool = False) -> tuple[Floats, Floats | None]:
    """Probabilities (N, A) on eligible actions alone, and the mass (N,) that was moved to them, if any was.

    What rounding leaves elsewhere is dropped. Beyond that, a policy that plays what was not possible is refused or, by
    the log's rule, renormalized; where all of its probability was elsewhere, it is uniform over the eligible actions.
    Scores that stand for probabilities are only cut off.
    """
    mass = np.where(log.eligible, 0.0, matrix).sum(axis=1)
    if not mass.any():
        return matrix, None
    inside = np.where(log.eligible, matrix, 0.0)
    moved = mass > MASS
    if moved.any() and log.ineligible != "renormalize":
        raise_ineligible(f"{what}: the probability of actions that are not eligible", "must be 0", moved, mass)
    if scores:
        return inside, mass if moved.any() else None
    total = inside.sum(axis=1, keepdims=True)
    rest = np.divide(inside, total, out=uniform_over(log.eligible), where=total > MASS)
    return rest, np.where(moved, mass, 0.0) if moved.any() else None


def restricted_choices(what: str, chosen: Codes, log: Any) -> tuple[Floats | None, Floats | None]:
    """The same for chosen actions (N,): None where every one is eligible."""
    bad = ~log.eligible[np.arange(len(chosen)), chosen]
    if not bad.any():
        return None, None
    if log.ineligible != "renormalize":
        labels = np.empty(len(log.action_space), dtype=object)
        labels[:] = log.action_space
        raise_ineligible(what, "must choose eligible actions", bad, labels[chosen])
    matrix = np.zeros((len(chosen), len(log.action_space)))
    matrix[np.arange(len(chosen)), chosen] = 1.0
    matrix[bad] = uniform_over(log.eligible[bad])
    return matrix, bad.astype(np.float64)


def raise_ineligible(what: str, rule: str, bad: Mask, values: Any) -> None:
    hint = (
        'use --ineligible renormalize (ineligible="renormalize") to share its probability among the eligible actions.'
    )
    refuse_rows(what, rule, bad, values, hint)

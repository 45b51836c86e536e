"""From an exported file to a log: columns are made ready, and all problems of the file are told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from podium.data.arguments import checked, choice, flag, label, optional, texts
from podium.data.arguments import path as at_path
from podium.data.arguments import text as named
from podium.data.arrays import odd_values, refuse_odd
from podium.data.asked import ROLES, Asked, spelled_roles, with_numbered_roles
from podium.data.coded import space
from podium.data.columns import Codes, Column, is_missing, labels_column, numbers_column
from podium.data.conversions import MISSING, OUTCOME_HINT, REWARD_HINT, Conversion, Problem, settled
from podium.data.eligible import RULES
from podium.data.errors import BadRows, PodiumError, count, listed
from podium.data.facts import Fact
from podium.data.guesses import Facts, group, guess, look, offers_in
from podium.data.log import TEXT_HINT, Log
from podium.data.nested import members_of, refuse_ragged
from podium.data.owned import own_columns
from podium.data.probabilities import checked_propensities
from podium.data.prose import without_prose
from podium.data.read import match_actions, read_columns
from podium.data.refusals import Refused, merged
from podium.data.roles import ROLE_RULES, Roles, assign_roles, available
from podium.data.tables import Table, open_table
from podium.data.times import times_column
from podium.data.unlikely_states import LISTED, is_recorded_after, odd_state

__all__ = ["Refused", "prepared_log", "read_columns", "read_log"]
ALL_ROWS = "all rows"  # the state of a log that has no column for it
# The rules of arguments that say how a file is read.
READING = {
    **ROLE_RULES, "actions": space, "text": texts, "ineligible": choice(*RULES), "success": optional(label),
    "drop_missing": flag, "date_format": optional(named), "sheet": optional(named),
    "decimal": optional(choice(",", ".")),
}  # fmt: skip


@dataclass(frozen=True)
class Ready:
    """Columns that a log can be made of."""

    columns: dict[str, Column]  # with gaps
    states: dict[str, Column]  # those whose gaps were filled, and the columns that mark them
    roles: Roles
    notes: list[Fact]
    rows: Codes | None = None  # those that were kept, where some were left out
    facts: list[Facts] = field(default_factory=list)


@checked(path=at_path, **READING)
def read_log(
    path: str | Path,
    *,
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    time: str | None = None,
    unit: str | None = None,
    actions: Sequence[Any] = (),
    text: Sequence[str] = (),
    eligible: str | None = None,
    ineligible: str = "refuse",
    success: Any = None,
    drop_missing: bool = False,
    date_format: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    also: Sequence[str] = (),
) -> Log:
    """Read a log from a file: CSV, Parquet, JSON lines, Excel or ODS.

    Values are read as people write them ("1,234.50", "3,5", "12%", "Yes"/"No", "31/12/2024", "n/a"), and `Log.notes`
    says what was done. A file with problems is refused once, with all of them.

    Parameters
    ----------
    path : a file that ends in .csv, .tsv, .jsonl, .ndjson or .json (also with .gz or .zst), .parquet, .pq, .xlsx or
        .ods; or a log of Vowpal Wabbit that ends in .dsjson or .vw (see `podium.adapters.vowpal`)
    state, action, reward, propensity, time, unit : the columns that play these roles; every column that plays
        none, and is no policy (pi_<name>), is state, unless it holds ids, dates or long texts
    actions : the action space, where it holds more than the logged actions; texts are matched to numbers
    text : columns to read as texts although they look like numbers (codes, postcodes)
    eligible : the column that lists the actions that were possible in a row; columns eligible:<action> need no name
    ineligible : "refuse" policies that play other actions, or "renormalize" them over the eligible ones
    success : the value of the reward column that counts as 1; every other one counts as 0
    drop_missing : leave out rows without an action, a reward or a propensity (or a time or unit, where these are used)
    date_format : how dates in the time column are written, such as "%d/%m/%Y"
    sheet : the sheet of an Excel or ODS file; the first one that holds a table by default
    decimal : "," or ".", the decimal sign of numbers such as 1.234 in a file with semicolons
    also : outcomes beside the reward, read as the reward is and never state; `podium.compare(..., also=)` compares them
    """
    asked = Asked(
        state, action, reward, propensity, time, unit, text, eligible, ineligible, success, drop_missing, date_format,
        sheet, decimal, also,
    )  # fmt: skip
    return prepared_log(open_table(path, text, sheet), asked, actions)


def prepared_log(table: Table, asked: Asked, actions: Sequence[Any] = ()) -> Log:
    """The log in a table, or one refusal with all of its problems."""
    table = with_numbered_roles(table, asked)
    asked, spelled = spelled_roles(asked, table.columns)
    table = replace(table, notes=(*table.notes, *spelled))
    ready = prepare(table, asked)
    roles = ready.roles
    refuse_odd(odd_values({name: ready.columns[name] for name in roles.columns if name in ready.columns}), roles)
    of = {**ready.columns, **ready.states}
    try:
        log = Log.in_roles(of, roles, match_actions(actions, of[roles.names["action"]]), ineligible=asked.ineligible)
        for header in roles.also:
            numbers_column(of[header], f"column {header!r}", OUTCOME_HINT)
    except PodiumError as error:
        raise refusal(table, asked, ready, error) from error
    if ready.states:
        log._set(columns=own_columns(ready.columns))
    log._set(notes=tuple(ready.notes))
    return log


def prepare(table: Table, asked: Asked) -> Ready:
    """The columns of a table made ready for a log; all problems are told in one error."""
    named = {role: getattr(asked, role) for role in ROLES if getattr(asked, role) is not None}
    missing = [r for r, name in named.items() if name not in table.columns and not members_of(name, table.columns)]
    if missing:
        return refuse_without_roles(table, asked, missing)
    work = conversion(table, asked)
    work.run()
    if not asked.drop_missing:
        work.refuse_gaps()
    if work.problems:
        raise Refused.of(table, [*work.problems, *more_problems(work)], asked.arguments(), work.notes)
    return finish(asked, work, table.unsure)


def conversion(table: Table, asked: Asked) -> Conversion:
    roles = assign_roles(
        table.columns, asked.state, asked.action, asked.reward, asked.propensity, asked.time, asked.unit,
        asked.eligible, asked.also,
    )  # fmt: skip
    return Conversion(
        dict(table.columns), roles, asked.text, table.semicolons, table.line, asked.success, asked.date_format,
        asked.decimal, list(table.notes),
    )  # fmt: skip


def finish(asked: Asked, work: Conversion, unsure: Mapping[str, str]) -> Ready:
    """Rows without what a log needs left out, columns that are no state set aside, and gaps in states filled."""
    rows = drop_rows(work, asked.drop_missing)
    roles = without_prose(without_odd_states(work.columns, work.roles, asked.text, work.notes, unsure), work.columns)
    try:
        refuse_ragged({header: work.columns[header] for header in roles.states})
    except BadRows as error:
        raise placed(error, work.line) from error
    states: dict[str, Column] = {}
    chosen: list[str] = []
    for header in roles.states:
        filled = fill_gaps(work, header)
        if filled is None:
            work.notes.append(Fact("empty column", column=header))
            continue
        states |= filled
        chosen += filled or [header]
    if roles.guessed and not chosen:
        work.notes.append(Fact("no state"))
        states[ALL_ROWS] = np.zeros(len(work.columns[roles.names["reward"]]), dtype=np.int64)
        chosen = [ALL_ROWS]
    return Ready(work.columns, states, with_states(roles, chosen), work.notes, rows)


def with_states(roles: Roles, chosen: Sequence[str]) -> Roles:
    names = {role: header for role, header in roles.names.items() if role != "state"}
    if len(chosen) == 1:
        names["state"] = chosen[0]
    return replace(roles, names=names, states=tuple(chosen))


def drop_rows(work: Conversion, drop: bool) -> Codes | None:
    """Leave out rows that hold nothing, and with `drop` those that lack what a log needs; return the rows kept."""
    needed = work.needed_gaps()
    if not needed:
        return None
    everywhere = work.blank_rows()
    why, bad = [], everywhere.copy()
    for header, gaps in needed.items():
        own = gaps & ~everywhere
        bad |= own
        if own.any():
            why.append(f"column {header!r} is missing, {work.gap_words(header, own)}")
    if why and not drop:
        return None
    if bad.all():
        raise PodiumError(
            f"no row has all of {', '.join(map(repr, work.roles.some('action', 'reward', 'propensity')))}",
            hint="check which columns are named.",
        )
    if everywhere.any():
        work.notes.append(Fact("empty rows", rows=count(int(everywhere.sum()), "row")))
    if why:
        dropped = int((bad & ~everywhere).sum())
        work.notes.append(
            Fact("dropped rows", rows=count(dropped, "row"), of=len(bad), why="; ".join(why), dropped=dropped)
        )
    rows = np.flatnonzero(~bad)
    work.keep(rows)
    return rows


def without_odd_states(
    columns: Mapping[str, Column],
    roles: Roles,
    text: Sequence[str],
    notes: list[Fact],
    unsure: Mapping[str, str] = MappingProxyType({}),
) -> Roles:
    """Roles in which columns of ids and dates, and unsure ones, are not state, unless named or nothing else is."""
    if not roles.guessed:
        return roles
    late = [header for header in roles.states if is_recorded_after(header)]
    if late:
        notes.append(Fact("recorded after", columns=listed(late)))
        roles = with_states(roles, [header for header in roles.states if header not in late])
    odd = {h: unsure.get(h) or odd_state(h, columns[h]) for h in roles.states if h not in text}
    left = {header: why for header, why in odd.items() if why is not None}
    if not left:
        return roles
    said = ", ".join(f"{header} ({why})" for header, why in left.items())
    if len(left) == len(roles.states) and not late:
        notes.append(Fact("odd states alone", columns=said))
        return roles
    notes.append(Fact("not taken as state", columns=said))
    return with_states(roles, [header for header in roles.states if header not in left])


def fill_gaps(work: Conversion, header: str) -> dict[str, Column] | None:
    """A state column without gaps, and the column that marks them; {} where it has none, None where it is empty."""
    column = work.columns[header]
    gaps = is_missing(column)
    if not gaps.any():
        return {}
    present = column[~gaps]
    if not len(present):
        return None
    words = work.gap_words(header, gaps)
    if column.dtype != object or all(isinstance(x, int | float) and not isinstance(x, bool) for x in present):
        ordered = np.sort(present)
        fill = ordered[(len(ordered) - 1) // 2]
        if column.dtype.kind == "M":
            work.notes.append(Fact("missing text", column=header, gaps=words, level=MISSING))
            cells = column.astype(str).astype(object)
            cells[gaps] = MISSING
            return {header: cells}
        filled = column.copy()
        filled[gaps] = fill
        mark = f"{header} missing"
        while mark in work.columns:
            mark += "?"
        work.notes.append(Fact("missing number", column=header, gaps=words, fill=float(fill)))
        return {header: labels_column(filled, f"column {header!r}"), mark: gaps.astype(np.int64)}
    if all(isinstance(x, str) for x in present):
        filled = column.copy()
        filled[gaps] = MISSING
        work.notes.append(Fact("missing text", column=header, gaps=words, level=MISSING))
        return {header: filled}
    return {}


# --- refusals --------------------------------------------------------------------------------------------------------


def refusal(table: Table, asked: Asked, ready: Ready, error: PodiumError) -> PodiumError:
    """What a log refuses, told with the lines of the file and with whatever else is wrong."""
    work = conversion(table, asked)
    work.columns, work.roles = {**ready.columns, **ready.states}, ready.roles
    if ready.rows is not None:
        kept, line = ready.rows, table.line
        work.line = lambda row: line(int(kept[row - 1]) + 1)
    problems = more_problems(work)
    if not problems:
        problems = [Problem(placed(error, work.line))]
    if len(problems) == 1 and not problems[0].settings:
        return problems[0].error
    return Refused.of(table, problems, asked.arguments(), ready.notes)


def placed(error: PodiumError, line: Callable[[int], int]) -> PodiumError:
    return error.at_line(error.row, line(error.row)) if isinstance(error, BadRows) else error


def more_problems(work: Conversion) -> list[Problem]:
    """What a log would refuse, column by column; gaps and words apart, which are told before."""
    names = work.roles.names
    told = {p.error.what for p in work.problems if isinstance(p.error, BadRows)}
    told |= {
        f"column {h!r}"
        for h in (names["reward"], names.get("time"), *work.roles.also)
        for p in work.problems
        if f"column {h!r}" in p.text
    }
    found: list[Problem] = []

    def look_at(header: str, check: Callable[[Column, str], Any], settings: Mapping[str, Any] | None = None) -> None:
        what, column = f"column {header!r}", work.columns[header]
        gaps = work.gaps(header)
        rows = np.flatnonzero(~gaps)
        try:
            check(column if not gaps.any() else settled(column[rows]), what)
        except BadRows as error:
            row = int(rows[error.row - 1]) + 1
            found.append(Problem(error.at_line(row, work.line(row)), settings or {}))
        except PodiumError as error:
            found.append(Problem(error))

    for header in dict.fromkeys((names["action"], *work.roles.states)):
        if f"column {header!r}" not in told:
            hint = TEXT_HINT.format(name=header)
            look_at(header, lambda c, what: labels_column(c, what, mixed_hint=hint), {"text": [header]})  # noqa: B023
    for header, hint in {names["reward"]: REWARD_HINT, **dict.fromkeys(work.roles.also, OUTCOME_HINT)}.items():
        if f"column {header!r}" not in told:
            look_at(header, lambda c, what: numbers_column(c, what, hint))  # noqa: B023
    if "propensity" in names and f"column {names['propensity']!r}" not in told:
        look_at(names["propensity"], checked_propensities)
    if "time" in names and f"column {names['time']!r}" not in told:
        look_at(names["time"], times_column)
    return [replace(p, settings=p.settings if "mixes" in p.text else {}) for p in found]


def refuse_without_roles(table: Table, asked: Asked, missing: Sequence[str]) -> Ready:
    """Refuse a file that lacks columns, with the columns that seem to be meant and whatever else is wrong."""
    known = guessed_roles(table, asked)
    single = [h for h, column in table.columns.items() if odd_state(h, column) != LISTED]
    problems: list[Problem] = []
    for role in missing:
        name = getattr(asked, role)
        hint = available(table.columns)
        near = get_close_matches(name, single, n=1, cutoff=0.75)
        taken = [p.settings[r] for p in problems for r in p.settings]
        found = next((h for h in [*near, *known.get(role, ())] if h not in taken), None)
        why = "" if found is None else f"; {found!r} may be meant"
        said = f"the log has no column {name!r} for the {role}{why}"
        if f"{name} (1)" in table.unsure:
            said = f"two columns are called {name!r} and differ; the {role} may be '{name} (1)' or '{name} (2)'"
            found = f"{name} (1)"
        error = PodiumError(said, hint=hint)
        problems.append(Problem(error, {} if found is None else {role: found}))
    settings, notes = merged([p.settings for p in problems]), list(table.notes)
    if all(p.settings for p in problems):
        if "action" in missing and "reward" in missing:  # a raw export: no role was named
            for role in ("propensity", "time", "unit"):
                if getattr(asked, role) is None and known.get(role) and known[role][0] not in settings.values():
                    settings[role] = known[role][0]
            settings |= {} if asked.eligible is not None else offers_in(table.columns, settings["action"])
        then = replace(asked, **settings)
        work = conversion(table, then)
        work.run()
        if not then.drop_missing:
            work.refuse_gaps()
        problems += [*work.problems, *more_problems(work)]
        notes = work.notes
        problems[0] = replace(problems[0], settings={**settings, **problems[0].settings})
    raise Refused.of(table, problems, asked.arguments(), notes)


def guessed_roles(table: Table, asked: Asked) -> dict[str, list[str]]:
    """The columns that seem to play each role."""
    found: dict[str, list[str]] = {}
    if len(table.columns) < 2:
        return found
    for fact in guessed(table, asked):
        found.setdefault(fact.role, []).append(fact.header)
    return found


def guessed(table: Table, asked: Asked) -> list[Facts]:
    """Every column with the role that it seems to play."""
    return guess(group(surveyed(table, asked.text)))


def surveyed(table: Table, text: Sequence[str] = ()) -> list[Facts]:
    """The facts of every column, once its numbers are read and its gaps are known."""
    none = Roles({"action": "", "reward": ""}, (), "propensity", False, True)
    work = Conversion(dict(table.columns), none, text, table.semicolons, table.line)
    facts = []
    for header, column in table.columns.items():
        read = work.numbers(header, column) if column.dtype == object and header not in text else column
        seen = look(header, read)
        facts.append(replace(seen, odd=table.unsure[header]) if header in table.unsure else seen)
    return facts

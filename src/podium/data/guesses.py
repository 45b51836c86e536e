"""Which role each column of a log seems to play, from its name and what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from podium.data.columns import Column, is_missing
from podium.data.nested import GROUPED, lists_among
from podium.data.notation import FAILURES, GAPS, SUCCESSES, plain_word
from podium.data.prose import prose_length
from podium.data.unlikely_states import (
    FEW_ROWS,
    IDS,
    LISTED,
    MANY_IDS,
    RECORDED_AFTER,
    TIMES,
    is_recorded_after,
    odd_state,
    plain_name,
)
from podium.outputs.display import printable

SHOWN = 60  # characters of a cell
FIRST = 8  # rows of the preview
FEW = 50  # distinct values that are kept
LABELS = 1_000_000  # characters of such values, of all columns together

NAMES = {
    "action": ("action", "arm", "treatment", "decision", "choice", "chosen", "item", "recommendation", "intervention",
               "variant", "campaign", "channel", "offer", "strategy", "test group", "treatment group", "bucket",
               "model", "route", "therapy", "drug", "medication", "assignment", "allocation", "randomization", "group",
               "condition", "version", "gruppe", "variante", "behandlung", "maßnahme", "kanal", "groupe", "traitement",
               "canal", "grupo", "tratamiento"),
    "reward": ("reward", "outcome", "click", "clicked", "clicks", "conversion", "converted", "revenue", "profit",
               "success", "response", "responded", "cost", "loss", "payoff", "y", "result", "recovered", "purchase",
               "purchased", "bought", "sale", "sales", "rating", "won", "paid", "retained", "churned", "conversions",
               "satisfaction", "csat", "nps", "readmission", "erfolg", "ergebnis", "gekauft", "konversion", "résultat",
               "converti", "achat", "resultado", "compra"),
    "propensity": ("propensity", "pscore", "propensity score", "action prob", "action probability", "logging prob",
                   "probability", "prob", "p", "density"),
    "time": TIMES,
    "unit": ("unit", "user", "user id", "userid", "person", "person id", "patient", "patient id", "customer",
             "customer id", "device", "device id", "member id", "subject", "subject id", "client id", "participant"),
}  # fmt: skip
# Rewards if nothing else is.
WEAK = ("cost", "loss", "sale", "sales", "result", "rating", "revenue", "amount", "umsatz")
DOSES = ("dose", "dosage", "price", "amount", "discount", "bid", "action", "treatment")  # actions that are numbers
COSTS = ("cost", "loss")
HARMS = {"readmitted", "readmission", "churned", "churn", "reopened", "complaint", "complaints", "complained", "refund",
         "refunded", "noshow", "died", "death", "mortality", "default", "defaulted", "relapse", "relapsed",
         "unsubscribed"}  # fmt: skip
BINARY = {"outcome", "success", "converted", "clicked", "purchased", "bought", "recovered", "responded", "won", "paid",
          "retained", "answered", *HARMS}  # fmt: skip
HELD = ("ids", "dates", LISTED)  # what columns that are no state hold


@dataclass(frozen=True)
class Facts:
    """What a column holds, in a few numbers and samples."""

    header: str
    kind: str  # number, text, date, yes/no, list, other
    rows: int
    distinct: int
    missing: int
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()  # its distinct values, where there are few
    first: tuple[str, ...] = ()  # the cells of the first rows
    parts: tuple[str, ...] = ()  # columns that complete it: pi_new:a, pi_new:b; or that it has become: e[0], e[1]
    prose: bool = False  # it holds long texts
    odd: str = ""  # why it is not taken as state without being named
    role: str = "state"
    why: str = ""

    @property
    def is_probability(self) -> bool:
        return (
            self.kind == "number" and self.low is not None and self.high is not None and 0 <= self.low <= self.high <= 1
        )

    @property
    def is_dose(self) -> bool:
        """Whether it holds many different numbers, some with decimals."""
        return self.kind == "number" and self.distinct > FEW and any("." in cell for cell in self.first)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def look(header: str, column: Column) -> Facts:
    """The facts of one column."""
    first = tuple(cell_text(x) for x in column[:FIRST].tolist())
    absent = is_missing(column)
    present = column[~absent]
    kind = kind_of(present)
    try:
        found = np.unique(present) if present.dtype != object else sorted(set(present.tolist()), key=repr)
    except TypeError:  # lists and the like
        return Facts(header, "other", len(column), len(present), int(absent.sum()), first=first)
    low = high = None
    if kind == "number" and len(present):
        with suppress(OverflowError):  # a whole number beyond every float
            ends = present.astype(float)
            low, high = float(ends.min()), float(ends.max())
            low, high = (low, high) if np.isfinite([low, high]).all() else (None, None)
    few = [cell_text(x) for x in list(found)] if len(found) <= FEW else []
    labels = tuple(few) if not any(text.endswith("…") for text in few) else ()  # cut texts cannot be compared
    rows, gaps, prose, odd = len(column), int(absent.sum()), prose_length(column) is not None, odd_state(header, column)
    return Facts(header, kind, rows, len(found), gaps, low, high, labels, first, prose=prose, odd=odd or "")


def kind_of(present: Column) -> str:
    if present.dtype.kind == "b":
        return "yes/no"
    if present.dtype.kind in "iuf":
        return "number"
    if present.dtype.kind == "M":
        return "date"
    if present.dtype != object:
        return "text"
    types = {type(x) for x in present[:1000].tolist()}
    if types <= {bool}:
        return "yes/no" if types else "text"
    if types <= {int, float}:
        return "number"
    return "text" if types <= {str} else "mixed" if types <= {str, int, float, bool} else "other"


def cell_text(value: Any) -> str:
    """A cell as the page shows it, short and on one line."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else printable(str(value)[: 2 * SHOWN])
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def group(facts: Iterable[Facts]) -> list[Facts]:
    """Columns pi_<name>:<action> and propensity:<action> joined to the column that they complete; lists as one."""
    known = joined_lists(list(facts))
    headers = {f.header: f.is_probability for f in known}
    parents = {f.header: parent_of(f.header, headers) for f in known}
    grouped: dict[str, Facts] = {}
    for fact in known:
        parent = parents[fact.header]
        if parent is None:
            grouped[fact.header] = fact
        elif parent in grouped:
            grouped[parent] = replace(grouped[parent], parts=(*grouped[parent].parts, fact.header))
        else:  # the column itself comes later, or not at all
            own = next((f for f in known if f.header == parent), None)
            grouped[parent] = replace(own or replace(fact, header=parent, labels=(), first=()), parts=(fact.header,))
    return list(grouped.values())


def joined_lists(facts: list[Facts]) -> list[Facts]:
    """The columns e[0], e[1], ... of a long list as one column e."""
    lists = {name: parts for name, parts in lists_among([f.header for f in facts]).items() if len(parts) > GROUPED}
    inside = {part: name for name, parts in lists.items() for part in parts}
    found: dict[str, Facts] = {}
    for f in facts:
        name = inside.get(f.header)
        if name is None or f.kind != "number":
            found[f.header] = f
        elif name not in found:
            found[name] = replace(f, header=name, kind="list", labels=(), low=None, high=None, parts=(f.header,))
        else:
            found[name] = replace(found[name], parts=(*found[name].parts, f.header))
    return list(found.values())


def parent_of(header: str, headers: Mapping[str, bool]) -> str | None:
    """The column that pi_new:a completes: the longest header before a colon, else what stands before the first.

    `headers` tells of every column whether it holds probabilities: age:group completes nothing.
    """
    if ":" not in header or not headers[header]:
        return None
    before = [header[: m.start()] for m in re.finditer(":", header)]
    own = [h for h in before if headers.get(h)]
    if own:
        return own[-1]
    return before[0] if before[0].startswith("pi_") or before[0] == "propensity" else None


DOSE = "many different numbers: a dose, a price, an amount"


def guess(facts: Sequence[Facts]) -> list[Facts]:
    """Every column with the role that it seems to play, and why."""
    found: dict[str, tuple[str, str]] = {}
    free = {f.header: f for f in facts}

    def give(header: str, role: str, why: str) -> None:
        found[header] = (role, why)
        free.pop(header)

    for f in facts:
        if f.header.startswith("pi_"):
            whole = (
                f"its probability of every action ({len(f.parts)})"
                if f.parts
                else "its probability of the logged action"
            )
            give(f.header, "policy", f"pi_ names a policy: {whole}")
        elif f.header.startswith("eligible:"):
            give(f.header, "ignore", "not a state: it says where an action was possible, and is read by its name")
    for role, test in TESTS.items():
        strong = [name for name in NAMES[role] if role != "reward" or name not in WEAK]
        header = next((h for name in strong for h, f in free.items() if short_name(h) == name and test(f)), None)
        if header is not None:
            parts_alone = bool(free[header].parts) and not free[header].first
            give(header, role, "by its name")
            if role == "propensity" and parts_alone:  # that of the logged action may stand in a column of its own
                named = (h for name in NAMES[role] for h, f in free.items() if plain_name(h) == name and test(f))
                for header in list(named)[:1]:
                    give(header, role, "by its name, beside propensity:<action>")
    dose = next((h for name in DOSES for h, f in free.items() if plain_name(h) == name and f.is_dose), None)
    acting = next((f for f in facts if found.get(f.header, ("", ""))[0] == "action"), None)
    if acting is not None and acting.is_dose:
        found[acting.header] = ("dose", DOSE)
    elif acting is None and dose is not None and not named_by_word(free, "action"):
        give(dose, "dose", DOSE)
    guess_by_content(free, {"action" if role == "dose" else role for role, _ in found.values()}, give)
    action = next((f for f in facts if found.get(f.header, ("", ""))[0] == "action"), None)
    for f in list(free.values()):
        if f.kind == "list":
            continue
        if is_recorded_after(f.header):
            give(f.header, "ignore", f"{RECORDED_AFTER}: no state unless you name it")
        elif f.odd == "dates":
            give(f.header, "ignore", "it holds dates: no state unless you name it")
        elif f.prose:
            give(f.header, "ignore", "long texts: hardly two rows share one; their embedding can be state")
        elif f.kind == "other":
            give(f.header, "ignore", "podium reads numbers, texts and dates")
        elif (
            action is not None
            and action.labels
            and f.labels
            and f.kind == action.kind != "number"
            and (set(f.labels) <= set(action.labels))
        ):
            give(f.header, "policy", "its values are all actions: what a policy would choose")
        elif f.parts:
            give(f.header, "policy", f"its probability of every action ({len(f.parts)})")
        elif f.is_probability and f.distinct > 2 and plain_name(f.header).startswith(("policy ", "prob ")):
            give(f.header, "policy", "probabilities, by its name")
        elif plain_name(f.header) in IDS and f.distinct == f.rows > 1:
            give(f.header, "ignore", "a different value in every row: an id says nothing of the state")
        elif f.odd:
            why = f"it holds {f.odd}" if f.odd in HELD else f.odd
            give(f.header, "ignore", f"{why}: no state unless you name it")
        elif f.missing == f.rows:
            give(f.header, "ignore", "it is empty")
    return [replace(f, role=found[f.header][0], why=found[f.header][1]) if f.header in found else f for f in facts]


def named_by_word(free: Mapping[str, Facts], role: str) -> list[str]:
    """The columns whose name has a word for a role."""
    words = {name for name in NAMES[role] if " " not in name and len(name) > 2 and name not in WEAK}
    test = TESTS[role]
    return [h for h, f in free.items() if words & {*plain_name(h).split()} and test(f) and not f.odd]


def guess_by_content(free: Mapping[str, Facts], taken: set[str], give: Callable[[str, str, str], None]) -> None:
    """Roles that no exact name gives: by a word of the name, or by what columns hold."""
    order = list(free)
    for role in ("action", "reward"):
        named = named_by_word(free, role)
        if role not in taken and len(named) == 1:
            give(named[0], role, "by a word of its name")
            taken.add(role)
    if "reward" not in taken:
        outcomes = [f.header for f in free.values() if is_outcome(f)]
        if len(outcomes) == 1:
            give(outcomes[0], "reward", "its values are a success and a failure")
            taken.add("reward")
    for name in WEAK if "reward" not in taken else ():
        header = next((h for h, f in free.items() if short_name(h) == name and TESTS["reward"](f) and not f.odd), None)
        if header is not None:
            give(header, "reward", "by its name")
            taken.add("reward")
            break
    if "time" not in taken:
        dates = [f.header for f in free.values() if f.odd == "dates" and not f.missing]
        if len(dates) == 1:
            give(dates[0], "time", "the only column of dates")
    if "action" not in taken:
        labels = [
            f for f in free.values() if f.kind in ("text", "yes/no") and 2 <= f.distinct <= FEW and not is_outcome(f)
        ]
        if labels:
            chosen = min(labels, key=lambda f: f.distinct).header
            order = order[order.index(chosen) + 1 :] or order
            give(chosen, "action", "a guess: it holds a few labels; please check")
    if "reward" not in taken:
        numbers = [f for f in free.values() if f.kind == "number" and not f.missing and not f.odd]
        later = [f for f in numbers if f.header in order] or numbers
        if later:
            give(later[-1].header, "reward", "a guess: the last column of numbers; please check")


def is_outcome(f: Facts) -> bool:
    """Whether a column holds a success and a failure in words."""
    words = {plain_word(label) for label in f.labels} - GAPS
    return bool(words & SUCCESSES and words & FAILURES) and words <= SUCCESSES | FAILURES


def with_few_labels(facts: Sequence[Facts], most: int = LABELS) -> list[Facts]:
    """Columns whose labels take up no more than `most` characters together: those with the longest lose them."""
    sizes = sorted(((sum(map(len, f.labels)), i) for i, f in enumerate(facts)), reverse=True)
    total = sum(size for size, _ in sizes)
    found = list(facts)
    for size, i in sizes:
        if total <= most:
            break
        total -= size
        found[i] = replace(found[i], labels=())
    return found


def may_be_policy(column: Mapping[str, Any], actions: set[str]) -> bool:
    """Whether a column, as the page knows it, may hold what a policy would do: probabilities, or actions."""
    if column["kind"] == "list":
        return False
    if column["parts"] or (column["kind"] == "number" and column["low"] is not None):
        return bool(column["parts"]) or 0 <= column["low"] <= column["high"] <= 1
    return bool(column["labels"]) and set(column["labels"]) <= actions


def may_be_propensity(f: Facts) -> bool:
    return (f.is_probability and bool(f.low)) or (bool(f.parts) and f.kind != "list")


TESTS: Mapping[str, Any] = {
    "action": lambda f: f.distinct < f.rows or f.rows < 3,
    "reward": lambda f: f.kind in ("number", "yes/no", "mixed", "text"),
    "propensity": may_be_propensity,
    "time": lambda f: f.kind in ("number", "date") or f.odd == "dates" or (f.kind == "text" and f.distinct == f.rows),
    "unit": lambda f: 1 < f.distinct < f.rows and (f.distinct >= FEW_ROWS or f.rows < MANY_IDS),
}


def short_name(header: str) -> str:
    """The plain name of the last part of a header: that of decision:arm is "arm"."""
    return plain_name(header.rpartition(":")[2])


def is_cost(header: str | None) -> bool:
    """Whether a reward's name says that less is better."""
    return header is not None and any(word in plain_name(header).split() for word in COSTS)


def is_harmful(header: str | None) -> bool:
    """Whether a reward's name says that it is a harm: readmitted, no-show."""
    name = plain_name(header or "").rstrip("?! ")
    return bool({*name.split()} & HARMS) or "no show" in name


def says_yes_or_no(header: str) -> bool:
    """Whether a reward's name is a question that yes or no answers: converted, primary outcome."""
    return bool({*plain_name(header).rstrip("?! ").split()} & BINARY)


def offers_in(columns: Mapping[str, Column], action: str) -> dict[str, str]:
    """The settings for a column that seems to list the actions that were possible; {} where there is none."""
    taken = [str(x) for x in columns[action]]
    for header, column in columns.items():
        if odd_state(header, column) == LISTED and all(x in str(c) for x, c in zip(taken, column, strict=True)):
            return {"eligible": header, "ineligible": "renormalize"}  # an action is rarely possible everywhere
    return {}

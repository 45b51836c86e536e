"""Whether a question fits into memory, and which engine serves it: by rows x actions x policies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from podium.adapters.skops import load_skops
from podium.engines.memory import at_once_need, available, behavior_need, check_fits, log_need, sample_need
from podium.engines.sample import SAMPLE_ROWS
from podium.engines.sizes import Size, size_of
from podium.policies import named_policies
from podium.policies.drafts import Policy
from podium.policies.specs import PREFIXES, TABLES, is_member, is_model_file, is_recipe, is_spec, load_object

CELLS = 500_000_000  # rows x actions x policies from which a file is read in parts
HELD = 1_000_000_000  # bytes of a log from which a file is read in parts, or half of what there is


@dataclass(frozen=True)
class Question:
    """What is asked of a log, as far as it decides how much memory that takes.

    Parameters
    ----------
    policies : how many candidates there are
    tables : how many of them answer with probabilities of all actions
    actions : size of the action space, where it was given
    sample_rows : rows that are looked at closely
    at_once : every policy is needed on all rows at once
    whole : the rows are needed in memory, as by propensities that are estimated
    behavior : a behavior policy is asked for the probabilities of all actions
    """

    policies: int = 2
    tables: int = 0
    actions: int = 0
    sample_rows: int = SAMPLE_ROWS
    at_once: bool = False
    whole: bool = False
    behavior: bool = False


def served_by(path: Path, action: str, question: Question) -> str:
    """The engine for a file, memory or duckdb, where none was named."""
    if find_spec("duckdb") is None or question.at_once or question.whole:
        return "memory"
    size = size_of(path, action)
    if size is None:
        return "memory"
    cells = float(size.rows) * max(size.actions, question.actions, 1) * question.policies
    most, held = available(), log_need(size.kind, size.rows, size.columns, path.name).bytes
    return "duckdb" if cells > CELLS or held > min(HELD, HELD if most is None else most / 2) else "memory"


def check_file(path: Path, action: str, question: Question, engine: str) -> None:
    """Refuse a question about a file that cannot fit, before the file is read."""
    size = size_of(path, action)
    if size is not None and engine in ("memory", "duckdb"):
        check_fits(*file_needs(size, question, engine, path.name))


def file_needs(size: Size, question: Question, engine: str, name: str) -> list[Any]:
    actions = max(size.actions, question.actions, 1)
    rows = min(size.rows, question.sample_rows)
    needs = [sample_need(rows, actions, question.tables, available())]
    if engine == "memory":
        needs.append(log_need(size.kind, size.rows, size.columns, name))
        if question.behavior:
            needs.append(behavior_need(size.rows, actions))
        if question.at_once:
            needs[0] = at_once_need(size.rows, actions, question.tables)
    return needs


def check_log(log: Any, policies: Any, size: int, at_once: bool, held: bool, behavior: Any) -> None:
    """Refuse a question about an open log that cannot fit; `held`: its rows are in memory already."""
    given = named_policies(log, policies)
    tables = sum(gives_table(policy, log.columns) for policy in given.values())
    rows, asked = len(log), is_asked(behavior)
    if not tables and not asked:
        return
    needs = [sample_need(min(rows, size), log.n_actions, tables, available())]
    if at_once:
        needs[0] = at_once_need(rows, log.n_actions, tables)
    if held and asked:
        needs.append(behavior_need(rows, log.n_actions))
    check_fits(*needs)


def is_asked(behavior: Any) -> bool:
    """Whether a behavior policy is held as probabilities of all actions on all rows."""
    estimated = isinstance(behavior, str) and behavior.partition(":")[0] == "estimate"
    return estimated or gives_table(behavior)


def gives_table(policy: Any, columns: Collection[str] = ()) -> bool:
    """Whether a policy answers with probabilities of all actions, as far as that is known before it is asked."""
    if isinstance(policy, Policy):
        policy = f"column:{policy.source}" if policy.kind == "column" else policy.source
    if not isinstance(policy, str):
        return has_chances(policy) or getattr(policy, "ndim", 0) == 2
    head, _, rest = policy.partition(":")
    if is_recipe(policy):
        return False
    if not is_spec(policy) or head == "column":
        name = rest if head == "column" else policy
        return any(header.startswith(f"{name}:") for header in columns)
    if is_model_file(policy):
        return has_chances(load_skops(Path(policy)).model)
    if head == "vw" or Path(policy).suffix.lower() in TABLES:
        return True
    named = is_member(policy) and head not in (*PREFIXES, "sb3")
    return named and has_chances(load_object(head, rest, "policy"))


def has_chances(model: Any) -> bool:
    try:
        return hasattr(model, "predict_proba")
    except Exception:  # an attribute of the user's, which is told of when it is asked for
        return False

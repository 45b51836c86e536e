"""`suggest`: a rule worth trying, found on one part of a log and judged on the rows that it never saw."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.comparison.compare import COMPARE, compare_with
from podium.comparison.pair import interval_text
from podium.comparison.result import Comparison
from podium.data.action_features import describe_actions
from podium.data.arguments import whole
from podium.data.columns import Codes, Floats, factorize
from podium.data.costs import without_cost_states
from podium.data.errors import PodiumError, count, listed, shown
from podium.data.facts import Fact, fact_dict
from podium.data.log import Log
from podium.data.roles import describe_columns
from podium.data.scan import ScannedLog
from podium.data.since import rows_since
from podium.engines.rows import check_log, open_rows, with_options
from podium.estimates.costs import known_costs
from podium.estimates.options import Options
from podium.outputs.display import Block, Shown, number
from podium.policies import PolicySet
from podium.propensities.estimated import estimate_propensities
from podium.suggestions.rule import Rule, spoken
from podium.suggestions.search import (
    LEAST_LOGGED,
    MOST_ACTIONS,
    Search,
    best_constant,
    find_rule,
    left_out,
    scores_of,
    searchable,
)
from podium.version import VERSION

NAME = "suggested"
LEAST = 100  # rows, or units, that a log needs
MOST_FITTED = 20_000  # rows that are searched; all others judge
CONSTANTS = 3  # single actions that a rule must beat: the best of them in the rows that were searched


@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(Shown):
    """A rule, and what the rows that it never saw say of it.

    Attributes
    ----------
    rule : the tree; None where none was found
    supported : whether it is better than every policy that it was held against
    answer : what there is to say, in a sentence
    comparison : the comparison on the rows that judge; None where no rule was found
    fitted_rows, judged_rows : how many rows found it, and how many judge it
    """

    log: Log
    rule: Rule | None
    supported: bool
    answer: str
    comparison: Comparison | None
    fitted_rows: int
    judged_rows: int
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str | None:
        """The rule as a person would say it."""
        return None if self.rule is None else self.rule.sentence

    @property
    def sql(self) -> str | None:
        """The rule as SQL, for `--policy "suggested=sql:..."`."""
        return None if self.rule is None else self.rule.sql

    def to_dict(self) -> dict[str, Any]:
        """The content of `--json`; keys may be added, never renamed."""
        judged = {} if self.comparison is None else self.comparison.to_dict()
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "rule": None if self.rule is None else self.rule.to_dict(),
            "supported": self.supported,
            "fitted_rows": self.fitted_rows,
            "judged_rows": self.judged_rows,
            "pairs": judged.get("pairs", []),
            "answer": fact_dict(self.answer),
            "settings": judged.get("settings"),
            "warnings": judged.get("warnings", []),
            "notes": [fact_dict(note) for note in self.notes],
        }

    def blocks(self, width: int) -> list[Block]:
        log = [repr(self.log), *describe_columns(self.log)]
        if self.rule is None or self.comparison is None:
            return [[f"{self.answer}.", *self.notes], log]
        warnings = [[f"Warning: {w}"] for w in self.comparison.warnings]
        return [[f"{self.answer}."], *warnings, self.comparison.pairs_table(), [*self.notes], log]

    def text(self, width: int = 80, bold: bool = False) -> str:
        """All of it for a terminal; the policy stays on one line, so that it can be pasted."""
        found = super().text(width, bold)
        if self.rule is None:
            return found
        return f"{found}\n\nAs a policy:\n\n  --policy {in_shell(f'{NAME}=sql:{self.rule.sql}')}"


def in_shell(argument: str) -> str:
    """An argument as a shell reads it, in double quotes where these are enough.

    >>> print(in_shell("a=sql:CASE WHEN x > 1 THEN 'b' ELSE 'c' END"))
    "a=sql:CASE WHEN x > 1 THEN 'b' ELSE 'c' END"
    """
    return shlex.quote(argument) if any(sign in argument for sign in '"$`\\!') else f'"{argument}"'


def suggest(
    log: Log | ScannedLog, *, depth: int = 2, against: Mapping[str, Any] | str | None = None, **options: Any
) -> Suggestion:
    """Look for a rule worth trying, and judge it on rows that it never saw.

    Half of the rows (whole units where `unit` is given, at most 20,000 rows) find a shallow tree. The other rows judge
    that very tree by `podium.compare`, against the three single actions that did best in the first half and whatever
    `against` names. It is worth trying if it is better than all of them.

    Parameters
    ----------
    depth : 1 or 2, the most questions that a rule asks on the way to an action
    against : further policies that the rule must beat, name -> policy, or "logged"
    options : those of `compare`

    Examples
    --------
    >>> import numpy as np, podium
    >>> rng = np.random.default_rng(0)
    >>> age, action = rng.integers(20, 90, 400), rng.choice(["call", "sms"], 400)
    >>> reward = (action == "call") * np.where(age > 65, 1.0, -1.0) + rng.normal(size=400)
    >>> log = podium.Log({"age": age}, action, reward, propensities=np.full(400, 0.5))
    >>> podium.suggest(log).supported
    True
    """
    asked = Options.of(COMPARE, options)
    whole(1, 2, 2)("depth", depth)
    others = references(against)
    log = opened(log, asked)
    options_left = replace(asked, behavior=None, actions=(), unit=None, since=None)
    groups = len(log) if log.units is None else len(factorize(log.units)[1])
    if groups < LEAST:
        unit = "row" if log.units is None else "unit"
        fact = Fact("too few rows for a rule", have=count(groups, unit), least=count(LEAST, unit))
        return Suggestion(log, None, False, fact, None, 0, 0, ())
    fitted, held = halves(log, asked.seed)
    search, notes = prepared(log.take(fitted), asked)
    rule = find_rule(search, depth, asked.seed)
    notes = [searched(fitted, held, depth, asked.seed), *notes]
    if rule is None or not stays_possible(rule, log):
        answer = none_found(search, rule, depth)
        return Suggestion(log, None, False, answer, None, len(fitted), len(held), tuple(notes))
    judged = log.take(held)
    chosen = np.asarray(log.action_space, dtype=object)[rule.actions(judged.state_columns, len(judged))]
    rivals = {**constants(search, log, len(held)), **others}
    if not rivals:
        raise PodiumError(
            "there is nothing to hold the rule against: no single action was possible in every row",
            hint='name a policy with --against NAME=SPEC (in Python, against={"today": ...}).',
        )
    result = compare_with(judged, {NAME: chosen.tolist(), **rivals}, options_left)
    supported = all(result.pair(NAME, rival).verdict == "better" for rival in rivals)
    answer = verdict_on(rule, result, list(rivals), supported)
    return Suggestion(log, rule, supported, answer, result, len(fitted), len(held), tuple(notes))


def references(against: Any) -> dict[str, Any]:
    """The policies that a rule is held against besides single actions."""
    if against is None:
        return {}
    if isinstance(against, str):
        return {against: against}
    if not isinstance(against, Mapping) or not all(isinstance(name, str) for name in against):
        hint = 'write against={"today": "constant:call"}, or against="logged".'
        raise PodiumError(f"against must name policies; it is {shown(against)}", hint=hint)
    if NAME in against:
        raise PodiumError(f"the policy {NAME!r} is given twice", hint="give each policy a name of its own.")
    return dict(against)


def opened(log: Any, options: Options) -> Log:
    """The log in memory, with what the options say of it."""
    check_log(log)
    if options.since is not None:
        log = rows_since(log, options.since, options.sample_rows)
    if options.cost is not None:
        log = without_cost_states(log, options.cost)
    if not hasattr(log, "take"):
        if len(log) > options.sample_rows:
            raise PodiumError(
                f"podium suggest needs the rows in memory, and the log has {len(log):,}",
                hint="use --engine memory (in Python, podium.read_log), or suggest from some of the rows.",
            )
        log = log.collect()
    found: Log = with_options(log, options.behavior, options.actions, options.unit, options.seed)
    bad = [label for label in found.action_space if not isinstance(label, str | int | float)]
    if bad:
        raise PodiumError(f"a rule cannot name the action {shown(bad[0])}", hint="use texts or numbers as actions.")
    return found


def halves(log: Log, seed: int) -> tuple[Codes, Codes]:
    """The rows that find a rule and those that judge it; units stay whole."""
    groups = np.arange(len(log)) if log.units is None else factorize(log.units)[0]
    order = np.random.default_rng([seed, 7]).permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)[order]
    most = min(MOST_FITTED, len(log) // 2)
    first = order[: max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right")))]
    finds = np.isin(groups, first)
    return np.flatnonzero(finds), np.flatnonzero(~finds)


def prepared(log: Log, options: Options) -> tuple[Search, list[Fact]]:
    """The scores of the rows that are searched, and what must be said of them."""
    notes = []
    costs = costs_of(log, options)
    rows, skipped = searchable(log)
    if rows.propensities is None:
        rows = estimate_propensities(rows, seed=options.seed).log
        notes.append(Fact("rule without propensities"))
    if options.action_features is not None:
        rows = describe_actions(rows, options.action_features)
    dropped = [log.action_space[a] for a in left_out(log)]
    if dropped:
        fields = {"least": LEAST_LOGGED, "most": MOST_ACTIONS, "actions": listed(dropped, 5)}
        notes.append(Fact("rule actions left out", **fields))
    if skipped:
        notes.append(Fact("rule columns left out", columns=", ".join(skipped)))
    return scores_of(rows, costs, options.lower_is_better, options.seed), notes


def costs_of(log: Log, options: Options) -> Floats:
    """(n, A) what each action costs in each row: the costs of the policies that always take it."""
    if options.cost is None:
        return np.zeros((len(log), log.n_actions))
    free = log._copy(eligible=None)
    always = {f"action {a}": [label] * len(log) for a, label in enumerate(log.action_space)}
    rows = open_rows(free, always, size=len(log))
    known = known_costs(rows, options.cost, options.action_features, options.lower_is_better)
    policies: PolicySet = known.policies
    return np.asarray(policies.costs.of_rows(rows.sample, policies))


def constants(search: Search, log: Log, rows: int) -> dict[str, Any]:
    """The single actions that a rule must beat: the best of those that were possible in every row."""
    possible = np.ones(log.n_actions, dtype=bool) if log.eligible is None else log.eligible.all(axis=0)
    totals = np.where(possible, search.totals(slice(None)), -np.inf)
    best = [a for a in np.argsort(-totals, kind="stable")[:CONSTANTS] if np.isfinite(totals[a])]
    labels = [log.action_space[a] for a in best]
    return {f"always {spoken(label)}": [label] * rows for label in labels}


def stays_possible(rule: Rule, log: Log) -> bool:
    """Whether a rule chooses only what was possible, in all rows of the log."""
    if log.eligible is None or log.ineligible == "renormalize":
        return True
    chosen = rule.actions(log.state_columns, len(log))
    return bool(log.eligible[np.arange(len(log)), chosen].all())


def searched(fitted: Codes, held: Codes, depth: int, seed: int) -> Fact:
    return Fact("rule searched", fitted=len(fitted), judged=len(held), depth=depth, seed=seed)


def none_found(search: Search, rule: Rule | None, depth: int) -> Fact:
    best = best_constant(search)
    if rule is not None or best is None:
        return Fact("no rule possible", depth=depth)
    return Fact("no rule", rows=len(search.log), depth=depth, action=spoken(search.log.action_space[best]))


def verdict_on(rule: Rule, result: Comparison, rivals: list[str], supported: bool) -> Fact:
    """What the rows that a rule never saw say of it."""
    first = result.pair(NAME, rivals[0])
    return Fact(
        "rule supported" if supported else "rule not supported",
        sentence=rule.sentence,
        rows=len(result.log),
        others=" and ".join([", ".join(rivals[:-1]), rivals[-1]] if rivals[1:] else rivals),
        first=rivals[0],
        difference=number(first.difference),
        interval=f"{result.level_text} interval {interval_text(first.interval)}",
    )

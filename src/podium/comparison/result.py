"""The result of a comparison: the ranking, every pair with its verdict, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from podium.comparison.conditions import GateAnswer, answer_gate, parse_gate
from podium.comparison.groups import Group, groups_table, refuse_no_groups
from podium.comparison.pair import Pair, decided, ends, interval_text, without_facts
from podium.data.arguments import checked, flag, optional, real, text
from podium.data.arguments import path as path_of_file
from podium.data.errors import PodiumError, count, meant
from podium.data.facts import Fact, fact_dict
from podium.data.frames import apart, rows_to_frame
from podium.data.log import Log
from podium.data.owned import keep_fields
from podium.data.roles import describe_columns
from podium.data.scan import ScannedLog
from podium.engines.rows import Rows
from podium.estimates.options import Options
from podium.estimates.results import MethodResult
from podium.estimates.terms import RowTerms
from podium.outputs.display import Block, Shown, Table, number, percent
from podium.policies import PolicySet
from podium.verdicts.judge import PROCEDURES
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices
from podium.verdicts.sensitivity import Withstood, claims_withstand
from podium.version import VERSION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 6  # from here on the terminal shows only the pairs that matter most
FEW = 3  # policies up to which the terminal shows the groups of every pair
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Basis:
    """What a comparison rests on, kept for the gate, the trust panel and the plan."""

    rows: Rows
    judgement: Judgement
    main: MethodResult  # on all rows
    terms: RowTerms  # of the main method, on the sample
    units: float  # turns differences of the main method's scores into rewards
    options: Options

    @property
    def sample(self) -> Log:
        """The rows that the trust panel, the plan and the states come from: all of them where they are few."""
        return self.rows.sample

    @property
    def policies(self) -> PolicySet:
        """On the rows of the sample."""
        return self.rows.policies


@dataclass(frozen=True)
class Ranked:
    """One policy in the ranking; its true rank lies in rank_low..rank_high if all claims hold."""

    name: str
    rank: int
    rank_low: int
    rank_high: int
    score: float
    p_best: float | None  # None where nothing is known
    regret: float | None  # expected loss of choosing it rather than the best
    estimates: Mapping[str, float | None]
    cost: float | None = None  # its mean cost, where costs are known

    def __post_init__(self) -> None:
        keep_fields(self)

    def to_dict(self) -> dict[str, Any]:
        known = {} if self.cost is None else {"cost": self.cost}
        return {name: value for name, value in vars(self).items() if name != "cost"} | {
            "estimates": dict(self.estimates), **known
        }  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How a comparison was made."""

    estimator: str  # what ranks
    baseline: str
    level: float
    engine: str
    verdicts: str  # the procedure that judges
    assumes: str
    multiplicity: str
    normalize: str
    duplicates: str
    unit: str | None
    lower_is_better: bool
    bootstrap: int
    seed: int
    proxies: tuple[str, ...]  # policies that are scores which stand for probabilities
    notes: tuple[str, ...]
    kernel: str | None = None  # of continuous actions
    bandwidth: tuple[float, ...] | None = None
    look: str | None = None  # which of the planned looks this is
    look_level: float | None = None  # the level of claims at this look
    costs: Mapping[str, Any] | None = None  # what actions cost, where that is known
    action_features: tuple[str, ...] | None = None  # columns that describe the actions
    recipes: tuple[str, ...] | None = None  # policies that are learned from the log itself
    by: tuple[str, ...] | None = None  # columns that cut the rows into groups

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        """The content of JSON."""
        lists = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {name: value for name, value in lists.items() if value is not None or name == "unit"}


class Shows(Protocol):
    """What can be seen of a result beyond its tables; made later in the flow (`podium.outputs.attached`)."""

    def insights(self, result: Comparison) -> Any: ...

    def report(self, result: Comparison, path: str | Path, **options: Any) -> Path: ...

    def figure(self, result: Any, kind: str, **options: Any) -> Figure: ...


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Policies ranked best first, every pair judged, the four methods side by side."""

    shows: ClassVar[Shows]
    log: Log | ScannedLog
    settings: Settings
    policies: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    unavailable: Mapping[str, str]
    warnings: tuple[str, ...]
    basis: Basis
    groups: tuple[Group, ...] = ()  # every pair in every group of the columns that were asked for

    @property
    def ranking(self) -> list[str]:
        """Names, best first."""
        return [p.name for p in self.policies]

    @property
    def best(self) -> str:
        return self.policies[0].name

    @property
    def unit(self) -> str:
        """What differences are in: reward, or scores where proxies stand for probabilities."""
        scores = self.settings.proxies and any(p.path in ("LDE", "DiM") for p in self.pairs)
        return "as scores, which have no unit" if scores else "in units of reward"

    @cached_property
    def adjusts(self) -> bool:
        """Whether a pair is open although its interval at `level` excludes 0; then adjusted intervals are shown too."""
        return any(decided(p.interval) != decided(p.adjusted) for p in self.pairs)

    @property
    def adjustment(self) -> str:
        """What the adjusted intervals are, in a sentence."""
        causes = [count(len(self.pairs), "pair")] if len(self.pairs) > 1 else []
        causes += ["the planned looks"] if self.settings.look else []
        return (
            f"The adjusted interval decides: a claim needs one that excludes 0. It allows for {' and '.join(causes)}."
        )

    @property
    def sample(self) -> dict[str, int] | None:
        """How many rows of how many certainty comes from; None where it comes from all of them."""
        if self.basis.rows.whole:
            return None
        return {"rows": len(self.basis.sample), "of": len(self.log)}

    @property
    def estimates(self) -> dict[str, dict[str, float | None]]:
        """Policy -> method -> estimate; None where a method cannot be used (see `unavailable`)."""
        return {p.name: dict(p.estimates) for p in self.policies}

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Pair]:
        return {(p.a, p.b): p for p in self.pairs}

    @checked(a=text, b=text)
    def pair(self, a: str, b: str) -> Pair:
        """Policy a against policy b, whichever ranks higher."""
        if (a, b) in self._by_name:
            return self._by_name[a, b]
        if (b, a) in self._by_name:
            return self._by_name[b, a].reversed()
        unknown = next((name for name in (a, b) if name not in self.ranking), "")
        hint = meant(unknown, self.ranking) + "the policies are " + ", ".join(self.ranking) + "."
        raise PodiumError(f"no pair {a!r} against {b!r}", hint=hint)

    @checked(condition=text)
    def gate(self, condition: str) -> GateAnswer:
        """Whether "new > current", or "new > current - 0.02", holds; its one pair is judged unadjusted."""
        wanted = parse_gate(condition, self.ranking)
        names, judgement = self.basis.policies.names, self.basis.judgement
        i, j = names.index(wanted.better), names.index(wanted.other)
        n = [*zip(*pair_indices(len(names)), strict=True)].index((min(i, j), max(i, j)))
        side = (1 if i < j else -1) * (-1 if self.settings.lower_is_better else 1)
        above = float(judgement.p_above(side * wanted.margin)[n])
        reason = "" if judgement.usable[n] else judgement.silent[n] or Fact("nothing known")
        level = self.settings.look_level or self.settings.level
        answer = answer_gate(wanted, above if side > 0 else 1 - above, level, reason)
        if reason:
            return answer
        way = 1 if i < j else -1
        low, high = sorted(way * float(end[n]) for end in judgement.interval(level))
        return replace(answer, difference=self.pair(wanted.better, wanted.other).difference, low=low, high=high)

    @cached_property
    def hidden_causes(self) -> Mapping[tuple[str, str], Withstood]:
        """Each pair (a, b) with a claim -> how strong a cause that is not in the log must be to undo it."""
        claims = [p for p in self.pairs if p.verdict != "cannot tell" and p.std_error]  # others rest on no reward
        won = [(p.a, p.b) if p.verdict == "better" else (p.b, p.a) for p in claims]
        s = self.settings
        found = claims_withstand(self.basis.sample, self.basis.policies, won, s.level, s.lower_is_better)
        return {(p.a, p.b): w for p, w in zip(claims, found, strict=True)}

    @cached_property
    def insights(self) -> Any:
        """What figures and the report show beyond this: the trust panel, the plan, the states, on demand."""
        return type(self).shows.insights(self)

    @property
    def sights(self) -> Any:
        """The insights under their name of the first release."""
        return self.insights

    # --- outputs -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The content of `--json`; keys may be added, never renamed."""
        pairs = []
        for p in self.pairs:
            low, high = ends(p.interval)
            adjusted_low, adjusted_high = ends(p.adjusted)
            entry: dict[str, Any] = {
                "a": p.a, "b": p.b, "difference": p.difference, "std_error": p.std_error, "low": low, "high": high,
                "p_better": p.p_better, "p_adjusted": p.p_adjusted, "verdict": p.verdict, "path": p.path,
                "reasons": list(p.reasons), "reason_facts": [fact_dict(r) for r in p.reasons], "source": p.source,
                "adjusted_low": adjusted_low, "adjusted_high": adjusted_high, "adjusted_level": p.adjusted_level,
            }  # fmt: skip
            hidden = self.hidden_causes.get((p.a, p.b))
            entry |= {
                "gamma": None if hidden is None else hidden.gamma,
                "hidden_cause": None if hidden is None else fact_dict(hidden.fact),
            }
            if p.bootstrap is not None:
                entry |= {"bootstrap_low": p.bootstrap.low, "bootstrap_high": p.bootstrap.high}
            pairs.append(entry)
        return {
            "podium": VERSION,
            "log": self.log.to_dict(),
            "settings": self.settings.to_dict(),
            "policies": [p.to_dict() for p in self.policies],
            "pairs": pairs,
            **({"groups": [g.to_dict() for g in self.groups]} if self.groups else {}),
            "sample": self.sample,
            "unavailable": dict(self.unavailable),
            "warnings": list(self.warnings),
            "warning_facts": [fact_dict(w) for w in self.warnings],
        }  # fmt: skip

    @checked(table=text, backend=text)
    def to_frame(self, table: str = "ranking", backend: str = "pandas") -> Any:
        """A table as a frame: "ranking" (one row per policy, best first), "pairs" or "groups"."""
        if table not in ("ranking", "pairs", "groups"):
            table, backend = "ranking", table  # a library alone, as in the first release
        if table != "ranking":
            refuse_no_groups(self.groups if table == "groups" else self.pairs)
            return rows_to_frame([without_facts(row) for row in self.to_dict()[table]], backend)
        policies = [(row, row.pop("estimates")) for row in self.to_dict()["policies"]]
        return rows_to_frame([row | apart(row, own, "estimator") for row, own in policies], backend)

    def header(self) -> list[str]:
        """What was compared, how, and what that assumes."""
        s = self.settings
        by = s.estimator if s.estimator in PROCEDURES else f"{s.estimator} with baseline {s.baseline}"
        lines = [
            repr(self.log),
            *describe_columns(self.log),
            f"Ranked by {by}" + (", lower is better" if s.lower_is_better else ""),
            f"Verdicts: {s.verdicts} at level {s.level:g}; {s.multiplicity}",
            f"Assumes that {s.assumes}",
            *s.notes,
        ]
        if self.log.distinct < len(self.log):
            rules = {
                "by method": "LDE and DiM keep the latest row, IPS and DRE every draw",
                "latest": "every method keeps the latest row",
                "all": "every method keeps every draw",
            }
            lines.append(f"Repeated (state, action): {rules[s.duplicates]}")
        if s.unit is not None:
            lines.append(f"Rows of one {s.unit} depend on each other: standard errors are clustered")
        if s.proxies:
            lines.append("Scores that stand for probabilities (proxies): " + ", ".join(s.proxies))
        return lines

    def ranking_table(self) -> Table:
        methods = list(self.policies[0].estimates)
        main = self.settings.estimator
        methods.sort(key=lambda m: m != main)
        rows = [
            [rank_text(p), p.name, *(number(p.estimates[m]) for m in methods), percent(p.p_best)] for p in self.policies
        ]
        notes = [f"{m} is not available: {reason}." for m, reason in self.unavailable.items()]
        columns = ["rank", "policy", *methods, "P(best)"]
        title = "Ranking (scores by method)"
        if self.settings.costs is not None:
            title = f"Ranking (scores by method, {'plus' if self.settings.lower_is_better else 'less'} cost)"
            columns.append("cost")
            rows = [[*row, number(p.cost)] for row, p in zip(rows, self.policies, strict=True)]
        return Table(title, columns, rows, align="rl" + "r" * (len(columns) - 2), notes=notes)

    def pairs_table(self, every: bool = False) -> Table:
        shown = list(self.pairs)
        title = "Pairs"
        if len(self.policies) > MANY and not every:
            place = {p.name: i for i, p in enumerate(self.policies)}
            shown = [p for p in self.pairs if p.a == self.best or place[p.b] - place[p.a] == 1]
            title = f"Pairs against the best and between neighbours ({len(shown)} of {len(self.pairs)})"
        columns = ["a", "b", "a is", "by", f"{self.level_text} interval", "P(better)"]
        rows = [
            [p.a, p.b, p.verdict, number(p.difference), interval_text(p.interval), percent(p.p_better)] for p in shown
        ]
        if self.adjusts:
            columns.append("adjusted interval")
            rows = [[*row, interval_text(p.adjusted)] for row, p in zip(rows, shown, strict=True)]
        notes = [
            f"by: V(a) - V(b) {self.unit}"
            + (", so negative is better here" if self.settings.lower_is_better else "")
            + ". 'cannot tell' is an answer: log more, or accept the risk."
        ]
        notes += [self.adjustment] if self.adjusts else []
        reasons = sorted({f"{r}." for p in shown for r in p.reasons})
        return Table(title, columns, rows, align="lllrrr" + "r" * self.adjusts, notes=[*notes, *reasons[:4]])

    def groups_table(self) -> Table:
        return groups_table(self.groups, self.best if len(self.policies) > FEW else None, self.level_text)

    @property
    def level_text(self) -> str:
        return f"{100 * self.settings.level:g}%"

    def bootstrap_table(self) -> Table:
        """The intervals of the paired bootstrap, beside those that the verdicts rest on."""
        rows = [[p.a, p.b, interval_text(p.bootstrap), interval_text(p.interval)] for p in self.pairs if p.bootstrap]
        notes = ["Percentile intervals are too narrow below about 50 rows; the verdicts do not use them."]
        title = f"Paired bootstrap of {self.basis.main.estimator.name}, {self.settings.bootstrap} draws"
        columns = ["a", "b", f"{self.level_text} bootstrap", f"{self.level_text} interval"]
        return Table(title, columns, rows[:SHOWN], align="llrr", notes=notes)

    def blocks(self, width: int) -> list[Block]:
        warnings = [[f"Warning: {w}"] for w in self.warnings]
        more = [self.groups_table()] if self.groups else []
        more += [self.bootstrap_table()] if self.settings.bootstrap else []
        return [self.header(), *warnings, self.ranking_table(), self.pairs_table(), *more]

    @checked(path=path_of_file, command=text, source=text, difference=optional(real()), overwrite=flag)
    def report(
        self,
        path: str | Path,
        *,
        command: str = "",
        source: str = "",
        difference: float | None = None,
        question: str = "",
        overwrite: bool = False,
    ) -> Path:
        """Write the answer as one self-contained HTML file; `podium.report.page` explains the options.

        An existing file is replaced if podium wrote it; any other only with `overwrite`, and an input never.
        """
        options = {"command": command, "source": source, "difference": difference, "question": question}
        return type(self).shows.report(self, path, overwrite=overwrite, **options)

    @checked(kind=text)
    def plot(self, kind: str = "overview", **options: Any) -> Figure:
        """A figure (matplotlib): "overview", "ranking", "pairs", "methods", ...; see `podium.plots`."""
        return type(self).shows.figure(self, kind, **options)


def rank_text(p: Ranked) -> str:
    return f"{p.rank}" if p.rank_low == p.rank_high else f"{p.rank} ({p.rank_low}-{p.rank_high})"

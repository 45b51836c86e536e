"""The result of a comparison: the ranking, every pair with its verdict, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from podium.comparison.basis import Basis
from podium.comparison.conditions import GateAnswer
from podium.comparison.drift import Drift
from podium.comparison.gates import answer_all
from podium.comparison.groups import Group, groups_table
from podium.comparison.outcome_tables import frame_rows, lift_table, outcome_dict
from podium.comparison.pair import Pair, decided, interval_text
from podium.comparison.settings import Ranked, Settings
from podium.data.arguments import checked, flag, optional, real, whole
from podium.data.arguments import path as path_of_file
from podium.data.arguments import text as a_text
from podium.data.errors import PodiumError, count, meant, shown
from podium.data.facts import fact_dict
from podium.data.frames import rows_to_frame
from podium.data.log import Log
from podium.data.roles import describe_columns
from podium.data.scan import ScannedLog
from podium.outputs.display import WIDTH, Block, Shown, Table, as_text, number, percent
from podium.outputs.markdown import as_markdown
from podium.verdicts.judge import PROCEDURES
from podium.verdicts.sensitivity import Withstood

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 6  # from here on the terminal shows only the pairs that matter most
FEW = 3  # policies up to which the terminal shows the groups of every pair
SHOWN = 20


class Shows(Protocol):
    """What can be seen of a result beyond its tables; made later in the flow (`podium.outputs.attached`)."""

    def answer(self, result: Comparison) -> tuple[str, ...]: ...

    def blocks(self, result: Comparison, verbose: bool, gate: GateAnswer | None) -> list[Block]: ...

    def insights(self, result: Comparison) -> Any: ...

    def save(self, result: Comparison, path: str | Path, overwrite: bool) -> Path: ...

    def report(self, result: Comparison, path: str | Path, **options: Any) -> Path: ...

    def figure(self, result: Any, kind: str, **options: Any) -> Figure: ...


def gate_answer(name: str, value: Any) -> GateAnswer:
    if not isinstance(value, GateAnswer):
        raise PodiumError(
            f"{name} must be the answer of a gate; it is {shown(value)}", hint="use result.gate('a > b')."
        )
    return value


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
    outcomes: Mapping[str, Comparison] = field(default_factory=dict)  # further outcomes, each compared alike

    @property
    def ranking(self) -> list[str]:
        """Names, best first."""
        return [p.name for p in self.policies]

    @property
    def difference(self) -> float | None:
        """The smallest difference that matters to the user; None where nobody named it."""
        return self.settings.difference

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
        return self.basis.sampled

    @property
    def estimates(self) -> dict[str, dict[str, float | None]]:
        """Policy -> method -> estimate; None where a method cannot be used (see `unavailable`)."""
        return {p.name: dict(p.estimates) for p in self.policies}

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Pair]:
        return {(p.a, p.b): p for p in self.pairs}

    @checked(a=a_text, b=a_text)
    def pair(self, a: str, b: str) -> Pair:
        """Policy a against policy b, whichever ranks higher."""
        if (a, b) in self._by_name:
            return self._by_name[a, b]
        if (b, a) in self._by_name:
            return self._by_name[b, a].reversed()
        unknown = next((name for name in (a, b) if name not in self.ranking), "")
        hint = meant(unknown, self.ranking) + "the policies are " + ", ".join(self.ranking) + "."
        raise PodiumError(f"no pair {a!r} against {b!r}", hint=hint)

    @checked(condition=a_text)
    def gate(self, condition: str) -> GateAnswer:
        """Whether "new > current", "new > current - 0.02", or several such parts joined by `and`, all hold.

        A part can be about an outcome: "cost(new) < cost(current) + 5%". Its one pair is judged unadjusted.
        """
        return answer_all(self, condition)

    @cached_property
    def hidden_causes(self) -> Mapping[tuple[str, str], Withstood]:
        """Each pair (a, b) with a claim -> how strong a cause that is not in the log must be to undo it."""
        return self.basis.withstood(self.pairs, self.settings)

    @property
    def drift(self) -> Drift | None:
        """What changed over the time of the log; None where it has no times, or too few rows to tell."""
        return self.basis.drift

    @cached_property
    def insights(self) -> Any:
        """What figures and the report show beyond this: the trust panel, the plan, the states, on demand."""
        return type(self).shows.insights(self)

    @property
    def sights(self) -> Any:
        """The insights under their name of the first release."""
        return self.insights

    @cached_property
    def answer_lines(self) -> tuple[str, ...]:
        """The answer in one sentence, and the sentences that follow it."""
        return type(self).shows.answer(self)

    @property
    def answer(self) -> str:
        """The answer in one sentence: the first line of every output."""
        return self.answer_lines[0]

    # --- outputs -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The content of `--json`; keys may be added, never renamed."""
        return {
            "podium": self.basis.version,
            "answer": self.answer,
            "log": self.log.to_dict(),
            "settings": self.settings.to_dict(),
            "policies": [p.to_dict() for p in self.policies],
            "pairs": self.pair_dicts(),
            **({"groups": [g.to_dict() for g in self.groups]} if self.groups else {}),
            "sample": self.sample,
            "unavailable": dict(self.unavailable),
            "drift": None if self.drift is None else self.drift.to_dict(),
            "warnings": list(self.warnings),
            "warning_facts": [fact_dict(w) for w in self.warnings],
            **({"outcomes": {name: outcome_dict(self, name) for name in self.outcomes}} if self.outcomes else {}),
        }  # fmt: skip

    def pair_dicts(self) -> list[dict[str, Any]]:
        """Every pair as JSON holds it, with the strength of a hidden cause that would undo its claim."""
        pairs = []
        for p in self.pairs:
            hidden = self.hidden_causes.get((p.a, p.b))
            entry = p.to_dict() | {
                "gamma": None if hidden is None else hidden.gamma,
                "hidden_cause": None if hidden is None else fact_dict(hidden.fact),
            }
            if p.bootstrap is not None:
                entry |= {"bootstrap_low": p.bootstrap.low, "bootstrap_high": p.bootstrap.high}
            pairs.append(entry)
        return pairs

    @checked(table=a_text, backend=a_text)
    def to_frame(self, table: str = "ranking", backend: str = "pandas") -> Any:
        """A table as a frame: the "ranking" with one row per policy, best first, the "pairs", the "groups", or the
        "outcomes" with one row per outcome and pair. A backend may also stand alone, as in to_frame("polars")."""
        return rows_to_frame(*frame_rows(self, table, backend))

    @checked(path=path_of_file, overwrite=flag)
    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the answer as JSON that `podium.load` reads (`podium.comparison.saved`): `to_dict` and a bit more.

        An existing file is replaced if podium wrote it; any other only with `overwrite`, and an input never.
        """
        return type(self).shows.save(self, path, overwrite)

    @property
    def ranked_by(self) -> str:
        """What ranks: a procedure, or a method with its baseline; where outcomes have a worth, of what."""
        s = self.settings
        by = s.estimator if s.estimator in PROCEDURES else f"{s.estimator} with baseline {s.baseline}"
        return f"{self.log.header('reward')}, {by}" if s.worth else by

    def header(self) -> list[str]:
        """What was compared, how, and what that assumes."""
        s = self.settings
        lines = [
            repr(self.log),
            *describe_columns(self.log),
            f"Ranked by {self.ranked_by}" + (", lower is better" if s.lower_is_better else ""),
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
        return [*lines, *self.cautions()]

    def cautions(self) -> list[str]:
        """That rows depend on each other, and that some policies are scores, where that is so."""
        unit, proxies = self.settings.unit, self.settings.proxies
        lines = [f"Rows of one {unit} depend on each other: standard errors are clustered"] if unit is not None else []
        return lines + (["Scores that stand for probabilities (proxies): " + ", ".join(proxies)] if proxies else [])

    def ranking_table(self) -> Table:
        methods = list(self.policies[0].estimates)
        main = self.settings.estimator
        methods.sort(key=lambda m: m != main)
        rows = [
            [rank_text(p), p.name, *(number(p.estimates[m]) for m in methods), percent(p.p_best)] for p in self.policies
        ]
        notes = [f"{m} is not available: {reason}." for m, reason in self.unavailable.items()]
        columns = ["rank", "policy", *methods, "P(best)"]
        lower = self.settings.lower_is_better
        order = ", lower is better" if lower else ""
        title = f"Ranking (scores by method{order})"
        if self.settings.costs is not None:
            title = f"Ranking (scores by method, {'plus' if lower else 'less'} cost{order})"
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
        title = f"Paired bootstrap of {self.basis.method}, {self.settings.bootstrap} draws"
        columns = ["a", "b", f"{self.level_text} bootstrap", f"{self.level_text} interval"]
        return Table(title, columns, rows[:SHOWN], align="llrr", notes=notes)

    def lift_table(self) -> Table:
        """Every pair with its relative lift in percent."""
        return lift_table(self)

    def blocks(self, width: int) -> list[Block]:
        return type(self).shows.blocks(self, False, None)

    @checked(width=whole(1, WIDTH), bold=flag, verbose=flag, gate=optional(gate_answer))
    def text(
        self, width: int = WIDTH, bold: bool = False, verbose: bool = False, gate: GateAnswer | None = None
    ) -> str:
        """All of it for a terminal; `verbose` adds lifts and how it was computed, `gate` the answer to a condition."""
        return as_text(type(self).shows.blocks(self, verbose, gate), width, bold)

    @checked(gate=optional(gate_answer), verbose=flag)
    def to_markdown(self, gate: GateAnswer | None = None, verbose: bool = False) -> str:
        """All of it as Markdown, for a pull request; labels are escaped, so that none can break a table."""
        return as_markdown(type(self).shows.blocks(self, verbose, gate))

    @checked(path=path_of_file, command=a_text, source=a_text, difference=optional(real()), overwrite=flag)
    def report(
        self,
        path: str | Path,
        *,
        command: str = "",
        source: str = "",
        difference: float | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the answer as one self-contained HTML file; `podium.report.page` explains the options.

        An existing file is replaced if podium wrote it; any other only with `overwrite`, and an input never.
        """
        options = {"command": command, "source": source, "difference": difference, "overwrite": overwrite}
        return type(self).shows.report(self, path, **options)

    @checked(kind=a_text)
    def plot(self, kind: str = "overview", **options: Any) -> Figure:
        """A figure (matplotlib): "overview", "ranking", "pairs", "methods", ...; see `podium.plots`."""
        return type(self).shows.figure(self, kind, **options)


def rank_text(p: Ranked) -> str:
    return f"{p.rank}" if p.rank_low == p.rank_high else f"{p.rank} ({p.rank_low}-{p.rank_high})"

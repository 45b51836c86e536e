"""What a comparison is based on, kept for the gate, the trust panel and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.comparison.drift import Drift, drift_of
from podium.comparison.lifts import Valued
from podium.comparison.pair import Pair
from podium.comparison.settings import Settings
from podium.data.log import Log
from podium.engines.rows import Rows
from podium.estimates.options import Options
from podium.estimates.results import MethodResult
from podium.estimates.terms import RowTerms
from podium.policies import PolicySet
from podium.verdicts.judgement import Judgement
from podium.verdicts.sensitivity import Withstood, claims_withstand
from podium.version import VERSION


@dataclass(frozen=True, eq=False)
class Basis:
    """The rows, what was computed from them, and the options."""

    rows: Rows
    judgement: Judgement
    main: MethodResult  # on all rows
    terms: RowTerms  # of the main method, on the sample
    units: float  # turns differences of the main method's scores into rewards
    options: Options
    valued: Valued | None = None  # what DRE found on all rows

    @property
    def sample(self) -> Log:
        """The rows that the trust panel, the plan and the states come from: all of them where they are few."""
        return self.rows.sample

    @property
    def policies(self) -> PolicySet:
        """On the rows of the sample."""
        return self.rows.policies

    @cached_property
    def drift(self) -> Drift | None:
        """What changed over the time of the log; None where it has no times, or too few rows to tell."""
        return drift_of(self.sample, self.policies)

    # --- what a file keeps of it (`podium.comparison.saved`) ----------------------------------------------------

    @property
    def version(self) -> str:
        """Of the podium that compared."""
        return VERSION

    @property
    def names(self) -> list[str]:
        """The policies, in the order of the judgement's pairs."""
        return list(self.policies.names)

    @property
    def method(self) -> str:
        """The name of the main method."""
        return self.main.estimator.name

    @property
    def sampled(self) -> dict[str, int] | None:
        """How many rows of how many certainty comes from; None where it comes from all of them."""
        return None if self.rows.whole else {"rows": len(self.sample), "of": len(self.rows)}

    def withstood(self, pairs: Sequence[Pair], settings: Settings) -> Mapping[tuple[str, str], Withstood]:
        """Each pair (a, b) with a claim -> how strong a cause that is not in the log must be to undo it."""
        claims = [p for p in pairs if p.verdict != "cannot tell" and p.std_error]  # others are known by costs alone
        won = [(p.a, p.b) if p.verdict == "better" else (p.b, p.a) for p in claims]
        found = claims_withstand(self.sample, self.policies, won, settings.level, settings.lower_is_better)
        return {(p.a, p.b): w for p, w in zip(claims, found, strict=True)}

"""What every output shows of a comparison, in one order: the answer, the numbers, what was noticed, how it was done.

Terminal, notebook and Markdown show these blocks. A further table of a result is a further block.
"""

from __future__ import annotations

from podium.comparison.conditions import GateAnswer
from podium.comparison.outcome_tables import outcome_table
from podium.comparison.result import Comparison
from podium.data.facts import Fact
from podium.data.roles import describe_states
from podium.outputs.display import Block
from podium.verdicts.leaks import WARNINGS as LEAKS

FIRST = (*LEAKS, "verdict against ranking", "harm in group")  # warnings that put the answer itself in doubt
# Notes on how numbers were made, which only --verbose shows; all others say something of the data or what is assumed.
METHOD = {
    "fixed shares", "propensities at logged actions", "policies at logged actions", "errors from weights",
    "estimate not used", "procedure", "action features", "all rows judge", "DRE judges", "densities known",
    "density products", "probabilities rescaled", "tiny propensities",
}  # fmt: skip


def summary(result: Comparison, verbose: bool = False, gate: GateAnswer | None = None) -> list[Block]:
    """The blocks that show a comparison, in order."""
    first = [w for w in result.warnings if isinstance(w, Fact) and w.code in FIRST]
    later = [w for w in result.warnings if w not in first]
    blocks: list[Block] = [[result.answer]]
    blocks += [[f"Warning: {w}"] for w in first]
    blocks += [result.ranking_table(), result.pairs_table()]
    blocks += [result.lift_table()] if verbose else []
    blocks += [result.bootstrap_table()] if result.settings.bootstrap else []
    blocks += [result.groups_table()] if result.groups else []
    blocks += [outcome_table(result, name) for name in result.outcomes]
    blocks += [gate.sentence().split("\n")] if gate is not None else []
    blocks += [[f"Warning: {w}"] for w in later]
    if verbose:
        return [*blocks, *([list(more)] if (more := result.answer_lines[1:]) else []), result.header()]
    noticed = noticed_facts(result)
    return [*blocks, *([noticed] if noticed else []), method_lines(result)]


def noticed_facts(result: Comparison) -> list[str]:
    """What was done to read the log, and what was noticed of it and of the policies."""
    notes = [note for note in result.settings.notes if not (isinstance(note, Fact) and note.code in METHOD)]
    return [*getattr(result.log, "notes", ()), *notes, *result.cautions()]


def method_lines(result: Comparison) -> list[str]:
    """The log in one line; in another what ranked, what judged, and what that assumes."""
    s, states = result.settings, describe_states(result.log)
    paths = sorted({p.path for p in result.pairs})
    judged = s.verdicts if paths == [s.verdicts] else f"{s.verdicts} ({', '.join(paths)})"
    by = judged if s.estimator == s.verdicts else f"{result.ranked_by}; judged by {judged}"
    return [
        f"{result.log!r}; {states[0].lower()}{states[1:]}",
        f"Ranked {'and judged ' if s.estimator == s.verdicts else ''}by {by} at level {s.level:g}; assumes that "
        f"{s.assumes}",
    ]

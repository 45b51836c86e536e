"""What a log says of a gate of one or several parts.

The gate holds if every part holds. That is an intersection of tests: to claim all parts, each may be tested at its own
level, so nothing is adjusted for their number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.comparison.conditions import HOLDS, OPEN, OPPOSITE, Condition, GateAnswer, answer_gate, parse_gate
from podium.comparison.gate_parts import NEW, Part, Parts, parse_parts, quoted
from podium.comparison.groups import Group, groups_of, tested_in_every
from podium.comparison.lifts import clear_values
from podium.data.errors import PodiumError, listed
from podium.data.facts import Fact
from podium.data.roles import available
from podium.verdicts.judgement import Judgement
from podium.verdicts.pairs import pair_indices

VERDICTS = {HOLDS: "holds", OPEN: "cannot tell", OPPOSITE: "the opposite holds"}


def answer_all(result: Any, text: str) -> GateAnswer:
    """The answer to a gate about the policies and outcomes of a comparison."""
    read = read_gate(result, text)
    if isinstance(read, Condition):
        return answer_part(result, Part(read.better, read.other, margin=read.margin), read)
    answers = tuple(answer_part(outcome_of(result, part), part, part) for part in read)
    if len(answers) == 1:
        return answers[0]
    codes = [answer.exit_code for answer in answers]
    code = OPPOSITE if OPPOSITE in codes else OPEN if OPEN in codes else HOLDS
    reasons = dict.fromkeys(reason for answer in answers if answer.exit_code == code for reason in answer.reasons)
    least = min(answer.probability for answer in answers)
    return GateAnswer(Parts(read), least, VERDICTS[code], code, tuple(reasons), parts=answers)


def read_gate(result: Any, text: str) -> Condition | tuple[Part, ...]:
    """A gate as one condition "A > B - margin", or as parts where it has more than such a condition can have."""
    try:
        return parse_gate(text, result.ranking)
    except PodiumError:
        if not NEW.search(text):
            raise
    own = result.log.header("reward")
    parts = parse_parts(text, result.ranking, list(dict.fromkeys([*result.outcomes, own])))
    for part in parts:
        if part.outcome is None and not part.above and result.settings.lower_is_better:
            swapped = replace(part, above=True)
            named = replace(part, outcome=own)
            raise PodiumError(
                f"'<' is ambiguous in {str(part)!r}, since lower is better",
                hint=f'write "{swapped}" if {part.one} is to be better, or "{named}" if its {own} is to be lower.',
            )
    return parts


def outcome_of(result: Any, part: Part) -> Any:
    """The comparison that a part is about."""
    return result.outcomes.get(part.outcome, result)


def answer_part(result: Any, part: Part, condition: Condition | Part) -> GateAnswer:
    """What one comparison says of a part: s (V(one) - V(other)) > m for a sign s and a margin m."""
    if part.every is not None:
        return groups_hold(result, part)
    names, judgement = result.basis.names, result.basis.judgement
    i, j = names.index(part.one), names.index(part.other)
    n = [*zip(*pair_indices(len(names)), strict=True)].index((min(i, j), max(i, j)))
    way = 1 if i < j else -1
    level = result.settings.look_level or result.settings.level
    reason = "" if judgement.usable[n] else judgement.silent[n] or Fact("nothing known")
    sign, margin = direction(result, part)
    judged: Judgement = judgement
    if part.relative and not reason:
        values = clear_values(None if result.settings.proxies else result.basis.valued, level)
        value = values[j] if values else None
        if value is None:
            reason = Fact("no value for a percentage", policy=part.other)
        else:  # as for lifts: the largest error that any correlation with the value allows
            judged = judgement.with_errors(judgement.std_error + abs(margin) * value.error)
            margin = margin * value.estimate
    side = sign * way
    above = float(judged.p_above(side * margin)[n])
    answer = answer_gate(condition, above if side > 0 else 1 - above, level, reason)
    if reason:
        return answer
    low, high = sorted(way * float(end[n]) for end in judgement.interval(level))
    return replace(answer, difference=result.pair(part.one, part.other).difference, low=low, high=high)


def direction(result: Any, part: Part) -> tuple[int, float]:
    """The sign s and the margin m of a part; a bare ">" means better, `outcome(a) > outcome(b)` means larger."""
    if not part.above:
        return -1, -part.margin
    better_is_lower = part.outcome is None and result.settings.lower_is_better
    return (-1 if better_is_lower else 1), part.margin


def groups_hold(result: Any, part: Part) -> GateAnswer:
    """Whether a part holds in every group of a column: the groups of `--by COLUMN`, tested as `group_claims` does."""
    if part.relative:
        raise PodiumError("a margin in percent cannot be judged in every group", hint="give the margin as a number.")
    groups = groups_of_part(result, part)
    sign, margin = direction(result, part)
    probable = [in_group(group, sign, margin) for group in groups]
    failing, undecided = tested_in_every(groups, probable)
    if failing:
        fails = Fact("groups fail", named=listed([groups[n].value for n in failing]))
        return GateAnswer(part, probable[failing[0]], VERDICTS[OPPOSITE], OPPOSITE, (fails,))
    if undecided:
        named = listed([groups[n].value for n in undecided])
        silent = dict.fromkeys(r for n in undecided if not groups[n].usable for r in groups[n].reasons)
        reasons = (Fact("groups open", groups=len(undecided), of=len(groups), named=named), *silent)
        least = min(probable[n] for n in undecided)
        return GateAnswer(part, least, VERDICTS[OPEN], OPEN, reasons)
    return GateAnswer(part, min(probable), VERDICTS[HOLDS], HOLDS, ())


def groups_of_part(result: Any, part: Part) -> tuple[Group, ...]:
    """The groups that a part is about, its first policy against its second; refused where there are none."""
    if any(group.by == part.every for group in result.groups):
        return groups_of(result.groups, part.one, part.other, part.every)
    if part.every not in result.log.columns:
        hint = available(result.log.columns, str(part.every))
        raise PodiumError(f"the log has no column {part.every!r} for the groups of the gate", hint=hint)
    raise PodiumError(
        f"the gate asks for every {part.every}, and the comparison has no groups of that column",
        hint=f"compare with by={part.every!r} (--by {quoted(str(part.every))}).",
    )


def in_group(group: Group, sign: int, margin: float) -> float:
    """The probability that s (V(a) - V(b)) > m in a group."""
    above = group.p_above(sign * margin)
    return above if sign > 0 else 1 - above

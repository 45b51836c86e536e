"""Answers that last: a comparison as a file, and the comparison that such a file gives back.

The file is JSON of the form that `comparison-1.schema.json` describes: all keys of `Comparison.to_dict`, what outputs
and gates need beside them, and a digest. It holds no rows, so a loaded comparison can be printed, tabulated, gated and
drawn in part; the trust panel, the plan, the states and the report need the log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np

from podium.comparison.basis import Basis
from podium.comparison.drift import Block, Change, Drift
from podium.comparison.groups import Group
from podium.comparison.lifts import KnownValues, Lift
from podium.comparison.pair import Interval, Pair
from podium.comparison.result import Comparison
from podium.comparison.settings import Ranked, Settings
from podium.data.arguments import checked
from podium.data.arguments import path as path_of_file
from podium.data.columns import Floats
from podium.data.errors import PodiumError
from podium.data.facts import Fact, fact_dict
from podium.data.files import check_output, write_output
from podium.data.log import Log
from podium.data.schemas import first_flaw
from podium.verdicts.judgement import Judgement
from podium.verdicts.mixture import Mixture
from podium.verdicts.sensitivity import Withstood

KIND, VERSION = "podium/comparison", 1
MOST_NUMBERS = 2_000_000  # of the judgement, beyond which it is left out and gates need the log
ARRAYS = ("difference", "std_error", "freedom", "values", "reference", "learned", "known")
VALUED = ("values", "value_error", "freedom")  # of the values that margins in percent refer to
PLAIN = ("start", "end", "rows", "reward", "reward_error")  # of a block of time, beside its pairs
PARTS = ("weights", "means", "scales", "freedom")  # of a mixture
AGAIN = "compare the log again: podium.compare(log, policies)."


def schema() -> dict[str, Any]:
    """The JSON Schema of a saved comparison."""
    found: dict[str, Any] = json.loads(
        files("podium.comparison").joinpath(f"comparison-{VERSION}.schema.json").read_text(encoding="utf-8")
    )
    return found


# --- writing -----------------------------------------------------------------------------------------------------


def save(result: Comparison, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a comparison, whole or not at all."""
    check_output(path, overwrite=overwrite)
    content = {"schema": f"{KIND}/{VERSION}", **result.to_dict(), "saved": saved_part(result)}
    plain = json.loads(json.dumps(content, allow_nan=False, default=plain_json))
    text = json.dumps({**plain, "sha256": digest(plain)}, indent=1, allow_nan=False, ensure_ascii=False)
    return write_output(path, text + "\n", overwrite=overwrite)


def saved_part(result: Comparison) -> dict[str, Any]:
    """What a file holds beside the content of `to_dict`."""
    hidden = [result.hidden_causes.get((p.a, p.b)) for p in result.pairs]
    valued = result.basis.valued
    return {
        "log": repr(result.log),
        "answer_lines": list(result.answer_lines),
        "policies": result.basis.names,
        "difference": result.difference,
        "method": result.basis.method,
        "reference": result.insights.reference,
        "notes": [fact_dict(note) for note in result.settings.notes],
        "unavailable": {name: fact_dict(why) for name, why in result.unavailable.items()},
        "hidden_intervals": [None if h is None or h.interval is None else list(h.interval) for h in hidden],
        "judgement": judgement_dict(result.basis.judgement),
        "reward": result.log.header("reward"),
        "valued": None if valued is None else {name: finite(getattr(valued, name).tolist()) for name in VALUED},
        "groups": [
            {
                "judgement": None if g.belief is None else judgement_dict(g.belief),
                "turned": g.turned,
                "claim_level": g.claim_level,
            }
            for g in result.groups
        ],
        "outcomes": {name: own.to_dict() | {"saved": saved_part(own)} for name, own in result.outcomes.items()},
    }


def judgement_dict(judgement: Judgement) -> dict[str, Any] | None:
    """The distribution of every difference; None where it holds too many numbers for a file."""
    arrays = {name: getattr(judgement, name) for name in ARRAYS}
    mixture = {} if judgement.mixture is None else {name: getattr(judgement.mixture, name) for name in PARTS}
    if sum(a.size for a in (*arrays.values(), *mixture.values()) if a is not None) > MOST_NUMBERS:
        return None
    return {
        "procedure": judgement.procedure,
        "path": list(judgement.path),
        "silent": [fact_dict(why) for why in judgement.silent],
        **{name: None if a is None else finite(a.tolist()) for name, a in arrays.items()},
        "mixture": {name: finite(a.tolist()) for name, a in mixture.items()} or None,
    }


def finite(numbers: Any) -> Any:
    """Nested numbers, with words in place of those that JSON does not have.

    >>> finite([1.0, [float("nan"), float("-inf")]])
    [1.0, ['nan', '-inf']]
    """
    if isinstance(numbers, list):
        return [finite(x) for x in numbers]
    return numbers if np.isfinite(numbers) else str(numbers)


def plain_json(value: Any) -> Any:
    """What JSON holds of a figure of a fact that is not a number or text of Python's."""
    return value.item() if hasattr(value, "item") else str(value)


def digest(content: Mapping[str, Any]) -> str:
    """Of the content, however it is laid out in the file."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# --- reading -----------------------------------------------------------------------------------------------------


@checked(path=path_of_file)
def load(path: str | Path) -> Comparison:
    """The comparison that `Comparison.save` or `podium compare --save` wrote.

    It has no rows of the log: what needs them, such as the report, the plan and the states, is refused by name.
    """
    return comparison_of(checked_content(str(path), read(path)))


def comparison_of(data: Mapping[str, Any]) -> Comparison:
    """The comparison whose content this is, with those of its outcomes."""
    part = data["saved"]
    kept = SavedBasis(data, None if part["judgement"] is None else judgement_of(part["judgement"]))
    settings = data["settings"] | {"notes": [fact_of(f) for f in part["notes"]]}
    return Comparison(
        log=cast(Log, SavedLog(data)),
        settings=Settings(**known_fields(Settings, {name: tupled(value) for name, value in settings.items()})),
        policies=tuple(Ranked(**known_fields(Ranked, row)) for row in data["policies"]),
        pairs=tuple(map(pair_of, data["pairs"])),
        unavailable={name: fact_of(f) for name, f in part["unavailable"].items()},
        warnings=tuple(map(fact_of, data["warning_facts"])),
        basis=kept,
        groups=tuple(
            group_of(entry, own, settings["lower_is_better"])
            for entry, own in zip(data.get("groups", ()), part["groups"], strict=True)
        ),
        outcomes={name: comparison_of(own) for name, own in part["outcomes"].items()},
    )


def read(path: str | Path) -> Any:
    """The JSON of a file."""
    name = repr(str(path))
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise PodiumError(f"cannot read {name}: {error.strerror}", hint="check the path.") from error
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise PodiumError(f"{name} is not whole JSON{where}", hint="save the comparison again.") from error


def checked_content(path: str, data: Any) -> dict[str, Any]:
    """The content of a file, if this podium can read it and nobody changed it."""
    schema_id = data.get("schema") if isinstance(data, dict) else None
    kind, _, version = str(schema_id).rpartition("/")
    if not isinstance(schema_id, str) or kind != KIND or not version.isdigit():
        what = f"its schema is {schema_id!r}" if isinstance(schema_id, str) else "it names no schema"
        hint = "write one with result.save(FILE), or podium compare LOG --save FILE."
        raise PodiumError(f"{path!r} is not a saved comparison: {what}", hint=hint)
    if int(version) != VERSION:
        raise PodiumError(
            f"{path!r} was saved in version {int(version)} of the format, and this podium reads version {VERSION}",
            hint="install a newer podium: pip install --upgrade podium.",
        )
    if flaw := first_flaw(data, schema()):
        raise PodiumError(f"{path!r} was changed after podium saved it: {flaw}", hint="save the comparison again.")
    if data["sha256"] != digest({name: value for name, value in data.items() if name != "sha256"}):
        hint = "save the comparison again; podium loads only files as it wrote them."
        raise PodiumError(f"{path!r} was changed after podium saved it: its digest differs", hint=hint)
    content: dict[str, Any] = data
    return content


def known_fields(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a dataclass has fields for; a later podium of the same format may have saved more."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in values.items() if name in names}


def tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def fact_of(kept: Mapping[str, Any]) -> str:
    """A fact as it was said, whatever this version would say."""
    if kept["code"] is None:
        return str(kept["text"])
    return Fact.said(kept["code"], kept["text"], {k: v for k, v in kept.items() if k not in ("code", "text")})


def pair_of(entry: Mapping[str, Any]) -> Pair:
    made = {name: entry[name] for name in ("a", "b", "difference", "std_error", "p_better", "p_adjusted", "verdict")}
    return Pair(
        **made,
        path=entry["path"],
        source=entry["source"],
        reasons=tuple(map(fact_of, entry["reason_facts"])),
        interval=interval_of(entry, ""),
        adjusted=interval_of(entry, "adjusted_"),
        bootstrap=interval_of(entry, "bootstrap_"),
        adjusted_level=entry["adjusted_level"],
        lift=None if entry["lift"] is None else Lift(**known_fields(Lift, entry["lift"])),
        practically_the_same=entry["practically_the_same"],
    )


def group_of(entry: Mapping[str, Any], kept: Mapping[str, Any], lower_is_better: bool) -> Group:
    made = {name: entry[name] for name in ("by", "value", "rows", "a", "b", "difference", "std_error", "p_better")}
    return Group(
        **made,
        p_adjusted=entry["p_adjusted"],
        verdict=entry["verdict"],
        path=entry["path"],
        reasons=tuple(map(fact_of, entry["reason_facts"])),
        interval=interval_of(entry, ""),
        claim_level=kept["claim_level"],
        lower_is_better=lower_is_better,
        belief=None if kept["judgement"] is None else judgement_of(kept["judgement"]),
        turned=kept["turned"],
    )


def drift_of(kept: Mapping[str, Any]) -> Drift:
    blocks = [
        Block(**{name: b[name] for name in PLAIN}, pairs=tuple((p["difference"], p["std_error"]) for p in b["pairs"]))
        for b in kept["blocks"]
    ]
    pairs = tuple((p["a"], p["b"]) for p in kept["blocks"][0]["pairs"])
    found = Drift(kept["rows"], tuple(Change(**known_fields(Change, c)) for c in kept["changes"]), tuple(blocks), pairs)
    vars(found)["facts"] = tuple(map(fact_of, kept["facts"]))  # as they were said
    return found


def interval_of(entry: Mapping[str, Any], kind: str) -> Interval | None:
    low, high = entry.get(f"{kind}low"), entry.get(f"{kind}high")
    return None if low is None or high is None else Interval(low, high)


def judgement_of(kept: Mapping[str, Any]) -> Judgement:
    arrays = {name: None if kept[name] is None else array(kept[name]) for name in ARRAYS}
    parts = kept["mixture"]
    mixture = None if parts is None else Mixture(*(array(parts[name]) for name in PARTS))
    silent = tuple(fact_of(why) for why in kept["silent"])
    made = cast(dict[str, Any], arrays)
    return Judgement(procedure=kept["procedure"], path=tuple(kept["path"]), silent=silent, mixture=mixture, **made)


def array(numbers: Any) -> Floats:
    return np.array(numbers, dtype=np.float64)  # which also reads 'nan', 'inf' and '-inf'


# --- what stands in for the log and the rows -----------------------------------------------------------------------


def needs_rows(what: str) -> PodiumError:
    return PodiumError(f"this comparison was loaded from a file, which does not hold {what}", hint=AGAIN)


class SavedLog:
    """What a saved comparison says of its log."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._text, self._figures = data["saved"]["log"], data["log"]
        self.distinct, self.n_states, self.n_actions = (data["log"][k] for k in ("distinct", "states", "actions"))
        self.knows, self.state_columns = data["log"]["propensities"], data["log"]["state_columns"]
        self.notes = tuple(map(fact_of, data["log"].get("notes", ())))
        self._reward = data["saved"]["reward"]

    def __len__(self) -> int:
        return int(self._figures["rows"])

    def __repr__(self) -> str:
        return str(self._text)

    def header(self, role: str) -> str:
        if role != "reward":
            raise needs_rows("its log")
        return str(self._reward)

    def to_dict(self) -> dict[str, Any]:
        copy: dict[str, Any] = json.loads(json.dumps(self._figures))
        return copy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise needs_rows("its log")


class SavedBasis(Basis):
    """What a saved comparison keeps of its basis; all else is refused by name."""

    def __init__(self, data: Mapping[str, Any], judgement: Judgement | None) -> None:
        part = data["saved"]
        intervals: Sequence[Any] = part["hidden_intervals"]
        self.__dict__.update(
            kept=data,
            reference=part["reference"],
            answer_lines=tuple(part["answer_lines"]),
            drift=None if data["drift"] is None else drift_of(data["drift"]),
            valued=None if part["valued"] is None else KnownValues(*(array(part["valued"][name]) for name in VALUED)),
            hidden={
                (p["a"], p["b"]): Withstood(p["gamma"], tupled(i), cast(Fact, fact_of(p["hidden_cause"])))
                for p, i in zip(data["pairs"], intervals, strict=True)
                if p["hidden_cause"] is not None
            },
        )
        if judgement is not None:
            self.__dict__["judgement"] = judgement

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise needs_rows("the distributions that gates need" if name == "judgement" else "the rows of its log")

    @property
    def version(self) -> str:
        return str(self.kept["podium"])

    @property
    def names(self) -> list[str]:
        return list(self.kept["saved"]["policies"])

    @property
    def method(self) -> str:
        return str(self.kept["saved"]["method"])

    @property
    def sampled(self) -> dict[str, int] | None:
        found: dict[str, int] | None = self.kept["sample"]
        return None if found is None else dict(found)

    def withstood(self, pairs: Sequence[Pair], settings: Settings) -> Mapping[tuple[str, str], Withstood]:
        found: Mapping[tuple[str, str], Withstood] = self.hidden
        return found

"""A saved comparison says the same after it is loaded, and a file that is not one is refused with a message."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import PROCEDURES, sample

import podium
from podium import Comparison, PodiumError
from podium.comparison.saved import MOST_NUMBERS, digest, schema
from podium.data.schemas import first_flaw

SCHEMA = Path(__file__).parents[2] / "docs" / "comparison-1.schema.json"
HINT = "\n\nHint: "


def with_outcome(log: podium.Log) -> podium.Log:
    """The same log with a further outcome and a column of devices."""
    rng = np.random.default_rng(2)
    minutes = rng.exponential(size=len(log)) + 5
    device = np.array(["phone", "tv"] * len(log), dtype=object)[: len(log)]
    return log._copy(columns={**log.columns, "minutes": minutes, "device": device})


def drifting(log: podium.Log) -> podium.Log:
    """Twice the log with times, whose rewards jump in the middle."""
    rows = np.tile(np.arange(len(log)), 4)
    late = np.arange(len(rows)) >= len(rows) / 2
    return log.take(rows)._copy(times=np.arange(len(rows)).astype(float), rewards=log.rewards[rows] + 5.0 * late)


def comparisons() -> dict[str, Comparison]:
    """Comparisons of many kinds, by name."""
    made: dict[str, Comparison] = {}
    log, policies = sample(60)
    for verdicts in PROCEDURES:
        made[verdicts] = podium.compare(log, policies, verdicts=verdicts)
    made["costs"] = podium.compare(log, policies, cost={"1": 0.5} if "1" in log.action_space else {1: 0.5})
    made["lower"] = podium.compare(log, policies, lower_is_better=True, bootstrap=20, level=0.9)
    made["look"] = podium.compare(log, policies, look=(1, 4))
    made["own difference"] = podium.compare(log, policies, "DRE", joint=True)
    for knows in ("logged", "none"):
        made[f"{knows} propensities"] = podium.compare(*sample(40, knows=knows, distinct=9))
    made["units"] = podium.compare(*sample(60, units=12))
    made["two rows"] = podium.compare(
        podium.Log([0, 1], ["a", "b"], [0.0, 1.0]), {"x": "constant:a", "y": "constant:b"}
    )
    made["odd names"] = podium.compare(log, dict(zip(["a|b\n", "<b>`x`", "ünï > 🙂"], policies.values(), strict=True)))
    made["groups and outcomes"] = podium.compare(
        with_outcome(log), policies, by="device", also=["minutes:lower"], difference=0.3
    )
    made["times"] = podium.compare(drifting(log), {f"always {a}": f"constant:{a}" for a in log.action_space[:2]})
    made["worth"] = podium.compare(with_outcome(log), policies, worth={"minutes": -0.1})
    rng = np.random.default_rng(1)
    doses = podium.continuous.ContinuousLog(
        np.zeros(60), rng.uniform(0, 1, 60), rng.normal(size=60), densities=np.ones(60)
    )
    made["continuous"] = podium.continuous.compare(doses, {"low": 0.2, "high": 0.7})
    return made


COMPARISONS = comparisons()


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda x: x.item() if hasattr(x, "item") else str(x)))


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_loaded_comparison_says_the_same(name: str, tmp_path: Path) -> None:
    result = COMPARISONS[name]
    path = result.save(tmp_path / "answer.json")
    loaded = podium.load(path)
    assert isinstance(loaded, Comparison)
    assert plain(loaded.to_dict()) == plain(result.to_dict())
    assert loaded.drift == result.drift
    assert (result.drift is not None and bool(result.drift.facts)) == (name == "times")
    assert str(loaded) == str(result)
    assert loaded.text(verbose=True) == result.text(verbose=True)
    assert loaded._repr_html_() == result._repr_html_()
    assert loaded.to_markdown() == result.to_markdown()
    tables = ["ranking", "pairs", *(["groups"] if result.groups else []), *(["outcomes"] if result.outcomes else [])]
    for table in tables:
        assert loaded.to_frame(table).equals(result.to_frame(table))
    a, b = result.ranking[:2]
    for condition in (f"{a} > {b}", f"{b} > {a}", f"{a} > {b} - 0.3", f"{a} > {b} + 0.1"):
        assert plain(loaded.gate(condition).to_dict()) == plain(result.gate(condition).to_dict())
    if result.outcomes:
        for condition in (
            f"minutes({a}) < minutes({b}) + 20%", f"{a} > {b} - 9 and minutes({a}) < minutes({b}) + 0.5",
            f"{a} > {b} - 2%", *([f"{a} > {b} - 1 in every device"] if result.groups else []),
        ):  # fmt: skip
            assert plain(loaded.gate(condition).to_dict()) == plain(result.gate(condition).to_dict())
        assert loaded.difference == result.difference
    assert [getattr(w, "code", None) for w in loaded.warnings] == [getattr(w, "code", None) for w in result.warnings]
    again = loaded.save(tmp_path / "again.json")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_file_has_the_form_of_the_schema(name: str, tmp_path: Path) -> None:
    saved = json.loads(COMPARISONS[name].save(tmp_path / "answer.json").read_text(encoding="utf-8"))
    assert first_flaw(saved, schema()) == ""
    assert set(COMPARISONS[name].to_dict()) <= set(saved)


def test_the_docs_publish_the_schema_that_the_package_ships() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema()
    assert schema()["$id"] == schema()["properties"]["schema"]["const"] == "podium/comparison/1"


@pytest.mark.parametrize("kind", ["ranking", "pairs", "methods"])
def test_figures_of_the_answer_need_no_log(kind: str, tmp_path: Path) -> None:
    result = COMPARISONS["posterior"]
    loaded = podium.load(result.save(tmp_path / "answer.json"))
    assert [a.get_title(loc="left") for a in loaded.plot(kind).axes] == [
        a.get_title(loc="left") for a in result.plot(kind).axes
    ]


def test_what_needs_the_rows_is_refused(tmp_path: Path) -> None:
    loaded = podium.load(COMPARISONS["posterior"].save(tmp_path / "answer.json"))
    again = f"{HINT}compare the log again: podium.compare(log, policies)."
    message = f"this comparison was loaded from a file, which does not hold the rows of its log{again}"
    for ask in (
        lambda: loaded.report(tmp_path / "report.html"),
        lambda: loaded.plot("weights"),
        lambda: loaded.insights.plan,
        lambda: loaded.basis.rows,
    ):
        with pytest.raises(PodiumError, match=f"^{re.escape(message)}$"):
            ask()
    with pytest.raises(PodiumError, match=f"^{re.escape(message.replace('the rows of its log', 'its log'))}$"):
        _ = loaded.log.rewards
    assert not (tmp_path / "report.html").exists()


def test_a_judgement_that_is_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_NUMBERS >= 1_000_000
    monkeypatch.setattr("podium.comparison.saved.MOST_NUMBERS", 5)
    result = COMPARISONS["posterior"]
    loaded = podium.load(result.save(tmp_path / "answer.json"))
    assert str(loaded) == str(result)
    message = (
        "this comparison was loaded from a file, which does not hold the distributions that gates need"
        f"{HINT}compare the log again: podium.compare(log, policies)."
    )
    with pytest.raises(PodiumError, match=f"^{re.escape(message)}$"):
        loaded.gate(f"{result.ranking[0]} > {result.ranking[1]}")


def refusal_of(path: Path) -> str:
    with pytest.raises(PodiumError) as caught:
        podium.load(path)
    return str(caught.value)


def test_files_that_are_not_saved_comparisons_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    text = COMPARISONS["posterior"].save(path).read_text(encoding="utf-8")
    good, name = json.loads(text), repr(str(path))

    def changed(**values: Any) -> str:
        path.write_text(json.dumps(good | values), encoding="utf-8")
        return refusal_of(path)

    write = "write one with result.save(FILE), or podium compare LOG --save FILE."
    again = f"{HINT}save the comparison again"
    assert changed(schema=None) == f"{name} is not a saved comparison: it names no schema{HINT}{write}"
    other = f"{name} is not a saved comparison: its schema is 'podium/plan/1'{HINT}{write}"
    assert changed(schema="podium/plan/1") == other
    newer = f"{name} was saved in version 2 of the format, and this podium reads version 1"
    assert (
        changed(schema="podium/comparison/2") == f"{newer}{HINT}install a newer podium: pip install --upgrade podium."
    )
    edited = f"{name} was changed after podium saved it: "
    assert (
        changed(answer="all is well") == f"{edited}its digest differs{again}; podium loads only files as it wrote them."
    )
    assert changed(pairs=[]) == f"{edited}$.pairs must have at least 1 entries; it has 0{again}."
    assert changed(warnings="x") == f"{edited}$.warnings must be of type array; it is 'x'{again}."
    path.write_text(text[:-200], encoding="utf-8")
    assert re.fullmatch(rf"{re.escape(name)} is not whole JSON \(line \d+\){re.escape(again)}\.", refusal_of(path))
    path.write_bytes(b"\xff\xfe\x00")
    assert refusal_of(path) == f"{name} is not whole JSON{again}."
    path.write_text("[1, 2]", encoding="utf-8")
    assert refusal_of(path) == f"{name} is not a saved comparison: it names no schema{HINT}{write}"
    path.write_text(json.dumps({"podium": "0.2.0"}), encoding="utf-8")
    assert refusal_of(path) == f"{name} is not a saved comparison: it names no schema{HINT}{write}"
    path.unlink()
    assert refusal_of(path) == f"cannot read {name}: No such file or directory{HINT}check the path."


def test_the_layout_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = COMPARISONS["posterior"].save(tmp_path / "answer.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    turned = dict(reversed(data.items()))
    path.write_text(json.dumps(turned), encoding="utf-8")
    assert podium.load(path).ranking == COMPARISONS["posterior"].ranking
    assert data["sha256"] == digest({k: v for k, v in data.items() if k != "sha256"})


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text("{}", encoding="utf-8")
    result = COMPARISONS["posterior"]
    hint = "name another file, or replace it with --overwrite (in Python: overwrite=True)."
    message = f"{str(path)!r} exists, and podium did not write it{HINT}{hint}"
    with pytest.raises(PodiumError, match=f"^{re.escape(message)}$"):
        result.save(path)
    assert path.read_text(encoding="utf-8") == "{}"
    result.save(path, overwrite=True)
    COMPARISONS["gated"].save(path)  # podium's own file
    assert podium.load(path).settings.verdicts == "gated"


def test_frames_by_table() -> None:
    result = COMPARISONS["posterior"]
    assert list(result.to_frame()["name"]) == result.ranking
    assert result.to_frame("ranking", "polars").shape == result.to_frame("polars").shape  # as in version 0.1
    pairs = result.to_frame("pairs")
    assert list(zip(pairs["a"], pairs["b"], strict=True)) == [(p.a, p.b) for p in result.pairs]
    assert list(pairs["verdict"]) == [p.verdict for p in result.pairs]
    with pytest.raises(
        PodiumError, match=r"^unknown table 'states'\n\nHint: the tables are ranking, pairs, groups, outcomes\.$"
    ):
        result.to_frame("states")

"""Every method on one map, baseline by weighting."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from samples import logged_only, sample

import podium
from podium.command.cli import main
from podium.comparison.spectrum import WEIGHTINGS, spectrum_of, weighting_of
from podium.data.errors import PodiumError
from podium.estimates.estimators import FAMILY

approx = pytest.approx


def test_every_method_has_its_place() -> None:
    log, policies = sample(80, 3, 3)
    found = podium.spectrum(log, policies)
    seen = {(p.estimator, p.baseline) for p in found.places}
    assert seen == {
        (name, b)
        for name, e in FAMILY.items()
        for b in (("mean", "linear") if e.uses_baseline else ("-",))
        if (name, b) != ("DirectModel", "mean")
    }
    assert found.missing == ()
    keys = [(["-", "mean", "linear"].index(p.baseline), WEIGHTINGS.index(p.weighting)) for p in found.places]
    assert keys == sorted(keys)
    assert {e: weighting_of(FAMILY[e]) for e in ("DirectModel", "LDE", "cIPS:10", "SNDR", "DRE")} == dict(
        zip(("DirectModel", "LDE", "cIPS:10", "SNDR", "DRE"), WEIGHTINGS, strict=True)
    )


def test_values_ranks_and_intervals_are_those_of_evaluate() -> None:
    log, policies = sample(80, 3, 3, units=9)
    found = podium.spectrum(log, policies, ["linear"], level=0.9)
    expected = podium.evaluate(log, policies, "all", "linear")
    for place in found.places:
        for stand in place.policies:
            assert stand.value == expected.values[stand.name][place.estimator]
            assert stand.std_error == expected.std_errors[stand.name][place.estimator]
            assert (stand.low, stand.high) == approx(expected.interval(stand.name, place.estimator, 0.9))
        ordered = sorted(place.policies, key=lambda s: -s.value)
        assert [s.rank for s in ordered] == [1, 2, 3]
        assert place.ranking == [s.name for s in ordered]
    lower = podium.spectrum(log, policies, ["linear"], lower_is_better=True)
    assert lower.place("DRE").ranking == found.place("DRE").ranking[::-1]


def test_agreement_and_first() -> None:
    log, policies = sample(80, 3, 3)
    found = podium.spectrum(log, policies)
    assert sum(found.first.values()) == len(found.places)
    assert found.agreement("p0", "p1") == 1 - found.agreement("p1", "p0")
    share = np.mean([p.ranking.index("p0") < p.ranking.index("p1") for p in found.places])
    assert found.agreement("p0", "p1") == approx(share)
    with pytest.raises(PodiumError, match="no policy 'p9'"):
        found.agreement("p0", "p9")
    with pytest.raises(PodiumError, match="the map has no 'SNIPS' with baseline 'mean'"):
        found.place("SNIPS", "mean")


def test_what_cannot_be_used_is_named_with_the_reason() -> None:
    log, policies = sample(60, 3, 2, knows="none")
    found = podium.spectrum(log, policies)
    assert {p.estimator for p in found.places} == {"DiM", "LDE", "DirectModel"}
    assert all("needs the probability of each logged action" in m.reason for m in found.missing)
    partial = podium.spectrum(log, logged_only(log, policies))
    assert {(p.estimator, p.baseline) for p in partial.places} == {("DiM", "-"), ("LDE", "mean")}
    assert "Not available: LDE (linear), DRE (linear)" in str(partial)


def test_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, policies = sample(60, 3, 5)
    found = podium.spectrum(log, policies, ["mean", 0.5])
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(content) == {"podium", "log", "settings", "methods", "unavailable", "first", "warnings"}
    assert set(content["methods"][0]["policies"][0]) == {"name", "value", "rank", "std_error", "low", "high"}
    assert {m["estimator"] for m in content["unavailable"]} == {"DirectModel"}
    frame = found.to_frame()
    assert len(frame) == len(found.places) * 5
    assert list(frame.columns[:4]) == ["estimator", "baseline", "weighting", "policy"]
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("Every method: value ± standard error, #rank") == 1
    assert "can turn a ranking round; hold them against DRE" in " ".join(text.split())
    assert found._repr_html_().count("<table") == 1
    frame = log.to_frame()
    for name, p in policies.items():
        for a in range(3):
            frame[f"pi_{name}:{a}"] = p[:, a]
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert main(["spectrum", str(tmp_path / "log.csv"), "--baseline", "mean", "--baseline", "0.5", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    for ours, theirs in zip(content["methods"], printed["methods"], strict=True):
        assert [p["value"] for p in ours["policies"]] == approx([p["value"] for p in theirs["policies"]], rel=1e-9)
    assert main(["evaluate", str(tmp_path / "log.csv"), "--estimator", "all", "--baseline", "linear"]) == 0
    assert "DirectModel" in capsys.readouterr().out


def test_figure() -> None:
    log, policies = sample(60, 3, 3)
    found = podium.spectrum(log, policies)
    figure = found.plot(style="dark")
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert sum(t in FAMILY for t in texts) == len(found.places)
    assert figure.axes[0].get_xticklabels()[0].get_text() == "no weight"
    result = podium.compare(log, policies)
    assert result.plot("spectrum").axes[0].get_title(loc="left") == "The order by every method, best first"
    own = spectrum_of(result)
    assert own is not None
    assert own.place("DRE", "linear").ranking == found.place("DRE", "linear").ranking


def test_a_large_log() -> None:
    """What is not learned is that of all rows; a model is learned from the sample; the figure shows its map."""
    log, policies = sample(700, 3, 3, distinct=40)
    arrays = podium.spectrum(log, policies, ["mean", "linear"])
    parts = podium.spectrum(log, policies, ["mean", "linear"], sample_rows=300)
    assert [(p.estimator, p.baseline) for p in parts.places] == [(p.estimator, p.baseline) for p in arrays.places]
    for place in arrays.places:
        found = parts.place(place.estimator, place.baseline)
        near = {"rel": 1e-9} if place.baseline != "linear" else {"abs": 3 * max(s.std_error for s in place.policies)}
        assert [s.value for s in found.policies] == approx([s.value for s in place.policies], **near)
        if place.baseline != "linear":
            assert found.ranking == place.ranking
    result = podium.compare(log, policies, verdicts="gated", sample_rows=300)
    drawn = result.basis.rows.numbers
    shown = spectrum_of(result)
    alone = podium.spectrum(log.take(drawn), {name: p[drawn] for name, p in policies.items()})
    assert len(shown.log) == 300
    assert shown.places == alone.places
    assert result.plot("spectrum").axes[0].get_title(loc="left") == "The order by every method, best first"


def test_refusals() -> None:
    log, policies = sample(30, 3, 2)
    with pytest.raises(PodiumError, match="level must lie between 0 and 1"):
        podium.spectrum(log, policies, level=1.5)
    none, policies = sample(30, 3, 2, knows="none")
    with pytest.raises(PodiumError, match="IPS needs the probability of each logged action"):
        podium.spectrum(none, policies, estimators=["IPS", "SNIPS"])


def test_a_mistake_keeps_its_hint(tmp_path: Path) -> None:
    log, policies = sample(60, 3, 2)
    continuous = podium.continuous.ContinuousLog([0, 1], [0.1, 0.2], [1, 2])
    for make, message in (
        (lambda: podium.spectrum(log, policies, ["mean", "foo"]), "unknown baseline 'foo'"),
        (lambda: podium.spectrum(log, policies, ["foo"], "IPS"), "unknown baseline 'foo'"),
        (lambda: podium.spectrum(continuous, policies), "log must be a podium.Log"),  # type: ignore[arg-type]
        (lambda: podium.spectrum(log, policies, level="x"), "level must lie between 0 and 1"),  # type: ignore[arg-type]
        (lambda: podium.spectrum(log, policies, estimators=[]), "estimators must be names of methods"),
        (lambda: podium.evaluate(log, policies, None), "estimators must be names of methods"),  # type: ignore[arg-type]
        (lambda: podium.evaluate(log, policies, 5), "estimators must be names of methods"),  # type: ignore[arg-type]
        (lambda: podium.evaluate(log, policies, "TIS"), "TIS needs episodes"),
    ):
        with pytest.raises(PodiumError) as error:
            make()
        assert message in error.value.message
        assert error.value.hint
    path = tmp_path / "log.csv"
    log.to_frame().to_csv(path, index=False)
    arguments = ["spectrum", str(path), "--policy", "a=constant:0", "--policy", "b=constant:1"]
    assert main([*arguments, "--baseline", "foo"]) == 2
    assert main(["evaluate", *arguments[1:], "--estimator", "TIS"]) == 2
    log, _ = sample(160, 3, 2)
    with pytest.raises(PodiumError) as error:
        podium.spectrum(log, {"a": np.full((160, 3), 0.9), "b": "uniform"}, sample_rows=100)
    assert error.value.hint != "no method can be used on this log."


def test_notes_are_said_once() -> None:
    log, policies = sample(60, 3, 2, knows="none")
    notes = podium.spectrum(log, policies).notes()
    gaps = [n for n in notes if n.startswith("Not available")]
    assert len(gaps) == 1
    assert "DRE (mean, linear)" in gaps[0]
    assert "each needs the probability of each logged action" in gaps[0]


def test_shared_first_places_and_cautions() -> None:
    log = podium.Log([0, 0, 1, 1], ["a", "b"] * 2, [1.0, 1.0, 1.0, 1.0], propensities=[0.5] * 4)
    both = {"a": "constant:a", "b": "constant:b"}
    found = podium.spectrum(log, both, ["mean"], ["IPS", "cIPS:1000000", "cIPS:1000001"])
    assert [p.estimator for p in found.places] == ["cIPS:1000000", "cIPS:1000001", "IPS"]
    assert found.notes()[0] == "Ranked first: a and b alike by 3 of 3."
    assert not any("LDE and DiM" in note for note in found.notes())
    content = found.to_dict()
    assert any("can turn a ranking round" in w for w in content["warnings"])
    assert "hold it against DRE" in content["methods"][0]["caution"]
    assert podium.spectrum(log, both, ["mean"], "IPS").to_dict()["warnings"] == []

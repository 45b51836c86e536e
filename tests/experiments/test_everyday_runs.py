"""The bench of everyday logs as a command: units, counts, tables, runs that stop and go on, and a CPU budget."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.data.errors import PodiumError
from podium.experiments.calibration.everyday import results, units
from podium.experiments.calibration.everyday.__main__ import main
from podium.experiments.calibration.everyday.results import (
    Counts,
    Measured,
    counts_of,
    reliability,
    total,
    wrong_tests,
)
from podium.experiments.calibration.everyday.rules import RULES
from podium.experiments.calibration.everyday.tables import SECTIONS, earlier_table, markdown, section, update_page
from podium.experiments.calibration.everyday.units import Setting, all_families, in_rounds, logs_of, measure
from podium.experiments.calibration.worlds import Draw
from podium.experiments.runner import Arrays, Cell

DOCS = Path(__file__).parents[2] / "docs"
EARLIER = DOCS.parent / "results" / "everyday" / "previous.csv"
WEAK = "1%, continuous, 2 actions, uniform logger, p known"
SMALL = ("--sets", "weak", "--families", WEAK, "--rows", "20", "30", "--policies", "3", "--logs", "4")


def setting(name: str = WEAK, rows: int = 20, policies: int = 3) -> Setting:
    return Setting(next(f for f in all_families().values() if f.name == name), rows, policies)


def found(where: Setting | None = None, **arrays: Any) -> Measured:
    """What was found of one log of 3 policies, or of as many as `arrays` hold."""
    usual: dict[str, Any] = {
        "truth": [[1.0, -1.0, 2.0]], "truth_error": [[0.0] * 3], "tied": [[0.0] * 3], "difference": [[1.0, -1.0, 1.0]],
        "std_error": [[1.0] * 3], "low": [[-1.0, -3.0, -1.0]], "high": [[3.0, 1.0, 3.0]], "silent": [[""] * 3],
        "p_better": [[0.84, 0.16, 0.84]], "successes": [7], "warnings": [0],
        **{f"claim {rule}": [[0.0] * 3] for rule in RULES},
    }  # fmt: skip
    return Measured(where or setting(), {key: np.array(value) for key, value in (usual | arrays).items()})


# --- units ---------------------------------------------------------------------------------------------------------


def test_a_log_does_not_depend_on_what_else_is_asked_for() -> None:
    one, two = setting(rows=20), setting(rows=30)
    alone, many = units.units([two], 2)[0][0], units.units([one, two], 6)[1][0]
    assert alone == many
    assert len({c.place for group in units.units([one, two], 6) for c in group}) == 6


def test_every_setting_comes_once_before_any_comes_again() -> None:
    one, two = units.units([setting(rows=20)], 6)[0], units.units([setting(rows=30)], 2)[0]
    assert [c.arguments["rows"] for c in in_rounds([one, two])] == [20, 30, 20, 20]


def test_long_logs_are_fewer_and_trials_more() -> None:
    sparse = next(f for f in all_families().values() if f.set == "sparse")
    trial = next(f for f in all_families().values() if f.set == "trials")
    sizes = [logs_of(Setting(sparse, n, 5), 8) for n in (100, 1_000, 3_000, 20_000)]
    assert sizes == [8, 8, 2, 1]
    assert logs_of(Setting(trial, 30, 5), 8) == 16


def test_a_unit_holds_what_compare_says_of_every_pair() -> None:
    where = setting(rows=40)
    cell = units.units([where], 2)[0][0]
    seed = np.random.SeedSequence(3)
    arrays = measure(cell, seed)
    case = where.family.draw(np.random.default_rng(np.random.SeedSequence(3).spawn(2)[1]), 40, 3)
    result = podium.compare(case.draw.log, case.draw.policies)
    for n, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        pair = result.pair(f"policy {a}", f"policy {b}")
        assert pair.interval is not None
        stated = [
            pair.difference,
            pair.std_error,
            pair.interval.low,
            pair.interval.high,
            pair.p_better,
            pair.p_adjusted,
        ]
        names = ("difference", "std_error", "low", "high", "p_better", "p_adjusted")
        assert [arrays[name][1, n] for name in names] == stated
        assert {1: "better", -1: "worse", 0: "cannot tell"}[int(arrays["claim podium"][1, n])] == pair.verdict
    assert arrays["truth"][1].tolist() == case.difference.tolist()
    assert arrays["successes"].tolist() == [39, 39]
    assert (arrays["silent"] == "").all()


def test_silence_has_a_reason_and_warnings_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    case = setting(rows=20).family.draw(np.random.default_rng(0), 20, 3)
    log = case.draw.log
    equal = podium.Log(log.states, log.actions, np.zeros(20), behavior=log.behavior, action_space=log.action_space)
    compare = units.compare

    def warns(*arguments: Any, **options: Any) -> Any:
        import warnings

        warnings.warn("something", RuntimeWarning, stacklevel=1)
        return compare(*arguments, **options)

    monkeypatch.setattr(units, "compare", warns)
    arrays = units.judge(units.Case(Draw(equal, case.draw.policies, case.draw.values), *[case.difference] * 3))
    assert set(arrays["silent"].tolist()) == {"equal rewards"}
    assert int(arrays["warnings"]) == 1
    assert units.silences([arrays]) == {"equal rewards": 3}


def test_an_error_names_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(units, "judge", fails)
    with pytest.raises(ValueError, match="broken") as error:
        measure(units.units([setting()], 1)[0][0], np.random.SeedSequence(0))
    assert error.value.__notes__ == ["in weak-1pc-continuous-2-actions-uniform-logger-p-known-N20-K3-0"]


# --- counts --------------------------------------------------------------------------------------------------------


def test_claims_wrong_claims_and_ties_are_counted_apart() -> None:
    one = found(**{"claim podium": [[1, 1, 1]], "tied": [[0, 0, 1]]})
    assert counts_of(one, "podium") == Counts(logs=1, pairs=2, claims=2, wrong=1, tied=1, tied_claims=1)
    tied = found(**{"claim podium": [[0, 1, 0], [0, 0, 0]], "tied": np.ones((2, 3)), "truth": np.zeros((2, 3))})
    assert counts_of(tied, "podium") == Counts(logs=2, tied=6, tied_claims=1, all_tied=2, any_claim=1)
    assert counts_of(tied, "podium", np.array([False, True])).any_claim == 0
    silent = found(**{"claim IPS, difference": [[np.nan] * 3]})
    assert counts_of(silent, "IPS, difference") == Counts()
    assert total([one, tied], "podium") == Counts(3, 2, 2, 1, 7, 2, 2, 1)


def test_reliability_allows_for_the_error_of_the_truth() -> None:
    from scipy.special import ndtr, ndtri

    exact = reliability([found()])
    assert [(b.low, b.pairs, b.right) for b in exact] == [(0.8, 3, 1.0)]
    assert exact[0].said == pytest.approx(0.84)
    noisy = reliability([found(truth_error=[[1.0] * 3])])
    assert noisy[0].said == pytest.approx(ndtr(ndtri(0.84) / np.sqrt(2)))
    assert noisy[0].low == 0.7
    assert reliability([found(silent=[["a"] * 3]), found(p_better=[[0.5] * 3]), found(tied=[[1.0] * 3])]) == []


def test_errors_of_reliability_are_clustered_by_log() -> None:
    right = np.repeat([[1.0], [-1.0]] * 8, 3, axis=1)
    fields = {k: np.repeat(v, 16, axis=0) for k, v in found(p_better=[[0.84] * 3]).found.items()}
    (both,) = reliability([Measured(setting(), {**fields, "truth": right})])
    assert both.right == 0.5
    assert both.error == pytest.approx(0.5 / np.sqrt(16))
    assert both.short
    assert not reliability([found()])[0].short


def test_intervals_are_widened_by_the_error_of_the_truth() -> None:
    inside, given = found(truth=[[3.5, 0.0, 1.0]], silent=[["", "", "a"]]).covered()
    assert given.tolist() == [[True, True, False]]
    assert inside.tolist() == [[False, True, False]]
    inside, _ = found(truth=[[3.5, 0.0, 1.0]], truth_error=[[1.0] * 3]).covered()
    assert inside.tolist() == [[True, True, True]]


def test_the_test_of_a_cell_is_exact_and_adjusted_by_holm() -> None:
    from scipy.stats import binomtest

    claims = np.ones((20, 3))
    fields = {k: np.repeat(v, 20, axis=0) for k, v in found(truth=[[1.0, 1.0, 1.0]]).found.items()}
    truth = np.where(np.arange(60).reshape(20, 3) < 9, -1.0, 1.0)
    bad = Measured(setting(rows=30), {**fields, "claim podium": claims, "truth": truth})
    good = Measured(setting(), {**fields, "claim podium": claims})
    tests = wrong_tests([good, bad, found()], "podium")
    p = binomtest(9, 60, 0.05, alternative="greater").pvalue
    assert [(m, c.wrong) for m, c, *_ in tests] == [(bad, 9), (good, 0)]
    assert [p for *_, p, _ in tests] == pytest.approx([p, 1.0])
    assert [a for *_, a in tests] == pytest.approx([2 * p, 1.0])


# --- tables and pages ----------------------------------------------------------------------------------------------


def test_tables_are_markdown() -> None:
    assert markdown(["a", "b"], [["x", "1"], ["yy", "22"]]) == "| a  |  b |\n|----|---:|\n| x  |  1 |\n| yy | 22 |"


def test_a_page_gets_its_regions_filled_anew() -> None:
    page = (
        "Before\n\n<!-- everyday: one -->\n\nold\n\n<!-- end -->\n\nBetween\n<!-- everyday: two --><!-- end -->\nAfter"
    )
    filled = update_page(page, lambda name: f"{name} \\1 new")
    assert "old" not in filled
    assert filled.count("new") == 2
    assert re.sub("<!-- everyday.*?end -->", "|", filled, flags=re.DOTALL) == "Before\n\n|\n\nBetween\n|\nAfter"
    assert update_page(filled, lambda name: f"{name} \\1 new") == filled
    with pytest.raises(PodiumError, match="nothing was measured for 'one'"):
        update_page(page, lambda name: "")
    with pytest.raises(PodiumError, match="has no end"):
        update_page("<!-- everyday: one -->", str)
    with pytest.raises(PodiumError, match="no section 'none'"):
        section("none", [found()])


def test_the_regions_of_the_docs_have_sections() -> None:
    regions = [
        r
        for page in ("trials.md", "everyday.md")
        for r in re.findall("<!-- everyday: (.*?) -->", (DOCS / page).read_text())
    ]
    assert len(regions) > 10
    for name in set(regions) - {"made by", "earlier"}:
        section(name, [found()])  # refused where there is no such section


def test_an_earlier_run_is_compared_on_the_same_logs(tmp_path: Path) -> None:
    one, two = found(**{"claim podium": [[1, 0, 1]]}), found(setting(rows=30), **{"claim podium": [[1, 1, 1]]})
    (tmp_path / "counts.csv").write_text(results.counts_csv([one, two]))
    more = found(**{"claim podium": [[1, -1, 1]]})
    longer = found(setting(rows=30), **{k: np.repeat(v, 2, axis=0) for k, v in two.found.items()})
    line = earlier_table([more, longer], tmp_path / "counts.csv").splitlines()[-1]
    assert [x.strip() for x in line.strip("|").split("|")] == ["weak", "tuned on", "1", "2 (0)", "3 (0)", "+50%"]


# --- runs ----------------------------------------------------------------------------------------------------------


def outputs(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "tables" / name).read_bytes() for name in ("counts.csv", "everyday.md")}


def test_a_run_that_was_killed_goes_on_and_writes_the_same_bytes(tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    main([*SMALL, "--folder", str(whole)])
    main([*SMALL, "--folder", str(torn)])
    (cells,) = (torn / "cells").iterdir()
    files = sorted(cells.glob("*.npz"))
    assert len(files) == 4
    files[0].write_bytes(files[0].read_bytes()[:100])
    files[1].unlink()
    before = files[2].read_bytes()
    main([*SMALL, "--folder", str(torn)])
    assert files[2].read_bytes() == before, "what is finished is not run again"
    assert outputs(torn) == outputs(whole)
    assert b"8 of 8 logs" in outputs(whole)["everyday.md"]
    assert str(tmp_path).encode() not in outputs(whole)["everyday.md"]


def test_a_budget_is_respected_over_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    done: list[str] = []
    real = measure

    def slow(cell: Cell, seed: np.random.SeedSequence, before: Arrays | None) -> Arrays:
        done.append(cell.name)
        return {**real(cell, seed), "seconds": np.array([20.0, 10.0])}

    monkeypatch.setattr(results, "measure", slow)
    for _ in range(2):
        main([*SMALL, "--folder", str(tmp_path), "--budget", "1"])
        assert len(done) == 2, "30 s each, and 60 are allowed"
        out = capsys.readouterr().out
        assert "--budget 1`: 4 of 8 logs." in out
        assert "1.0 CPU minutes" in out
    main([*SMALL, "--folder", str(tmp_path), "--budget", "1.1"])
    assert len(done) == len(set(done)) == 3
    main([*SMALL, "--folder", str(tmp_path / "none"), "--budget", "0"])
    assert len(done) == 3


def test_results_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [*SMALL[:-1], "2", "--folder", str(tmp_path)]
    main(small)
    monkeypatch.setattr(results, "code_version", lambda: "other")
    main(small)
    assert sorted(path.name == "seed-17-other" for path in (tmp_path / "cells").iterdir()) == [False, True]


@pytest.mark.slow
def test_the_whole_bench_small_fills_the_pages(tmp_path: Path, capsys: Any) -> None:
    pages = [tmp_path / name for name in ("trials.md", "everyday.md")]
    for page in pages:
        page.write_text((DOCS / page.name).read_text())
    main(
        [
            "--logs",
            "1",
            "--rows",
            "50",
            "100",
            "--folder",
            str(tmp_path / "results"),
            "--earlier",
            str(EARLIER),
            "--pages",
            *map(str, pages),
        ]
    )
    text = capsys.readouterr().out
    assert [name for name in SECTIONS if f"## {name}\n" not in text] == []
    counts = (tmp_path / "results" / "tables" / "counts.csv").read_text()
    assert {line.split(",")[0] for line in counts.splitlines()[1:]} == {
        "weak",
        "shares",
        "sparse",
        "ties",
        "many",
        "trials",
    }
    for page in pages:
        assert "| podium |" in re.sub(" +", " ", page.read_text()), page

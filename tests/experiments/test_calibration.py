"""The bench itself, small: honest on every family, the same for any number of workers, and easy to add to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from podium.experiments.calibration import foresight, large, outcomes
from podium.experiments.calibration.bench import main
from podium.experiments.calibration.families import FAMILIES, family
from podium.experiments.calibration.tables import Results, reliability
from podium.experiments.calibration.trials import Trial, run_one, simulate
from podium.experiments.calibration.worlds import Draw, example_world

FIXED = [name for name, f in FAMILIES.items() if not f.variant]


bench = pytest.mark.slow  # they share the verdicts on three logs of each family and size


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return simulate(FIXED, (50, 300), logs=3, seed=5, workers=2)


def test_every_listed_kind_of_family_is_there() -> None:
    names = " | ".join(FIXED)
    for kind in (
        "example 1.1", "example 1.2", "uniform", "random softmax", "heavy-tailed logger", "state-confounded",
        "ordinary pairs", "risky pairs", "classification: digits", "Bernoulli", "heavy-tailed noise", "5 features",
        "20 features", "epsilon-greedy", "Thompson", "fewer than 20 states", "2 actions", "1,000 actions",
        "no propensities", "exact ties",
    ):  # fmt: skip
        assert kind in names


@bench
def test_claims_are_many_and_right(trials: list[Trial]) -> None:
    cells = Results(trials).cells["posterior"].values()
    pairs, claims, wrong = (sum(getattr(c, k) for c in cells) for k in ("pairs", "claims", "wrong"))
    assert claims / pairs >= 0.25
    assert wrong / claims <= 0.015


@bench
def test_stated_probabilities_hold(trials: list[Trial]) -> None:
    for low, _, pairs, right, error in reliability([t for t in trials if t.family != "exact ties"], "posterior"):
        if low >= 0.8 and pairs:
            assert right >= low - 0.02 - 2 * error - 0.02, (low, right)


@bench
def test_no_claims_where_the_log_cannot_know(trials: list[Trial]) -> None:
    blind = [t for t in trials if FAMILIES[t.family].kind == "failure" or t.family == "exact ties"]
    wrong = [np.sum((t.claims["posterior"] != 0) & (t.claims["posterior"] != np.sign(t.truth))) for t in blind]
    assert len(blind) >= 20
    assert sum(wrong) <= 0.025 * 10 * len(blind)


@bench
def test_reward_seeking_loggers_are_flagged(trials: list[Trial]) -> None:
    seekers = [t for t in trials if FAMILIES[t.family].seeks_reward and t.rows >= 100]
    assert np.mean([t.alarm for t in seekers]) >= 0.95


@bench
def test_the_posterior_orders_best(trials: list[Trial]) -> None:
    from podium.experiments.calibration.tables import accuracy

    known = [t for t in trials if "DRE" in t.order]
    ours = accuracy(known, "posterior")
    assert all(ours > accuracy(known, other) + 0.02 for other in ("LDE", "LDE state", "DRE", "IPS", "DiM"))


@bench
def test_more_pairs_are_decided_than_by_peers(trials: list[Trial]) -> None:
    results = Results(trials)
    ours = sum(c.claims for c in results.grid("posterior"))
    for peer in ("IPS-t", "SNIPS-t", "Cressie-Read"):
        assert ours > 1.5 * sum(c.claims for c in results.grid(peer))


# --- more than 20,000 rows -------------------------------------------------------------------------------------------

LOGGED = ("p at logged", "both at logged")


def claims(trials: list[Trial], rule: str) -> tuple[np.ndarray, np.ndarray]:
    """All claims, and the signs of the true differences."""
    return np.concatenate([t.claims[rule] for t in trials]), np.sign(np.concatenate([t.truth for t in trials]))


def test_few_states_are_told_apart_where_policies_are_known_at_logged_actions_alone() -> None:
    trials = large.simulate(["few states"], (20_001,), logs=6, seed=4, workers=1, views=("both at logged",))
    made, truth = claims(trials, "chosen")
    assert (made != 0).mean() >= 0.2
    assert (made[made != 0] == truth[made != 0]).all()
    assert not claims(trials, "sample")[0].any()


@pytest.mark.slow
def test_propensities_at_logged_actions_are_enough_where_the_log_has_seen_what_matters() -> None:
    trials = large.simulate(["500 states", "own states"], (20_001,), logs=1, seed=4, workers=1, views=LOGGED)
    made, truth = claims(trials, "chosen")
    assert (made != 0).mean() >= 0.5
    assert (made[made != 0] == truth[made != 0]).all()
    assert (claims(trials, "sample")[0] != 0).mean() <= 0.1


def test_actions_that_were_never_logged_keep_the_verdict_silent() -> None:
    names = ["500 states, prize at p = 1e-5", "own states, actions never logged"]
    trials = large.simulate(names, (20_001,), logs=4, seed=4, workers=1, views=("both at logged",))
    assert not claims(trials, "chosen")[0].any()


def test_all_sizes_of_a_log_share_its_world_and_its_first_rows() -> None:
    trials = large.simulate(
        ["few states", "few states, ties"], (2_000, 1_000), 1, 4, workers=1, views=("both at logged",)
    )
    assert [t.rows for t in trials] == [1_000, 2_000] * 2
    assert (trials[0].truth == trials[1].truth).all()
    assert [x.logs for x in large.by_size(trials, "chosen")] == [2, 2]


@pytest.mark.slow
def test_more_rows_decide_no_less_and_claims_stay_right() -> None:
    names = ["few states", "500 states", "clicks at 0.5%, few states, uniform logger", "few states, seeker, ties"]
    views = ("all known", "p at logged")
    trials = large.simulate(names, (20_000, 20_001, 60_000), logs=2, seed=4, workers=2, views=views)
    for view in views:
        for size in large.by_size([t for t in trials if t.family.endswith(f"| {view}")], "chosen"):
            assert size.change >= -2 * size.error - 0.02
            if size.rows > 20_000:  # up to there the judge of small logs stands alone
                assert size.wrong <= 0.02 * size.claims


def test_trials_do_not_depend_on_the_workers() -> None:
    names = ["2 actions", "classification: iris"]
    alone, together = (simulate(names, (50,), logs=2, seed=1, workers=w) for w in (1, 2))
    assert [t.p_better["posterior"].tolist() for t in alone] == [t.p_better["posterior"].tolist() for t in together]


def test_a_family_is_a_function() -> None:
    @family("a family of my own")
    def mine(rng: np.random.Generator, rows: int, k: int) -> Draw:
        return example_world(rng, 1, k).log(rng, rows)

    try:
        assert run_one(("a family of my own", 40, 0, 1)).family == "a family of my own"
    finally:
        del FAMILIES["a family of my own"]


def test_the_command_writes_a_page_and_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, counts = tmp_path / "page.md", tmp_path / "counts.csv"
    main(
        [
            "--families",
            "2 actions",
            "--rows",
            "50",
            "--logs",
            "2",
            "--workers",
            "1",
            "--out",
            str(page),
            "--csv",
            str(counts),
        ]
    )
    printed = capsys.readouterr().out
    assert "Fixed grid, N >= 50" in printed
    assert "Ranking accuracy" in printed
    assert printed.strip() in page.read_text(encoding="utf-8")
    assert counts.read_text(encoding="utf-8").startswith("family,kind,variant,rows,procedure,pairs,claims,")


def test_the_crossing_of_a_power_curve() -> None:
    grid = np.array(foresight.GRID)
    for rows, slope in ((500, 1.4), (900, 1.4), (900, 3.0)):
        power = ndtr(ndtri(0.8) + slope * np.log(grid / rows))
        assert foresight.crossing(200 * power, 200) == pytest.approx(rows, rel=0.05)
    assert foresight.GRID[1] < foresight.crossing(np.array([0.0, 2, 6, 10, 10, 10]), 10) < foresight.GRID[3]
    assert foresight.crossing(np.zeros(6), 10) > foresight.GRID[-1]
    assert foresight.crossing(np.full(6, 10.0), 10) < foresight.GRID[0]


def test_foresight_is_reported_by_family() -> None:
    text = foresight.report([("2 actions", 500.0, 1000.0), ("5 features", 900.0, 600.0)])
    lines = [line.split() for line in text.splitlines()[1:]]
    assert [line[-4:] for line in lines] == [
        ["0.50", "0.50", "0.50", "(1)"], ["1.50", "1.50", "1.50", "(1)"], ["0.60", "1.00", "1.40", "(2)"],
    ]  # fmt: skip


def test_guardrails_and_lifts_are_measured_against_the_truth() -> None:
    """The truth of a world is what many rows of it show; one log fills every cell of both tables."""
    rng = np.random.default_rng(3)
    world = outcomes.make_world(rng, "by state")
    log, policies = outcomes.draw(world, rng, 40_000)
    weights = policies["new"][np.arange(len(log)), log.action_codes] / log.propensities
    assert float((weights * log.columns["cost"]).mean()) == pytest.approx(world.value("new", world.cost), abs=0.06)
    gates, intervals = outcomes.tables(1, [100], ["uniform"], seed=1)
    assert len(gates.rows) == 10
    assert [row[0] for row in intervals.rows][-1] == "net worth"
    assert gates.notes == ["1 log in each cell; loggers: uniform; seed 1."]

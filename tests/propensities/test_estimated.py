"""Estimated propensities: right where they can be, doubted where they cannot, and labelled everywhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import podium
from podium.command.cli import main
from podium.propensities.belief import assess, balance, calibration_curve, find_doubts
from podium.propensities.estimated import (
    POWERS,
    SHARES,
    assign_folds,
    calibrate,
    design,
    find_model,
    frequencies,
    held_out_shares,
    temper,
)


def drawn(rows: int = 600, actions: int = 3, seed: int = 0, strength: float = 1.0, **options: Any) -> Any:
    """A log whose logger follows the state by a logistic rule, and the rule's probabilities (N, A)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    scores = strength * np.column_stack([x[:, 0], -x[:, 1], np.zeros(rows), x[:, 1]])[:, :actions]
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    taken = (rng.random(rows)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    rewards = taken * 0.3 + x[:, 0] + 0.3 * rng.normal(size=rows)
    return podium.Log(np.round(x, 6), taken, rewards, action_space=tuple(range(actions)), **options), truth


def test_a_logistic_logger_is_found_and_believed() -> None:
    log, truth = drawn(rows=2000)
    found = podium.estimate_propensities(log)
    assert np.abs(found.behavior - truth).mean() < 0.02
    assert found.belief.verdict == "believable"
    assert found.belief.structured
    assert found.belief.log_loss < found.belief.share_log_loss
    assert (found.log.knows, found.model) == ("estimated", "logistic")


def test_the_logistic_model_is_at_its_optimum() -> None:
    """Newton's method on the penalised log loss, written out, goes to the same probabilities."""
    log, _ = drawn(rows=300)
    fold = assign_folds(log, 5, 0)
    raw = find_model("logistic", 0)[0](log, fold, 5, held_out_shares(log, fold, 5))
    x = np.column_stack([np.ones(300), design(log)[0]])
    train, test = fold != 0, fold == 0
    hot, weights = np.eye(3)[log.action_codes[train]], np.zeros((3, 3))  # columns of weights are actions
    penalty = np.diag(np.tile([0.0, 1.0, 1.0], 3))  # none on the level of an action

    def chances(states: Any) -> Any:
        scores = np.exp(states @ weights)
        return scores / scores.sum(axis=1, keepdims=True)

    for _ in range(30):
        p = chances(x[train])
        slope = (x[train].T @ (p - hot)).T.ravel() + penalty @ weights.T.ravel()
        spread = p[:, :, None] * (np.eye(3) - p[:, None, :])
        curve = np.einsum("nab,ni,nj->aibj", spread, x[train], x[train]).reshape(9, 9) + penalty
        weights -= np.linalg.lstsq(curve, slope, rcond=1e-12)[0].reshape(3, 3).T
    np.testing.assert_allclose(raw[test], chances(x[test]), rtol=1e-9)


def test_a_model_that_did_not_reach_its_optimum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "podium.propensities.estimated.named_classifier",
        lambda *_: LogisticRegression(solver="newton-cg", tol=1e-12, max_iter=1),
    )
    with pytest.raises(podium.PodiumError, match="ConvergenceWarning: newton-cg failed to converge"):
        podium.estimate_propensities(drawn()[0])


def test_of_equal_imbalances_the_first_is_named() -> None:
    """With two actions of probability 1/2 the imbalances are equal but for the sign, and for rounding."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    log = podium.Log(x, rng.integers(0, 2, 200), x)
    features = np.column_stack([np.ones(200), x])
    half = np.full((200, 2), 0.5)
    for _ in range(20):
        noisy = half * (1 + 1e-15 * rng.standard_normal(half.shape))
        assert assess(log, noisy, half, features, ["its share", "x"]).balance_at[0] == "0"


def test_a_logger_that_ignores_the_state_is_its_shares() -> None:
    log, _ = drawn(strength=0.0)
    found = podium.estimate_propensities(log)
    shares = np.bincount(log.action_codes) / len(log)
    assert np.abs(found.behavior - shares).max() < 0.05
    assert not found.belief.structured
    assert "close to each action's share" in " ".join(repr(found).split())


def test_every_row_is_a_distribution_that_gives_logged_actions_a_chance() -> None:
    log, _ = drawn(rows=60, strength=8.0)
    for model in ("logistic", "boosting", "frequencies"):
        found = podium.estimate_propensities(log, model)
        np.testing.assert_allclose(found.behavior.sum(axis=1), 1, atol=1e-12)
        assert found.propensities.min() > 0


def test_an_action_that_was_never_logged_has_no_chance() -> None:
    log, _ = drawn()
    found = podium.estimate_propensities(log.with_actions([9]), "frequencies")
    np.testing.assert_array_equal(found.behavior[:, 3], 0)


class Memory:
    """Remembers its rows: sure of a state it has seen, and of nothing else."""

    classes_ = np.arange(3)

    def fit(self, states: Any, actions: Any) -> Memory:
        self.seen = {tuple(s): a for s, a in zip(states, actions, strict=True)}
        return self

    def predict_proba(self, states: Any) -> Any:
        known = [self.seen.get(tuple(s)) for s in states]
        return np.array([np.eye(3)[k] if k is not None else np.full(3, 1 / 3) for k in known])


def test_no_row_is_predicted_by_a_model_that_saw_it() -> None:
    log, _ = drawn()
    found = podium.estimate_propensities(log, Memory())
    np.testing.assert_allclose(found.propensities, held_out_shares(log, assign_folds(log, 5, 0), 5)[
        np.arange(600), log.action_codes], atol=0.05)  # fmt: skip
    assert not found.belief.structured


def test_rows_of_one_unit_share_a_fold() -> None:
    units = np.repeat(np.arange(60), 10)
    log, _ = drawn(units=units)
    fold = assign_folds(log, 5, 0)
    assert all(len(np.unique(fold[units == u])) == 1 for u in range(60))
    assert np.bincount(fold).tolist() == [120] * 5


def test_folds_hold_their_share_of_each_action() -> None:
    log, _ = drawn()
    fold = assign_folds(log, 5, 0)
    counts = np.array([np.bincount(log.action_codes[fold == k]) for k in range(5)])
    assert np.ptp(counts, axis=0).max() <= 1


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), GaussianNB()),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=["classifier", "pipeline", "forest"],
)
def test_any_classifier_will_do(model: Any) -> None:
    log, truth = drawn(rows=1500)
    found = podium.estimate_propensities(log, model)
    assert found.model == type(model).__name__
    assert np.abs(found.behavior - truth).mean() < 0.12
    assert not hasattr(model, "classes_")  # the given object is not touched


def test_a_pipeline_sees_the_named_columns() -> None:
    rng = np.random.default_rng(0)
    where = rng.choice(["north", "south"], 400)
    taken = np.where(rng.random(400) < np.where(where == "north", 0.8, 0.2), "call", "sms")
    log = podium.Log.from_columns({"where": where, "action": taken, "reward": rng.random(400)})
    found = podium.estimate_propensities(log, make_pipeline(OneHotEncoder(), LogisticRegression()))
    assert found.behavior[where == "north", 0].mean() == pytest.approx(0.8, abs=0.06)
    assert found.belief.verdict == "believable"


def test_an_overconfident_model_is_damped() -> None:
    """Naive Bayes on copied features is far too sure of itself; the power brings it back."""
    log, _ = drawn(rows=1500)
    copied = podium.Log(np.repeat(log.states, 8, axis=1), log.actions, log.rewards)
    found = podium.estimate_propensities(copied, GaussianNB())
    assert found.belief.calibration_error < 0.08
    raw = [GaussianNB().fit(copied.states, copied.actions).predict_proba(copied.states)]
    assert calibration_curve(raw[0], copied.action_codes)[1] > 0.1
    assert found.belief.log_loss < found.belief.share_log_loss


def test_calibration_picks_what_suits_the_other_folds() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 4000)
    actions = (rng.random(4000)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    fold, shares = np.arange(4000) % 5, np.full((4000, 3), 1 / 3)
    assert np.abs(calibrate(temper(truth, 2.0), shares, actions, fold, 5) - truth).max() < 0.02
    assert 0.5 in POWERS
    assert SHARES[0] == 0.01


def test_frequencies_by_hand() -> None:
    """Four rows, two folds: the state's other row counts for 1, the shares for 5."""
    log = podium.Log(["s", "s", "t", "t"], [0, 0, 0, 1], [0.0, 0.0, 0.0, 0.0])
    fold = np.array([0, 1, 0, 1])
    shares = held_out_shares(log, fold, 2)
    np.testing.assert_allclose(shares[0], [1.5 / 3, 1.5 / 3])  # rows 2 and 4: one of each, half a row added
    np.testing.assert_allclose(shares[1], [2.5 / 3, 0.5 / 3])
    found = frequencies(log, fold, 2, shares)
    np.testing.assert_allclose(found[0], [(1 + 5 * 0.5) / 6, 5 * 0.5 / 6])
    np.testing.assert_allclose(found[3], [(1 + 5 * 2.5 / 3) / 6, (5 * 0.5 / 3) / 6])


def test_the_same_seed_gives_the_same_numbers() -> None:
    log, _ = drawn()
    first, again, other = (podium.estimate_propensities(log, seed=s).behavior for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


# --- whether to believe it -----------------------------------------------------------------------------------------


def doubts(log: podium.Log, model: Any = None) -> dict[str, str]:
    return {d.name: d.meaning for d in podium.estimate_propensities(log, model).belief.doubts}


def test_a_model_that_misses_the_state_is_not_believed() -> None:
    log, _ = drawn()
    found = podium.estimate_propensities(log, "frequencies")  # every state is seen once
    assert found.belief.verdict == "do not use"
    assert re.fullmatch(
        r"the estimate misses how state\[\d\] goes with action \d \(z = \d+\.\d\)",
        doubts(log, "frequencies")["balance"],
    )


def test_few_rows_are_not_believed() -> None:
    log, _ = drawn(rows=30)
    assert doubts(log)["few rows"] == "30 rows are too few to learn how actions were chosen"


def test_one_action_says_nothing() -> None:
    log = podium.Log(np.arange(80.0), ["a"] * 80, np.zeros(80), action_space=("a", "b"))
    assert "one action" in doubts(log)
    assert podium.estimate_propensities(log).belief.verdict == "do not use"


def test_rare_actions_call_for_care() -> None:
    rng = np.random.default_rng(0)
    actions = np.array(["a"] * 100 + ["b"] * 96 + ["c"] * 4)
    log = podium.Log(rng.normal(size=200), actions, np.zeros(200))
    assert doubts(log) == {"rare actions": "fewer than 10 rows show each of the actions 'c'"}


def test_wrong_probabilities_show_in_the_curve() -> None:
    rng = np.random.default_rng(0)
    truth = np.tile([0.9, 0.1], (1000, 1))
    actions = (rng.random(1000) > 0.9).astype(np.int64)
    *_, good, chi2 = calibration_curve(truth, actions)
    curve, bad, far = calibration_curve(np.tile([0.6, 0.4], (1000, 1)), actions)
    assert good < 0.02 < 0.25 < bad
    assert chi2 < 20 < 100 < far
    assert sum(b.cells for b in curve) == 2000


def test_more_rows_than_verdicts_see_do_not_sharpen_the_balance_check() -> None:
    log, _ = drawn(rows=100)
    belief = podium.estimate_propensities(log).belief
    counts = np.bincount(log.action_codes)

    def doubted(rows: int, times: float) -> bool:
        grown = replace(belief, rows=rows, balance_z=times * belief.balance_limit)
        return "balance" in [doubt.name for doubt in find_doubts(grown, log, counts)]

    assert [doubted(rows, 1.1) for rows in (100, 20_000, 80_000)] == [True, True, False]
    assert [doubted(rows, 2.1) for rows in (80_000, 320_000)] == [True, False]


def test_balance_is_zero_where_weights_are_exact() -> None:
    """Every action logged exactly as often as its probability says, in each of two states."""
    states = np.repeat([0.0, 1.0], 40)
    actions = np.concatenate([np.repeat([0, 1], [10, 30]), np.repeat([0, 1], [20, 20])])
    behavior = np.concatenate([np.tile([0.25, 0.75], (40, 1)), np.tile([0.5, 0.5], (40, 1))])
    log = podium.Log(states, actions, np.zeros(80))
    features = np.column_stack([np.ones(80), states])
    z, cells = balance(log, behavior, features, np.bincount(actions))
    np.testing.assert_allclose(z, 0, atol=1e-12)
    assert cells == 4
    wrong, _ = balance(log, behavior[::-1], features, np.bincount(actions))
    assert np.abs(wrong).max() > 3


# --- in a comparison -----------------------------------------------------------------------------------------------


def test_it_is_labelled_everywhere() -> None:
    log, _ = drawn(strength=0.3)
    result = podium.compare(log, {"now": "logged", "two": "constant:2"}, behavior="estimate")
    assert "estimated propensities" in repr(result)
    assert "The estimated propensities are taken for the logger's habits" in repr(result)
    said = json.loads(json.dumps(result.to_dict(), allow_nan=False))["log"]
    assert said["propensities"] == "estimated"
    assert said["propensity_estimate"]["verdict"] == "believable"
    assert said["propensity_estimate"]["model"] == "logistic"
    assert result.estimates["two"]["DRE"] is not None


def test_what_a_comparison_learns_from_it_is_the_estimate() -> None:
    log, _ = drawn()
    found = podium.estimate_propensities(log)
    policies = {"two": "constant:2", "uniform": "uniform"}
    first = podium.evaluate(log, policies, behavior="estimate")
    second = podium.evaluate(log, policies, behavior=found)
    third = podium.evaluate(found.log, policies)
    by_hand = np.mean(log.rewards * (log.actions == 2) / found.propensities)
    assert first.values == second.values == third.values
    assert first.values["two"]["IPS"] == pytest.approx(by_hand)


def test_units_of_the_call_hold_the_folds_together() -> None:
    columns = {"x": np.arange(200.0), "who": np.repeat(np.arange(20), 10), "action": np.arange(200) % 2}
    log = podium.Log.from_columns({**columns, "reward": np.arange(200.0)}, state="x")
    found = podium.compare(log, {"a": "constant:0", "b": "uniform"}, behavior="estimate:frequencies", unit="who")
    alone = podium.estimate_propensities(log, "frequencies", unit="who")
    np.testing.assert_array_equal(found.log.behavior, alone.behavior)


def test_doubts_are_warnings_of_every_result() -> None:
    log, _ = drawn(rows=40)
    policies = {"one": "constant:1", "two": "constant:2"}
    warning = "estimated propensities: 40 rows are too few to learn how actions were chosen. "
    for answer in (
        podium.compare(log, policies, behavior="estimate").warnings,
        podium.evaluate(log, policies, behavior="estimate").warnings,
        podium.diagnose(log, policies, behavior="estimate").warnings,
    ):
        assert warning + "Use LDE, which needs no propensities." in answer


def test_a_log_with_propensities_is_not_estimated() -> None:
    log, truth = drawn()
    known = log.with_behavior(truth)
    with pytest.raises(podium.PodiumError) as error:
        podium.compare(known, {"one": "constant:1", "two": "constant:2"}, behavior="estimate")
    assert str(error.value) == (
        "the log has propensities, so they are not estimated\n\n"
        "Hint: leave `behavior` out; podium.estimate_propensities(log) shows an estimate beside them."
    )
    assert podium.estimate_propensities(known).belief.verdict == "believable"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = drawn()
    path = tmp_path / "log.csv"
    log.to_frame().to_csv(path, index=False)
    policies = ["--policy", "two=constant:2", "--policy", "now=logged"]
    assert main(["compare", str(path), *policies, "--behavior", "estimate:frequencies", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log"]["propensity_estimate"]["model"] == "frequencies"
    assert main(["check", str(path), *policies, "--behavior", "estimate"]) == 0
    shown = capsys.readouterr().out
    assert "Estimated propensities" in shown
    assert "Calibration" in shown
    (tmp_path / "my_model.py").write_text("from sklearn.naive_bayes import GaussianNB\nmodel = GaussianNB()\n")
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(path), *policies, "--behavior", "estimate:my_model:model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log"]["propensity_estimate"]["model"] == "GaussianNB"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "magic",
            "unknown model of the propensities 'magic'\n\nHint: use one of logistic, boosting, frequencies, "
            "package.module:object, or a scikit-learn classifier.",
        ),
        (
            LinearSVC(),
            "LinearSVC gives no probabilities\n\nHint: wrap it: sklearn.calibration.CalibratedClassifierCV(model).",
        ),
        (7, "int is no model that can be fitted\n\nHint: give a scikit-learn classifier."),
    ],
)
def test_models_that_cannot_be_used(model: Any, message: str) -> None:
    log, _ = drawn()
    with pytest.raises(podium.PodiumError) as error:
        podium.estimate_propensities(log, model)
    assert str(error.value) == message


def test_one_row_cannot_be_learned_from() -> None:
    with pytest.raises(podium.PodiumError, match="propensities cannot be estimated from one row"):
        podium.estimate_propensities(podium.Log([0], ["a"], [1.0]))
    log, _ = drawn()
    with pytest.raises(podium.PodiumError, match="folds must be a whole number from 2 on; it is 1"):
        podium.estimate_propensities(log, folds=1)


# --- what verdicts do with it --------------------------------------------------------------------------------------


def seeker(rows: int, seed: int = 0) -> tuple[podium.Log, dict[str, Any]]:
    """A logger that prefers what pays in the state, and two policies: play that, or the opposite."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    good = (x > 0).astype(int)
    taken = np.where(rng.random(rows) < 0.75, good, 1 - good)
    log = podium.Log(np.round(x, 6), taken, 1.0 * (taken == good) + 0.5 * rng.normal(size=rows))
    return log, {"good": good, "bad": 1 - good}


def test_under_a_logger_that_seeks_reward_a_believable_estimate_lets_dre_confirm() -> None:
    log, policies = seeker(400)
    without = podium.compare(log, policies)
    estimated = podium.compare(log, policies, behavior="estimate:boosting")
    assert estimated.log.estimated.belief.verdict == "believable"
    assert estimated.basis is not None
    assert estimated.basis.judgement.t_p > 3
    assert (estimated.best, estimated.pairs[0].verdict) == ("good", "better")
    assert without.basis is not None
    assert abs(without.basis.judgement.t_p) < 3  # shares alone do not show it


def test_an_estimate_that_is_not_believed_can_only_silence() -> None:
    log, policies = seeker(48)  # fewer rows than an estimate needs
    found = podium.estimate_propensities(log, KnowsTheSign())
    assert found.belief.verdict == "do not use"
    result = podium.compare(log, policies, behavior=found)
    assert result.pairs[0].verdict == "cannot tell"
    assert re.fullmatch(
        r"The logging policy seems to favor actions with high rewards by the estimated propensities "
        r"\(T_p = \d+\.\d\), and they are no proof\. Remedy: log the propensities, or name the behavior policy with "
        r"--behavior",
        result.pairs[0].reasons[0],
    )
    assert "The verdicts do without the estimated propensities" in " ".join(result.settings["notes"])


class KnowsTheSign:
    """The logger's rule, in the form of a classifier."""

    classes_ = np.arange(2)

    def fit(self, states: Any, actions: Any) -> KnowsTheSign:
        return self

    def predict_proba(self, states: Any) -> Any:
        one = np.where(states[:, 0] > 0, 0.75, 0.25)
        return np.column_stack([1 - one, one])


@pytest.mark.parametrize("procedure", ["posterior", "gated"])
def test_an_estimate_never_adds_to_the_gated_verdict(procedure: str) -> None:
    log, _ = drawn(rows=300, strength=0.5)
    policies = {"one": "constant:1", "two": "constant:2", "uniform": "uniform"}
    plain = podium.compare(log, policies, verdicts=procedure)
    result = podium.compare(log, policies, verdicts=procedure, behavior="estimate")
    if procedure == "gated":
        assert [p.difference for p in result.pairs] == [p.difference for p in plain.pairs]
    assert "estimated" in " ".join(result.settings["notes"])


def test_classical_verdicts_say_that_they_take_the_estimate_at_its_word() -> None:
    log, _ = drawn(rows=300)
    policies = {"one": "constant:1", "two": "constant:2"}
    note = "The errors take the estimated propensities as if they were known"
    by_dre = podium.compare(log, policies, "DRE", verdicts="paired t", behavior="estimate")
    by_lde = podium.compare(log, policies, "LDE", verdicts="paired t", behavior="estimate")
    assert note in by_dre.settings["notes"]
    assert note not in by_lde.settings["notes"]


# --- more than 20,000 rows -------------------------------------------------------------------------------------------


def long_log(seeks: float = 0.0, rows: int = 24_000) -> Any:
    """300 states, a logger that follows them (and the reward, if it seeks), and its probabilities (N, A)."""
    rng = np.random.default_rng(3)
    state = np.arange(rows) % 300
    quality = rng.normal(size=(300, 3)) + np.array([0.0, 0.4, 0.8])
    shares = np.array([0.5, 0.3, 0.2])  # of each action in a third of the states
    habit = np.stack([np.roll(shares, s) for s in range(300)]) * np.exp(seeks * quality)
    truth = (habit / habit.sum(axis=1, keepdims=True))[state]
    taken = (rng.random(rows)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    rewards = quality[state, taken] + 0.3 * rng.normal(size=rows)
    return podium.Log(state, taken, rewards, action_space=(0, 1, 2)), truth


FIXED = {"zero": "constant:0", "one": "constant:1", "two": "constant:2"}


SAMPLE = {"sample_rows": 2000}


@pytest.mark.slow  # estimates the propensities of a long log
def test_the_sample_of_a_long_log_is_judged_with_a_believable_estimate_as_a_short_log_is() -> None:
    log, truth = long_log()
    found = podium.compare(log, FIXED, behavior="estimate:frequencies", **SAMPLE)
    plain = podium.compare(log, FIXED, **SAMPLE)
    known = podium.compare(log.with_behavior(truth), FIXED, **SAMPLE)
    assert (found.log.knows, found.settings["verdicts"]) == ("estimated", "posterior")
    assert len(found.log.estimated.propensities) == len(log)
    for name in FIXED:
        assert found.estimates[name]["DRE"] == pytest.approx(known.estimates[name]["DRE"], abs=0.03)
        assert found.estimates[name]["LDE"] == pytest.approx(plain.estimates[name]["LDE"], rel=1e-12)
    for pair in plain.pairs:
        twin = found.pair(pair.a, pair.b)
        assert twin.difference == pytest.approx(pair.difference, abs=2 * twin.std_error)
        assert pair.verdict in (twin.verdict, "cannot tell")
    assert found.log.estimated.belief.verdict == "believable"
    assert "The estimated propensities are taken for the logger's habits" in " ".join(found.settings["notes"])
    assert {p.verdict for p in found.pairs} == {"better"}
    checked = podium.diagnose(log, FIXED, behavior="estimate:frequencies", **SAMPLE).to_dict()
    assert checked["log"]["propensities"] == "estimated"


def test_a_long_log_is_silent_where_the_estimate_seeks_reward() -> None:
    log, _ = long_log(seeks=1.0)
    found = podium.compare(log, FIXED, behavior="estimate:frequencies", **SAMPLE)
    assert all(p.verdict == "cannot tell" for p in found.pairs)
    assert all(p.reasons[0].code.startswith("logger seeks reward") for p in found.pairs)


def test_classical_verdicts_on_a_long_log_say_that_they_take_the_estimate_at_its_word() -> None:
    log, _ = long_log()
    found = podium.compare(log, FIXED, "DRE", verdicts="paired t", behavior="estimate:frequencies", **SAMPLE)
    assert "The errors take the estimated propensities as if they were known" in found.settings["notes"]

"""Eligible actions: every method, policy and error against plain loops, and what must change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from eligible_logs import kept_rows, plain_error, plain_terms, plain_value, simulated
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.policies import resolve_policies
from podium.verdicts.gated import Gates, policy_products

METHODS = ["IPS", "DRE", "LDE", "DiM"]


@pytest.mark.parametrize("distinct", [None, 6])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_its_plain_loop(method: str, distinct: int | None) -> None:
    log, policies = simulated(distinct=distinct)
    values = podium.evaluate(log, policies, [method]).values
    for name, policy in policies.items():
        assert values[name][method] == pytest.approx(plain_value(log, policy, method), abs=1e-10)
    if distinct:
        assert len(kept_rows(log)) < len(log)


@pytest.mark.parametrize("method", ["DRE", "LDE"])
def test_a_model_of_the_rewards_counts_on_eligible_actions_alone(method: str) -> None:
    log, policies = simulated()
    model = np.random.default_rng(3).normal(size=(len(log), log.n_actions))
    values = podium.evaluate(log, policies, [method], baseline=model).values
    for name, policy in policies.items():
        assert values[name][method] == pytest.approx(plain_value(log, policy, method, model), abs=1e-10)


@pytest.mark.parametrize("distinct", [None, 6])
@pytest.mark.parametrize("method", METHODS)
def test_standard_errors_are_their_plain_loops(method: str, distinct: int | None) -> None:
    log, policies = simulated(distinct=distinct)
    model = np.random.default_rng(3).normal(size=(len(log), log.n_actions))
    found = podium.evaluate(log, policies, [method], baseline=model)
    terms = {name: plain_terms(log, policy, method, model) for name, policy in policies.items()}
    for name in policies:
        if method in ("IPS", "DRE"):  # the others are scores, whose spread counts in pairs alone
            assert found.std_errors[name][method] == pytest.approx(plain_error(terms[name]), abs=1e-10)
    pair = podium.compare(log, policies, estimator=method, baseline=model, verdicts="paired t").pairs[0]
    gaps = [a - b for a, b in zip(terms[pair.a], terms[pair.b], strict=True)]
    units = log.mean_choices if method in ("LDE", "DiM") else 1.0
    assert pair.difference == pytest.approx(units * sum(gaps) / len(gaps), abs=1e-10)
    assert pair.std_error == pytest.approx(units * plain_error(gaps), abs=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_uniform_and_constant_are_their_plain_loops(method: str) -> None:
    log, _ = simulated(ineligible="renormalize")
    uniform, constant = np.zeros((2, len(log), log.n_actions))
    for n in range(len(log)):
        possible = [a for a in range(log.n_actions) if log.eligible[n, a]]
        for a in possible:
            uniform[n, a] = 1 / len(possible)
            constant[n, a] = float(a == 2) if 2 in possible else 1 / len(possible)
    values = podium.evaluate(log, {"u": "uniform", "c": "constant:2"}, [method]).values
    assert values["u"][method] == pytest.approx(plain_value(log, uniform, method), abs=1e-10)
    assert values["c"][method] == pytest.approx(plain_value(log, constant, method), abs=1e-10)


def test_lde_in_units_of_reward_is_unbiased_under_uniform_logging() -> None:
    """Over every action that could have been logged, A_n (r - b) pi / A_n adds up to the value: no set weighs more."""
    log, policies = simulated(rows=40, uniform=True)
    rewards = np.random.default_rng(1).normal(size=(len(log), log.n_actions))
    truth = {name: float((pi * rewards).sum(axis=1).mean()) for name, pi in policies.items()}
    total = dict.fromkeys(policies, 0.0)
    draws = 400
    rng = np.random.default_rng(2)
    for _ in range(draws):
        taken = np.array([rng.choice(np.flatnonzero(e)) for e in log.eligible])
        drawn = podium.Log(
            log.states, taken, rewards[np.arange(40), taken], eligible=log.eligible, action_space=range(5)
        )
        values = podium.evaluate(drawn, policies, ["LDE"], baseline=0.0).values
        for name in policies:
            total[name] += drawn.mean_choices * values[name]["LDE"] / draws
    for name in policies:
        assert total[name] == pytest.approx(truth[name], abs=0.06)


@pytest.mark.parametrize("kind", ["LDE", "DRE"])
def test_design_errors_are_their_plain_loops(kind: str) -> None:
    log, given = simulated()
    log, policies = resolve_policies(log, given)
    gates = Gates(log, policies)
    path = gates.lde if kind == "LDE" else gates.dre
    assert path is not None
    total = 0.0
    for n in range(len(log)):
        possible = [a for a in range(log.n_actions) if log.eligible[n, a]]
        for a in possible:
            gap = given["steep"][n, a] - given["against"][n, a]
            total += gap**2 * (len(possible) if kind == "LDE" else 1 / log.behavior[n, a])
    spread = gates.residual if kind == "LDE" else log.rewards
    expected = np.sqrt(float(np.var(spread)) * total / len(log) / len(log))
    assert path.design[0] == pytest.approx(expected, rel=1e-10)
    difference = sum(
        float(gates.residual[n] * (policies.policies[0].logged[n] - policies.policies[1].logged[n]))
        * (log.eligible[n].sum() if kind == "LDE" else 1 / log.propensities[n])
        for n in range(len(log))
    ) / len(log)
    assert path.difference[0] == pytest.approx(difference, abs=1e-10)


def test_disagreement_of_lde_and_dre_is_its_plain_loop() -> None:
    log, given = simulated()
    log, policies = resolve_policies(log, given)
    total = 0.0
    for n in range(len(log)):
        many = log.eligible[n].sum()
        for a in np.flatnonzero(log.eligible[n]):
            total += log.behavior[n, a] * (many - 1 / log.behavior[n, a]) ** 2 * given["steep"][n, a] ** 2
    assert policy_products(log, policies, "disagreement")[0, 0] == pytest.approx(total / len(log), rel=1e-10)


KNOWN = ("full", "logged", "none", "estimate")
ASKED = [(verdicts, known) for verdicts in ("posterior", "gated", "paired t") for known in KNOWN]


@pytest.mark.parametrize(("verdicts", "behavior"), [*ASKED, ("doubly robust", "full"), ("doubly robust", "logged")])
def test_what_says_nothing_changes_nothing(verdicts: str, behavior: str) -> None:
    """All actions eligible, or a further action that never is: the answer is that of a log without such columns."""
    rng = np.random.default_rng(5)
    n, space = 90, ("a", "b", "c")
    states = rng.normal(size=n).round(3)
    chances = rng.dirichlet([2, 2, 2], n)
    codes = np.array([rng.choice(3, p=row) for row in chances])
    rewards = codes * np.sin(states) + rng.normal(size=n)
    policies = {"x": rng.dirichlet([1, 2, 3], n), "y": rng.dirichlet([3, 2, 1], n)}
    known = {
        "full": {"behavior": chances},
        "logged": {"propensities": chances[np.arange(n), codes]},
        "none": {},
        "estimate": {"behavior": "estimate:frequencies"},
    }[behavior]
    labels = np.array(space)[codes]
    plain = podium.Log(states, labels, rewards, action_space=space, **known)
    full = podium.Log(states, labels, rewards, action_space=space, eligible=np.ones((n, 3), dtype=bool), **known)
    zero = np.zeros((n, 1))
    if behavior == "full":
        known = {"behavior": np.hstack([chances, zero])}
    wide = podium.Log(states, labels, rewards, action_space=(*space, "z"), eligible=[list(space)] * n, **known)
    answers = [
        podium.compare(log, given, verdicts=verdicts)
        for log, given in (
            (plain, policies),
            (full, policies),
            (wide, {name: np.hstack([pi, zero]) for name, pi in policies.items()}),
        )
    ]
    first = answers[0].pairs[0]
    for other in answers[1:]:
        pair = other.pairs[0]
        assert (pair.a, pair.verdict) == (first.a, first.verdict)
        assert pair.difference == pytest.approx(first.difference, abs=1e-7)
        assert pair.p_better == pytest.approx(first.p_better, abs=1e-6)
        for name in policies:
            for method in METHODS:
                assert other.estimates[name][method] == pytest.approx(answers[0].estimates[name][method], abs=1e-9)


def test_averages_over_states_are_refused() -> None:
    log, policies = simulated()
    with pytest.raises(podium.PodiumError) as error:
        podium.evaluate(log, policies, ["LDE"], normalize="states")
    assert str(error.value) == (
        'normalize="states" is for logs in which every action is possible in every row\n\n'
        "Hint: leave it out: without it rows count by the number of their eligible actions."
    )


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_order_in_lists_and_the_names_of_actions_say_nothing(seed: int) -> None:
    """Lists in another order, with repeated entries, and other names of the actions: the same numbers."""
    log, policies = simulated(rows=60, actions=4, seed=seed, distinct=8)
    rng = np.random.default_rng(seed)
    order = rng.permutation(4)  # action a is called names[a], and stands elsewhere in the space
    names = np.array(["k", "a", "z", "m"])[order]
    space = tuple(np.sort(names))
    back = [int(np.flatnonzero(names == label)[0]) for label in space]
    lists = ["|".join(rng.permutation(np.repeat(names[row], 2))) for row in log.eligible]
    other = podium.Log(
        log.states, names[log.action_codes], log.rewards, behavior=log.behavior[:, back], eligible=lists,
        action_space=space,
    )  # fmt: skip
    one = podium.compare(log, policies)
    two = podium.compare(other, {name: pi[:, back] for name, pi in policies.items()})
    assert two.log.distinct == one.log.distinct
    for name in policies:
        for method in METHODS:
            assert two.estimates[name][method] == pytest.approx(one.estimates[name][method], abs=1e-10)
    (p,), (q,) = one.pairs, two.pairs
    assert (q.a, q.b, q.verdict) == (p.a, p.b, p.verdict)
    assert q.difference == pytest.approx(p.difference, abs=1e-6)
    assert q.p_better == pytest.approx(p.p_better, abs=1e-5)

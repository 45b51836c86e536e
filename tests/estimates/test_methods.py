"""The four methods: equal to an independent implementation, to their identities, and to values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from random_logs import NUMBERS, Case, as_array, cases, fixed, tables
from reference import METHODS, Data, Form

import podium
from podium.engines.rows import WholeRows
from podium.estimates.evaluate import rows_of
from podium.estimates.methods import complete, prepare, run
from podium.estimates.moments import GroupSums, Moments, merge
from podium.estimates.options import Options

approx = pytest.approx
# --- random logs ---------------------------------------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {"normalize": st.sampled_from(["rows", "states"]), "duplicates": st.sampled_from([None, "latest", "all"])}
)


@st.composite
def baselines(draw: st.DrawFn, data: Data) -> tuple[Any, Any]:
    """A baseline for the reference, and the same one for podium."""
    kind = draw(st.sampled_from(["mean", "number", "q(s, a)", "v(s_n)"]))
    if kind == "mean":
        return "mean", "mean"
    if kind == "number":
        number = draw(NUMBERS)
        return number, number
    if kind == "v(s_n)":
        values = draw(st.lists(NUMBERS, min_size=len(data), max_size=len(data)))
        return values, np.array(values)
    table = draw(tables(data))
    return table, as_array(table, data)


# --- against the independent implementation ------------------------------------------------------------------------


@fixed
@given(st.data())
def test_evaluate_equals_the_reference(data: st.DataObject) -> None:
    case = data.draw(cases())
    options = data.draw(OPTIONS)
    plain, ours = data.draw(baselines(case.data))
    result = podium.evaluate(case.log, case.policies, baseline=ours, **options)
    for name in case.policies:
        for method in METHODS:
            form = Form(method, plain, **options)
            expected = reference.value(case.data, case.plain(name), form)
            assert reference.close(
                result.values[name][method], expected, reference.size(case.data, case.plain(name), form)
            )


@fixed
@given(st.data())
def test_compare_equals_the_reference(data: st.DataObject) -> None:
    case = data.draw(cases(units=data.draw(st.booleans())))
    options = data.draw(OPTIONS)
    plain, ours = data.draw(baselines(case.data))
    form = Form(data.draw(st.sampled_from(METHODS)), plain, **options)
    result = podium.compare(
        case.log, case.policies, estimator=form.method, baseline=ours, verdicts="paired t", **options
    )
    scores = {p.name: p.score for p in result.policies}
    sizes = {name: reference.size(case.data, case.plain(name), form) for name in case.policies}
    for name in case.policies:
        assert reference.close(scores[name], reference.value(case.data, case.plain(name), form), sizes[name])
    for better, worse in pairwise(result.policies):
        assert worse.score <= better.score + 1e-12 * (sizes[better.name] + sizes[worse.name])
    units = reference.reward_units(case.data, form)
    for pair in result.pairs:
        a, b = case.plain(pair.a), case.plain(pair.b)
        scale = units * (sizes[pair.a] + sizes[pair.b])
        assert reference.close(pair.difference, reference.difference(case.data, a, b, form), scale)
        error = reference.std_error(case.data, a, b, form)
        if error is None:
            assert pair.std_error is None
        else:
            assert reference.close(pair.std_error or 0.0, error, scale)


@fixed
@given(st.data())
def test_compare_states_equals_the_reference(data: st.DataObject) -> None:
    case = data.draw(cases())
    options = data.draw(OPTIONS)
    plain, ours = data.draw(baselines(case.data))
    form = Form(data.draw(st.sampled_from(METHODS)), plain, **options)
    result = podium.compare_states(case.log, case.policies, estimator=form.method, baseline=ours, **options)
    for k, name in enumerate(case.policies):
        expected = reference.state_values(case.data, case.plain(name), form)
        groups = reference.by_state(case.data, reference.terms(case.data, case.plain(name), form))
        assert set(result.states) == set(expected)
        for i, state in enumerate(result.states):
            assert result.rows[i] == len(groups[state])
            size = sum(t.size for t in groups[state])
            assert reference.close(result.values[i, k], expected[state], size)


@fixed
@given(st.data())
def test_states_average_to_the_estimate(data: st.DataObject) -> None:
    """Weighted by rows, or each state alike in the per-state form."""
    case = data.draw(cases())
    options = data.draw(OPTIONS)
    method = data.draw(st.sampled_from(METHODS))
    states = podium.compare_states(case.log, case.policies, estimator=method, **options)
    whole = podium.evaluate(case.log, case.policies, **options)
    weights = states.rows if options["normalize"] == "rows" else np.ones(len(states.states))
    for k, name in enumerate(case.policies):
        size = reference.size(case.data, case.plain(name), Form(method, **options))
        average = float(weights @ states.values[:, k] / weights.sum())
        assert reference.close(average, whole.values[name][method], size)


def test_reference_covers_what_logs_hold() -> None:
    """The random logs have duplicates, tied times and unobserved actions often enough to mean something."""
    seen = {"duplicates": 0, "tied times": 0, "unobserved": 0, "all": 0}

    @fixed
    @given(cases())
    def look(case: Case) -> None:
        d = case.data
        seen["all"] += 1
        seen["duplicates"] += len(set(zip(d.states, d.actions, strict=True))) < len(d)
        seen["tied times"] += d.times is not None and len(set(d.times)) < len(d)
        seen["unobserved"] += len(set(d.actions)) < len(d.space)

    look()
    assert all(seen[what] >= seen["all"] / 10 for what in seen)


# --- identities ----------------------------------------------------------------------------------------------------

EXTREMES = st.sampled_from([{"repeated": False}, {"repeated": True}])


def estimates(case: Case, duplicates: str | None, baseline: Any = "mean") -> dict[str, dict[str, float]]:
    result = podium.evaluate(case.log, case.policies, baseline=baseline, duplicates=duplicates)
    return {name: {m: float(v) for m, v in row.items()} for name, row in result.values.items()}


def scale(case: Case, name: str, method: str, baseline: Any = "mean") -> float:
    return reference.size(case.data, case.plain(name), Form(method, baseline, duplicates="all"))


@fixed
@given(st.data(), EXTREMES)
def test_with_p_one_dre_is_lde_and_ips_is_dim(data: st.DataObject, kind: dict[str, bool]) -> None:
    case = data.draw(cases(propensities="one", **kind))
    values = estimates(case, "all" if kind["repeated"] else None)
    for name in case.policies:
        assert values[name]["DRE"] == values[name]["LDE"]
        assert values[name]["IPS"] == values[name]["DiM"]


@fixed
@given(st.data(), EXTREMES)
def test_without_baseline_lde_is_dim_and_dre_is_ips(data: st.DataObject, kind: dict[str, bool]) -> None:
    case = data.draw(cases(**kind))
    values = estimates(case, "all" if kind["repeated"] else None, baseline=0)
    for name in case.policies:
        assert values[name]["LDE"] == values[name]["DiM"]
        assert values[name]["DRE"] == values[name]["IPS"]


@fixed
@given(st.data(), EXTREMES, st.one_of(st.just("mean"), NUMBERS))
def test_uniform_logging(data: st.DataObject, kind: dict[str, bool], baseline: Any) -> None:
    """IPS = A DiM; with a constant baseline b, DRE - b = A (LDE - b), so the two rank alike."""
    case = data.draw(cases(propensities="uniform", **kind))
    duplicates = "all" if kind["repeated"] else None
    actions = len(case.data.space)
    values = estimates(case, duplicates, baseline)
    b = float(np.mean(case.data.rewards)) if baseline == "mean" else baseline
    for name in case.policies:
        assert reference.close(values[name]["IPS"], actions * values[name]["DiM"], scale(case, name, "IPS"))
        size = scale(case, name, "DRE", baseline)
        assert reference.close(values[name]["DRE"] - b, actions * (values[name]["LDE"] - b), size)
    lde = podium.compare(case.log, case.policies, "LDE", baseline, duplicates="all", verdicts="paired t")
    dre = podium.compare(case.log, case.policies, "DRE", baseline, duplicates="all", verdicts="paired t")
    for pair in lde.pairs:  # both are in units of reward
        size = scale(case, pair.a, "DRE", baseline) + scale(case, pair.b, "DRE", baseline)
        assert reference.close(dre.pair(pair.a, pair.b).difference, pair.difference, size)
    gaps = [abs(a.score - b.score) for a, b in pairwise(lde.policies)]
    if all(gap > 1e-9 for gap in gaps):
        assert lde.ranking == dre.ranking


@fixed
@given(st.data(), EXTREMES)
def test_exact_baseline_makes_lde_and_dre_equal_the_model(data: st.DataObject, kind: dict[str, bool]) -> None:
    case = data.draw(cases(**kind))
    q = data.draw(tables(case.data))
    rewards = [q[s, a] for s, a in zip(case.data.states, case.data.actions, strict=True)]
    case = replace(case, data=replace(case.data, rewards=rewards))
    values = estimates(case, "all" if kind["repeated"] else None, as_array(q, case.data))
    for name in case.policies:
        truth = float(np.mean(np.sum(as_array(q, case.data) * case.policies[name], axis=1)))
        assert values[name]["LDE"] == values[name]["DRE"]
        assert reference.close(values[name]["LDE"], truth, scale(case, name, "LDE", q))


@fixed
@given(st.data(), NUMBERS)
def test_added_reward_moves_lde_and_dre_by_as_much(data: st.DataObject, c: float) -> None:
    case = data.draw(cases())
    moved = replace(case, data=replace(case.data, rewards=[r + c for r in case.data.rewards]))
    before, after = estimates(case, None), estimates(moved, None)
    for name in case.policies:
        for method in ("LDE", "DRE"):
            form = Form(method)
            size = reference.size(case.data, case.plain(name), form)
            size += reference.size(moved.data, case.plain(name), form) + abs(c)
            assert reference.close(after[name][method], before[name][method] + c, size)


def test_added_reward_can_flip_dim() -> None:
    """DiM prefers the policy that puts more mass on logged actions, as soon as rewards are high enough.

    "good" gives (2 x .5 + 0 x .1) / 2 = .5, "busy" (2 x .2 + 0 x .9) / 2 = .2. With rewards 12 and 10:
    "good" (12 x .5 + 10 x .1) / 2 = 3.5, "busy" (12 x .2 + 10 x .9) / 2 = 5.7. LDE keeps the order.
    """
    policies = {"good": [[0.5, 0.5], [0.9, 0.1]], "busy": [[0.2, 0.8], [0.1, 0.9]]}
    low = podium.Log(["x", "y"], ["a", "b"], [2.0, 0.0])
    high = podium.Log(["x", "y"], ["a", "b"], [12.0, 10.0])
    assert podium.compare(low, policies, "DiM", verdicts="paired t").ranking == ["good", "busy"]
    assert podium.compare(high, policies, "DiM", verdicts="paired t").ranking == ["busy", "good"]
    assert podium.evaluate(high, policies).values["busy"]["DiM"] == approx(5.7)
    for log in (low, high):
        assert podium.compare(log, policies, "LDE", verdicts="paired t").ranking == ["good", "busy"]


@fixed
@given(st.data())
def test_a_against_b_is_minus_b_against_a(data: st.DataObject) -> None:
    case = data.draw(cases(policies=(2, 2)))
    options = data.draw(OPTIONS)
    method = data.draw(st.sampled_from(METHODS))
    (a, b), backwards = case.policies, dict(reversed(case.policies.items()))
    there = podium.compare(case.log, case.policies, method, verdicts="paired t", **options).pair(a, b)
    back = podium.compare(case.log, backwards, method, verdicts="paired t", **options).pair(b, a)
    assert there.difference == -back.difference
    assert (there.std_error or 0.0) == approx(back.std_error or 0.0, rel=1e-6, abs=1e-12)
    assert there.p_better == approx(1 - back.p_better, abs=1e-6)
    assert there.reversed().verdict == back.verdict
    assert (there.interval is None) == (back.interval is None)
    if there.interval and back.interval:
        size = reference.size(case.data, case.plain(a), Form(method, **options)) * len(case.data.space)
        assert there.interval.low == approx(-back.interval.high, rel=1e-6, abs=1e-9 * size + 1e-12)


@fixed
@given(st.data(), st.randoms(use_true_random=False))
def test_row_order_means_nothing_where_times_are_given(data: st.DataObject, random: Any) -> None:
    case = data.draw(cases(timed="unique"))
    options = data.draw(OPTIONS)
    order = list(range(len(case.data)))
    random.shuffle(order)
    d = case.data
    shuffled = Case(
        replace(
            d,
            states=[d.states[n] for n in order],
            actions=[d.actions[n] for n in order],
            rewards=[d.rewards[n] for n in order],
            propensities=[d.propensities[n] for n in order],
            times=[d.times[n] for n in order],
        ),
        {name: matrix[order] for name, matrix in case.policies.items()},
    )
    for baseline in ("mean", "state"):
        before = podium.evaluate(case.log, case.policies, baseline=baseline, **options)
        after = podium.evaluate(shuffled.log, shuffled.policies, baseline=baseline, **options)
        for name in case.policies:
            for method in METHODS:
                size = max(map(abs, d.rewards)) / min(d.propensities) * (len(d) + 1)
                assert reference.close(after.values[name][method], before.values[name][method], size)


@fixed
@given(st.data(), st.randoms(use_true_random=False))
def test_names_of_actions_mean_nothing(data: st.DataObject, random: Any) -> None:
    """Actions are renamed and the action space reordered; the columns of the policies follow."""
    case = data.draw(cases(rows=(2, 12)))
    options = data.draw(OPTIONS)
    d = case.data
    names = [f"action {k}" for k in range(len(d.space))]
    random.shuffle(names)
    rename = dict(zip(d.space, names, strict=True))
    order = list(range(len(d.space)))
    random.shuffle(order)
    renamed = Case(
        replace(d, actions=[rename[a] for a in d.actions], space=[names[k] for k in order]),
        {name: matrix[:, order] for name, matrix in case.policies.items()},
    )
    q = data.draw(tables(d))
    assume(len(d) >= 2)
    for baseline in ("mean", "state", "linear", "q"):
        before_baseline: Any = as_array(q, d) if baseline == "q" else baseline
        after_baseline: Any = as_array(q, d)[:, order] if baseline == "q" else baseline
        if baseline == "linear" and len(case.log.latest) < 2:
            continue
        before = podium.evaluate(case.log, case.policies, baseline=before_baseline, **options)
        after = podium.evaluate(renamed.log, renamed.policies, baseline=after_baseline, **options)
        size = 1e3 * len(d) / min(d.propensities)
        tolerance = 1e-10 if baseline == "linear" else 1e-12
        for name in case.policies:
            for method in METHODS:
                ours, theirs = after.values[name][method], before.values[name][method]
                assert reference.close(ours, theirs, size, tolerance)


@fixed
@given(cases(), st.integers(1, 5))
def test_parts_of_rows_sum_to_the_whole(case: Case, size: int) -> None:
    """A log in memory is one part; however its rows are cut, the sums are the same."""
    options = Options(baseline="mean")
    rows = rows_of(case.log, case.policies, options)
    (method,) = complete(rows, [prepare(rows, podium.LDE, options)])
    method = replace(method, paired=True)
    (whole,) = run(rows, [method])

    def cut(function: Any, label: str, latest: bool) -> Any:
        part = rows.all_at_once
        return function(part.take(slice(start, start + size)) for start in range(0, len(part.rows), size))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WholeRows, "fold", lambda self, *work: cut(*work))
        (parts,) = run(rows, [method])
    largest = max(scale(case, name, "LDE") for name in case.policies)
    assert parts.values == approx(whole.values, rel=1e-9, abs=1e-9 * largest + 1e-300)
    assert parts.std_error == approx(whole.std_error, rel=1e-6, abs=1e-9 * largest + 1e-300, nan_ok=True)


TERMS = hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.just(3)), elements=NUMBERS)


@fixed
@given(TERMS, st.lists(st.integers(0, 30), max_size=4))
def test_moments_of_parts_merge_to_those_of_the_whole(terms: np.ndarray, cuts: list[int]) -> None:
    parts = [part for part in np.split(terms, sorted(min(c, len(terms)) for c in cuts)) if len(part)]
    merged, whole = merge(Moments.of(part) for part in parts), Moments.of(terms)
    size = float(np.abs(terms).mean())
    assert merged.count == whole.count == len(terms)
    assert merged.mean == approx(whole.mean, rel=0, abs=1e-12 * size + 1e-300)
    columns = terms.T.tolist()
    for i, x in enumerate(columns):
        for j, y in enumerate(columns):
            mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
            loop = sum((u - mean_x) * (v - mean_y) for u, v in zip(x, y, strict=True))
            bound = 1e-12 * len(x) * float(np.abs(terms).max()) ** 2 + 1e-300
            assert merged.scatter[i, j] == approx(loop, rel=0, abs=bound)
            assert whole.scatter[i, j] == approx(loop, rel=0, abs=bound)


@fixed
@given(st.data())
def test_group_sums_of_parts_merge_to_those_of_the_whole(data: st.DataObject) -> None:
    terms = data.draw(TERMS)
    groups = data.draw(hnp.arrays(np.int64, len(terms), elements=st.integers(0, 4)))
    cut = data.draw(st.integers(1, max(1, len(terms) - 1)))
    pieces = [(terms[:cut], groups[:cut]), (terms[cut:], groups[cut:])]
    merged = merge(GroupSums.of(t, g, 5) for t, g in pieces if len(t))
    for g in range(5):
        rows = [row for row, group in zip(terms.tolist(), groups.tolist(), strict=True) if group == g]
        assert merged.sizes[g] == len(rows)
        for k in range(3):
            assert merged.sums[g, k] == approx(sum(row[k] for row in rows), abs=1e-9)


# --- worked out by hand --------------------------------------------------------------------------------------------
#
#  row  state action reward   p     pi(a|s)  w = pi/p
#   1     x     a      1     1/2      1/2       1        overwritten by row 5 for LDE and DiM
#   2     x     b      3     1/4      1/4       1
#   3     y     a      2     1/2      1/4      1/2
#   4     y     b      6     1/8      1/4       2
#   5     x     a      5     1/2      1/2       1
#
#  pi(.|x) = (1/2, 1/4, 1/4), pi(.|y) = (1/4, 1/4, 1/2) over the actions a, b, c; c is never logged.
#  LDE and DiM keep rows 2, 3, 4, 5; IPS and DRE all five.

PI = {"x": [0.5, 0.25, 0.25], "y": [0.25, 0.25, 0.5]}
EXAMPLE = podium.Log(
    ["x", "x", "y", "y", "x"],
    ["a", "b", "a", "b", "a"],
    [1.0, 3.0, 2.0, 6.0, 5.0],
    propensities=[0.5, 0.25, 0.5, 0.125, 0.5],
    action_space=("a", "b", "c"),
)
Q = {("x", "a"): 2.0, ("x", "b"): 4.0, ("x", "c"): 0.0, ("y", "a"): 1.0, ("y", "b"): 4.0, ("y", "c"): 2.0}
V = {"x": 2.0, "y": 3.0}


def q(states: Any, actions: Any) -> np.ndarray:
    return np.array([Q[s, a] for s, a in zip(states, actions, strict=True)])


def v(states: Any) -> np.ndarray:
    return np.array([V[s] for s in states])


class MeanOfTheOthers:
    """Predicts the mean reward of the rows it was fitted on."""

    def fit(self, features: np.ndarray, rewards: np.ndarray) -> MeanOfTheOthers:
        self.mean = rewards.mean()
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), self.mean)


GOLDEN = [
    # DiM = (3/4 + 2/4 + 6/4 + 5/2) / 4 = 5.25 / 4;  IPS = (1 + 3 + 2/2 + 6 x 2 + 5) / 5 = 22 / 5
    # LDE: mean of 3, 2, 6, 5 is 4:   4   + (-1/4 - 2/4 + 2/4 + 1/2) / 4           = 4 + .25 / 4
    # DRE: mean of all is 3.4:        3.4 + (-2.4 - .4 - 1.4/2 + 2.6 x 2 + 1.6) / 5 = 3.4 + 3.3 / 5
    ("mean", "mean", 4.0625, 4.06),
    # number 2:  LDE = 2 + (1/4 + 0 + 4/4 + 3/2) / 4 = 2 + 2.75 / 4;  DRE = 2 + (-1 + 1 + 0 + 4 x 2 + 3) / 5 = 2 + 11/5
    ("number", 2, 2.6875, 4.2),
    # q: sum_a q pi = 2/2 + 4/4 + 0 = 2 in x, and 1/4 + 4/4 + 2/2 = 2.25 in y.
    # LDE: corrections (3-4)/4, (2-1)/4, (6-4)/4, (5-2)/2 sum to 2;    (2 + 2 x 2 + 2 x 2.25) / 4 = 10.5 / 4
    # DRE: corrections (1-2), (3-4), (2-1)/2, (6-4) x 2, (5-2) sum to 5.5;    (5.5 + 3 x 2 + 2 x 2.25) / 5 = 16 / 5
    ("q(s, a)", q, 2.625, 3.2),
    ("(N, A) array", np.array([[Q[s, a] for a in "abc"] for s in "xxyyx"]), 2.625, 3.2),
    # v: LDE: corrections (3-2)/4, (2-3)/4, (6-3)/4, (5-2)/2 sum to 2.25;    (2.25 + 2 + 3 + 3 + 2) / 4 = 12.25 / 4
    # DRE: corrections (1-2), (3-2), (2-3)/2, (6-3) x 2, (5-2) sum to 8.5;    (8.5 + 2 + 2 + 3 + 3 + 2) / 5 = 20.5 / 5
    ("v(s)", v, 3.0625, 4.1),
    ("(N,) array", [2.0, 2.0, 3.0, 3.0, 2.0], 3.0625, 4.1),
    # fit/predict: five rows or fewer have a fold each, so every row is predicted by the mean of the others.
    # LDE: rhat = 13/3, 14/3, 10/3, 11/3 (mean 4); corrections (-4/3)/4, (-8/3)/4, (8/3)/4, (4/3)/2 sum to 1/3;
    #      4 + 1/12 = 49/12
    # DRE: rhat = 4, 3.5, 3.75, 2.75, 3 (mean 3.4); corrections -3, -.5, -1.75/2, 3.25 x 2, 2 sum to 4.125;
    #      3.4 + .825
    ("fit/predict", MeanOfTheOthers(), 49 / 12, 4.225),
    # state: the mean of the other rows of the state, among all five rows: 4, 3, 6, 2, 2.
    # LDE: rhat 3, 6, 2, 2 (mean 3.25); corrections 0, -4/4, 4/4, 3/2 sum to 1.5;    3.25 + 1.5 / 4
    # DRE: mean 17/5; corrections -3, 0, -4/2, 4 x 2, 3 sum to 6;    3.4 + 6/5
    ("state", "state", 3.625, 4.6),
]


@pytest.mark.parametrize(("baseline", "lde", "dre"), [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN])
def test_golden_values(baseline: Any, lde: float, dre: float) -> None:
    policies = {"table": PI, "rows": np.array([PI[s] for s in "xxyyx"])}
    result = podium.evaluate(EXAMPLE, policies, baseline=baseline)
    for name in policies:
        assert result.values[name] == approx({"LDE": lde, "DRE": dre, "IPS": 4.4, "DiM": 1.3125}, rel=1e-14)


def test_golden_linear_of_two_rows() -> None:
    """A line through one row is flat: each row is predicted by the other's reward.

    LDE = [(1 - 4) .5 + 4 + (4 - 1) .25 + 1] / 2 = 4.25 / 2; DRE = [(1 - 4) .5/.5 + 4 + (4 - 1) .25/.125 + 1] / 2 = 4.
    """
    log = podium.Log([0.0, 1.0], ["a", "b"], [1.0, 4.0], propensities=[0.5, 0.125])
    pi = np.array([[0.5, 0.5], [0.75, 0.25]])
    values = podium.evaluate(log, {"pi": pi}, baseline="linear").values["pi"]
    assert (values["LDE"], values["DRE"]) == approx((2.125, 4.0), rel=1e-14)


def test_golden_linear_of_a_line() -> None:
    """r = 1 + 2 s + 3 [a = b] is learned from any three rows, so LDE = DRE = mean of 1 + 2 s + 3 pi(b|s).

    s = 0, 1, 2, 3 and pi(b|s) = 0, .2, .4, .6: 1 + 2 x 1.5 + 3 x .3 = 4.9.
    """
    log = podium.Log([0, 1, 2, 3], ["a", "b", "b", "a"], [1.0, 6.0, 8.0, 7.0], propensities=[0.3, 0.4, 0.5, 0.6])
    b = np.array([0.0, 0.2, 0.4, 0.6])
    values = podium.evaluate(log, {"pi": np.column_stack([1 - b, b])}, baseline="linear").values["pi"]
    assert (values["LDE"], values["DRE"]) == approx((4.9, 4.9), rel=1e-12)


def test_golden_per_state_form() -> None:
    """Example 1 of the paper: sums over logged actions (DiM, LDE), means over draws (IPS, DRE), then over states.

    DiM: x 3/4 + 5/2 = 3.25, y 2/4 + 6/4 = 2;                    mean 2.625
    LDE: 4 + x (-1/4 + 1/2) = 4.25, y 4 + (-2/4 + 2/4) = 4;      mean 4.125
    IPS: x (1 + 3 + 5) / 3 = 3, y (2/2 + 6 x 2) / 2 = 6.5;       mean 4.75
    DRE: 3.4 + x (-2.4 - .4 + 1.6) / 3 = 3, y 3.4 + (-.7 + 5.2) / 2 = 5.65;    mean 4.325
    """
    expected = {"x": (4.25, 3.0, 3.0, 3.25), "y": (4.0, 5.65, 6.5, 2.0)}
    values = podium.evaluate(EXAMPLE, {"pi": PI}, normalize="states").values["pi"]
    assert values == approx({"LDE": 4.125, "DRE": 4.325, "IPS": 4.75, "DiM": 2.625}, rel=1e-14)
    for k, method in enumerate(METHODS):
        states = podium.compare_states(EXAMPLE, {"pi": PI}, estimator=method, normalize="states")
        assert states.states == ("x", "y")
        assert states.values[:, 0] == approx([expected["x"][k], expected["y"][k]], rel=1e-14)


def test_golden_duplicates_rule() -> None:
    """With duplicates="all", DiM = (1/2 + 5.25) / 5; with "latest", IPS = (3 + 1 + 12 + 5) / 4."""
    every = podium.evaluate(EXAMPLE, {"pi": PI}, duplicates="all").values["pi"]
    latest = podium.evaluate(EXAMPLE, {"pi": PI}, duplicates="latest").values["pi"]
    assert every["DiM"] == approx(1.15)
    assert every["IPS"] == approx(4.4)
    assert latest["IPS"] == approx(5.25)
    assert latest["DiM"] == approx(1.3125)


def test_times_decide_which_row_is_latest() -> None:
    """Row 1 comes last in time, so it stays; at equal times the later row stays."""
    log = podium.Log(["x", "x"], ["a", "a"], [1.0, 5.0], times=[2.0, 1.0])
    tied = podium.Log(["x", "x"], ["a", "a"], [1.0, 5.0], times=[2.0, 2.0])
    assert podium.evaluate(log, {"pi": "constant:a"}).values["pi"]["DiM"] == 1.0
    assert podium.evaluate(tied, {"pi": "constant:a"}).values["pi"]["DiM"] == 5.0


def test_new_actions_of_a_policy_enlarge_the_space() -> None:
    """An action that only a policy knows counts in A, and takes mass from the logged ones."""
    log = podium.Log(["x", "y"], ["a", "a"], [1.0, 3.0])
    result = podium.compare(log, {"old": "constant:a", "new": {"x": "b", "y": "a"}}, "DiM", verdicts="paired t")
    assert result.log.action_space == ("a", "b")
    assert result.estimates["new"]["DiM"] == approx(1.5)
    assert result.pair("old", "new").difference == approx(2 * 0.5)  # A times the difference of 2 and 1.5

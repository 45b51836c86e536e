"""The gated verdict against plain loops: baseline, both paths, design errors, degrees of freedom, and the choice."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import fsum, log, sqrt
from typing import Any

import numpy as np
import pytest
from samples import logged_only, sample
from scipy import stats

import podium
from podium.data.log import Log
from podium.policies import resolve_policies
from podium.verdicts import gated as gated_module
from podium.verdicts.gated import Gates, bounded_products, policy_products
from podium.verdicts.pairs import pair_variance
from podium.verdicts.unseen_weight import REWARDS_UNSEEN, Weights

approx = pytest.approx


def mean(values: Any) -> float:
    values = list(values)
    return fsum(values) / len(values)


def degrees(c: list[float]) -> float:
    """2 J / (k - 1), at least 1 and at most J - 1."""
    j = len(c)
    kurtosis = j * fsum(v**4 for v in c) / fsum(v**2 for v in c) ** 2
    return min(max(2 * j / (kurtosis - 1), 1.0), j - 1)


def spread(values: list[float], freedom: int = 0) -> float:
    centre = mean(values)
    return sqrt(fsum((v - centre) ** 2 for v in values) / (len(values) - freedom))


@dataclass
class Loop:
    """The formulas for one pair, row by row; g = pi - mu, kept = the latest row of each (state, action)."""

    log: Log
    pi: np.ndarray
    mu: np.ndarray

    def __post_init__(self) -> None:
        self.n, self.a = len(self.log), self.log.n_actions
        self.r = self.log.rewards.tolist()
        self.states = [str(s) for s in self.log.states]
        self.b = [self.baseline(n) for n in range(self.n)]
        self.g = [float(self.pi[n, c] - self.mu[n, c]) for n, c in enumerate(self.log.action_codes)]
        latest = {(s, int(a)): n for n, (s, a) in enumerate(zip(self.states, self.log.action_codes, strict=True))}
        self.kept = sorted(latest.values())
        self.p = None if self.log.propensities is None else self.log.propensities.tolist()

    def baseline(self, n: int) -> float:
        """Whole states, the nearest first, until they hold 10 other rows; text states: rows of the same text."""
        others = [m for m in range(self.n) if m != n]
        if self.log.states.dtype.kind in "OUT":
            near = [m for m in others if self.states[m] == self.states[n]]
            return mean(self.r[m] for m in near or others)
        distance = {s: abs(float(s) - float(self.states[n])) for s in set(self.states)}
        near = []
        for state in sorted(distance, key=lambda s: distance[s]):
            near += [m for m in others if self.states[m] == state]
            if len(near) >= 10:
                break
        return mean(self.r[m] for m in near)

    def clusters(self, rows: list[int], x: list[float], keys: list[str]) -> list[float]:
        sums: dict[str, float] = {}
        for n, value in zip(rows, x, strict=True):
            sums[keys[n]] = sums.get(keys[n], 0.0) + value
        return list(sums.values())

    def path(self, name: str) -> dict[str, float]:
        if name == "LDE":
            rows = self.kept
            x = [self.a * (self.r[n] - self.b[n]) * self.g[n] for n in rows]
            sigma = spread([self.r[n] - self.b[n] for n in rows])
            h = mean(fsum(self.a * (self.pi[n, c] - self.mu[n, c]) ** 2 for c in range(self.a)) for n in range(self.n))
        else:
            assert self.p is not None
            rows = list(range(self.n))
            x = [(self.r[n] - self.b[n]) * self.g[n] / self.p[n] for n in rows]
            sigma = spread(self.r)
            h = float("nan")
            if self.log.behavior is not None:
                full = self.log.behavior
                h = mean(
                    fsum((self.pi[n, c] - self.mu[n, c]) ** 2 / full[n, c] for c in range(self.a))
                    for n in range(self.n)
                )
        groupings = [self.states] + ([] if self.log.units is None else [[str(u) for u in self.log.units]])
        found = [self.clusters(rows, x, keys) for keys in groupings]  # with units, the worse of both counts
        return {
            "difference": fsum(x) / len(rows),
            "empirical": max(sqrt(len(c)) * spread(c, 1) / len(rows) for c in found),
            "design": sigma * sqrt(h / len(rows)),
            "freedom": min(degrees(c) for c in found),
            "rows": len(rows),
        }

    def t_p(self) -> float:
        """t statistic of the correlation of log p and r - b; without p, each action's share of the rows."""
        if self.p is not None:
            x = [log(p) for p in self.p]
        else:
            codes = self.log.action_codes.tolist()
            counts = [codes.count(a) for a in range(self.a)]
            if self.n >= 5 * self.a and stats.chisquare(counts).pvalue > 0.05:
                return 0.0  # the shares are as even as chance would have them
            x = [log(codes.count(c) / self.n) for c in codes]
        r = stats.pearsonr(x, [r - b for r, b in zip(self.r, self.b, strict=True)]).statistic
        return float(r * sqrt((self.n - 2) / (1 - r * r)))

    def z_b(self) -> float:
        if self.p is None:
            return 0.0
        centre = mean(self.r)
        x = [(self.r[n] - centre) * self.g[n] * (self.a - 1 / self.p[n]) for n in range(self.n)]
        z = mean(x) / (spread(x, 1) / sqrt(self.n))
        if self.log.behavior is None:
            return z
        seen = mean((self.g[n] * (self.a - 1 / self.p[n])) ** 2 for n in range(self.n))
        full = self.log.behavior
        expected = mean(
            fsum(full[n, c] * ((self.pi[n, c] - self.mu[n, c]) * (self.a - 1 / full[n, c])) ** 2 for c in range(self.a))
            for n in range(self.n)
        )
        return z * sqrt(min(1.0, seen / expected))

    def chosen(self) -> str:
        limit = 3.0 if self.p is not None else 2.0
        fine = len(self.kept) >= 50 and abs(self.t_p()) <= limit and abs(self.z_b()) <= 2
        return "LDE" if fine or self.p is None else "DRE"


CASES: dict[str, dict[str, Any]] = {
    "numbers": {"rows": 70},
    "repeated numbers": {"rows": 90, "distinct": 25},
    "texts": {"rows": 80, "text": True, "distinct": 20},
    "a text per row": {"rows": 60, "text": True},
    "units": {"rows": 80, "units": 15},
    "units and texts": {"rows": 80, "units": 12, "text": True, "distinct": 30},
    "few rows": {"rows": 30},
    "p only": {"rows": 70, "knows": "logged"},
    "few rows, p only": {"rows": 30, "knows": "logged"},
    "no p": {"rows": 70, "knows": "none"},
    "few rows, no p": {"rows": 30, "knows": "none"},
    "a logger that seeks reward": {"rows": 120, "seeks": 1.5},
    "seeks, p only": {"rows": 120, "seeks": 1.5, "knows": "logged"},
    "seeks, no p": {"rows": 120, "seeks": 1.5, "knows": "none"},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_formulas(name: str, seed: int) -> None:
    log, policies = sample(seed=seed, **CASES[name])
    result = podium.compare(log, policies, verdicts="gated")
    gates = Gates(result.log, result.basis.policies)
    judgement = result.basis.judgement
    names = list(policies)
    for n, (i, j) in enumerate(zip(*np.triu_indices(3, 1), strict=True)):
        loop = Loop(log, policies[names[i]], policies[names[j]])
        assert gates.baseline == approx(np.array(loop.b))
        assert gates.t_p == approx(loop.t_p())
        assert gates.z_b[n] == approx(loop.z_b(), abs=1e-12)
        for path in ("LDE", "DRE"):
            found = gates.lde if path == "LDE" else gates.dre
            if found is None:
                assert log.propensities is None
                continue
            expected = loop.path(path)
            assert found.rows == expected["rows"]
            assert found.difference[n] == approx(expected["difference"], rel=1e-9)
            assert found.empirical[n] == approx(expected["empirical"], rel=1e-9)
            assert found.design[n] == approx(expected["design"], rel=1e-9, nan_ok=True)
            assert found.freedom[n] == approx(expected["freedom"], rel=1e-9)
        taken = loop.chosen()
        expected = loop.path(taken)
        assert judgement.path[n] == taken
        assert judgement.difference[n] == approx(expected["difference"], rel=1e-9)
        if judgement.silent[n]:
            assert judgement.p_above()[n] == 0.5
        else:
            z = expected["difference"] / max(expected["empirical"], expected["design"])
            assert judgement.p_above()[n] == approx(stats.t.cdf(z, expected["freedom"]), abs=1e-9)


def verdicts_of(name: str, **more: Any) -> podium.Comparison:
    log, policies = sample(**(CASES[name] | more))
    return podium.compare(log, policies, verdicts="gated")


def test_which_path_is_taken() -> None:
    """LDE where the log is long and harmless; DRE otherwise, and silence where DRE cannot be trusted."""
    assert {p.path for p in verdicts_of("few rows").pairs} == {"DRE"}
    assert {p.path for p in verdicts_of("a logger that seeks reward", rows=300).pairs} == {"DRE"}
    assert {p.path for p in verdicts_of("no p").pairs} == {"LDE"}
    fair = verdicts_of("numbers", rows=400, effect=0.2)
    assert "LDE" in {p.path for p in fair.pairs}


def test_why_nothing_is_claimed() -> None:
    lacking = {
        "few rows, p only": "only the logged actions' propensities are known. Remedy: log more rows, or log "
        "propensity:<action> for every action, or name the behavior policy with --behavior",
        "few rows, no p": "the log has no propensities. Remedy: log more rows, or log them, or name the behavior "
        'policy with --behavior, such as "shares:a=.4,b=.6"',
    }
    for name, what in lacking.items():
        few = f"Fewer than 50 distinct rows, and DRE cannot step in: {what}"
        for pair in verdicts_of(name, effect=0.0).pairs:
            assert (pair.verdict, pair.p_better, pair.reasons) == ("cannot tell", 0.5, (few,))
    for name in ("seeks, p only", "seeks, no p"):
        for pair in verdicts_of(name, rows=300).pairs:
            assert (pair.verdict, pair.p_better) == ("cannot tell", 0.5)
            assert pair.reasons[0].code == "logger seeks reward"
            assert pair.reasons[0].fields["t_p"] > 2


def test_what_was_assumed_is_said() -> None:
    none = verdicts_of("no p").settings
    assert [note.code for note in none.notes] == ["no propensities"]
    assert "no action was logged more often" in none.assumes
    assert verdicts_of("numbers").settings.notes == ()
    log, policies = sample()
    partial = podium.compare(log, logged_only(log, policies)).settings.notes
    assert partial[0].code == "policies at logged actions"


def test_one_state_cannot_be_judged() -> None:
    log, policies = sample(rows=60, distinct=1)
    for pair in podium.compare(log, policies, verdicts="gated").pairs:
        assert (pair.verdict, pair.p_better) == ("cannot tell", 0.5)


# --- policies known only at the logged actions ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("text", [False, True])
def test_the_bound_is_above_the_true_design_error(seed: int, text: bool) -> None:
    """What the policies do at actions that were never logged can only make the error smaller than the bound."""
    log, policies = sample(rows=60, actions=4, count=4, seed=seed, distinct=15, text=text)
    _, full = resolve_policies(log, policies)
    _, partial = resolve_policies(log, logged_only(log, policies))
    i, j = np.triu_indices(4, 1)
    exact = pair_variance(policy_products(log, full, "LDE"), i, j)
    bound = pair_variance(bounded_products(log, partial), i, j)
    assert (bound >= exact * (1 - 1e-12)).all()
    whole, part = Gates(log, full).lde, Gates(log, partial).lde
    assert (part.std_error >= whole.std_error * (1 - 1e-12)).all()
    assert part.difference == approx(whole.difference)


def test_the_bound_is_exact_where_every_action_was_logged() -> None:
    states, actions = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    rng = np.random.default_rng(0)
    log = podium.Log(states, actions, rng.normal(size=36))
    policies = {f"p{k}": rng.dirichlet(np.ones(3), 12)[states] for k in range(3)}
    _, full = resolve_policies(log, policies)
    _, partial = resolve_policies(log, logged_only(log, policies))
    i, j = np.triu_indices(3, 1)
    exact = pair_variance(policy_products(log, full, "LDE"), i, j)
    assert pair_variance(bounded_products(log, partial), i, j) == approx(exact)


@pytest.mark.parametrize("kind", ["LDE", "DRE", "disagreement"])
def test_products_of_mixed_policies(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deterministic, spread and uniform policies, also in small blocks."""
    log, spread_ = sample(rows=40, actions=4)
    chosen = np.arange(40) % 4
    policies = {"c": chosen, **spread_, "d": (chosen * 3) % 4, "u": "uniform", "k": "constant:2"}
    _, resolved = resolve_policies(log, policies)
    full = np.stack([p.full(4) for p in resolved])
    assert log.behavior is not None
    b = log.behavior
    weight = {"LDE": np.full_like(b, 4.0), "DRE": 1 / b, "disagreement": b * (4 - 1 / b) ** 2}[kind]
    expected = np.einsum("kna,na,lna->kl", full, weight, full) / 40
    assert policy_products(log, resolved, kind) == approx(expected)
    monkeypatch.setattr(gated_module, "CELLS", 100)
    assert policy_products(log, resolved, kind) == approx(expected)


def test_equal_rewards_are_not_claimed_from_rounding() -> None:
    for level in (0.1, 1e6 + 0.1, 1e-300):
        log = podium.Log(np.arange(80) % 9, np.arange(80) % 2, np.full(80, level), np.full(80, 0.5))
        result = podium.compare(log, {"zero": "constant:0", "one": "constant:1"}, verdicts="gated")
        assert (result.pairs[0].verdict, result.pairs[0].p_better) == ("cannot tell", 0.5)
        assert result.pairs[0].reasons


# --- larger logs than the sample -------------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", ["posterior", "gated"])
def test_the_sample_is_judged_as_a_log_of_its_own(procedure: str) -> None:
    log, policies = sample(600, distinct=200)
    found = podium.compare(log, policies, verdicts=procedure, sample_rows=200)
    drawn = found.basis.rows.numbers
    alone = podium.compare(log.take(drawn), {k: p[drawn] for k, p in policies.items()}, verdicts=procedure)
    assert found.sample == {"rows": 200, "of": 600}
    assert [p.name for p in found.policies] == [p.name for p in alone.policies]
    for pair, other in zip(found.pairs, alone.pairs, strict=True):
        assert replace(pair, source="all rows") == other
        assert (pair.source, other.source) == ("sample", "all rows")
    assert found.settings.notes[-1] == (
        "Estimates come from all rows; verdicts and what drives them from a random sample of 200 of the 600 rows"
    )


def test_a_large_log_is_judged_quickly_and_right() -> None:
    rng = np.random.default_rng(0)
    rows = 20_001
    actions = rng.integers(0, 3, rows)
    log = podium.Log(rng.normal(size=rows), actions, rng.normal(size=rows) + 0.1 * actions, np.full(rows, 1 / 3))
    policies = {"two": "constant:2", "zero": "constant:0", "any": "uniform"}
    for procedure in ("gated", "doubly robust"):
        result = podium.compare(log, policies, verdicts=procedure)
        assert (result.settings.verdicts, result.settings.estimator) == (procedure, procedure)
        assert result.ranking == ["two", "any", "zero"]
        assert {p.verdict for p in result.pairs} == {"better"}
        assert {p.source for p in result.pairs} == {"sample" if procedure == "gated" else "all rows"}


def seeker(rows: int = 9_000, hidden: float = 0.0) -> tuple[podium.Log, dict[str, Any]]:
    """The logger likes the good action; p at the logged action, every row its own state. `hidden` goes unlogged."""
    rng = np.random.default_rng(5)
    likes = rng.uniform(0.3, 0.9, rows)
    played = (rng.random(rows) < likes).astype(int)
    p = np.where(played == 1, likes, 1 - likes)
    log = podium.Log(np.arange(rows), played, rng.normal(size=rows) + 0.8 * played, p, action_space=(0, 1, 2))
    good = np.column_stack([np.full(rows, 0.1), np.full(rows, 0.9 - hidden), np.full(rows, hidden)])
    return log, {"good": good, "bad": good[:, [1, 0, 2]] if not hidden else np.eye(3)[np.zeros(rows, dtype=int)]}


@pytest.mark.parametrize("whole", [True, False])
def test_a_long_log_with_p_at_the_logged_action_speaks_for_itself(whole: bool) -> None:
    """All rows together judge, as the sample alone is silent of a logger that seeks reward."""
    log, policies = seeker()
    weights = np.column_stack([p[np.arange(len(log)), log.action_codes] for p in policies.values()])
    weights /= log.propensities[:, None]
    result = podium.compare(log, policies if whole else logged_only(log, policies), sample_rows=1_000)
    (pair,) = result.pairs
    assert (pair.verdict, pair.path, pair.source) == ("better", "DRE", "all rows")
    assert pair.difference == approx(0.64, abs=0.1)
    assert result.settings.verdicts == "doubly robust"
    assert "errors from weights" in [note.code for note in result.settings.notes]
    assert result.settings.assumes.endswith(REWARDS_UNSEEN)
    missing = (1 - weights.mean(axis=0)) ** 2 + weights.var(axis=0) / len(log)
    assert pair.std_error == approx(3 * result.basis.sample.rewards.std() * np.sqrt(missing.sum()))


def test_a_long_log_that_has_not_seen_what_a_policy_does_says_so() -> None:
    log, policies = seeker(hidden=0.2)
    for procedure in (None, "doubly robust"):
        (pair,) = podium.compare(log, policies, verdicts=procedure, sample_rows=1_000).pairs
        assert pair.verdict == "cannot tell"
    assert re.fullmatch(
        r"DRE alone would claim too much: the log has not seen all that 'good' does, its propensities are wrong, or "
        r"the policy was trained on these rows: mean weight 0\.\d+, not 1",
        pair.reasons[0],
    )


def test_what_weights_leave_open() -> None:
    n = 40_000
    w = Weights(
        ("right", "rounded", "by chance", "lacks", "off", "one row"),
        n,
        total=n * np.array([1.0, 1.009, 0.97, 0.9, 0.97, 1.0]),
        squares=n * np.array([2.0, 1.0182, 0.97**2 + 4.0, 0.9**2 + 100.0, 0.97**2 + 0.01, 20.0]),
        largest=np.array([5.0, 2.0, 30.0, 30.0, 2.0, 300.0]),
    )
    assert w.doubts[:3] == [None, None, None]
    assert [doubt.code for doubt in w.doubts[3:]] == ["unseen weight", "unseen weight", "one heavy row"]
    assert [doubt.fields["mean_weight"] for doubt in w.doubts[3:5]] == approx([0.9, 0.97])
    assert w.doubts[5] == "a single row has 11% of the squared weights of 'one row'"
    errors = w.errors(np.array([0, 0, 3]), np.array([2, 3, 4]))
    assert errors[0] == approx(3 * np.sqrt(1 / n + 0.03**2 + 4 / n))
    assert np.isnan(errors[1:]).all()


@pytest.mark.parametrize("rows", [200, 21_000])
def test_a_uniform_logger_leaves_nothing_for_lde_and_dre_to_disagree_on(rows: int) -> None:
    """1/p misses 49 by a bit, and of all rows alike or not; a statistic of that would be noise."""
    rng = np.random.default_rng(0)
    p = np.full(rows, 1 / 49) * (1 + 1e-15 * rng.integers(-2, 3, rows))
    actions = rng.integers(0, 49, rows)
    log = podium.Log(
        rng.normal(size=rows), actions, rng.normal(size=rows), propensities=p, action_space=tuple(range(49))
    )
    policies = {f"p{k}": rng.uniform(size=rows) / 49 for k in range(3)}
    result = podium.compare(log, policies, verdicts="gated")
    assert result.basis.judgement.logger.z_b.tolist() == [0, 0, 0]
    assert {pair.path for pair in result.pairs} == {"LDE"}

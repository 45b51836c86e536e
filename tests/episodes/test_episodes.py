"""Recorded episodes as interactions: what becomes of them, what is refused, and numbers far below floating point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import podium
from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.data.facts import Fact
from podium.episodes import Episode, EpisodeLog, compare, log_proxy, read

BOUNDS = "give bounds=(low, high), numbers or one per coordinate; a Gymnasium space or environment also serves."
CONTINUOUS = (
    "the proxy is for continuous actions. Give policies that offer log_prob(observations, actions), or one row per "
    "step: podium.Log(observations, actions, rewards)."
)
FORMS = "give Episode(observations, actions, rewards), a mapping or an object with those names, or a tuple of the three"


def follow(o: Any) -> Any:
    return np.clip(o[..., :1], -1, 1)


def stay(o: Any) -> Any:
    return 0 * o[..., :1]


POLICIES = {"follow": follow, "stay": stay}


def episode(k: int = 0, steps: int = 4, name: str | None = None) -> Episode:
    """Steps in which the logged action is half of the observation."""
    seen = np.random.default_rng(k).uniform(-1, 1, (steps, 2))
    return Episode(seen, seen[:, :1] / 2, seen[:, 1], behavior=name)


def episodes(count: int = 5, name: str | None = None) -> list[Episode]:
    return [episode(k, steps=3 + k, name=name) for k in range(count)]


def refused(message: str, hint: str, function: Callable[[], Any]) -> None:
    with pytest.raises(PodiumError) as caught:
        function()
    assert str(caught.value) == f"{message}\n\nHint: {hint}"


# --- what an episode becomes -------------------------------------------------------------------------------------


def test_state_action_and_reward_of_an_episode() -> None:
    made = EpisodeLog(episodes(), bounds=(-1, 1)).interactions(POLICIES)
    assert_array_equal(made.log.states, [e.observations[0] for e in episodes()])
    assert_array_equal(made.log.actions, range(5))
    assert_allclose(made.log.rewards, [e.rewards.sum() for e in episodes()])
    assert made.log.propensities is None


def test_policies_have_the_proxy_at_the_logged_observations() -> None:
    made = EpisodeLog(episodes(), bounds=(-1, 1)).interactions(POLICIES, behavior="stay")
    for name, policy in POLICIES.items():
        ours = [policy(e.observations) for e in episodes()]
        expected = log_proxy(ours, [e.actions for e in episodes()], -1, 1)
        assert_allclose(made.log_probabilities[name], expected, rtol=1e-12)
        assert_allclose(made.policies[name].source, np.exp(expected), rtol=1e-12)
        assert made.policies[name].proxy
    assert_allclose(made.log.propensities, made.policies["stay"].source)


def test_the_horizon_cuts_rewards_and_actions() -> None:
    short = [Episode(e.observations[:3], e.actions[:3], e.rewards[:3]) for e in episodes()]
    cut = EpisodeLog(episodes(), bounds=(-1, 1), horizon=3).interactions(POLICIES)
    whole = EpisodeLog(short, bounds=(-1, 1)).interactions(POLICIES)
    assert_array_equal(cut.log.rewards, whole.log.rewards)
    for name in POLICIES:
        assert_array_equal(cut.log_probabilities[name], whole.log_probabilities[name])


@pytest.mark.parametrize(
    "form",
    [
        lambda e: (e.observations, e.actions, e.rewards),
        lambda e: {"observations": e.observations.tolist(), "actions": e.actions[:, 0], "rewards": e.rewards},
        lambda e: SimpleNamespace(
            observations=np.vstack([e.observations, [9.0, 9.0]]),
            actions=e.actions,
            rewards=e.rewards,
            terminations=np.array([False] * (len(e) - 1) + [True]),
        ),
    ],
    ids=["tuple", "mapping", "object with a last observation"],
)
def test_every_form_of_an_episode_is_the_same(form: Callable[[Episode], Any]) -> None:
    expected = compare(episodes(), POLICIES, bounds=(-1, 1)).estimates
    assert compare([form(e) for e in episodes()], POLICIES, bounds=(-1, 1)).estimates == expected


def test_five_episodes_cannot_decide_and_say_why() -> None:
    result = compare(episodes(name="stay"), POLICIES, bounds=(-1, 1))
    assert [p.verdict for p in result.pairs] == ["cannot tell"]
    assert result.pairs[0].reasons == (
        "Fewer than 50 distinct rows, and DRE cannot step in: only the logged actions' propensities are known. Remedy: "
        "log more rows, or log propensity:<action> for every action, or name the behavior policy with --behavior",
    )
    shown = " ".join(str(result).split())
    assert "Scores that stand for probabilities (proxies): follow, stay" in shown
    assert "Probabilities of sequences are proxies" in shown
    assert result.warnings == ()


def test_many_episodes_rank_and_claim_nothing_on_proxies() -> None:
    result = compare([episode(k) for k in range(60)], POLICIES, bounds=(-1, 1))
    assert result.pairs[0].reasons == (
        "Scores that stand for probabilities rank policies; how sure the ranking is cannot be told from them",
    )


# --- who acted ---------------------------------------------------------------------------------------------------


def test_behavior_is_a_name_a_policy_names_or_what_the_episodes_say() -> None:
    expected = compare(episodes(), POLICIES, bounds=(-1, 1), behavior="stay").estimates
    assert expected["stay"]["IPS"] == pytest.approx(np.mean([e.rewards.sum() for e in episodes()]))
    for source, behavior in [
        (episodes(), stay),
        (episodes(), ["stay"] * 5),
        (episodes(), [stay] * 5),
        (episodes(), ["stay", stay, "stay", stay, "stay"]),
        (episodes(name="stay"), None),
        (episodes(name="old"), {"old": stay}),
    ]:
        assert compare(source, POLICIES, bounds=(-1, 1), behavior=behavior).estimates == expected


def test_each_episode_has_the_propensity_of_its_own_policy() -> None:
    mixed = [episode(0, name="follow"), episode(1, name="stay")]
    made = EpisodeLog(mixed, bounds=(-1, 1)).interactions(POLICIES)
    found = made.log_probabilities
    assert_array_equal(made.log_propensities, [found["follow"][0], found["stay"][1]])


def test_logged_is_the_behaviour_policy_as_a_candidate() -> None:
    result = compare(episodes(name="stay"), {**POLICIES, "now": "logged"}, bounds=(-1, 1))
    assert result.estimates["now"] == result.estimates["stay"]


def test_unknown_behaviour_leaves_out_what_needs_it() -> None:
    result = compare(episodes(name="old"), POLICIES, bounds=(-1, 1))
    assert set(result.unavailable) >= {"IPS", "DRE"}
    note = "The policies that acted are not all known ('old'), so there are no propensities"
    assert note in result.settings["notes"]


# --- numbers that floating point cannot hold ---------------------------------------------------------------------


class Gaussian:
    """A policy with densities: normal about a slope times the first observation."""

    def __init__(self, slope: float, spread: float) -> None:
        self.slope, self.spread = slope, spread

    def log_prob(self, observations: Any, actions: Any) -> Any:
        z = (actions[:, 0] - self.slope * observations[:, 0]) / self.spread
        return -0.5 * z**2 - np.log(self.spread * np.sqrt(2 * np.pi))


def test_ratios_of_vanishing_probabilities() -> None:
    """1e-417 and 1e-145: no factor brings both into floating point, and the ratios count all the same."""
    seen = np.zeros((1000, 1))
    logged = [Episode(seen, np.full((1000, 1), x), np.full(1000, r)) for x, r in ((-0.9, 1.0), (-0.5, 2.0))]
    near, far = (lambda o: 0 * o + 0.5), (lambda o: 0 * o + 0.501)
    made = EpisodeLog(logged, bounds=(-1, 1)).interactions({"near": near, "far": far}, behavior="far")
    assert_allclose(made.log_probabilities["near"] / np.log(10), [-417.2, -144.8], atol=0.1)
    ratios = np.exp(made.log_probabilities["near"] - made.log_probabilities["far"])
    assert made.log.propensities is None
    estimates = podium.evaluate(made.log, made.policies).values
    rewards = np.array([1000.0, 2000.0])
    assert estimates["near"]["IPS"] == pytest.approx(np.mean(rewards * ratios), rel=1e-9)
    assert estimates["near"]["DRE"] == pytest.approx(1500 + np.mean((rewards - 1500) * ratios), rel=1e-9)
    assert estimates["far"]["IPS"] == pytest.approx(1500, rel=1e-12)
    # LDE: one factor for all, so that the largest is 1.
    largest = max(values.max() for values in made.log_probabilities.values())
    lde = 1500 + np.mean((rewards - 1500) * np.exp(made.log_probabilities["near"] - largest))
    assert estimates["near"]["LDE"] == pytest.approx(lde, rel=1e-9)
    assert {"probabilities rescaled", "tiny propensities"} <= {note.code for note in made.notes}


def test_ratios_are_plain_division_where_nothing_vanishes() -> None:
    made = EpisodeLog(episodes(), bounds=(-1, 1)).interactions(POLICIES, behavior="stay")
    plain = {name: podium.Policy(p.source, "probabilities", proxy=True) for name, p in made.policies.items()}
    divided, given = (podium.evaluate(made.log, p).values for p in (plain, made.policies))
    for name in POLICIES:
        for method in ("LDE", "DiM", "IPS", "DRE"):
            assert given[name][method] == pytest.approx(divided[name][method], rel=1e-12)


def test_a_behaviour_policy_of_probability_zero_leaves_out_ips_and_dre() -> None:
    logged = [Episode(np.zeros((2, 1)), [[-1.0], [0.0]], [1.0, 1.0]), Episode(np.zeros((1, 1)), [[0.0]], [1.0])]
    policies = {"top": lambda o: 0 * o + 1, "mid": lambda o: 0 * o}
    result = compare(logged, policies, bounds=(-1, 1), behavior="top")
    note = "IPS and DRE are left out: the behaviour policy's own probability is 0 in episode 1 (1 episode)"
    assert note in result.settings["notes"]
    assert set(result.unavailable) >= {"IPS", "DRE"}
    assert result.estimates["top"]["LDE"] is not None


def test_ratios_beyond_floating_point_leave_out_ips_and_dre() -> None:
    logged = [Episode(np.zeros((1000, 1)), np.full((1000, 1), 0.9), np.ones(1000))] * 2
    policies = {"same": lambda o: 0 * o + 0.9, "other": lambda o: 0 * o - 0.5}
    result = compare(logged, policies, bounds=(-1, 1), behavior="other")
    assert "ratio too large" in [note.code for note in result.settings["notes"] if isinstance(note, Fact)]
    assert set(result.unavailable) >= {"IPS", "DRE"}


def test_a_policy_that_no_episode_speaks_of() -> None:
    logged = [Episode(np.zeros((1, 1)), [[-1.0]], [1.0]), Episode(np.zeros((1, 1)), [[-1.0]], [2.0])]
    result = compare(logged, {"top": lambda o: 0 * o + 1, "mid": lambda o: 0 * o}, bounds=(-1, 1))
    note = "Policy 'top' has probability 0 in every episode: nothing that was logged speaks of it"
    assert note in result.settings["notes"]


def test_episodes_that_were_cut_short_are_named() -> None:
    short = [Episode(np.zeros((t, 1)), np.zeros((t, 1)), np.ones(t), terminated=e) for t, e in ((5, False), (2, False))]
    note = "1 episode stopped before step 5 without having ended: returns are not whole"
    assert note in compare(short, POLICIES, bounds=(-1, 1)).settings["notes"]


# --- densities ---------------------------------------------------------------------------------------------------


def test_densities_are_used_where_all_policies_offer_them() -> None:
    wide, narrow = Gaussian(0.5, 0.1), Gaussian(0.4, 0.05)
    made = EpisodeLog(episodes()).interactions({"wide": wide, "narrow": narrow}, behavior="wide")
    for name, policy in (("wide", wide), ("narrow", narrow)):
        expected = [policy.log_prob(e.observations, e.actions).sum() for e in episodes()]
        assert_allclose(made.log_probabilities[name], expected, rtol=1e-12)
    assert max(p.source.max() for p in made.policies.values()) == 1, "densities above 1 are scaled"
    expected = np.exp(made.log_probabilities["narrow"] - made.log_probabilities["wide"])
    assert_allclose(made.policies["narrow"].ratios, expected, rtol=1e-12)
    assert "Probabilities of sequences are products of the policies' densities" in made.notes


def test_a_function_of_observations_and_actions_gives_densities() -> None:
    wide = Gaussian(0.5, 0.1)
    a = EpisodeLog(episodes()).interactions({"p": wide}).log_probabilities["p"]
    b = EpisodeLog(episodes()).interactions({"p": lambda o, a: wide.log_prob(o, a)}).log_probabilities["p"]
    assert_array_equal(a, b)


def test_one_policy_without_densities_makes_all_proxies() -> None:
    class Both(Gaussian):
        def __call__(self, o: Any) -> Any:
            return self.slope * o[..., :1]

    both = Both(0.5, 0.1)
    made = EpisodeLog(episodes(), bounds=(-1, 1)).interactions({"both": both, "stay": stay})
    assert_allclose(made.log_probabilities["both"], 0, atol=1e-12)
    assert "The densities that 'both' can give are not used: not every policy has them" in made.notes
    refused(
        "policy 'stay' offers no densities",
        "give it a method log_prob(observations, actions), or use probabilities='proxy'.",
        lambda: compare(episodes(), {"both": both, "stay": stay}, bounds=(-1, 1), probabilities="density"),
    )
    refused(
        "policy 'only' offers densities and no actions; the proxy needs its actions",
        "give log_prob for every policy and for the behaviour policy, or functions of an observation.",
        lambda: compare(episodes(), {"only": Gaussian(1, 1), "stay": stay}, bounds=(-1, 1)),
    )


def test_discrete_actions_with_densities() -> None:
    def log_prob(observations: Any, actions: Any) -> Any:
        assert actions.dtype.kind == "i"
        return np.log(np.where(actions == 1, 0.75, 0.25))

    logged = [Episode(np.zeros((2, 1)), [0, 1], [1.0, 0.0]), Episode(np.zeros((1, 1)), [1], [1.0])]
    made = EpisodeLog(logged).interactions({"p": log_prob})
    assert_allclose(made.policies["p"].source, [0.1875, 0.75])


# --- policies ----------------------------------------------------------------------------------------------------


class Predictor:
    def predict(self, observations: Any) -> Any:
        return np.clip(observations[:, 0], -1, 1)


@pytest.mark.parametrize(
    "policy",
    [
        lambda o: np.clip(o[:1], -1, 1),
        lambda o: float(np.clip(o[0], -1, 1)),
        lambda o: [o[0]],
        lambda o: np.clip(o[:, :1], -1, 1),
        lambda o: o[:, 0],
        Predictor(),
    ],
    ids=["one", "number", "list", "batch", "flat batch", "predict"],
)
def test_policies_take_one_observation_or_many(policy: Any) -> None:
    expected = EpisodeLog(episodes(), bounds=(-1, 1)).interactions({"p": follow}).log_probabilities["p"]
    found = EpisodeLog(episodes(), bounds=(-1, 1)).interactions({"p": policy}).log_probabilities["p"]
    assert_allclose(found, expected, rtol=1e-12)


def test_a_function_of_one_observation_is_not_taken_for_one_of_many() -> None:
    """On a batch it gives the right shape and the wrong numbers."""

    def unit(o: Any) -> Any:
        return o / np.linalg.norm(o)

    seen = np.random.default_rng(0).normal(size=(6, 2))
    logged = [Episode(seen, np.zeros((6, 2)), np.ones(6))]
    found = EpisodeLog(logged, bounds=(-1, 1)).interactions({"p": unit}).log_probabilities["p"]
    expected = log_proxy([seen / np.linalg.norm(seen, axis=1, keepdims=True)], [np.zeros((6, 2))], -1, 1)
    assert_allclose(found, expected, rtol=1e-12)


def test_a_batch_function_of_constants() -> None:
    found = EpisodeLog(episodes(), bounds=(-1, 1)).interactions({"p": lambda o: np.zeros((len(o), 1))})
    expected = EpisodeLog(episodes(), bounds=(-1, 1)).interactions({"p": stay})
    assert_array_equal(found.log_probabilities["p"], expected.log_probabilities["p"])


# --- bad input ---------------------------------------------------------------------------------------------------


def run(policy: Any = stay, source: Any = None, **options: Any) -> Callable[[], Any]:
    return lambda: compare(source or episodes(), {"p": policy, "stay": stay}, **{"bounds": (-1, 1), **options})


def logged(o: Any = ((0.0,), (0.0,)), a: Any = ((0.0,), (0.0,)), r: Any = (1.0, 1.0)) -> list[Any]:
    """A good episode and one that may not be."""
    return [([[0.0]], [[0.0]], [1.0]), (o, a, r)]


BOX = SimpleNamespace(low=np.array([-np.inf, 0]), high=np.array([np.inf, 1]))
DISCRETE = type("Discrete", (), {"n": 2, "__repr__": lambda self: "Discrete(2)"})()


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (
            run(source=logged(a=[[0.0], [1.5]])),
            "the logged actions must lie within the bounds [-1, 1]; step 2 of episode 2 holds 1.5 (1 step)",
            "log the actions as the environment got them (clipped), or widen bounds.",
        ),
        (
            run(lambda o: 0 * o[..., :1] + 3),
            "policy 'p' must lie within the bounds [-1, 1]; step 1 of episode 1 holds 3 (25 steps)",
            "clip its actions, as the environment would.",
        ),
        (
            run(lambda o: 0 * o[..., :1] + np.nan),
            "policy 'p' must be finite numbers; step 1 of episode 1 holds nan (25 steps)",
            "repair the policy.",
        ),
        (
            run(bounds=BOX),
            "the action space is unbounded: low is -inf at coordinate 1",
            "the proxy measures distances as shares of the action range; give bounds=(low, high) that hold every "
            "action, or policies that offer log_prob(observations, actions).",
        ),
        (run(bounds=None), "the bounds of the action space are not known", BOUNDS),
        (run(bounds=3), "no bounds of an action space can be read from int", BOUNDS),
        (run(bounds=("a", 1)), "bounds must be two numbers, or two lists of the same length", BOUNDS),
        (
            run(bounds=([0, 1], [1, 1])),
            "the action space must have low < high; coordinate 2 has low 1 and high 1 (1 coordinate)",
            BOUNDS,
        ),
        (run(bounds=([-1, -1], [1, 1])), "the logged actions have 1 coordinate; the bounds have 2", BOUNDS),
        (run(bounds=DISCRETE, probabilities="proxy"), "the action space is discrete: Discrete(2)", CONTINUOUS),
        (run(bounds=DISCRETE), "the action space is discrete: Discrete(2)", CONTINUOUS),
        (
            run(lambda o: o),
            "policy 'p' gives actions of shape (25, 2) for 25 observations; the logged ones have (25, 1)",
            "it must give one action per observation, with the coordinates of the logged actions.",
        ),
        (
            run(lambda o: 1 / 0),
            "policy 'p' failed on the logged steps: ZeroDivisionError: division by zero",
            "it was called with arrays of shape (25, 2).",
        ),
        (
            run(lambda o: np.random.default_rng().uniform(-1, 1, 1)),
            "policy 'p' acts at random: it gave two actions for one observation",
            "give its most likely action, or log_prob(observations, actions).",
        ),
        (
            run(7),
            "policy 'p' cannot act: it is int",
            "a policy is a function of an observation (or a batch of them), a Stable-Baselines3 model, an object with "
            "predict(observations), one with log_prob(observations, actions), 'sb3:ALGO:model.zip' or "
            "'package.module:object'.",
        ),
        (
            lambda: compare(episodes(), {"p": lambda o, a: a[:3, 0]}),
            "policy 'p' gives log-densities of shape (3,) for 25 steps",
            "log_prob(observations, actions) gives one number per step; add up the coordinates.",
        ),
        (
            lambda: compare(episodes(), {"p": lambda o, a: a[:, 0] * np.nan}),
            "policy 'p' must give a log-density; step 1 of episode 1 holds nan (25 steps)",
            "repair it.",
        ),
        (run(source=logged([], [], [])), "episode 2: the episode has no steps", "leave empty episodes out."),
        (
            run(source=logged(r=[1.0, np.nan])),
            "episode 2: rewards must be finite numbers; step 2 holds nan (1 step)",
            "repair or drop the episode.",
        ),
        (
            run(source=logged(a=[[np.nan], [0.0]])),
            "episode 2: actions must be finite numbers; step 1 holds nan (1 step)",
            "repair or drop the episode.",
        ),
        (
            run(source=logged(o=[[0.0], [np.inf]])),
            "episode 2: observations must be finite numbers; step 2 holds inf (1 step)",
            "repair or drop the episode.",
        ),
        (
            run(source=logged(a=[[0.0]])),
            "episode 2: there are 2 rewards and 1 action",
            "give one action per step.",
        ),
        (
            run(source=logged(a=[[], []])),
            "episode 2: its actions have no coordinates",
            "an action is at least one number.",
        ),
        (
            run(source=logged(o=[[0.0]])),
            "episode 2: there are 2 rewards and 1 observation",
            "give one observation per step, with or without the one after the last step.",
        ),
        (
            run(source=logged(o=[["a"], ["b"]])),
            "episode 2: observations must be numbers, the same count in every step",
            f"{FORMS}; an array each.",
        ),
        (
            run(source=logged(o={"camera": [1.0], "lidar": [2.0]})),
            "episode 2: observations are a mapping of camera, lidar",
            "flatten them into one array per step, and give policies that take it.",
        ),
        (
            run(source=logged(o=[[0.0, 0.0], [0.0, 0.0]])),
            "episode 2: observations of shape (2,), where those of episode 1 have (1,)",
            "compare episodes of one environment.",
        ),
        (
            run(source=logged(a=[[0.0, 0.0], [0.0, 0.0]])),
            "episode 2: actions of shape (2,), where those of episode 1 have (1,)",
            "compare episodes of one environment.",
        ),
        (run(source=[{"rewards": [1.0]}]), "episode 1: it has no observations", f"{FORMS}."),
        (
            run(source=[([[0.0]], [[0.0]], [[1.0]])]),
            "episode 1: rewards must have one number per step; their shape is (1, 1)",
            f"{FORMS}.",
        ),
        (lambda: compare([], POLICIES), "there are no episodes", "a comparison needs at least one."),
        (lambda: compare(7, POLICIES), "episodes must be a list of episodes; it is int", f"{FORMS}."),
        (lambda: compare(episodes(), {}), "no policies to compare", "give policies={'name': ...}."),
        (
            run(horizon=0),
            "horizon must be a whole number from 1 on; it is 0",
            "use horizon=100 for the first 100 steps; None for whole episodes.",
        ),
        (
            run(probabilities="exact"),
            "probabilities must be 'auto', 'proxy' or 'density'; it is 'exact'",
            "'auto' uses densities where every policy offers them.",
        ),
        (
            run(coordinates="median"),
            "coordinates must be 'mean', 'step' or 'exponent'; it is 'median'",
            "'mean' is the paper's text, 'exponent' its authors' program.",
        ),
        (
            run(behavior=["stay"]),
            "behavior must have one entry per episode; it has 1 for 5 episodes",
            "name the policy that acted in each episode.",
        ),
        (
            run(behavior=["stay", stay, "old", "p", "p"]),
            "the episodes were recorded with policies that are not given: 'old'",
            "known are 'p', 'stay'; give the others with behavior={name: policy}.",
        ),
        (
            run("logged"),
            "the policy 'logged' is the behaviour policy, and the episodes do not say what that is",
            "give behavior=, or record episodes with the name of the policy that acts.",
        ),
    ],
)
def test_bad_input_is_told(function: Callable[[], Any], message: str, hint: str) -> None:
    refused(message, hint, function)


def test_single_precision_bounds_hold_their_own_actions() -> None:
    low = np.float32(-0.4)
    source = [Episode(np.zeros((1, 1)), np.array([[-0.4]]), [1.0])]
    found = EpisodeLog(source, bounds=(low, -low)).interactions({"p": lambda o: 0 * o - 0.4})
    assert_allclose(found.log_probabilities["p"], 0, atol=1e-12)


# --- files of steps ----------------------------------------------------------------------------------------------

STEPS = """episode,step,x,y,action,reward,behavior,terminated
a,1,0.5,0.1,0.2,1,stay,0
b,2,0.3,0.1,0.0,4,stay,1
a,2,0.6,0.2,0.1,2,stay,1
b,1,0.4,0.2,-0.2,3,stay,0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_of_steps(folder: Path) -> None:
    (folder / "steps.csv").write_text(STEPS)
    first, second = read("steps.csv")
    assert_array_equal(first.observations, [[0.5, 0.1], [0.6, 0.2]])
    assert_array_equal(first.actions, [[0.2], [0.1]])
    assert_array_equal(second.rewards, [3, 4])
    assert (first.behavior, first.terminated) == ("stay", True)
    assert read("steps.csv", observation=["y"])[1].observations.tolist() == [[0.2], [0.1]]


def test_numbered_columns_of_actions(folder: Path) -> None:
    header = [f"action_{j}" for j in (10, 2, 0)]
    (folder / "steps.csv").write_text("episode,x,reward," + ",".join(header) + "\n0,1,2,10,2,0\n")
    assert read("steps.csv")[0].actions.tolist() == [[0, 2, 10]]
    (folder / "steps.jsonl").write_text('{"episode": 0, "observation": [1, 2], "action": [3, 4], "reward": 1}\n')
    found = read("steps.jsonl")[0]
    assert (found.observations.tolist(), found.actions.tolist()) == ([[1, 2]], [[3, 4]])


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (
            ("episode,", "run,"),
            "steps.csv has no column 'episode'",
            "the columns are run, step, x, y, action, reward, behavior, terminated.",
        ),
        (
            ("action", "move"),
            "steps.csv has no column 'action', nor action[0]",
            "the columns are episode, step, x, y, move, reward, behavior, terminated.",
        ),
        (
            ("a,2,", "a,1,"),
            "column 'step' must differ within an episode; rows 1 and 3 are both step 1 of episode 'a'",
            "number the steps of each episode, or leave the column out.",
        ),
        (
            ("4,stay", "4,follow"),
            "column 'behavior' must be the same in all steps of an episode; row 4 holds 'stay', row 2 'follow'",
            "one policy acts in an episode.",
        ),
        (
            ("0.5,0.1", "far,0.1"),
            "column 'x' must be a number; row 1 holds 'far' (1 row)",
            "a step has finite numbers; name other columns with observation=[...], or leave them out of the file.",
        ),
    ],
)
def test_bad_files_of_steps(folder: Path, change: tuple[str, str], message: str, hint: str) -> None:
    (folder / "steps.csv").write_text(STEPS.replace(*change))
    refused(message, hint, lambda: read("steps.csv"))


def test_a_file_without_observations(folder: Path) -> None:
    (folder / "steps.csv").write_text("episode,action,reward\n0,1,2\n")
    refused(
        "steps.csv has no columns of observations",
        "the columns are episode, action, reward.",
        lambda: read("steps.csv"),
    )


def test_the_command_compares_recorded_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "steps.csv").write_text(STEPS)
    (folder / "mine.py").write_text("def stay(o):\n    return 0 * o[:1]\n\ndef up(o):\n    return 0 * o[:1] + 1\n")
    policies = ["--policy", "stay=mine:stay", "--policy", "up=mine:up"]
    command = ["compare", "steps.csv", "--episodes", "--bounds", "-1", "1", "--horizon", "2", *policies]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "Ranked by LDE with baseline mean" in shown
    assert "cannot tell" in shown
    for extra, message in [
        (["--unit", "x"], "--unit has no meaning with --episodes"),
        (["--text", "x"], "--text has no meaning with --episodes"),
    ]:
        assert main([*command, *extra]) == 2
        assert capsys.readouterr().err == f"podium: {message}\n\nHint: see podium compare --help.\n"
    assert main(["compare", "steps.csv", "--horizon", "3"]) == 2
    assert capsys.readouterr().err == "podium: --horizon needs --episodes\n\nHint: see podium compare --help.\n"

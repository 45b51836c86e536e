"""Families of logs of more than 20,000 rows: few states met over and over, hundreds, or a state for every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from podium.data.columns import Floats
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.worlds import (
    Draw,
    World,
    adaptive,
    coin,
    gaussian_noise,
    heavy_noise,
    random_policies,
    sample,
    seeking_behavior,
    smooth_world,
    softmax,
    spread,
    unit_draw,
)

LOGS: dict[str, Callable[[Generator, int, int], Draw]] = {}
HELD_OUT: set[str] = set()  # families that no constant and no rule was chosen on
HIDDEN = "500 states, hidden cause, ties"  # without logged propensities nothing in the log can show that it misleads
EVERY_SIZE: list[str] = []  # families of the table by size, small enough in memory for a million rows


def large(
    name: str, held_out: bool = False, every_size: bool = False
) -> Callable[[Callable[[Generator, int, int], Draw]], Callable[[Generator, int, int], Draw]]:
    """Register a family of large logs."""

    def register(draw: Callable[[Generator, int, int], Draw]) -> Callable[[Generator, int, int], Draw]:
        LOGS[name] = draw
        if held_out:
            HELD_OUT.add(name)
        if every_size:
            EVERY_SIZE.append(name)
        return draw

    return register


def level(rng: Generator, world: World) -> World:
    """The same world with policies of one value."""
    return replace(world, policies=spread(rng, world.policies, world.rewards, width=0.0))


def few(rng: Generator, k: int) -> World:
    """4 to 18 states, so that every (state, action) is repeated over and over."""
    states, n_actions = int(rng.integers(4, 19)), 6
    rewards = rng.standard_normal((states, 1)) + 0.7 * rng.standard_normal((states, n_actions))
    rewards += 0.7 * rng.standard_normal(n_actions)
    skill = rng.random(k)[:, None, None]
    belief = skill * rewards + (1 - skill) * rng.standard_normal((k, states, n_actions))
    behavior = random_policies(rng, 1, rewards.shape)[0]
    return World(np.arange(states, dtype=float)[:, None], rewards, behavior, softmax(2 * belief), noise=gaussian_noise)


def seek(rng: Generator, world: World) -> World:
    return replace(world, behavior=0.02 / world.rewards.shape[1] + 0.98 * seeking_behavior(rng, world.rewards))


def even(world: World) -> World:
    """The logging policy plays every action equally often."""
    return replace(world, behavior=np.full(world.rewards.shape, 1 / world.rewards.shape[1]))


def endless(rng: Generator, rows: int, k: int, n_actions: int = 4) -> World:
    """As many states as rows and more: hardly any is met twice."""
    return smooth_world(rng, k, 2, n_actions, states=2 * rows)


def unrepeated(world: World, rng: Generator, rows: int) -> Draw:
    """A log in which every row has a state of its own."""
    states = rng.permutation(len(world.points))[:rows]
    behavior = world.behavior[states]
    return world.record(rng, states, sample(rng, behavior), behavior)


def inert(world: World) -> World:
    """Rewards that no action changes, only the state; every policy has the same value."""
    shared = world.rewards.mean(axis=1, keepdims=True)
    return replace(world, rewards=np.repeat(shared, world.rewards.shape[1], axis=1))


def following(rng: Generator, world: World) -> World:
    """The logger follows what the state promises: one half of the actions in good states, the other in bad ones."""
    promise = world.rewards.mean(axis=1, keepdims=True)
    promise = (promise - promise.mean()) / promise.std()
    a = world.rewards.shape[1]
    side = np.where(np.arange(a) < a // 2, 1.0, -1.0)
    k = len(world.policies)
    taste = np.linspace(-1.5, 1.5, k)[rng.permutation(k)][:, None, None] * side
    policies = softmax(taste + 0.5 * np.log(world.policies))
    return replace(world, behavior=0.02 / a + 0.98 * softmax(promise * side), policies=policies)


def hide(rng: Generator, world: World, p: float, most: float, prize: float) -> World:
    """Two more actions, a prize and a loss: the logger plays each with probability p, policies with up to `most`."""
    k, states, _ = world.policies.shape
    worth = np.broadcast_to(world.rewards.mean() + np.array([prize, -prize]), (states, 2))
    share = np.broadcast_to(most * rng.random((k, 1, 2)), (k, states, 2))
    return replace(
        world,
        rewards=np.column_stack([worth, world.rewards]),
        behavior=np.column_stack([np.full((states, 2), p), (1 - 2 * p) * world.behavior]),
        policies=np.concatenate([share, (1 - share.sum(axis=2, keepdims=True)) * world.policies], axis=2),
    )


# --- few states, each met a thousand times ---------------------------------------------------------------------------


@large("few states", every_size=True)
def few_plain(rng: Generator, rows: int, k: int) -> Draw:
    return few(rng, k).log(rng, rows)


@large("few states, uniform logger", every_size=True)
def few_uniform(rng: Generator, rows: int, k: int) -> Draw:
    return even(few(rng, k)).log(rng, rows)


@large("few states, ties")
def few_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, few(rng, k)).log(rng, rows)


@large("few states, seeker", every_size=True)
def few_seeker(rng: Generator, rows: int, k: int) -> Draw:
    return seek(rng, few(rng, k)).log(rng, rows)


@large("few states, seeker, ties")
def few_seeker_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, seek(rng, few(rng, k))).log(rng, rows)


@large("few states, nearly equal")
def few_near(rng: Generator, rows: int, k: int) -> Draw:
    """Policies that differ by a thousandth of what they are."""
    world = few(rng, k)
    return replace(world, policies=0.999 * world.policies[:1] + 0.001 * world.policies).log(rng, rows)


@large("few states, nearly equal, ties")
def few_near_ties(rng: Generator, rows: int, k: int) -> Draw:
    world = level(rng, few(rng, k))
    return replace(world, policies=0.999 * world.policies[:1] + 0.001 * world.policies).log(rng, rows)


@large("few states, heavy tails, ties", held_out=True, every_size=True)
def few_heavy_ties(rng: Generator, rows: int, k: int) -> Draw:
    """Rewards with endless kurtosis, and a logger that hardly ever plays some actions."""
    world = level(rng, few(rng, k))
    logits = 1.5 * rng.standard_t(3, size=world.rewards.shape)
    return replace(world, noise=heavy_noise, behavior=1e-3 + 0.994 * softmax(logits)).log(rng, rows)


@large("few states, rare prize", every_size=True)
def few_rare(rng: Generator, rows: int, k: int) -> Draw:
    """What tells the policies apart is an action that the logger plays once in ten thousand rows."""
    world = few(rng, k)
    behavior = world.behavior.copy()
    behavior[:, 0] = 1e-4
    rewards = world.rewards.copy()
    rewards[:, 0] += rng.choice([-3.0, 3.0], size=len(rewards))
    behavior[:, 1:] *= (1 - 1e-4) / behavior[:, 1:].sum(axis=1, keepdims=True)
    share = rng.random(k)[:, None, None] * np.eye(6)[0]
    policies = softmax(np.log(world.policies[:1]) + 0.2 * rng.standard_normal(world.policies.shape))
    return replace(world, rewards=rewards, behavior=behavior, policies=0.8 * policies + 0.2 * share + (
        0.2 * (1 - share.sum(axis=-1, keepdims=True)) * world.policies[:1])).log(rng, rows)  # fmt: skip


# --- hundreds of states ----------------------------------------------------------------------------------------------


@large("500 states", every_size=True)
def hundreds(rng: Generator, rows: int, k: int) -> Draw:
    return smooth_world(rng, k, 5, 8).log(rng, rows)


@large("500 states, uniform logger", held_out=True, every_size=True)
def hundreds_uniform(rng: Generator, rows: int, k: int) -> Draw:
    return even(smooth_world(rng, k, 5, 8)).log(rng, rows)


@large("500 states, ties")
def hundreds_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, smooth_world(rng, k, 5, 8)).log(rng, rows)


@large("500 states, seeker, ties", every_size=True)
def hundreds_seeker_ties(rng: Generator, rows: int, k: int) -> Draw:
    world = smooth_world(rng, k, 2, 6)
    return level(rng, seek(rng, world)).log(rng, rows)


@large("500 states, coins, ties")
def hundreds_coins(rng: Generator, rows: int, k: int) -> Draw:
    world = smooth_world(rng, k, 2, 6)
    return replace(level(rng, replace(world, rewards=1 / (1 + np.exp(1 - world.rewards)))), noise=coin).log(rng, rows)


@large(HIDDEN, every_size=True)
def hundreds_hidden(rng: Generator, rows: int, k: int) -> Draw:
    """Logger and reward follow something that the log does not hold; its p are right nevertheless."""
    world = inert(smooth_world(rng, k, 2, 4))
    secret = rng.integers(2, size=len(world.points)) * 2.0 - 1
    lean = np.array([1.0, -1.0, 0.5, -0.5])
    told = np.repeat(np.arange(len(world.points) // 2), 2)  # each state shown stands for two
    points = world.points[2 * told]
    policies = world.policies[:, 2 * told]
    hidden = replace(world, points=points, policies=policies, rewards=world.rewards + secret[:, None],
                     behavior=softmax(secret[:, None] * lean))  # fmt: skip
    return hidden.log(rng, rows)


def segments(draw: Draw) -> Draw:
    """The same log with nine segments for its states; policies and logger know more than these."""
    cuts = np.digitize(draw.log.states, [-0.5, 0.5])
    return replace(draw, log=replace(draw.log, states=3 * cuts[:, 0] + cuts[:, 1]))


@large("9 segments of 500 states", every_size=True)
def coarse(rng: Generator, rows: int, k: int) -> Draw:
    return segments(smooth_world(rng, k, 2, 4).log(rng, rows))


@large("9 segments of 500 states, ties")
def coarse_ties(rng: Generator, rows: int, k: int) -> Draw:
    return segments(level(rng, smooth_world(rng, k, 2, 4)).log(rng, rows))


@large("units, ties")
def units_ties(rng: Generator, rows: int, k: int) -> Draw:
    return unit_draw(rng, rows, k, ties=True)


@large("large units, ties")
def large_units_ties(rng: Generator, rows: int, k: int) -> Draw:
    """100 units of hundreds of rows across all states, each with a taste of its own."""
    world = inert(smooth_world(rng, k, 3, 4))
    units = rng.integers(100, size=rows)
    taste = 0.5 * rng.standard_normal((100, 4))
    states = rng.integers(len(world.points), size=rows)
    actions = sample(rng, world.behavior[states])
    own = taste[units, actions]
    draw = replace(world, noise=lambda g, expected: expected + own + 0.5 * g.standard_normal(rows)).record(
        rng, states, actions, world.behavior[states]
    )
    return replace(draw, log=replace(draw.log, units=units))


@large("epsilon-greedy learner")
def learner(rng: Generator, rows: int, k: int) -> Draw:
    return adaptive(rng, rows, k, thompson=False)


@large("100 x 100, heavy-tailed logger")
def grid_heavy(rng: Generator, rows: int, k: int) -> Draw:
    return FAMILIES["heavy-tailed logger"].draw(rng, rows, k)


@large("100 x 100, ties")
def grid_ties(rng: Generator, rows: int, k: int) -> Draw:
    return FAMILIES["stress: ties, 100 actions"].draw(rng, rows, k)


@large("100 x 100, risky seeker")
def grid_risky(rng: Generator, rows: int, k: int) -> Draw:
    return FAMILIES["reward-seeking, risky pairs"].draw(rng, rows, k)


@large("500 states, prize at p = 1e-5", every_size=True)
def hundreds_prize(rng: Generator, rows: int, k: int) -> Draw:
    """What tells the policies apart are actions that are logged once in four logs."""
    return hide(rng, smooth_world(rng, k, 2, 6), 1e-5, most=0.2, prize=5.0).log(rng, rows)


@large("500 states, a little never logged, ties")
def hundreds_never(rng: Generator, rows: int, k: int) -> Draw:
    """Similar policies; what the log shows of them is made up for by actions that it could have shown."""
    world = smooth_world(rng, k, 2, 6)
    world = replace(world, policies=0.9 * world.policies[:1] + 0.1 * world.policies)
    return level(rng, hide(rng, world, 1e-7, most=0.0, prize=3.0)).log(rng, rows)


# --- every row has a state of its own --------------------------------------------------------------------------------


@large("own states", every_size=True)
def own(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(endless(rng, rows, k), rng, rows)


@large("own states, inert")
def own_inert(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(inert(endless(rng, rows, k)), rng, rows)


@large("own states, seeker, ties", held_out=True, every_size=True)
def own_seeker(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(level(rng, seek(rng, endless(rng, rows, k))), rng, rows)


@large("own states, logger follows the state")
def own_following(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(following(rng, endless(rng, rows, k)), rng, rows)


@large("own states, logger follows the state, inert")
def own_following_inert(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(following(rng, inert(endless(rng, rows, k))), rng, rows)


@large("own states, heavy tails, inert")
def own_heavy(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(replace(inert(endless(rng, rows, k)), noise=heavy_noise), rng, rows)


@large("2 rows a state, logger follows the state, inert")
def pairs_of_rows(rng: Generator, rows: int, k: int) -> Draw:
    return following(rng, inert(smooth_world(rng, k, 2, 4, states=rows // 2))).log(rng, rows)


@large("500 states, logger follows the state, inert")
def hundreds_following_inert(rng: Generator, rows: int, k: int) -> Draw:
    return following(rng, inert(smooth_world(rng, k, 2, 4))).log(rng, rows)


@large("own states, actions never logged", every_size=True)
def own_never(rng: Generator, rows: int, k: int) -> Draw:
    return unrepeated(hide(rng, endless(rng, rows, k), 1e-7, most=0.1, prize=3.0), rng, rows)


# --- rewards that are rare -------------------------------------------------------------------------------------------


def skewed(rng: Generator, world: World) -> World:
    """The logging policy plays one action in 90% of the rows, and each of the others in 1% or more."""
    a = world.rewards.shape[1]
    rest = 0.01 + (0.1 - 0.01 * (a - 1)) * softmax(rng.standard_normal(a - 1))
    return replace(world, behavior=np.broadcast_to(np.append(0.9, rest), world.rewards.shape))


def clicks(world: World, rate: float) -> World:
    """Clicks at a mean rate; effects of states and actions multiply it."""
    effect = np.exp(0.6 * world.rewards / world.rewards.std())
    return replace(world, rewards=rate * effect / effect.mean(), noise=coin)


def purchases(world: World) -> World:
    """Revenue: 2% of the rows have a purchase, of a log-normal amount; its rate depends on state and action."""
    effect = np.exp(0.5 * world.rewards / world.rewards.std())
    amount = float(np.exp(3.5))  # the mean of exp(3 + z)

    def noise(rng: Generator, expected: Floats) -> Floats:
        bought = rng.random(len(expected)) < expected / amount
        return np.where(bought, np.exp(3 + rng.standard_normal(len(expected))), 0.0)

    return replace(world, rewards=0.02 * amount * effect / effect.mean(), noise=noise)


@large("clicks at 0.5%, few states, uniform logger", every_size=True)
def few_clicks(rng: Generator, rows: int, k: int) -> Draw:
    return even(clicks(few(rng, k), 0.005)).log(rng, rows)


@large("clicks at 0.5%, few states, skewed logger", held_out=True, every_size=True)
def few_clicks_skewed(rng: Generator, rows: int, k: int) -> Draw:
    return skewed(rng, clicks(few(rng, k), 0.005)).log(rng, rows)


@large("clicks at 0.5%, few states, skewed logger, ties", every_size=True)
def few_clicks_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, skewed(rng, clicks(few(rng, k), 0.005))).log(rng, rows)


@large("clicks at 0.5%, 500 states, uniform logger", held_out=True, every_size=True)
def hundreds_clicks(rng: Generator, rows: int, k: int) -> Draw:
    return even(clicks(smooth_world(rng, k, 2, 6), 0.005)).log(rng, rows)


@large("clicks at 1%, 500 states, skewed logger", every_size=True)
def hundreds_clicks_skewed(rng: Generator, rows: int, k: int) -> Draw:
    return skewed(rng, clicks(smooth_world(rng, k, 2, 6), 0.01)).log(rng, rows)


@large("clicks at 1%, 500 states, skewed logger, ties", held_out=True, every_size=True)
def hundreds_clicks_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, skewed(rng, clicks(smooth_world(rng, k, 2, 6), 0.01))).log(rng, rows)


@large("revenue, mostly zero, few states", held_out=True, every_size=True)
def few_revenue(rng: Generator, rows: int, k: int) -> Draw:
    return purchases(few(rng, k)).log(rng, rows)


@large("revenue, mostly zero, 500 states, skewed logger", every_size=True)
def hundreds_revenue(rng: Generator, rows: int, k: int) -> Draw:
    return skewed(rng, purchases(smooth_world(rng, k, 2, 6))).log(rng, rows)


@large("revenue, mostly zero, 500 states, skewed logger, ties", held_out=True, every_size=True)
def hundreds_revenue_ties(rng: Generator, rows: int, k: int) -> Draw:
    return level(rng, skewed(rng, purchases(smooth_world(rng, k, 2, 6)))).log(rng, rows)

"""Episodes as interactions: whole recorded episodes become the rows of a log (Section 5.3 and Appendix C.3).

The state is the first observation, the action is the whole sequence of actions, the reward is the return up to a
horizon. Policies that act deterministically have no probabilities of sequences; a proxy stands for them
(`podium.episodes.proxy`), taken at the LOGGED observations, so that no simulator is needed.

Scales. IPS and DRE use pi/p alone, which is computed from logarithms, so that probabilities of 1e-300 do no harm.
LDE and DiM use pi itself: a proxy of 1e-8 beside one of 1 counts for nothing, and is meant to. Only where every
number would vanish (below 1e-30), or where densities exceed 1, are all of them divided by the largest: a common
factor, which changes no order. `compare` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.comparison.result import Comparison
from podium.data.warned import warn_caller
from podium.episodes.interactions import Interactions
from podium.episodes.log import EpisodeLog
from podium.episodes.proxy import Coordinates, log_proxy
from podium.episodes.recordings import Episode
from podium.episodes.rollouts import record
from podium.episodes.steps import read
from podium.estimates.estimators import EPISODIC
from podium.estimates.evaluate import Estimates

__all__ = ["Episode", "EpisodeLog", "Interactions", "compare", "evaluate", "log_proxy", "read", "record"]


def compare(
    episodes: Any,
    policies: Mapping[str, Any],
    *,
    behavior: Any = None,
    bounds: Any = None,
    horizon: int | None = None,
    coordinates: Coordinates = "mean",
    probabilities: str = "auto",
    gamma: float = 1.0,
    estimator: Any = "LDE",
    **options: Any,
) -> Comparison:
    """Rank policies on recorded episodes and judge every pair.

    Parameters
    ----------
    episodes : a list of episodes (see `Episode`; mappings and tuples serve), a Minari dataset, or what `read` and
        `record` return
    policies : name -> policy: a function of an observation or of a batch of them, a Stable-Baselines3 model, an object
        with `predict`, or "sb3:ALGO:model.zip"; "logged" is the behaviour policy itself. An object with
        `log_prob(observations, actions)`, or a function of the two, offers log-densities, one per step
    behavior : who acted: the name of a policy, a policy, one of those per episode, or a mapping of further policies
        that the episodes name. By default the names in `Episode.behavior`. Without it IPS and DRE are unavailable
    bounds : (low, high) of the actions, a Gymnasium space or environment; by default those of the recording or models
    horizon : steps that count; by default whole episodes
    coordinates : how several coordinates of an action are averaged; see `podium.episodes.proxy.log_proxy`
    probabilities : "proxy", "density", or "auto": densities where every policy offers them, else the proxy for all
    gamma : the discount: the reward of step t = 0, 1, ... counts gamma^t times; weights do not change
    estimator : what ranks; LDE did best in the paper
    options : those of `podium.compare`

    Examples
    --------
    >>> import numpy as np, podium
    >>> rng = np.random.default_rng(0)
    >>> seen = [rng.normal(size=(10, 1)) for _ in range(5)]
    >>> steps = [(s, a := np.clip(k * s, -1, 1), -np.abs(s - a)[:, 0]) for k, s in enumerate(seen)]
    >>> podium.episodes.compare(steps, {"follow": lambda s: s, "stay": lambda s: 0 * s}, bounds=(-9, 9)).ranking
    ['follow', 'stay']
    """
    log = EpisodeLog(episodes, bounds, horizon, coordinates, probabilities, gamma)
    result = log.compare(policies, behavior=behavior, estimator=estimator, **options)
    warn_caller(result.warnings)
    return result


def evaluate(
    episodes: Any,
    policies: Mapping[str, Any],
    *,
    behavior: Any = None,
    bounds: Any = None,
    horizon: int | None = None,
    gamma: float = 1.0,
    estimators: str | Sequence[Any] = tuple(EPISODIC),
    **options: Any,
) -> Estimates:
    """The values of policies by importance sampling on episodes: TIS, PDIS, WIS, PDWIS (see `trajectories.py`).

    They need the probability, or density, of every logged step: policies with `log_prob(observations, actions)`, or
    functions of the two, and the behaviour policy likewise, or `Episode.propensities`. The other methods of
    `podium.estimators` see whole episodes as rows. `gamma` discounts: the reward of step t = 0, 1, ... counts gamma^t
    times.

    Examples
    --------
    >>> import numpy as np
    >>> coin = [Episode([[0.0], [0.0]], [1, 0], [1.0, 0.0], propensities=[0.5, 0.5])]
    >>> always = lambda observations, actions: np.where(actions == 1, 0.0, -np.inf)
    >>> evaluate(coin, {"always 1": always}, estimators=["TIS", "PDIS"]).values["always 1"]
    {'TIS': 0.0, 'PDIS': 2.0}
    """
    log = EpisodeLog(episodes, bounds=bounds, horizon=horizon, gamma=gamma)
    return log.evaluate(policies, behavior, estimators, **options)

"""Continuous actions: kernels smooth a policy's chosen action, so that logged actions near it can speak for it.

A policy that chooses the number pi(s) is replaced by one that draws around it, with the density

    K_h(a - pi(s)) = K((a - pi(s)) / h) / h,

and everything else is as for any log: w_n = K_h(a_n - pi(s_n)) / p_n for IPS and its family, where p_n is the density
with which the logger drew a_n, and w_n = K_h(a_n - pi(s_n)) for LDE and DiM (Kallus and Zhou, 2018). Actions of several
coordinates have the product of the coordinates' kernels. What is judged are the smoothed policies: the bias that
remains grows with the bandwidth, the noise as it falls. A model of the reward is asked at pi(s) and not averaged over
the kernel, as in other libraries: with one, DRE, SNDR and DirectModel aim at the policies themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.comparison.result import Comparison
from podium.continuous.kernels import KERNELS
from podium.continuous.log import METHODS, ContinuousLog
from podium.data.arguments import checked, one_of, texts
from podium.data.arguments import path as at_path
from podium.data.tables import open_table
from podium.data.warned import warn_caller
from podium.estimates.evaluate import Estimates

__all__ = ["KERNELS", "ContinuousLog", "compare", "evaluate", "read_log"]


@checked(path=at_path, text=texts)
def read_log(path: str | Path, *, text: Sequence[str] = (), **roles: Any) -> ContinuousLog:
    """Read a log whose actions are numbers from a CSV, Parquet or JSON lines file.

    Parameters
    ----------
    path, text : as in `podium.read_log`
    roles : `state`, `action`, `reward`, `propensity`, `time` and `unit` as in `podium.read_log`; the propensity is the
        density with which the logged action was drawn, and may also be called "density"
    """
    return ContinuousLog.from_columns(open_table(path, text).columns, **roles)


def check_log(log: Any) -> ContinuousLog:
    """Refuse anything that is not a log of such actions."""
    found: ContinuousLog = one_of(ContinuousLog, hint="use ContinuousLog(states, actions, rewards).")("log", log)
    return found


def compare(log: ContinuousLog, policies: Mapping[str, Any], estimator: Any = None, **options: Any) -> Comparison:
    """Rank policies that choose numbers, and judge every pair.

    Parameters
    ----------
    log : a `ContinuousLog`
    policies : name -> a number or a point, an array of chosen actions, a function of the states, an object with
        predict, or a SPEC: "column:NAME", "constant:2.5", "sql:EXPRESSION", "package.module:object"; "logged" is what
        the logger itself does
    estimator : what ranks; DRE where densities are known, else LDE
    options : `baseline` ("mean", a number, "linear", an object with fit/predict, v(states) or q(states, actions)),
        `kernel`, `bandwidth`, and those of `podium.compare` other than `behavior` and `actions`

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.uniform(0, 1, 200)
    >>> log = ContinuousLog(np.zeros(200), a, -((a - 0.7) ** 2), densities=np.ones(200))
    >>> compare(log, {"0.2": 0.2, "0.7": 0.7}).ranking
    ['0.7', '0.2']
    """
    result = check_log(log).compare(policies, estimator, **options)
    warn_caller(result.warnings)
    return result


def evaluate(
    log: ContinuousLog,
    policies: Mapping[str, Any],
    estimators: str | Sequence[Any] = METHODS,
    **options: Any,
) -> Estimates:
    """The table of estimates alone; the options are those of `compare` in this module."""
    return check_log(log).evaluate(policies, estimators, **options)

"""Whether estimated propensities can be believed: calibration, balance, gain over plain shares, tiny probabilities.

Nothing here can see what the logger knew and the log does not hold; that stays an assumption, and is always said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from podium.data.columns import Codes, Floats, descending, factorize, group_sums
from podium.data.eligible import Mask
from podium.data.errors import listed, show_value
from podium.data.facts import Fact
from podium.data.log import Log

BINS = 10
FEW_ROWS = 50
ROWS_PER_ACTION = 10
TINY = 0.01  # probabilities below this make single rows count a hundredfold
TINY_SHARE = 0.05
MISCALIBRATED = 0.05  # share of rows that the estimate puts in the wrong place
# Verdicts on longer logs come from a sample of this many rows. What a balance check of that many rows would not notice
# is small beside their errors; without this, more rows turned 7 claims into none on "9 segments of 500 states".
JUDGED_ROWS = 20_000
RARE_CHANCE = 1e-3  # how unlikely a figure must be by chance alone before it is held against the estimate
HIDDEN = "whatever the logger knew of the rewards stands in the state columns"


@dataclass(frozen=True)
class Bin:
    """Cells (row, action) of similar probability: what was predicted, and how often the action was logged."""

    predicted: float
    observed: float
    cells: int


@dataclass(frozen=True)
class Doubt:
    """One reason not to believe the estimate, and what to do; a grave one forbids the use of IPS and DRE."""

    name: str
    grave: bool
    meaning: str
    advice: str


@dataclass(frozen=True, eq=False)
class Belief:
    """The figures that speak for and against estimated propensities.

    Attributes
    ----------
    log_loss, share_log_loss : mean of -log p_n out of fold, by the estimate and by each action's share of the rows
    gain_z : how sure it is that the estimate predicts better than the shares (z, clustered by unit)
    calibration_error : share of rows that the calibration curve puts in the wrong place
    calibration_p : how likely a curve this far off would be by chance
    balance_z : largest of the z of sum (1[a_n = a] / p - 1) x over actions a and state features x, which weighting by
        the right propensities keeps near 0; `balance_limit` is what chance alone stays below
    balance_at : the action and the feature where it is largest
    tiny_share, least : share of rows with p_n below .01, and the smallest p_n
    ess_share : effective share of the rows under the weights 1 / p_n
    uncovered : share of cells (row, action) with a probability below a tenth of 1 / A
    rare_actions : logged actions with fewer than 10 rows
    curve : the calibration curve
    doubts : reasons not to believe the estimate, gravest first
    """

    rows: int
    log_loss: float
    share_log_loss: float
    gain_z: float
    calibration_error: float
    calibration_p: float
    balance_z: float
    balance_limit: float
    balance_at: tuple[str, str]
    tiny_share: float
    least: float
    ess_share: float
    uncovered: float
    rare_actions: int
    curve: tuple[Bin, ...]
    doubts: tuple[Doubt, ...] = ()

    @property
    def structured(self) -> bool:
        """Whether the states help to predict the action."""
        return self.gain_z > 2

    @property
    def verdict(self) -> str:
        """ "believable", "with care" or "do not use"."""
        if any(d.grave for d in self.doubts):
            return "do not use"
        return "with care" if self.doubts else "believable"

    def to_dict(self) -> dict[str, Any]:
        figures = asdict(self)
        figures["balance_at"] = list(self.balance_at)
        return {"verdict": self.verdict, "structured": self.structured, "assumes": HIDDEN, **figures}


def assess(log: Log, behavior: Floats, shares: Floats, features: Floats, names: Sequence[str]) -> Belief:
    """Look at out-of-fold probabilities (N, A) beside each action's out-of-fold share (N, A)."""
    from scipy.special import chdtrc, ndtri

    rows, n = np.arange(len(log)), len(log)
    p, share = behavior[rows, log.action_codes], shares[rows, log.action_codes]
    gain = np.log(p) - np.log(share)
    curve, error, chi2 = calibration_curve(behavior, log.action_codes, log.eligible)
    counts = np.bincount(log.action_codes, minlength=log.n_actions)
    z, cells = balance(log, behavior, features, counts)
    action, feature = divmod(int(descending(np.abs(z).ravel())[0]), z.shape[1])
    figures = {
        "rows": n,
        "log_loss": float(-np.log(p).mean()),
        "share_log_loss": float(-np.log(share).mean()),
        "gain_z": z_of_mean(gain, log),
        "calibration_error": error,
        "calibration_p": float(chdtrc(max(len(curve), 1), chi2)),
        "balance_z": float(np.abs(z).max()) if cells else 0.0,
        "balance_limit": float(-ndtri(RARE_CHANCE / 2 / max(cells, 1))),
        "balance_at": (show_value(log.action_space[action]), names[feature]),
        "tiny_share": float((p < TINY).mean()),
        "least": float(p.min()),
        "ess_share": float((1 / p).sum() ** 2 / (1 / p**2).sum() / n),
        "uncovered": uncovered_share(log, behavior),
        "rare_actions": int(((counts > 0) & (counts < ROWS_PER_ACTION)).sum()),
        "curve": curve,
    }
    first = Belief(**figures)  # type: ignore[arg-type]
    return Belief(**figures, doubts=tuple(find_doubts(first, log, counts)))  # type: ignore[arg-type]


def find_doubts(b: Belief, log: Log, counts: Codes) -> list[Doubt]:
    """The reasons not to believe an estimate, gravest first."""
    found: list[Doubt] = []

    def doubt(code: str, grave: bool, advice: str, **figures: Any) -> None:
        found.append(Doubt(code, grave, Fact(code, **figures), advice))

    another = "Try another model, such as estimate:boosting"
    if (counts > 0).sum() < 2:
        doubt("one action", True, "Log other actions too")
    if b.rows < FEW_ROWS:
        doubt("few rows", True, "Use LDE, which needs no propensities", rows=b.rows)
    if b.calibration_p < RARE_CHANCE and b.calibration_error > MISCALIBRATED:
        doubt("calibration", True, another, misplaced=b.calibration_error)
    if b.balance_z * min(1.0, np.sqrt(JUDGED_ROWS / b.rows)) > b.balance_limit:
        action, feature = b.balance_at
        doubt("balance", True, another, feature=feature, action=action, z=b.balance_z)
    if b.rare_actions:
        rare = [x for x, c in zip(log.action_space, counts, strict=True) if 0 < c < ROWS_PER_ACTION]
        doubt("rare actions", False, "Merge rare actions, or log more", rows=ROWS_PER_ACTION, actions=listed(rare, 5))
    if b.tiny_share > TINY_SHARE:
        doubt("tiny", False, "IPS and DRE hang on these rows; prefer LDE", share=b.tiny_share, below=TINY)
    return found


def uncovered_share(log: Log, behavior: Floats) -> float:
    """The share of cells (row, eligible action) with a probability below a tenth of 1 / A."""
    rare = behavior < 0.1 / log.choices[:, None]
    return float(rare.mean() if log.eligible is None else rare[log.eligible].mean())


def calibration_curve(
    behavior: Floats, actions: Codes, eligible: Mask | None = None
) -> tuple[tuple[Bin, ...], float, float]:
    """The curve over bins that expect about the same number of rows, the share of rows misplaced, and chi-square.

    Cells of equal probability stay in one bin, whatever the order of the rows.
    """
    n = len(behavior)
    distinct, cell = np.unique(np.round(behavior, 9), return_inverse=True)
    cells = np.bincount(cell.ravel(), None if eligible is None else eligible.ravel()).astype(np.float64)
    hits = np.bincount(cell.reshape(behavior.shape)[np.arange(n), actions], minlength=len(cells))
    mass = distinct * cells
    middle = np.cumsum(mass) - mass / 2
    edge = np.minimum((middle / n * BINS).astype(np.int64), BINS - 1)
    size, expected, seen, spread = (
        np.bincount(edge, w, minlength=BINS) for w in (cells, mass, hits, mass * (1 - distinct))
    )
    curve = tuple(
        Bin(float(expected[b] / size[b]), float(seen[b] / size[b]), int(size[b])) for b in range(BINS) if size[b]
    )
    gap = seen - expected
    chi2 = float(np.divide(gap**2, spread, out=np.zeros(BINS), where=spread > 1e-9).sum())
    return curve, float(np.abs(gap).sum() / 2 / n), chi2


def balance(log: Log, behavior: Floats, features: Floats, counts: Codes) -> tuple[Floats, int]:
    """(A, d) z of sum_n (1[a_n = a] / p(a|s_n) - 1) x_n, its variance as the estimate implies; 0 for rare actions.

    The sum is over the rows in which the action is eligible. The features come with a first column of ones. Unit
    clusters are ignored: rows of a unit share states, not draws.
    """
    n, a = behavior.shape
    p = behavior[np.arange(n), log.action_codes]
    weighted = np.zeros((a, features.shape[1]))
    np.add.at(weighted, log.action_codes, features / p[:, None])
    expected = features.sum(axis=0) if log.eligible is None else log.eligible.T.astype(np.float64) @ features
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = 1 / behavior - 1
        variance = (odds if log.eligible is None else np.where(log.eligible, odds, 0.0)).T @ features**2
        z = (weighted - expected) / np.sqrt(variance)
    common = counts >= ROWS_PER_ACTION
    z[~common | ~np.isfinite(z).all(axis=1)] = 0.0
    return z, int(common.sum()) * features.shape[1]


def z_of_mean(values: Floats, log: Log) -> float:
    """The mean of a figure per row in standard errors; rows of one unit count together."""
    codes = np.arange(len(values)) if log.units is None else factorize(log.units)[0]
    many = int(codes.max()) + 1
    centred = group_sums(codes, values - values.mean(), many)
    error = float(np.sqrt((centred**2).sum()))
    return float(values.sum()) / error if error > 0 else 0.0

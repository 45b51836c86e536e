"""podium: which policy is better, from the few interactions you have.

log -> policies -> estimate -> compare -> report
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium import estimators
from podium.compare import compare, plan
from podium.comparison import Comparison, Interval, Pair
from podium.diagnostics import Diagnosis, diagnose
from podium.errors import PodiumError
from podium.estimate import Estimates, evaluate
from podium.estimators import DIM, DRE, ESTIMATORS, IPS, LDE, Estimator
from podium.io import read_log
from podium.log import Log
from podium.planning import Plan
from podium.policies.drafts import Policy
from podium.propensities.estimated import PropensityEstimate, estimate_propensities
from podium.propensities.loggers import Loggers
from podium.scan import ScannedLog, scan_log
from podium.scores import kendall, regret, score, spearman
from podium.spectrum import Spectrum, spectrum
from podium.states import StateComparison, compare_states

if TYPE_CHECKING:
    from podium import bandits, continuous, episodes, plots, theory

__version__ = "0.1.0"

__all__ = [
    "DIM",
    "DRE",
    "ESTIMATORS",
    "IPS",
    "LDE",
    "Comparison",
    "Diagnosis",
    "Estimates",
    "Estimator",
    "Interval",
    "Log",
    "Loggers",
    "Pair",
    "Plan",
    "PodiumError",
    "Policy",
    "PropensityEstimate",
    "ScannedLog",
    "Spectrum",
    "StateComparison",
    "bandits",
    "compare",
    "compare_states",
    "continuous",
    "diagnose",
    "episodes",
    "estimate_propensities",
    "estimators",
    "evaluate",
    "kendall",
    "plan",
    "plots",
    "read_log",
    "regret",
    "scan_log",
    "score",
    "spearman",
    "spectrum",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in (
        "bandits",
        "continuous",
        "episodes",
        "plots",
        "theory",
    ):  # loaded at first use: `import podium` stays cheap
        return import_module(f"podium.{name}")
    raise AttributeError(f"module 'podium' has no attribute {name!r}")

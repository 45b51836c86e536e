"""podium: which policy is better, from the few interactions you have.

log -> policies -> estimate -> compare -> report
"""

import podium.command.start  # first: it guards the loading of all others

# isort: split
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import podium.outputs.attached  # gives results their report and figures
import podium.propensities.behavior  # noqa: F401 (lets logs read behavior policies)
from podium.comparison.compare import compare, plan
from podium.comparison.diagnostics import Diagnosis, diagnose
from podium.comparison.pair import Interval, Pair
from podium.comparison.planning import Plan
from podium.comparison.result import Comparison
from podium.comparison.saved import load
from podium.comparison.scores import kendall, regret, score, spearman
from podium.comparison.spectrum import Spectrum, spectrum
from podium.comparison.states import StateComparison, compare_states
from podium.data.errors import PodiumError
from podium.data.exports import read_log
from podium.data.log import Log
from podium.data.opening import scan_log
from podium.data.scan import ScannedLog
from podium.data.warned import PodiumWarning
from podium.estimates import estimators
from podium.estimates.estimators import DIM, DRE, ESTIMATORS, IPS, LDE, Estimator
from podium.estimates.evaluate import Estimates, evaluate
from podium.policies.drafts import Policy
from podium.policies.recipes import Learned
from podium.propensities.estimated import PropensityEstimate, estimate_propensities
from podium.propensities.loggers import Loggers
from podium.suggestions.suggest import Suggestion, suggest
from podium.version import VERSION as __version__  # noqa: F401

if TYPE_CHECKING:
    from podium import continuous, episodes, theory
    from podium.outputs import plots
    from podium.worlds import bandits

__all__ = [
    "DIM", "DRE", "ESTIMATORS", "IPS", "LDE", "Comparison", "Diagnosis", "Estimates", "Estimator", "Interval",
    "Learned", "Log", "Loggers", "Pair", "Plan", "PodiumError", "PodiumWarning", "Policy", "PropensityEstimate",
    "ScannedLog", "Spectrum", "StateComparison", "Suggestion", "bandits", "compare", "compare_states", "continuous",
    "diagnose", "episodes", "estimate_propensities", "estimators", "evaluate", "kendall", "load", "plan", "plots",
    "read_log", "regret", "scan_log", "score", "spearman", "spectrum", "suggest", "theory",
]  # fmt: skip

# Modules keep the paths that they had in the first release.
OLD = {
    "errors": "data", "columns": "data", "frames": "data", "log": "data", "display": "outputs",
    "terms": "estimates", "moments": "estimates", "compare": "comparison", "states": "comparison",
    "scores": "comparison", "diagnostics": "comparison", "planning": "comparison", "spectrum": "comparison",
}  # fmt: skip
for _name, _folder in OLD.items():
    sys.modules[f"podium.{_name}"] = sys.modules[f"podium.{_folder}.{_name}"]
sys.modules["podium.io"] = sys.modules["podium.data.exports"]
sys.modules["podium.scan"] = sys.modules["podium.data.opening"]

LATER = {name: f"podium.{name}" for name in ("continuous", "episodes", "theory")}
LATER |= {"bandits": "podium.worlds.bandits", "plots": "podium.outputs.plots"}


def __getattr__(name: str) -> Any:
    """Modules that are loaded when they are first used: `import podium` stays cheap."""
    if name in LATER or name in OLD or name in ("io", "scan"):
        return import_module(LATER.get(name, f"podium.{name}"))
    raise AttributeError(f"module 'podium' has no attribute {name!r}")

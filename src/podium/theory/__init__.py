"""The paper's theorems, and a check of what they assume.

None of these numbers answers "how sure is the ranking?": the bounds are true and far too weak for that.
"""

from podium.theory.assumption import AssumptionCheck, check_assumption
from podium.theory.bounds import Bound, comparison_bound, expected_lde, reward_radius, reward_range_of, state_bound

__all__ = [
    "AssumptionCheck", "Bound", "check_assumption", "comparison_bound", "expected_lde", "reward_radius",
    "reward_range_of", "state_bound",
]  # fmt: skip

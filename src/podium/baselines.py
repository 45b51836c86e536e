"""Public path of `podium.estimates.baselines` and `podium.estimates.learned`."""

from podium.estimates.baselines import *  # noqa: F403
from podium.estimates.learned import *  # noqa: F403

"""Public path of `podium.estimates.baselines`."""

from podium.estimates.baselines import *  # noqa: F403

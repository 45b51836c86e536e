"""Public path of `podium.estimates.estimators`."""

from podium.estimates.estimators import *  # noqa: F403

"""Public path of `podium.worlds.simulator`."""

from podium.worlds.simulator import *  # noqa: F403

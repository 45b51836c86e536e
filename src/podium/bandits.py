"""Public path of `podium.worlds.bandits`."""

from podium.worlds.bandits import *  # noqa: F403

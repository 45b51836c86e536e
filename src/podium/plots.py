"""Public path of `podium.outputs.plots`."""

from podium.outputs.plots import *  # noqa: F403

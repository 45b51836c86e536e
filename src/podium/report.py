"""Public path of `podium.outputs.report`."""

from podium.outputs.report import *  # noqa: F403

"""Public path of `podium.experiments.calibration`: `python -m podium.calibration` and its modules run from there."""

from podium.experiments.calibration import __path__ as __path__
